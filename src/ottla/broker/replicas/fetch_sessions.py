"""Fetch sessions (KIP-227): the broker keeps the partitions of a client, so that later requests name only changes.

Theory of operation. A session is a list of partitions in the order in which they are served, an id and the epoch that
the next request must have. It belongs to the broker, not to a connection: a client may continue or close its session on
another one. ::

    request (id, epoch)          what happens
    (any, 0)                     the session `id` is closed; a full fetch, which opens a new one if there is room
    (any, -1)                    the session `id` is closed; a full fetch, and no session
    (id, expected epoch)         incremental: partitions are added, changed and forgotten; the epoch grows by one
    (id, another epoch)          INVALID_FETCH_SESSION_EPOCH; the session stays as it is
    (unknown id, above 0)        FETCH_SESSION_ID_NOT_FOUND
    ids where names were, or     FETCH_SESSION_TOPIC_ID_ERROR
    the reverse

An incremental response has only the partitions with news; those with records go to the end of the order, so that no
partition starves behind a busy one. Nothing here does I/O; the caller passes the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "SESSION_PARTITIONS_MAX", "FetchSession", "FetchSessions", "WantedPartition"]

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
_EPOCH_MAX: Final = (1 << 31) - 1
_UNKNOWN: Final = -1
SESSION_PARTITIONS_MAX: Final = 1_000_000
"""The bound on partitions of all sessions; a client that would exceed it is served without a session."""

Key = tuple[object, int]
"""Topic name or id, and partition."""


class WantedPartition:
    """A partition of a session: the client's position, and the last values sent to it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "told_high_watermark",
        "told_log_start_offset",
        "topic_id",
        "topic_name",
    )

    def __init__(
        self,
        topic_name: str,
        topic_id: bytes,
        partition: int,
        *,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        """Where the log of a follower begins."""
        self.told_high_watermark = _UNKNOWN
        self.told_log_start_offset = _UNKNOWN

    def take_over(self, before: WantedPartition) -> None:
        """Keep the values that were sent to a client who has gone on since.

        A follower that begins anew, in another leader epoch or where it was, may have dropped the last response.
        """
        has_gone_on = before.fetch_offset != self.fetch_offset
        if has_gone_on and before.current_leader_epoch == self.current_leader_epoch:
            self.told_high_watermark = before.told_high_watermark
            self.told_log_start_offset = before.told_log_start_offset

    def is_news(
        self, error_code: int, has_records: bool, high_watermark: int, log_start_offset: int, *, is_special: bool
    ) -> bool:
        """Whether an incremental response must include this partition; remembers the values sent."""
        changed = (high_watermark, log_start_offset) != (self.told_high_watermark, self.told_log_start_offset)
        # After an error, or a divergence, the next response without one is news, even if nothing has changed meanwhile.
        self.told_high_watermark = _UNKNOWN if error_code or is_special else high_watermark
        self.told_log_start_offset = log_start_offset
        return bool(error_code) or has_records or changed or is_special


class FetchSession:
    __slots__ = ("epoch", "is_follower", "last_used_ms", "partitions", "session_id", "uses_ids")

    def __init__(self, session_id: int, *, uses_ids: bool, is_follower: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.is_follower = is_follower
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[Key, WantedPartition] = {}

    def key(self, topic_name: str, topic_id: bytes, partition: int) -> Key:
        return (topic_id if self.uses_ids else topic_name, partition)

    def add(self, wanted: WantedPartition) -> None:
        key = self.key(wanted.topic_name, wanted.topic_id, wanted.partition)
        known = self.partitions.get(key)
        if known is not None:
            wanted.take_over(known)
        self.partitions[key] = wanted

    def to_the_end(self, wanted: WantedPartition) -> None:
        key = self.key(wanted.topic_name, wanted.topic_id, wanted.partition)
        if key in self.partitions:
            self.partitions[key] = self.partitions.pop(key)


class FetchSessions:
    """All sessions of a node. `new_id` draws a random positive int32."""

    def __init__(self, slots: int, evict_after_ms: int, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._evict_after_ms = evict_after_ms
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def open(
        self, partitions: Iterable[WantedPartition], *, uses_ids: bool, is_follower: bool, now_ms: int
    ) -> FetchSession | None:
        """A new session; None if there is no room for it, or nothing to keep in it."""
        wanted = list(partitions)
        if (
            not wanted
            or self._is_too_much(wanted)
            or not self._make_room(len(wanted), is_follower=is_follower, now_ms=now_ms)
        ):
            return None
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = self._sessions[session_id] = FetchSession(
            session_id, uses_ids=uses_ids, is_follower=is_follower, now_ms=now_ms
        )
        for one in wanted:
            session.add(one)
        return session

    def _is_too_much(self, wanted: Sequence[WantedPartition]) -> bool:
        kept = sum(len(session.partitions) for session in self._sessions.values())
        return kept + len(wanted) > SESSION_PARTITIONS_MAX

    def _make_room(self, size: int, *, is_follower: bool, now_ms: int) -> bool:
        """Evict the session that was unused longest, if that is long enough, or a less important one."""
        if len(self._sessions) < self._slots:
            return True
        if self._slots <= 0:
            return False
        stalest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        if now_ms - stalest.last_used_ms > self._evict_after_ms:
            self.close(stalest.session_id)
            return True
        smallest = min(self._sessions.values(), key=lambda session: (session.is_follower, len(session.partitions)))
        if (smallest.is_follower, len(smallest.partitions)) < (is_follower, size):
            self.close(smallest.session_id)
            return True
        return False

    def go_on(
        self,
        session_id: int,
        epoch: int,
        added: Sequence[WantedPartition],
        forgotten: Iterable[tuple[str, bytes, int]],
        *,
        uses_ids: bool,
        now_ms: int,
    ) -> FetchSession:
        """The next incremental fetch of a session. Raises Reject if it does not fit."""
        session = self._sessions.get(session_id)
        if session is None:
            raise Reject(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise Reject(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            raise Reject(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if added and self._is_too_much(added):
            self.close(session_id)
            raise Reject(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        for wanted in added:
            session.add(wanted)
        for name, topic_id, partition in forgotten:  # last: a partition that is both named and forgotten is gone
            session.partitions.pop(session.key(name, topic_id, partition), None)
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.last_used_ms = now_ms
        if not session.partitions:
            self.close(session_id)
        return session
