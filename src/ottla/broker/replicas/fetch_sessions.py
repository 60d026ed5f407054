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

A follower has a session with each leader, with all partitions that it follows there, and most have no news for most of
the time. So a partition that the follower has as the leader has it is settled: it is not looked at before something
happens to it at the leader (`look_again`), or the follower names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
Follower = tuple[int, int]
"""The id of a broker, and the epoch in which it is registered."""
_CONSUMER: Final = (-1, -1)


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
    __slots__ = (
        "epoch", "last_used_ms", "partitions", "replica_epoch", "replica_id", "session_id", "unsettled", "uses_ids",
    )  # fmt: skip

    def __init__(self, session_id: int, *, uses_ids: bool, follower: Follower | None, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.replica_id, self.replica_epoch = follower or _CONSUMER
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[Key, WantedPartition] = {}
        self.unsettled: dict[Key, WantedPartition] = {}
        """Those of a follower that have to be looked at."""

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0

    @property
    def wait_key(self) -> tuple[str, int]:
        """What a follower's fetch waits for: an append to any of its partitions."""
        return ("fetch session", self.session_id)

    def key(self, topic_name: str, topic_id: bytes, partition: int) -> Key:
        return (topic_id if self.uses_ids else topic_name, partition)

    def _key_of(self, wanted: WantedPartition) -> Key:
        return self.key(wanted.topic_name, wanted.topic_id, wanted.partition)

    def add(self, wanted: WantedPartition) -> None:
        key = self._key_of(wanted)
        known = self.partitions.get(key)
        if known is not None:
            wanted.take_over(known)
        self.partitions[key] = wanted
        if self.is_follower:
            self.unsettled[key] = wanted

    def forget(self, key: Key) -> None:
        self.partitions.pop(key, None)
        self.unsettled.pop(key, None)

    def to_the_end(self, wanted: WantedPartition) -> None:
        key = self._key_of(wanted)
        for order in (self.partitions, self.unsettled):
            if key in order:
                order[key] = order.pop(key)

    def settle(self, wanted: WantedPartition) -> None:
        """The follower has a partition as it is at the leader: it need not be looked at before something happens."""
        self.unsettled.pop(self._key_of(wanted), None)

    def look_again(self, key: Key) -> bool:
        """Something has happened to a partition; whether it was settled."""
        wanted = self.partitions[key]
        was_settled = key not in self.unsettled
        self.unsettled[key] = wanted
        return was_settled

    def take_epoch(self, replica_epoch: int) -> None:
        """The follower has registered anew, and the leader has to know that of each partition."""
        if replica_epoch != self.replica_epoch:
            self.replica_epoch = replica_epoch
            self.unsettled = dict(self.partitions)


class FetchSessions:
    """All sessions of a node. `new_id` draws a random positive int32."""

    def __init__(self, slots: int, evict_after_ms: int, new_id: Callable[[], int]) -> None:
        self._slots = slots
        self._evict_after_ms = evict_after_ms
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}
        self._of_followers: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)
        self._of_followers.pop(session_id, None)

    def of_followers_with(self, topic_name: str, topic_id: bytes, partition: int) -> Iterator[tuple[FetchSession, Key]]:
        """The sessions of followers that have a partition, and its key there."""
        for session in self._of_followers.values():
            key = session.key(topic_name, topic_id, partition)
            if key in session.partitions:
                yield session, key

    def open(
        self,
        partitions: Iterable[WantedPartition],
        *,
        uses_ids: bool,
        now_ms: int,
        follower: Follower | None = None,
    ) -> FetchSession | None:
        """A new session; None if there is no room for it, or nothing to keep in it."""
        wanted = list(partitions)
        is_follower = follower is not None
        if not wanted or not self._make_room(wanted, is_follower=is_follower, now_ms=now_ms):
            return None
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = self._sessions[session_id] = FetchSession(
            session_id, uses_ids=uses_ids, follower=follower, now_ms=now_ms
        )
        if is_follower:
            self._of_followers[session_id] = session
        for one in wanted:
            session.add(one)
        return session

    def _is_too_much(self, wanted: Sequence[WantedPartition]) -> bool:
        kept = sum(len(session.partitions) for session in self._sessions.values())
        return kept + len(wanted) > SESSION_PARTITIONS_MAX

    def _make_room(self, wanted: Sequence[WantedPartition], *, is_follower: bool, now_ms: int) -> bool:
        """Evict the sessions that were unused for long enough, or else a less important one, if that is needed."""
        if self._is_full or self._is_too_much(wanted):
            for session in list(self._sessions.values()):
                if now_ms - session.last_used_ms > self._evict_after_ms:
                    self.close(session.session_id)
        if self._is_too_much(wanted) or self._slots <= 0:
            return False
        if self._is_full:
            smallest = min(self._sessions.values(), key=lambda session: (session.is_follower, len(session.partitions)))
            if (smallest.is_follower, len(smallest.partitions)) >= (is_follower, len(wanted)):
                return False
            self.close(smallest.session_id)
        return True

    @property
    def _is_full(self) -> bool:
        return len(self._sessions) >= self._slots

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
            session.forget(session.key(name, topic_id, partition))
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.last_used_ms = now_ms
        if not session.partitions:
            self.close(session_id)
        return session
