"""A shard: one core, and the partition of an internal topic that holds its records.

Theory of operation. Every call of the core gives a `Result` (see `ottla.core.coordinator.contract`). `_apply` puts its
records into the open batch, replays them, sets its timers, and puts its replies and effects into `_pending` under the
offset that must be committed first. The batch stays open until `flush`, at the end of the turn, so that the decisions
of one turn are one batch and one write; `advance`, after the write, releases what is committed.

Results are applied and released in the order in which they were decided: an answer never overtakes another that depends
on an earlier offset. An answer that depends on nothing uncommitted is sent at once.

Failures:

=============================  =========================================================================================
the core refuses (Reject)      nothing has happened; the client gets the error
the append is refused          nothing has happened; replies become errors, `settled(after)` gets the error; a deadline
                               whose core has not asked to be told comes again
not committed in time          replies become errors, `settled(after)` gets the error; the records stay applied, and the
                               effects leave if they are committed after all
the batch cannot be written,   the shard is lost: state and log differ. `Edge.lost` discards it; it is loaded again
a replay fails
leadership moves               `unload`: everything pending and parked gets NOT_COORDINATOR
the core fails otherwise       a line in the log; the client gets UNKNOWN_SERVER_ERROR; hard state is unchanged
=============================  =========================================================================================

A shard does no input or output and knows no event loop: the simulation drives the same class as the broker.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any, Final, Protocol

from ottla.core.coordinator.append_errors import as_coordinator_error
from ottla.core.coordinator.contract import (
    COMMITTED,
    NOTHING,
    Context,
    Core,
    Outcome,
    Producer,
    Reply,
    Result,
    TopicsChange,
    World,
)
from ottla.core.coordinator.deadlines import Deadlines
from ottla.core.coordinator.records import encode_record
from ottla.wire.batch import HEADER_BYTES, BatchBuilder
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject, message_of

__all__ = ["RETRY_MS", "Edge", "PartitionWriter", "Shard"]

log = logging.getLogger(__name__)

_RECORD_OVERHEAD_BYTES: Final = 32
"""The largest size of a record's lengths and deltas in a batch."""
RETRY_MS: Final = 5_000
"""After so long a deadline comes again whose records the log has refused."""

_Encoded = tuple[bytes, bytes | None]


class PartitionWriter(Protocol):
    """The partition of a shard. A refused append raises an exception with a `code`."""

    @property
    def log_end_offset(self) -> int:
        """The end of the log, including staged batches."""
        ...

    @property
    def high_watermark(self) -> int: ...
    @property
    def batch_max_bytes(self) -> int: ...

    def check(self) -> None:
        """Raise what an append would be refused with now, whatever it holds."""

    def stage(self, batch: BatchBuilder, producer: Producer | None) -> int:
        """Take a batch, to be written at the end of the turn; returns its base offset."""
        ...

    def stage_marker(
        self, producer: Producer, *, committed: bool, coordinator_epoch: int, transaction_version: int
    ) -> int: ...


class Edge(Protocol):
    """Takes the outputs of a shard."""

    def monotonic_ms(self) -> int: ...
    def wall_ms(self) -> int: ...
    def reply(self, token: Any, message: Any) -> None: ...  # noqa: ANN401
    def refuse(self, token: Any, code: ErrorCode, message: str | None) -> None: ...  # noqa: ANN401

    def perform(self, effect: Any, done: Callable[[Outcome], None]) -> None:  # noqa: ANN401
        """Perform an effect; `done` may be called at once or later, and not at all if the process ends."""
        ...

    def unflushed(self, shard: Shard) -> None:
        """The shard has something to write: call `flush`, write, and call `advance` at the end of the turn."""
        ...

    def due_at(self, shard: Shard, at_ms: int) -> None:
        """Call `expire` at that time, which may be earlier than the last one."""
        ...

    def lost(self, shard: Shard, error: Exception) -> None:
        """The shard's state and its log may differ from now on: unload it, and load it again."""
        ...


class _Pending:
    """A result that is released when the log is committed up to `end_offset`."""

    __slots__ = ("after", "deadline_at_ms", "effects", "end_offset", "replies")

    def __init__(self, end_offset: int, deadline_at_ms: int, result: Result) -> None:
        self.end_offset = end_offset
        self.deadline_at_ms = deadline_at_ms
        self.replies = result.replies
        self.effects = result.effects
        self.after = result.after


class Shard:
    def __init__(self, core: Core, writer: PartitionWriter, world: World, edge: Edge, *, write_timeout_ms: int) -> None:
        self.core = core
        self.writer = writer
        self.world = world
        self.deadlines = Deadlines()
        self.is_loaded = False
        self._edge = edge
        self._write_timeout_ms = write_timeout_ms
        self._batch = BatchBuilder()
        self._batch_offset = 0
        """The base offset of the open batch."""
        self._is_unflushed = False
        """Whether the edge knows that something must be written."""
        self._is_behind = False
        """Whether some applied records are not committed yet."""
        self._pending: deque[_Pending] = deque()

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        count = len(self._batch)
        return self._batch_offset + count if count else self.writer.log_end_offset

    @property
    def pending_count(self) -> int:
        """How many results wait for the high watermark."""
        return len(self._pending)

    @property
    def has_unwritten(self) -> bool:
        """Whether there is something to flush, or a write is pending."""
        return bool(self._pending) or len(self._batch) > 0

    def context(self, **request: Any) -> Context:  # noqa: ANN401 - fields of Context
        return Context(now_ms=self._edge.monotonic_ms(), wall_ms=self._edge.wall_ms(), world=self.world, **request)

    # --- calls of the core --------------------------------------------------------------------------------------------

    def handle(self, request: Any, context: Context) -> Result:  # noqa: ANN401
        """Let the core handle a request; the edge takes the reply for `context.token`.

        Returns the core's result, so that the caller can distinguish a reply that waits for its records from no reply.
        """
        try:
            result = self.core.handle(request, context)
        except Reject as reject:
            self._edge.refuse(context.token, reject.code, reject.message)
            return NOTHING
        except Exception:
            log.exception("a coordinator failed at %s", type(request).__name__)
            self._edge.refuse(context.token, ErrorCode.UNKNOWN_SERVER_ERROR, None)
            return NOTHING
        self._apply(result)
        return result

    def start(self) -> None:
        """The log has been replayed."""
        self.is_loaded = True
        self._is_behind = self.writer.high_watermark < self.writer.log_end_offset
        self.tell(self.core.loaded)

    def expire(self, count_max: int | None = None) -> None:
        """Handle deadlines that have passed, at most `count_max` of them, and writes that take too long."""
        now_ms = self._edge.monotonic_ms()
        for _ in repeat(None) if count_max is None else repeat(None, count_max):
            key = self.deadlines.take_due(now_ms) if self.is_loaded else None
            if key is None:
                break
            self._expire_one(key, now_ms)
        self._expire_pending(now_ms)

    def _expire_one(self, key: Any, now_ms: int) -> None:  # noqa: ANN401
        """Tell the core of a deadline. If the log refuses what that brings, as while too few replicas are in sync, the
        deadline comes again: a member whose session has ended must not stay for ever. A core that asked to be told of a
        refusal sees to it itself, and the time of a deadline that it has set anew stands."""
        if self.tell(lambda context: self.core.expire(key, context)):
            return
        if self.is_loaded and key not in self.deadlines and self.deadlines.set(key, now_ms + RETRY_MS):
            self._edge.due_at(self, now_ms + RETRY_MS)

    def next_at_ms(self) -> int | None:
        """When `expire` must be called."""
        at_ms = self.deadlines.next_at_ms()
        waiting_at_ms = next((each.deadline_at_ms for each in self._pending if each.replies or each.after), None)
        known = [each for each in (at_ms, waiting_at_ms) if each is not None]
        return min(known) if known else None

    def tell(self, call: Callable[[Context], Result]) -> bool:
        """Call the core for something other than a request. False if the log has refused what the core decided, and the
        core has not asked to be told of that."""
        try:
            result = call(self.context())
        except Exception:
            log.exception("a coordinator failed")
            return True
        return self._apply(result) or result.after is not None

    def topics_changed(self, change: TopicsChange) -> None:
        self.tell(lambda context: self.core.topics_changed(change, context))

    def settle(self, subject: Any, outcome: Outcome) -> None:  # noqa: ANN401
        if self.is_loaded:
            self.tell(lambda context: self.core.settled(subject, outcome, context))

    def end_transaction(
        self,
        producer: Producer,
        token: Any,  # noqa: ANN401
        message: Any,  # noqa: ANN401
        *,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> None:
        """Append a transaction's marker and replay it; `token` is answered with `message` when it is committed."""
        try:
            self._close_batch()
            self.writer.stage_marker(
                producer,
                committed=committed,
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )
        except Exception as error:  # noqa: BLE001  # whatever the log refuses, nothing has happened
            self._edge.refuse(token, as_coordinator_error(_code(error)), message_of(error))
            return
        self._fall_behind()
        try:
            self.core.replay_marker(producer.producer_id, producer.producer_epoch, committed)
        except Exception as error:  # noqa: BLE001  # whatever it was
            self._lose(error)
            self._edge.refuse(token, ErrorCode.NOT_COORDINATOR, None)
            return
        self._file(Result(replies=(Reply(token, message),)))

    # --- what a result brings -----------------------------------------------------------------------------------------

    def _apply(self, result: Result) -> bool:
        """Whether the log has taken the records."""
        if result.records:
            try:
                self._append(result)
            except Exception as error:  # noqa: BLE001  # whatever the log refuses, nothing has happened
                self._fail(result, as_coordinator_error(_code(error)), message_of(error))
                return False
        for key, at_ms in result.timers:
            if at_ms is None:
                self.deadlines.cancel(key)
            elif self.deadlines.set(key, at_ms):
                self._edge.due_at(self, at_ms)
        if self._is_behind or self._pending or result.effects or result.after is not None:
            self._file(result)
            return True
        for token, message in result.replies:  # the usual case, a heartbeat that changes nothing
            self._edge.reply(token, message)
        return True

    def _append(self, result: Result) -> None:
        """Assign offsets to the records and replay them."""
        self.writer.check()
        encoded = [encode_record(each) for each in result.records]
        if result.producer is not None:
            self._append_transactional(result.records, encoded, result.producer)
            return
        limit = self.writer.batch_max_bytes
        size = sum(map(_size, encoded))
        if size + HEADER_BYTES <= limit:
            self._append_piece(result.records, encoded, size, limit)
            return
        sizes = [_size(each) for each in encoded]
        for first, last in _pieces(sizes, limit - HEADER_BYTES, result.is_atomic):
            self._append_piece(result.records[first:last], encoded[first:last], sum(sizes[first:last]), limit)

    def _append_piece(
        self, records: Sequence[KeyedRecord], encoded: Sequence[_Encoded], size_bytes: int, limit_bytes: int
    ) -> None:
        """Put records that fit into a batch into the open one, or into the next one if the open one is too full."""
        if self._batch.size_bytes + size_bytes > limit_bytes:
            self._close_batch()
        batch, at_ms = self._batch, self._edge.wall_ms()
        count = len(batch)
        if not count:
            self._batch_offset = self.writer.log_end_offset
        offset = self._batch_offset + count
        for key, value in encoded:
            batch.append(at_ms, key, value)
        self._fall_behind()
        self._replay(records, offset)

    def _append_transactional(
        self, records: Sequence[KeyedRecord], encoded: Sequence[_Encoded], producer: Producer
    ) -> None:
        """Records of a transaction are in a batch of their own, with the producer's id."""
        _pieces([_size(each) for each in encoded], self.writer.batch_max_bytes - HEADER_BYTES, is_atomic=True)
        self._close_batch()
        batch, at_ms = BatchBuilder(), self._edge.wall_ms()
        for key, value in encoded:
            batch.append(at_ms, key, value)
        offset = self.writer.stage(batch, producer)
        self._fall_behind()
        self._replay(records, offset, producer.producer_id, producer.producer_epoch)

    def _fall_behind(self) -> None:
        self._is_behind = True
        if not self._is_unflushed:
            self._is_unflushed = True
            self._edge.unflushed(self)

    def _replay(
        self, records: Sequence[KeyedRecord], offset: int, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        try:
            for index, each in enumerate(records, offset):
                self.core.replay(each, index, producer_id, producer_epoch)
        except Exception as error:
            self._lose(error)
            raise Reject(ErrorCode.NOT_COORDINATOR) from error

    def _lose(self, error: Exception) -> None:
        """The core could not replay records that are in the log: discard the shard."""
        log.error("a coordinator cannot replay its own records", exc_info=error)
        self._edge.lost(self, error)

    def _fail(self, result: Result, code: ErrorCode, message: str | None) -> None:
        for reply in result.replies:
            self._edge.refuse(reply.token, code, message)
        if result.after is not None:
            self.settle(result.after, Outcome(code, message=message))

    # --- letting go ---------------------------------------------------------------------------------------------------

    def _file(self, result: Result) -> None:
        if not (result.replies or result.effects or result.after is not None):
            return
        if not self._is_behind and not self._pending:
            self._release(result.replies, result.effects, result.after)
            return
        pending = _Pending(self.end_offset, self._edge.monotonic_ms() + self._write_timeout_ms, result)
        if not self._pending:
            self._edge.due_at(self, pending.deadline_at_ms)
        self._pending.append(pending)

    def _release(self, replies: Iterable[Reply], effects: Iterable[Any], after: object) -> None:
        for token, message in replies:
            self._edge.reply(token, message)
        if after is not None:
            self.settle(after, COMMITTED)
        for effect in effects:
            self._edge.perform(effect, lambda outcome, effect=effect: self.settle(effect, outcome))  # type: ignore[misc]

    def flush(self) -> None:
        """Hand the open batch to the writer, which writes it at the end of the turn."""
        self._is_unflushed = False
        with suppress(Reject):
            self._close_batch()

    def _close_batch(self) -> None:
        if not len(self._batch):
            return
        batch, self._batch = self._batch, BatchBuilder()
        try:
            offset = self.writer.stage(batch, None)
            assert offset == self._batch_offset, f"the batch of offset {self._batch_offset} was put at {offset}"
        except Exception as error:  # its records have been replayed
            if getattr(error, "code", None) != ErrorCode.KAFKA_STORAGE_ERROR:  # a disk that fails is told of by others
                log.exception("a batch that was replayed cannot be written")
            self._edge.lost(self, error)
            raise Reject(ErrorCode.NOT_COORDINATOR) from error

    def advance(self) -> None:
        """Release the results that are committed."""
        high_watermark = self.writer.high_watermark
        self._is_behind = high_watermark < self.end_offset
        while self._pending and self._pending[0].end_offset <= high_watermark:
            pending = self._pending.popleft()
            self._release(pending.replies, pending.effects, pending.after)

    def _expire_pending(self, now_ms: int) -> None:
        """Fail the replies of writes that take too long. Effects stay: the records may still be committed."""
        for pending in list(self._pending):
            if pending.deadline_at_ms > now_ms:
                return
            replies, pending.replies = pending.replies, ()
            after, pending.after = pending.after, None
            code = as_coordinator_error(ErrorCode.REQUEST_TIMED_OUT)
            for token, _ in replies:
                self._edge.refuse(token, code, None)
            if after is not None:
                self.settle(after, Outcome(code))

    def unload(self) -> None:
        """Leadership is lost, or the log failed: answer all waiting requests with NOT_COORDINATOR."""
        self.is_loaded = False
        self._batch = BatchBuilder()
        pending, self._pending = self._pending, deque()
        for token in [reply.token for each in pending for reply in each.replies] + list(self.core.unloaded()):
            self._edge.refuse(token, ErrorCode.NOT_COORDINATOR, None)


def _pieces(sizes: Sequence[int], limit: int, is_atomic: bool) -> list[tuple[int, int]]:
    """The ranges of records for each batch. Raises Reject if they do not fit."""
    total = sum(sizes)
    if total <= limit:
        return [(0, len(sizes))]
    if is_atomic or max(sizes) > limit:
        raise Reject(ErrorCode.MESSAGE_TOO_LARGE, f"{total} bytes of records are more than a batch may hold ({limit})")
    pieces, first, held = [], 0, 0
    for index, size in enumerate(sizes):
        if held + size > limit:
            pieces.append((first, index))
            first, held = index, 0
        held += size
    return [*pieces, (first, len(sizes))]


def _size(encoded: _Encoded) -> int:
    key, value = encoded
    return len(key) + len(value or b"") + _RECORD_OVERHEAD_BYTES


def _code(error: Exception) -> ErrorCode:
    return ErrorCode(getattr(error, "code", ErrorCode.UNKNOWN_SERVER_ERROR))
