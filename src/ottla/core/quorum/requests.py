"""The requests of a replica that are on their way, and the peers that are left alone for a while.

A request that is not answered in time counts as failed. A peer that fails is asked again after a pause, which is twice
as long after each failure. When the node enters another state, it waits for no answer of the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ottla.core.quorum.events import Destination, QuorumSettings

__all__ = ["Requests", "Sent"]


class Sent(msgspec.Struct, frozen=True):
    """A request on its way, and when to give its answer up."""

    request_id: int
    to: Destination
    request: Any
    until_ms: int


class _Pause(msgspec.Struct, frozen=True):
    """How long a peer that has failed is left alone."""

    until_ms: int = 0
    length_ms: int = 0


_NO_PAUSE = _Pause()


class Requests:
    """Iterates over what is on its way."""

    __slots__ = ("_last_id", "_pauses", "_sent", "_settings", "_unanswered_at_ms")

    def __init__(self, settings: QuorumSettings) -> None:
        self._settings = settings
        self._sent: dict[int, Sent] = {}
        self._pauses: dict[Destination, _Pause] = {}
        self._unanswered_at_ms: dict[tuple[str, int], int] = {}
        """Addresses of nodes that have not answered the last request, and since when that is known."""
        self._last_id = 0

    def __iter__(self) -> Iterator[Sent]:
        return iter(self._sent.values())

    def begin(self, to: Destination, request: Any, now_ms: int) -> Sent:  # noqa: ANN401
        self._last_id += 1
        sent = self._sent[self._last_id] = Sent(self._last_id, to, request, now_ms + self._settings.request_timeout_ms)
        return sent

    def end(self, request_id: int) -> Sent | None:
        """The request that is answered, or will not be; None if nobody waits for it any more."""
        return self._sent.pop(request_id, None)

    def wait_until(self, until_ms: int) -> None:
        """Give no answer up before a time."""
        for request_id, each in self._sent.items():
            if each.until_ms < until_ms:
                self._sent[request_id] = msgspec.structs.replace(each, until_ms=until_ms)

    def clear(self) -> None:
        """Forget what is on its way, and who has failed."""
        self._sent.clear()
        self._pauses.clear()

    def succeeded(self, to: Destination) -> None:
        self._pauses.pop(to, None)

    def failed(self, to: Destination, now_ms: int, at_least_ms: int = 0) -> None:
        before = self._pauses.get(to, _NO_PAUSE)
        settings = self._settings
        length_ms = min(2 * before.length_ms, settings.retry_backoff_max_ms) or settings.retry_backoff_ms
        self._pauses[to] = _Pause(now_ms + max(length_ms, at_least_ms), length_ms)

    def paused_until(self, to: Destination) -> int:
        """Until when a peer is left alone; it may be over."""
        return self._pauses.get(to, _NO_PAUSE).until_ms

    def note_answer(self, to: Destination, now_ms: int, *, is_answered: bool) -> None:
        if is_answered:
            self._unanswered_at_ms.pop((to.host, to.port), None)
        else:
            self._unanswered_at_ms[to.host, to.port] = now_ms

    def has_failed_since(self, to: Destination, since_ms: int) -> bool:
        """Whether the last request there was given up after a time."""
        return self._unanswered_at_ms.get((to.host, to.port), since_ms) > since_ms
