"""Fetch (1): read record batches, or wait for them.

Versions 4 to 18. From 7 on with sessions (`ottla.broker.replicas.fetch_sessions`), from 9 on the leader's epoch is
checked, from 12 on divergence is reported, from 13 on topics are named by id, from 16 on the error "not the leader"
comes with the leader.

The response holds regions of files, not bytes. Partitions are served in the order of the request or of the session. The
first batch is sent whole even if it is larger than all limits; after it only what fits. If there are fewer bytes than
`min_bytes`, the request waits for appends to any of its partitions, for at most `max_wait_ms`. Tiered storage is not
supported.

From 11 on consumers may read from followers, up to the high watermark that those know. With `replica.selector.class` a
leader sends them to one in their rack (KIP-392): the response then has no records, and comes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.handlers import raft
from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.broker.network.send_queue import FileSpan
from ottla.broker.replicas.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, WantedPartition
from ottla.broker.replicas.lookup import (
    endpoints_of,
    leader_of,
    led_replica,
    permitted_topic,
    readable_replica,
    topic_name,
)
from ottla.broker.replicas.replicas import Replica, log_end_key
from ottla.core.metadata.fault import Reject
from ottla.log.errors import LogError, OffsetOutOfRangeError
from ottla.log.names import TopicPartition
from ottla.log.read import FetchRegion, Isolation
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponseAbortedTransaction,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Records

API_KEY: Final = 1
VERSIONS: Final = (4, 18)

_SESSIONS_FROM: Final = 7
_FOLLOWERS_FROM: Final = 11
_IDS_FROM: Final = 13
_LEADER_FROM: Final = 16
_STORAGE_ERROR_FROM: Final = 6
_READ_COMMITTED: Final = 1
_NO_EPOCH: Final = -1
_ANSWER_BYTES: Final = 24
_PARTITION_BYTES: Final = 48
"""About the size of a response without records, and of each partition in it."""


class _Found(NamedTuple):
    """The result of one partition."""

    wanted: WantedPartition
    topic_name: str | None
    error_code: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    region: FetchRegion | None = None
    diverging: tuple[int, int] | None = None
    is_behind: bool = False
    """Whether more records follow in another segment: then no append makes this response larger."""
    preferred_replica: int = -1
    """Where the consumer shall read instead."""
    is_settled: bool = False
    """Whether a follower that is in sync has all of it, so that it need not be looked at again."""

    @property
    def length(self) -> int:
        return 0 if self.region is None else self.region.length


class _Fetch:
    """The state of one request."""

    def __init__(self, node: Records, request: Request) -> None:
        body: FetchRequest = request.body
        self.node = node
        self.request = request
        self.uses_ids = request.version >= _IDS_FROM
        self.is_incremental = False
        self.session: FetchSession | None = None
        self.follower_session: FetchSession | None = None
        """Of it only those partitions are looked at that something has happened to."""
        replica_id = body.replica_state.replica_id if request.version >= 15 else body.replica_id
        self.replica_id = replica_id
        self.is_follower = replica_id >= 0
        self.may_read_followers = not self.is_follower and request.version >= _FOLLOWERS_FROM
        self.rack = "" if self.is_follower else body.rack_id
        self.broker_epoch = body.replica_state.replica_epoch
        self.isolation = self._isolation(body)
        self.max_bytes = min(body.max_bytes, node.settings["fetch.max.bytes"])
        if request.charge is not None and not self.is_follower:
            self.max_bytes = int(min(self.max_bytes, request.charge.fetch_max_bytes()))
        self.min_bytes = min(body.min_bytes, self.max_bytes)
        self.partitions = self._open()
        self.later: DelayedResponse | None = None

    def _isolation(self, body: FetchRequest) -> Isolation:
        if self.is_follower:
            return Isolation.LOG_END
        is_committed = body.isolation_level == _READ_COMMITTED
        return Isolation.TXN_COMMITTED if is_committed else Isolation.HIGH_WATERMARK

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _open(self) -> list[WantedPartition]:
        """The partitions to serve, in order; opens, closes or continues a session."""
        body: FetchRequest = self.request.body
        wanted = [
            WantedPartition(
                topic.topic,
                topic.topic_id,
                partition.partition,
                fetch_offset=partition.fetch_offset,
                max_bytes=partition.partition_max_bytes,
                current_leader_epoch=partition.current_leader_epoch,
                last_fetched_epoch=partition.last_fetched_epoch,
                log_start_offset=partition.log_start_offset,
            )
            for topic in body.topics
            for partition in topic.partitions
        ]
        if self.request.version < _SESSIONS_FROM:
            return wanted
        sessions, now_ms = self.node.fetch_sessions, self.node.clock.monotonic_ms()
        if body.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            sessions.close(body.session_id)
            if body.session_epoch == INITIAL_EPOCH:
                follower = (self.replica_id, self.broker_epoch) if self.is_follower else None
                self.session = sessions.open(wanted, uses_ids=self.uses_ids, now_ms=now_ms, follower=follower)
            return wanted
        forgotten = [
            (topic.topic, topic.topic_id, partition)
            for topic in body.forgotten_topics_data
            for partition in topic.partitions
        ]
        self.session = sessions.go_on(
            body.session_id, body.session_epoch, wanted, forgotten, uses_ids=self.uses_ids, now_ms=now_ms
        )
        self.is_incremental = True
        if self.is_follower and self.session.replica_id == self.replica_id and self._may_replicate():
            self.follower_session = self.session
            self.session.take_epoch(self.broker_epoch)
            return []
        return list(self.session.partitions.values())

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self) -> list[_Found]:
        """Read every partition, as far as the size of the response allows."""
        found: list[_Found] = []
        left, is_first = self.max_bytes, True
        follower = self.follower_session
        for wanted in self.partitions if follower is None else list(follower.unsettled.values()):
            one = self._look(wanted, left, is_first=is_first)
            left = max(left - one.length, 0)
            is_first = is_first and one.length == 0
            found.append(one)
        return found

    def _look(self, wanted: WantedPartition, left: int, *, is_first: bool) -> _Found:
        name = None
        try:
            name = self._permitted_topic(wanted)
            find = readable_replica if self.may_read_followers else led_replica
            replica = find(self.node.replicas, name, wanted.partition, wanted.current_leader_epoch)
            return self._read_one(replica, wanted, left, is_first=is_first)
        except (Reject, LogError) as error:
            return _Found(wanted, name, error.code)

    def _permitted_topic(self, wanted: WantedPartition) -> str:
        """Clients need a right to the topic, replicas one to the cluster."""
        topic_id = wanted.topic_id if self.uses_ids else None
        if not self.is_follower:
            return permitted_topic(self.node, self.request, Operation.READ, wanted.topic_name, topic_id)
        if not self._may_replicate():
            raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return topic_name(self.node.image, wanted.topic_name, wanted.topic_id, by_id=self.uses_ids)

    def _may_replicate(self) -> bool:
        return self.node.authorize(self.request, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)

    def _read_one(self, replica: Replica, wanted: WantedPartition, left: int, *, is_first: bool) -> _Found:
        name = replica.topic_partition.topic
        if self.is_follower:
            self._check_follower(replica, wanted)
        if self.uses_ids and replica.topic_id != wanted.topic_id:
            raise Reject(ErrorCode.INCONSISTENT_TOPIC_ID)
        if not replica.has_log:  # nothing was ever written: do not create empty files
            if wanted.fetch_offset != 0:
                raise OffsetOutOfRangeError(f"offset {wanted.fetch_offset} of an empty log")
            if self.is_follower:
                self._note_progress(replica, wanted)
            return _Found(wanted, name, 0, 0, 0, 0, is_settled=self._is_settled(replica, wanted))
        preferred = self.node.replicas.preferred_replica(replica, self.rack, wanted.fetch_offset) if self.rack else -1
        if preferred >= 0:
            return _Found(wanted, name, 0, preferred_replica=preferred)
        log = replica.log
        diverging = self._divergence(replica, wanted)
        region = None
        if diverging is None:
            limit = min(wanted.max_bytes, left)
            region = log.read(wanted.fetch_offset, limit, self.isolation, min_one_batch=is_first)
            if self.is_follower:
                self._note_progress(replica, wanted)
                if region.length and self.node.replicas.is_throttled(replica, self.replica_id):
                    region = None
        return _Found(
            wanted,
            name,
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            region,
            diverging,
            region is not None and region.segment_base_offset < log.active_segment.base_offset,
            is_settled=diverging is None and self._is_settled(replica, wanted),
        )

    def _is_settled(self, replica: Replica, wanted: WantedPartition) -> bool:
        """Whether a follower that is in sync has the whole log."""
        leading = replica.leading
        if leading is None or leading.pending is not None or self.replica_id not in leading.isr:
            return False
        return wanted.fetch_offset == replica.log_end_offset

    def _check_follower(self, replica: Replica, wanted: WantedPartition) -> None:
        """One that knows the leader epoch and has no replica knows more of the metadata than we do, or less."""
        if self.replica_id not in replica.replicas:
            is_known = wanted.current_leader_epoch != _NO_EPOCH
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if is_known else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise Reject(code, f"Node {self.replica_id} has no replica of it.")
        follower = replica.leading.followers.get(self.replica_id) if replica.leading is not None else None
        if follower is not None and _NO_EPOCH < self.broker_epoch < follower.broker_epoch:
            raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Node {self.replica_id} was started again since.")

    def _note_progress(self, replica: Replica, wanted: WantedPartition) -> None:
        self.node.replicas.fetched(
            replica,
            self.replica_id,
            wanted.fetch_offset,
            log_start_offset=wanted.log_start_offset,
            broker_epoch=self.broker_epoch,
        )

    def _divergence(self, replica: Replica, wanted: WantedPartition) -> tuple[int, int] | None:
        """The epoch and offset at which the reader's log diverges from ours, if it does."""
        if wanted.last_fetched_epoch == _NO_EPOCH:
            return None
        log = replica.log
        epoch, end_offset = log.epochs.end_offset_for(wanted.last_fetched_epoch, log.log_end_offset)
        if end_offset < 0:
            raise OffsetOutOfRangeError(f"epoch {wanted.last_fetched_epoch} is not known")
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            return epoch, end_offset
        return None

    # --- answering ----------------------------------------------------------------------------------------------------

    def answer(self) -> Answer:
        found = self.read()
        if self._is_enough(found):
            return self.respond(found)
        self.later = DelayedResponse()
        deadline_at_ms = self.node.clock.monotonic_ms() + self.request.body.max_wait_ms
        delayed = DelayedOperation(self._attempt, self._keys(found), deadline_at_ms)
        self.later.on_cancel = lambda: self.node.purgatory.remove(delayed)
        if not self.node.purgatory.park(delayed):
            self._attempt(True)
        return self.later

    def _keys(self, found: list[_Found]) -> set[Hashable]:
        """What the request waits for."""
        if self.follower_session is not None:
            return {self.follower_session.wait_key}
        key_of: Callable[[str, int], Hashable] = log_end_key if self.is_follower else TopicPartition
        return {key_of(one.topic_name, one.wanted.partition) for one in found if one.topic_name is not None}

    def _is_enough(self, found: list[_Found]) -> bool:
        has_partitions = found if self.follower_session is None else self.follower_session.partitions
        if self.request.body.max_wait_ms <= 0 or not has_partitions:
            return True
        if any(one.error_code or one.diverging is not None or one.is_behind for one in found):
            return True
        if any(one.preferred_replica >= 0 for one in found) or self._is_hurried(found):
            return True
        return bool(sum(one.length for one in found) >= self.min_bytes)

    def _is_hurried(self, found: list[_Found]) -> bool:
        """Whether a follower that consumers read from must learn what is committed, without waiting for records."""
        if not self.is_follower or not self.node.replicas.is_rack_aware:
            return False
        return any(one.high_watermark > one.wanted.told_high_watermark for one in found)

    def _attempt(self, expired: bool) -> bool:
        found = self.read()
        if not expired and not self._is_enough(found):
            return False
        assert self.later is not None
        self.later.complete(self.respond(found))
        return True

    def respond(self, found: list[_Found]) -> FetchResponse:
        """The response; an empty one, which the session does not remember, if the client is throttled."""
        charge = self.request.charge
        if charge is not None and self.is_follower:
            charge.exempt()
        elif charge is not None:
            pause_ms, is_sent = charge.count_fetch(self._size_bytes(found))
            return self._respond(found, pause_ms) if is_sent else self._nothing_yet(pause_ms)
        return self._respond(found)

    def _size_bytes(self, found: list[_Found]) -> int:
        """Nearly the size of the response; what a session leaves out is small."""
        return _ANSWER_BYTES + sum(_PARTITION_BYTES + one.length for one in found)

    def _nothing_yet(self, pause_ms: int) -> FetchResponse:
        if self.session is None:
            return FetchResponse(pause_ms)
        if self.is_incremental:
            return FetchResponse(pause_ms, session_id=self.session.session_id)
        self.node.fetch_sessions.close(self.session.session_id)  # its client would miss the values that it remembers
        return FetchResponse(pause_ms)

    def _respond(self, found: list[_Found], pause_ms: int = 0) -> FetchResponse:
        leaders: set[int] = set()
        told: list[tuple[_Found, FetchResponsePartitionData]] = []
        for one in found:
            if self.session is not None and not self._is_told(one):
                continue
            told.append((one, self._partition(one, leaders)))
            if one.length and one.topic_name is not None:
                self._count(TopicPartition(one.topic_name, one.wanted.partition), one.length)
        topics = tuple(
            FetchResponseFetchableTopicResponse(name, topic_id, tuple(data for _, data in group))
            for (name, topic_id), group in groupby(told, lambda pair: _topic_key(pair[0].wanted, self.uses_ids))
        )
        endpoints = endpoints_of(self.node.image, self.request, leaders) if leaders else ()
        return FetchResponse(
            throttle_time_ms=pause_ms,
            session_id=self.session.session_id if self.session is not None and self.session.partitions else 0,
            responses=topics,
            node_endpoints=tuple(FetchResponseNodeEndpoint(*one) for one in endpoints),
        )

    def _count(self, at: TopicPartition, count_bytes: int) -> None:
        if self.is_follower:
            self.node.replicas.throttle.moved(at, count_bytes)
        else:
            self.node.replicas.by_key[at].bytes_out += count_bytes

    def _is_told(self, one: _Found) -> bool:
        """Whether the response includes this partition; a session remembers the values sent."""
        assert self.session is not None
        is_news = one.wanted.is_news(
            one.error_code,
            one.length > 0,
            one.high_watermark,
            one.log_start_offset,
            is_special=one.diverging is not None or one.preferred_replica >= 0,
        )
        if one.length and self.is_incremental:
            self.session.to_the_end(one.wanted)
        elif one.is_settled:
            self.session.settle(one.wanted)
        return is_news or not self.is_incremental

    def _partition(self, one: _Found, leaders: set[int]) -> FetchResponsePartitionData:
        code = one.error_code
        leader = FetchResponseLeaderIdAndEpoch()
        moved = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        if code in moved and self.request.version >= _LEADER_FROM and one.topic_name is not None:
            leader_id, epoch = leader_of(self.node.image, one.topic_name, one.wanted.partition)
            leader = FetchResponseLeaderIdAndEpoch(leader_id, epoch)
            leaders.add(leader_id)
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self.request.version < _STORAGE_ERROR_FROM:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if one.diverging is None:
            return FetchResponsePartitionData(
                partition_index=one.wanted.partition,
                error_code=code,
                high_watermark=one.high_watermark,
                last_stable_offset=one.last_stable_offset,
                log_start_offset=one.log_start_offset,
                current_leader=leader,
                aborted_transactions=self._aborted(one),
                preferred_read_replica=one.preferred_replica,
                records=_records(one.region),
            )
        return FetchResponsePartitionData(
            partition_index=one.wanted.partition,
            high_watermark=one.high_watermark,
            last_stable_offset=one.last_stable_offset,
            log_start_offset=one.log_start_offset,
            diverging_epoch=FetchResponseEpochEndOffset(*one.diverging),
            records=b"",
        )

    def _aborted(self, one: _Found) -> tuple[FetchResponseAbortedTransaction, ...] | None:
        if one.topic_name is None:
            return ()
        if self.isolation is not Isolation.TXN_COMMITTED or one.error_code:
            return None
        aborted = one.region.aborted_transactions if one.region is not None else ()
        return tuple(FetchResponseAbortedTransaction(txn.producer_id, txn.first_offset) for txn in aborted or ())


def handle(node: Records, request: Request) -> Answer:
    if request.connection.peer.listener in node.controller_listeners:
        return raft.handle(node, request)  # a voter or an observer, which reads the metadata log
    return _Fetch(node, request).answer()


def refuse(request: Request, code: int, message: str | None) -> FetchResponse:
    if request.version >= _SESSIONS_FROM:
        return FetchResponse(error_code=code)
    body: FetchRequest = request.body
    return FetchResponse(
        responses=tuple(
            FetchResponseFetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                tuple(
                    FetchResponsePartitionData(
                        partition_index=partition.partition, error_code=code, high_watermark=-1, records=b""
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )


def _topic_key(wanted: WantedPartition, uses_ids: bool) -> tuple[str, bytes]:
    return ("", wanted.topic_id) if uses_ids else (wanted.topic_name, bytes(16))


def _records(region: FetchRegion | None) -> bytes:
    if region is None or region.file is None or region.length == 0:
        return b""
    # A region of a file: the encoder for parts only needs its length.
    return FileSpan(region.file, region.position, region.length)  # type: ignore[return-value]
