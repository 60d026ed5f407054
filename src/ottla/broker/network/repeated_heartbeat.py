"""The last heartbeat of a connection. A member of a group that is at rest says the same again and again, and hears the
same: neither is decoded or encoded again while it stays so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

__all__ = ["HEARTBEATS", "REPEATED_MAX_BYTES", "RepeatedHeartbeat"]

HEARTBEATS: Final = frozenset({12, 68, 76, 88})
"""The API keys of the heartbeats of all kinds of groups."""
REPEATED_MAX_BYTES: Final = 1024
"""Longer heartbeats are not remembered."""


class Version(Protocol):
    """One version of an API."""

    version: int
    encode: Callable[[Any], bytes] | None


class RepeatedHeartbeat:
    """A heartbeat and its answer, as messages and as bytes."""

    __slots__ = ("_answer", "_answer_version", "_encoded", "body", "client_id", "known", "rest")

    def __init__(self, known: Version, rest: bytes, client_id: str, body: Any) -> None:  # noqa: ANN401
        self.known = known
        self.rest = rest
        """The frame without API key, version and correlation id."""
        self.client_id = client_id
        self.body = body
        self._answer: Any = None
        self._answer_version = -1
        self._encoded = b""

    def encoded(self, known: Version, answer: Any) -> bytes:  # noqa: ANN401
        """The bytes of an answer."""
        if answer is not self._answer or known.version != self._answer_version:
            assert known.encode is not None, "a heartbeat's answer has no records"
            self._encoded = known.encode(answer)
            self._answer, self._answer_version = answer, known.version
        return self._encoded
