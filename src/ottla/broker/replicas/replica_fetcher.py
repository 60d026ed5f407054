"""Fetches what this node follows: one conversation with each leader, over a connection of its own.

A fetch names only what has changed since the last one (an incremental session), so that partitions without news cost
nothing, and the leader answers as soon as it has something. Records go to the log as they come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.broker.peers.peer_connection import Address, PeerConnection, PeerError
from ottla.broker.replicas.replication_throttle import ReplicationThrottle
from ottla.core.replication.partition_follower import (
    Append,
    AskOffsets,
    Delay,
    EpochEnd,
    StartAt,
    Stop,
    Truncate,
    after_fetch,
    after_offsets,
)
from ottla.log.errors import LogError, StorageError
from ottla.log.steps import finish
from ottla.wire.types.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchRequestReplicaState,
    FetchResponse,
    FetchResponsePartitionData,
)
from ottla.wire.types.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    ListOffsetsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.config.settings import Settings
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks
    from ottla.broker.replicas.replicas import Replica
    from ottla.log.partition import Partition

__all__ = ["FetcherPorts", "ReplicaFetcher", "ReplicaFetchers"]

log = logging.getLogger(__name__)

_FETCH_VERSIONS: Final = (15, 18)
_LIST_OFFSETS_VERSIONS: Final = (7, 9)
_LATEST: Final = -1
_EARLIEST: Final = -2
_FIRST_EPOCH: Final = 0
Key = tuple[bytes, int]


class FetcherPorts(Protocol):
    """What fetchers need of the node."""

    loop: Any
    clock: Clock
    cooperative_tasks: CooperativeTasks
    settings: Settings

    @property
    def node_id(self) -> int: ...
    def own_epoch(self) -> int:
        """The epoch that this broker is registered with."""

    def address_of(self, broker_id: int) -> Address | None:
        """Where another broker listens for brokers."""

    def connect_to_broker(self, address: Address) -> PeerConnection: ...
    def follower_moved(self, replica: Replica) -> None:
        """A follower has more records, or knows that more are committed."""

    def follower_truncated(self, replica: Replica) -> None:
        """A follower's log has lost its end."""

    def follower_failed(self, replica: Replica, error: StorageError) -> None:
        """Its log directory has failed."""

    def followers_written(self, replicas: list[Replica], then: Callable[[], None]) -> None:
        """Records were written. What follows may tell their leader so: it waits for the disk where that is asked for.

        A fetch says that everything below its offset is there, and the leader acknowledges it.
        """


class _FollowerLog:
    """The log of a follower, as the decisions of the core see it."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.log_end_offset = partition.log_end_offset

    def epoch_end(self, epoch: int) -> EpochEnd | None:
        found, end_offset = self._partition.epochs.end_offset_for(epoch, self.log_end_offset)
        return None if end_offset < 0 else EpochEnd(found, end_offset)


class _Followed:
    """A partition, in one leader epoch."""

    __slots__ = ("is_left_out", "leader_epoch", "replica", "told", "truncation")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.is_left_out = False
        """Not fetched for now: something else must happen before."""
        self.told: tuple[int, int, int] | None = None
        """Offset, last epoch and log start of the last fetch, which the session remembers."""
        self.truncation: Generator[None, None, bool] | None = None
        """What is left to do after the log was cut. Until then it must not be written to."""

    @property
    def key(self) -> Key:
        return _key(self.replica)


class ReplicaFetcher:
    """Fetches from one leader. One request is under way at a time."""

    def __init__(self, node: FetcherPorts, leader_id: int, address: Address, throttle: ReplicationThrottle) -> None:
        self._node = node
        self._throttle = throttle
        self.leader_id = leader_id
        self.address = address
        self._connection = node.connect_to_broker(address)
        self._followed: dict[Key, _Followed] = {}
        self._changed: dict[Key, None] = {}
        """What the next fetch has to name."""
        self._forgotten: dict[Key, None] = {}
        self._session_id = 0
        self._session_epoch = _FIRST_EPOCH
        self._is_waiting = False
        self._timer: Any = None
        self._is_closed = False

    @property
    def replicas(self) -> list[Replica]:
        return [each.replica for each in self._followed.values()]

    def follow(self, replica: Replica) -> None:
        """Fetch a partition from now on, or in its new leader epoch."""
        followed = _Followed(replica)
        self._followed[followed.key] = followed
        self._changed[followed.key] = None
        self._forgotten.pop(followed.key, None)
        self._fetch_soon()

    def forget(self, key: Key) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            self._changed.pop(key, None)
            self._forgotten[key] = None
            self._finish_truncation(followed)

    def close(self) -> None:
        self._is_closed = True
        for followed in self._followed.values():
            self._finish_truncation(followed)
        self._connection.close()
        if self._timer is not None:
            self._timer.cancel()

    # --- asking -------------------------------------------------------------------------------------------------------

    def _fetch_soon(self, delay_ms: int = 0) -> None:
        if self._timer is None and not self._is_waiting and not self._is_closed:
            self._timer = self._node.loop.call_later(delay_ms / 1000, self._fetch)

    def _fetch(self) -> None:
        self._timer = None
        if self._is_waiting or self._is_closed or not self._followed:
            return
        node = self._node
        is_whole = self._session_epoch == _FIRST_EPOCH
        keys = list(self._followed if is_whole else self._changed)
        ready = [self._followed[key] for key in keys if not self._followed[key].is_left_out]
        if is_whole and not ready:
            self._fetch_soon(self._pause_ms)
            return
        for each in ready:
            self._changed.pop(each.key, None)
        forgotten, self._forgotten = self._forgotten, {}
        settings = node.settings
        request = FetchRequest(
            replica_state=FetchRequestReplicaState(node.node_id, node.own_epoch()),
            max_wait_ms=settings["replica.fetch.wait.max.ms"],
            min_bytes=settings["replica.fetch.min.bytes"],
            max_bytes=settings["replica.fetch.response.max.bytes"],
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=_by_topic(ready, self._wanted),
            forgotten_topics_data=_forgotten(forgotten) if not is_whole else (),
        )
        self._is_waiting = True
        self._connection.send(request, _FETCH_VERSIONS, lambda reply: self._answered(reply, is_whole=is_whole))

    def _wanted(self, followed: _Followed) -> FetchRequestFetchPartition:
        replica = followed.replica
        latest = replica.log.epochs.latest_epoch if replica.has_log else -1
        start = replica.log.log_start_offset if replica.has_log else 0
        followed.told = (replica.log_end_offset, latest, start)
        return FetchRequestFetchPartition(
            replica.topic_partition.partition,
            followed.leader_epoch,
            replica.log_end_offset,
            last_fetched_epoch=latest,
            log_start_offset=start,
            partition_max_bytes=self._node.settings["replica.fetch.max.bytes"],
        )

    @property
    def _pause_ms(self) -> int:
        pause_ms: int = self._node.settings["replica.fetch.backoff.ms"]
        return pause_ms

    # --- answers ------------------------------------------------------------------------------------------------------

    def _answered(self, reply: FetchResponse | PeerError, *, is_whole: bool) -> None:
        if self._is_closed:
            return
        if isinstance(reply, PeerError) or reply.error_code:
            self._is_waiting = False
            self._session_epoch = _FIRST_EPOCH  # a new session; with the id of the old one the leader closes that
            log.debug("the fetch from broker %d failed: %s", self.leader_id, reply)
            self._fetch_soon(self._pause_ms if isinstance(reply, PeerError) else 0)
            return
        if is_whole:
            self._session_id = reply.session_id
        self._session_epoch = _FIRST_EPOCH if not self._session_id else self._session_epoch % (2**31 - 1) + 1
        written = []
        for topic in reply.responses:
            for data in topic.partitions:
                followed = self._followed.get((topic.topic_id, data.partition_index))
                if followed is not None and followed.told is not None:
                    self._take(followed, data)
                    if data.records and not followed.replica.is_offline:
                        written.append(followed.replica)
        if written:
            self._node.followers_written(written, self._go_on)
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Fetch at once: with this the leader learns what is written here, and somebody may wait for that."""
        self._is_waiting = False
        self._fetch()

    def _take(self, followed: _Followed, data: FetchResponsePartitionData) -> None:
        replica = followed.replica
        if replica.is_offline:
            self.forget(followed.key)
            return
        if replica.leader_epoch != followed.leader_epoch or followed.is_left_out:
            return
        try:
            self._act(followed, data)
        except StorageError as error:
            self._failed(followed, error)
        except LogError as error:
            log.warning(
                "records of broker %d for %s cannot be used: %s", self.leader_id, replica.topic_partition, error
            )
            self._delay(followed)

    def _act(self, followed: _Followed, data: FetchResponsePartitionData) -> None:
        replica, now_ms = followed.replica, self._node.clock.wall_ms()
        if not replica.has_log and not data.records and not data.error_code:
            return  # nothing was ever written: do not create empty files
        partition = replica.log
        end = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        action = after_fetch(_FollowerLog(partition), data.error_code, end, data.high_watermark, data.log_start_offset)
        if isinstance(action, Append):
            if data.records:
                partition.append_as_follower(data.records, followed.leader_epoch, now_ms)
            moved = partition.update_high_watermark(max(partition.high_watermark, action.high_watermark))
            started = partition.increment_log_start_offset(min(action.log_start_offset, partition.high_watermark))
            if data.records or moved or started:
                self._node.follower_moved(replica)
            self._changed_if_moved(followed)
            if data.records:
                self._hold_back(followed, len(data.records), data.high_watermark)
        elif isinstance(action, Truncate):
            log.info(
                "truncated %s to offset %d, as on broker %d", replica.topic_partition, action.offset, self.leader_id
            )
            self._truncate(followed, action.offset)
        elif isinstance(action, AskOffsets):
            self._ask_offsets(followed)
        elif isinstance(action, Stop):
            self.forget(followed.key)
        elif isinstance(action, Delay):
            self._delay(followed)

    def _changed_if_moved(self, followed: _Followed) -> None:
        partition = followed.replica.log
        now = (partition.log_end_offset, partition.epochs.latest_epoch, partition.log_start_offset)
        if now != followed.told:
            self._changed[followed.key] = None

    def _hold_back(self, followed: _Followed, count_bytes: int, high_watermark: int) -> None:
        """Fetch no more of a partition for a while if that was too much, and it is not in sync."""
        at = followed.replica.topic_partition
        self._throttle.moved(at, count_bytes)
        pause_ms = self._throttle.pause_ms(at) if followed.replica.log_end_offset < high_watermark else 0
        if pause_ms:
            self._delay(followed, pause_ms)

    def _delay(self, followed: _Followed, pause_ms: int | None = None) -> None:
        """Leave a partition out for a while."""
        self._leave_out(followed)
        pause_ms = self._pause_ms if pause_ms is None else pause_ms
        self._node.loop.call_later(pause_ms / 1000, self._fetch_again, followed)

    def _leave_out(self, followed: _Followed) -> None:
        """Do not fetch a partition until `_fetch_again`; the leader's session forgets it until then."""
        followed.is_left_out = True
        self._changed.pop(followed.key, None)
        self._forgotten[followed.key] = None

    def _fetch_again(self, followed: _Followed) -> None:
        if self._followed.get(followed.key) is followed and not self._is_closed:
            followed.is_left_out = False
            self._forgotten.pop(followed.key, None)
            self._changed[followed.key] = None
            self._fetch_soon()

    # --- truncation ---------------------------------------------------------------------------------------------------

    def _truncate(self, followed: _Followed, offset: int) -> None:
        """Cut a log. What takes long is done in pieces, and until then the partition is left out."""
        steps = followed.replica.log.truncate_steps(offset, self._node.clock.wall_ms())
        followed.truncation = steps
        self._leave_out(followed)
        next(steps, None)
        self._node.follower_truncated(followed.replica)
        name = f"truncation of {followed.replica.topic_partition}"
        self._node.cooperative_tasks.add(name, self._rest_of_truncation(followed, steps), is_urgent=True)

    def _rest_of_truncation(
        self, followed: _Followed, steps: Generator[None, None, bool]
    ) -> Generator[None, None, None]:
        try:
            yield from steps
        except StorageError as error:
            self._failed(followed, error)
            return
        followed.truncation = None
        self._fetch_again(followed)

    def _finish_truncation(self, followed: _Followed) -> None:
        """Do the rest at once: the log may be written to, or closed, from now on."""
        steps, followed.truncation = followed.truncation, None
        if steps is None:
            return
        try:
            finish(steps)
        except StorageError as error:
            self._node.follower_failed(followed.replica, error)

    def _failed(self, followed: _Followed, error: StorageError) -> None:
        self.forget(followed.key)
        self._node.follower_failed(followed.replica, error)

    # --- a log outside of the leader's range --------------------------------------------------------------------------

    def _ask_offsets(self, followed: _Followed) -> None:
        """Ask where the leader's log ends, and then where it begins."""
        self._leave_out(followed)

        def ask(timestamp: int, then: Callable[[int], None]) -> None:
            replica = followed.replica
            wanted = ListOffsetsRequestListOffsetsPartition(
                replica.topic_partition.partition, followed.leader_epoch, timestamp
            )
            topic = ListOffsetsRequestListOffsetsTopic(replica.topic_partition.topic, (wanted,))
            request = ListOffsetsRequest(self._node.node_id, 0, (topic,))
            self._connection.send(request, _LIST_OFFSETS_VERSIONS, lambda reply: told(reply, then))

        def told(reply: ListOffsetsResponse | PeerError, then: Callable[[int], None]) -> None:
            if self._is_closed or self._followed.get(followed.key) is not followed:
                return
            if isinstance(reply, PeerError) or reply.topics[0].partitions[0].error_code:
                self._delay(followed)
            else:
                then(reply.topics[0].partitions[0].offset)

        ask(_LATEST, lambda end: ask(_EARLIEST, lambda start: self._follow_range(followed, start, end)))

    def _follow_range(self, followed: _Followed, start_offset: int, end_offset: int) -> None:
        partition = followed.replica.log
        action = after_offsets(_FollowerLog(partition), start_offset, end_offset)
        log.warning(
            "%s ends at %d, but on broker %d it starts at %d and ends at %d",
            partition.topic_partition,
            partition.log_end_offset,
            self.leader_id,
            start_offset,
            end_offset,
        )
        try:
            if isinstance(action, StartAt):
                partition.truncate_fully(action.offset, self._node.clock.wall_ms())
                self._node.follower_truncated(followed.replica)
                self._fetch_again(followed)
            else:
                self._truncate(followed, action.offset)
        except StorageError as error:
            self._failed(followed, error)


class ReplicaFetchers:
    """All fetchers of a node, by leader."""

    def __init__(self, node: FetcherPorts) -> None:
        self._node = node
        self._by_leader: dict[int, ReplicaFetcher] = {}
        self._leaders: dict[Key, int] = {}
        self._waiting: dict[Key, Replica] = {}
        """Those whose leader's address is not known."""
        self._has_begun = False
        self._throttle = ReplicationThrottle("follower", node.node_id, node.settings, node.clock)

    def begin(self, replicas: Iterable[Replica]) -> None:
        """The node serves: fetch all that it follows."""
        self._has_begun = True
        for replica in replicas:
            self.follow(replica)

    def follow(self, replica: Replica) -> None:
        """A replica has another leader, or another leader epoch."""
        if not self._has_begun:
            return
        key = _key(replica)
        self.forget(replica)
        if replica.leader in (-1, self._node.node_id) or replica.is_offline:
            return
        fetcher = self._fetcher(replica.leader)
        if fetcher is None:
            self._waiting[key] = replica
            return
        self._leaders[key] = replica.leader
        fetcher.follow(replica)

    def forget(self, replica: Replica) -> None:
        key = _key(replica)
        self._waiting.pop(key, None)
        leader_id = self._leaders.pop(key, None)
        if leader_id is not None:
            self._by_leader[leader_id].forget(key)

    def follow_brokers(self, changed: Collection[int]) -> None:
        """Brokers have registered: some may have another address."""
        if not changed:
            return
        moved = [each for each in self._by_leader.values() if self._node.address_of(each.leader_id) != each.address]
        for fetcher in moved:
            del self._by_leader[fetcher.leader_id]
            fetcher.close()
            for replica in fetcher.replicas:
                self._leaders.pop(_key(replica), None)
                self._waiting[_key(replica)] = replica
        waiting, self._waiting = self._waiting, {}
        for replica in waiting.values():
            self.follow(replica)

    def close(self) -> None:
        self._has_begun = False
        for fetcher in self._by_leader.values():
            fetcher.close()

    def _fetcher(self, leader_id: int) -> ReplicaFetcher | None:
        found = self._by_leader.get(leader_id)
        if found is None:
            address = self._node.address_of(leader_id)
            if address is None:
                return None
            found = self._by_leader[leader_id] = ReplicaFetcher(self._node, leader_id, address, self._throttle)
        return found


def _key(replica: Replica) -> Key:
    return replica.topic_id, replica.topic_partition.partition


def _by_topic(
    followed: Iterable[_Followed], wanted: Callable[[_Followed], FetchRequestFetchPartition]
) -> tuple[FetchRequestFetchTopic, ...]:
    ordered = sorted(followed, key=lambda each: each.key)
    return tuple(
        FetchRequestFetchTopic(topic_id=topic_id, partitions=tuple(wanted(each) for each in group))
        for topic_id, group in groupby(ordered, lambda each: each.replica.topic_id)
    )


def _forgotten(keys: Iterable[Key]) -> tuple[FetchRequestForgottenTopic, ...]:
    return tuple(
        FetchRequestForgottenTopic(topic_id=topic_id, partitions=tuple(partition for _, partition in group))
        for topic_id, group in groupby(sorted(keys), lambda key: key[0])
    )
