"""The errors of this package. Bytes that cannot be read raise WireError as everywhere."""

from __future__ import annotations

from ottla.wire.errors import ErrorCode


class Reject(Exception):
    """A request, or one entry of it, that must be refused. `message` is for people; None lets clients use their own."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message or self.code.meaning}"


class MetadataFault(ValueError):
    """A record that does not fit the state it is replayed onto. The record has changed nothing."""


class UnsupportedMetadataError(MetadataFault):
    """A record of a later version or an unknown feature: what follows cannot be understood, so a node must stop."""
