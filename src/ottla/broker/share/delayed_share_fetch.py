"""ShareFetch: apply the acknowledgements, then acquire and read records, or wait for some.

The fetch begins when the acknowledgements of the request are written, or refused. It is tried at once, and again
whenever one of its partitions changes: records are written, locks time out, acknowledgements are written, a load is
finished. When max_wait_ms is over it is answered with what there is.

Records are acquired at the moment in which they are answered. Apache Kafka acquires while the acknowledgements are
still being written; if that takes long, the answer brings records whose locks have ended. For the same reason nothing
is acquired for an answer that will not be sent: whether the session has gone on without this request is asked before,
and so is the quota.

An answer has the partitions that took part in the read: one that is still loading, or whose window is full, is absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.broker.network.send_queue import FileSpan
from ottla.broker.share.acknowledgements import Acknowledgements, AcknowledgeResult
from ottla.broker.share.edge import Source
from ottla.broker.share.leader import ShareLeader
from ottla.broker.share.led_share_partition import LedSharePartition
from ottla.broker.share.log_reader import LogRead
from ottla.broker.share.request_checks import check_request, find_source
from ottla.broker.share.responses import Leaders, by_topic
from ottla.core.share.partition.events import Acquire, AcquiredRange
from ottla.core.share.partition.states import AcquireMode
from ottla.core.share.sessions import Partition, Turn
from ottla.core.share.state.kept import Key
from ottla.log.errors import LogError, OffsetOutOfRangeError
from ottla.log.read import Isolation
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.share_fetch import (
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponseAcquiredRecords,
    ShareFetchResponseLeaderIdAndEpoch,
    ShareFetchResponseNodeEndpoint,
    ShareFetchResponsePartitionData,
    ShareFetchResponseShareFetchableTopicResponse,
)

__all__ = ["fetch"]

_BEARABLE: Final = frozenset(
    [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    ]
)
"""What the Java consumer can hear about a partition without failing; everything else is UNKNOWN_SERVER_ERROR."""


class _Open(NamedTuple):
    """A partition that can be read now."""

    where: Partition
    led: LedSharePartition
    source: Source


class _Found(NamedTuple):
    """The result of a partition that took part in the read."""

    error: ErrorCode = ErrorCode.NONE
    records: bytes | FileSpan = b""
    acquired: Sequence[AcquiredRange] = ()


_NOTHING: Final = _Found()
_UNASKED: Final = AcknowledgeResult()
_MODES: Final = {int(mode): mode for mode in AcquireMode}


def fetch(leader: ShareLeader, request: Request) -> Answer:
    """The response to a ShareFetch; Reject if the whole request is refused."""
    check_request(leader.edge, request)
    body: ShareFetchRequest = request.body
    if body.is_renew_ack and (body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms):
        raise Reject(ErrorCode.INVALID_REQUEST)
    try:
        turn = _turn(leader, request)
    except Reject as reject:
        if reject.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED or body.max_wait_ms <= 0:
            raise
        return _refuse_late(leader, body.max_wait_ms)
    if body.share_acquire_mode not in _MODES:
        raise Reject(ErrorCode.UNKNOWN_SERVER_ERROR)
    return _DelayedShareFetch(leader, request, turn).answer()


def _turn(leader: ShareLeader, request: Request) -> Turn:
    """The place of a request in its session."""
    body: ShareFetchRequest = request.body
    assert body.group_id is not None
    assert body.member_id is not None
    listed = [(topic.topic_id, each) for topic in body.topics for each in topic.partitions]
    return leader.sessions.fetch(
        body.group_id,
        body.member_id,
        body.share_session_epoch,
        request.connection,
        added=[(topic_id, each.partition_index) for topic_id, each in listed],
        forgotten=[(topic.topic_id, index) for topic in body.forgotten_topics_data for index in topic.partitions],
        has_acknowledgements=any(each.acknowledgement_batches for _, each in listed),
    )


def _refuse_late(leader: ShareLeader, wait_ms: int) -> Answer:
    """Answer late that there is no room for a session: the client would retry at once."""
    later = DelayedResponse()

    def attempt(_: bool) -> bool:
        later.complete(ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_LIMIT_REACHED))
        return True

    delayed = DelayedOperation(attempt, (), leader.edge.monotonic_ms() + wait_ms)
    later.on_cancel = lambda: leader.edge.unpark(delayed)
    if not leader.edge.park(delayed):
        attempt(True)
    return later


class _DelayedShareFetch:
    """One ShareFetch request, from its acknowledgements to its response."""

    def __init__(self, leader: ShareLeader, request: Request, turn: Turn) -> None:
        body: ShareFetchRequest = request.body
        assert body.group_id is not None
        assert body.member_id is not None
        self.leader = leader
        self.edge = leader.edge
        self.request = request
        self.turn = turn
        self.group_id = body.group_id
        self.member_id = body.member_id
        self.max_records = body.max_records
        self.max_bytes = min(body.max_bytes, self.edge.setting("fetch.max.bytes"))
        if request.charge is not None:
            self.max_bytes = int(min(self.max_bytes, request.charge.fetch_max_bytes()))
        self.min_bytes = min(body.min_bytes, self.max_bytes)
        self.batch_size = body.batch_size
        self.mode = _MODES[body.share_acquire_mode]
        is_committed = self.edge.group_setting(self.group_id, "share.isolation.level") == "read_committed"
        self.isolation = Isolation.TXN_COMMITTED if is_committed else Isolation.HIGH_WATERMARK
        self.deadline_at_ms = self.edge.monotonic_ms() + body.max_wait_ms
        self.fetches = not (body.is_renew_ack or turn.is_final or self.max_records <= 0 or self.max_bytes <= 0)
        self.order: Sequence[Partition] = ()
        self.throttle_ms = 0
        self.later = DelayedResponse()
        self.acknowledgements = Acknowledgements(leader, request, self._fetch)
        self._led: dict[Partition, LedSharePartition] = {}
        self._known: set[Partition] | None = None
        """What could not be served from the beginning; others that fail later are worth an answer."""
        self._delayed: DelayedOperation | None = None

    # --- the way of a request -----------------------------------------------------------------------------------------

    def answer(self) -> Answer:
        body: ShareFetchRequest = self.request.body
        self.acknowledgements.begin(
            ((topic.topic_id, each.partition_index), each.acknowledgement_batches)
            for topic in body.topics
            for each in topic.partitions
            if each.acknowledgement_batches
        )
        if self.acknowledgements.is_finished:
            self._fetch()
        if self.later.is_complete:
            return self.later.message
        self.later.on_cancel = self._cancelled
        return self.later

    def _fetch(self) -> None:
        """Fetch now, or wait for records. Called once the acknowledgements are done."""
        if self.later.is_complete and not self.turn.is_final:
            return  # the connection is gone
        if self.fetches:
            self.throttle_ms = self.edge.throttle_ms(self.request)
            self.order = self.turn.order()
        if self.throttle_ms or not self.order:
            self._answer({})
        elif not self._try(is_last=self.edge.monotonic_ms() >= self.deadline_at_ms):
            self._wait()

    def _wait(self) -> None:
        keys: list[Any] = [Key(self.group_id, *where) for where in self.order]
        keys += [led.source.topic_partition for led in self._led.values()]
        delayed = DelayedOperation(lambda is_last: self._try(is_last=is_last), keys, self.deadline_at_ms)
        if self.edge.park(delayed):
            self._delayed = delayed
        else:
            self._try(is_last=True)

    def _answer(self, found: dict[Partition, _Found]) -> None:
        self.later.complete(self._response(found))
        if self.turn.is_final:
            self.leader.close(self.turn.session)

    def _cancelled(self) -> None:
        """The connection is gone."""
        if self._delayed is not None:
            self.edge.unpark(self._delayed)

    # --- trying -------------------------------------------------------------------------------------------------------

    def _try(self, *, is_last: bool) -> bool:
        """Acquire what there is and answer, if it is enough or time is over; whether it was."""
        if not self.leader.sessions.is_current(self.turn):
            self.later.complete(ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH))
            return True
        faults, opened = self._look()
        reads = self._read(opened, faults)
        if self._known is None:
            self._known = set(faults)
        has_news = len(faults) == len(self.order) or not self._known.issuperset(faults)
        if not (is_last or has_news or self._is_enough(reads)):
            return False
        found = {where: _Found(error) for where, error in faults.items()}
        self._acquire(reads, found)
        self._answer(found)
        return True

    def _look(self) -> tuple[dict[Partition, ErrorCode], list[_Open]]:
        """The partitions that cannot be served, and those that can be read now. The rest loads or is full."""
        faults: dict[Partition, ErrorCode] = {}
        opened: list[_Open] = []
        for where in self.order:
            led = self._led.get(where)
            try:
                source = find_source(self.edge, self.request, *where)
            except Reject as reject:
                faults[where] = _bearable(reject.code)
                continue
            if led is None:
                led = self._led[where] = self.leader.lead(Key(self.group_id, *where), source)
            if led.dropped is None:
                if led.can_acquire:
                    opened.append(_Open(where, led, source))
            elif not led.is_troubled:
                faults[where] = _bearable(led.dropped)
        return faults, opened

    def _read(self, opened: Sequence[_Open], faults: dict[Partition, ErrorCode]) -> list[tuple[_Open, LogRead]]:
        """Find out what there is to read, without reading it; each partition has its share of the answer's size."""
        reads = []
        for one, max_bytes in zip(opened, _shares(self.max_bytes, len(opened)), strict=True):
            if not max_bytes:
                continue
            try:
                reads.append((one, self._read_one(one, max_bytes)))
            except LogError as error:
                faults[one.where] = _bearable(error.code)
        return reads

    def _read_one(self, one: _Open, max_bytes: int) -> LogRead:
        offset = one.led.core.next_fetch_offset
        if not one.source.has_log:
            return LogRead(offset)
        try:
            return one.led.reader.look(offset, max_bytes, self.isolation)
        except OffsetOutOfRangeError:
            log_start_offset = one.source.log.log_start_offset
            if offset >= log_start_offset:
                return LogRead(offset)  # the group was sent beyond the end, and waits for the log to get there
            one.led.log_start_moved(log_start_offset)
            return LogRead(offset, is_settled=True)

    def _is_enough(self, reads: Sequence[tuple[_Open, LogRead]]) -> bool:
        if any(log_read.is_settled for _, log_read in reads):
            return True
        return bool(reads) and sum(log_read.length for _, log_read in reads) >= self.min_bytes

    def _acquire(self, reads: Sequence[tuple[_Open, LogRead]], found: dict[Partition, _Found]) -> None:
        left = self.max_records
        for one, log_read in reads:
            found[one.where] = result = self._acquire_one(one, log_read, left) if log_read.length else _NOTHING
            for first_offset, last_offset, _ in result.acquired:
                left -= last_offset - first_offset + 1

    def _acquire_one(self, one: _Open, log_read: LogRead, left: int) -> _Found:
        if left <= 0:
            return _NOTHING
        try:
            batch_range = one.led.reader.read(log_read, one.led.core.reach(left))
        except LogError as error:
            return _Found(_bearable(error.code))
        acquired = one.led.acquire(
            Acquire(
                None,
                self.member_id,
                log_read.fetch_offset,
                batch_range.batches,
                left,
                self.batch_size,
                self.mode,
                log_read.aborted,
            )
        )
        if not acquired:
            return _NOTHING
        records = batch_range.span(acquired[0].first_offset, acquired[-1].last_offset)
        one.source.bytes_out += len(records)
        return _Found(ErrorCode.NONE, records, acquired)

    # --- answering ----------------------------------------------------------------------------------------------------

    def _response(self, found: dict[Partition, _Found]) -> ShareFetchResponse:
        leaders = Leaders(self.edge, self.request)
        results = self.acknowledgements.results
        told: dict[Partition, _Found] = {}
        for where in self.order:
            one = found.get(where)
            if one is not None and self.turn.is_news(
                where, has_records=bool(one.acquired), has_error=one.error is not ErrorCode.NONE
            ):
                told[where] = one
        self.turn.served([where for where, one in told.items() if one.acquired])
        for where in results:
            told.setdefault(where, _NOTHING)
        answered = (
            (where, _partition(where, one, results.get(where, _UNASKED), leaders)) for where, one in told.items()
        )
        return ShareFetchResponse(
            throttle_time_ms=self.throttle_ms,
            acquisition_lock_timeout_ms=self.leader.settings(self.group_id).lock_duration_ms,
            responses=tuple(ShareFetchResponseShareFetchableTopicResponse(*each) for each in by_topic(answered)),
            node_endpoints=tuple(ShareFetchResponseNodeEndpoint(*each) for each in leaders.endpoints()),
        )


def _partition(
    where: Partition, one: _Found, acknowledged: AcknowledgeResult, leaders: Leaders
) -> ShareFetchResponsePartitionData:
    return ShareFetchResponsePartitionData(
        partition_index=where[1],
        error_code=one.error,
        acknowledge_error_code=acknowledged.error,
        acknowledge_error_message=acknowledged.message,
        current_leader=ShareFetchResponseLeaderIdAndEpoch(*leaders.named(where, one.error, acknowledged.error)),
        # A place in a file: the encoder for parts asks no more of it than its length.
        records=one.records,  # type: ignore[arg-type]
        acquired_records=tuple(ShareFetchResponseAcquiredRecords(*each) for each in one.acquired),
    )


def _shares(total_bytes: int, count: int) -> list[int]:
    """Bytes for each of so many partitions, as even as can be."""
    if count < 2:
        return [total_bytes] * count
    each, rest = divmod(total_bytes, count)
    return [each + 1] * rest + [each] * (count - rest) if not each else [each + rest] + [each] * (count - 1)


def _bearable(error: int) -> ErrorCode:
    code = ErrorCode(error)
    return code if code in _BEARABLE else ErrorCode.UNKNOWN_SERVER_ERROR
