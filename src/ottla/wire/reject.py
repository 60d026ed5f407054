"""A request that must be refused: the only exception of the core that clients see."""

from __future__ import annotations

from typing import Final

from ottla.wire.errors import ErrorCode

__all__ = ["Reject", "message_of", "shortened"]

_MESSAGE_CHARS_MAX: Final = 1_000
"""Names in a message can be as long as a response can hold, and then the message could not be sent."""


class Reject(Exception):
    """A request, or one entry of it, that must be refused. `message` is for people; None lets clients use their own."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = None if message is None else shortened(message)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message or self.code.meaning}"


def shortened(message: str) -> str:
    """The message of an error as it is sent."""
    return message if len(message) <= _MESSAGE_CHARS_MAX else f"{message[:_MESSAGE_CHARS_MAX]}…"


def message_of(error: Exception) -> str | None:
    """The message of an error in the response, beside its code."""
    return error.message if isinstance(error, Reject) else str(error) or None
