"""The core of one partition of `__transaction_state`.

Every request is about one transactional id. It is judged by what is known of the id (`init_producer_id`,
`add_partitions`, `end_txn`), and what is decided is one record; `workflow` ends transactions. Two things run
by the clock: transactions that are open for longer than their producer allowed are aborted (every
`transaction.abort.timed.out.transaction.cleanup.interval.ms`), and ids that nobody has used for
`transactional.id.expiration.ms` are forgotten (every `transaction.remove.expired.transaction.cleanup.interval.ms`).

Hard: `transactions`. Soft: requests that wait for a producer id (`_waiting`), the epoch that a producer had before it
got its present one (`_last_epochs`; Kafka does not write it either), which ids are Ongoing (`_ongoing`, from hard
state), and what `workflow` keeps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Final

import msgspec

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, TopicsChange
from ottla.core.txn import add_partitions, end_txn, init_producer_id
from ottla.core.txn.answers import refusal
from ottla.core.txn.init_producer_id import NeedsProducerId
from ottla.core.txn.messages import (
    AddPartitions,
    DescribeTransaction,
    Listed,
    ListTransactions,
    TakeProducerId,
    VerifyPartitions,
    WriteMarkers,
    Written,
)
from ottla.core.txn.states import TransactionState
from ottla.core.txn.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Transaction,
    forget_record,
    of_value,
    to_record,
)
from ottla.core.txn.workflow import MARKERS, Workflow
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.types.transaction_log import TransactionLogKey

__all__ = ["TransactionCoordinator"]

log = logging.getLogger(__name__)

ABORT: Final = ("abort",)
FORGET: Final = ("forget",)
_V2: Final = 2

_Patient = InitProducerIdRequest | EndTxnRequest
"""Requests that may have to wait for a producer id."""


class TransactionCoordinator:
    """A `Core`. `is_led_here(topic, partition)` tells whether this node leads a partition at the moment."""

    def __init__(self, coordinator_epoch: int, is_led_here: Callable[[str, int], bool]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._is_led_here = is_led_here
        self._workflow = Workflow(self.transactions, coordinator_epoch)
        self._ongoing: dict[str, None] = {}
        self._last_epochs: dict[str, int] = {}
        self._waiting: dict[int, tuple[_Patient, Context]] = {}
        self._numbers = count()
        self._handlers: dict[type, Callable[[Any, Context], Result]] = {
            InitProducerIdRequest: self._decide,
            EndTxnRequest: self._decide,
            AddPartitions: self._add,
            VerifyPartitions: self._verify,
            DescribeTransaction: self._describe,
            ListTransactions: self._list,
        }

    def handle(self, request: Any, context: Context) -> Result:  # noqa: ANN401
        return self._handlers[type(request)](request, context)

    # --- requests that may need a producer id -------------------------------------------------------------------------

    def _decide(self, request: _Patient, context: Context, producer_id: int | None = None) -> Result:
        """Decide on a request, or let it wait until there is a producer id, with which it is judged anew."""
        try:
            if isinstance(request, EndTxnRequest):
                return self._end(request, context, producer_id)
            return self._initialize(request, context, producer_id)
        except Reject as reject:
            return Result(replies=[Reply(context.token, refusal(request, reject.code, context.api_version))])
        except NeedsProducerId:
            number = next(self._numbers)
            self._waiting[number] = (request, context)
            return Result(effects=[TakeProducerId(number)])

    def _producer_id_taken(self, effect: TakeProducerId, outcome: Outcome, context: Context) -> Result:
        request, asked = self._waiting.pop(effect.number)
        if not outcome.is_ok:
            return Result(replies=[Reply(asked.token, refusal(request, outcome.error, asked.api_version))])
        now = msgspec.structs.replace(asked, now_ms=context.now_ms, wall_ms=context.wall_ms)
        return self._decide(request, now, outcome.value)

    def _initialize(self, request: InitProducerIdRequest, context: Context, producer_id: int | None) -> Result:
        timeout_ms = init_producer_id.check_request(request, context)
        transactional_id = request.transactional_id or ""
        known = self.transactions.get(transactional_id)
        if known is not None:
            init_producer_id.check_state(request, known)
            if known.state is TransactionState.ONGOING:
                answer = refusal(request, ErrorCode.CONCURRENT_TRANSACTIONS, context.api_version)
                return self._fence(known, context)._replace(replies=[Reply(context.token, answer)])
        last_epoch = self._last_epochs.get(transactional_id, NO_EPOCH)
        begin = init_producer_id.judge(request, known, last_epoch, producer_id, timeout_ms, context)
        self._remember_epoch(transactional_id, begin.last_epoch)
        begun = begin.transaction
        answer = InitProducerIdResponse(producer_id=begun.producer_id, producer_epoch=begun.producer_epoch)
        return self._step(begun, answer, context)

    def _end(self, request: EndTxnRequest, context: Context, producer_id: int | None) -> Result:
        if not request.transactional_id:
            raise Reject(ErrorCode.INVALID_REQUEST)
        known = self.transactions.get(request.transactional_id)
        if known is None:
            raise Reject(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if context.api_version < end_txn.EPOCH_BUMPS_FROM:
            return self._end_v1(request, known, context)
        if end_txn.is_done_v2(request, known):
            answer = EndTxnResponse(producer_id=known.producer_id, producer_epoch=known.producer_epoch)
            return Result(replies=[Reply(context.token, answer)])
        if known.is_exhausted and producer_id is None:
            raise NeedsProducerId
        prepared = known.prepared(
            is_commit=request.committed,
            client_version=_V2,
            next_producer_id=producer_id if known.is_exhausted and producer_id is not None else NO_PRODUCER_ID,
            now_ms=context.wall_ms,
        )
        self._remember_epoch(known.transactional_id, known.producer_epoch)
        after = prepared.completed(context.wall_ms)
        answer = EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.producer_epoch)
        return self._begin_end(prepared, answer, context)

    def _end_v1(self, request: EndTxnRequest, known: Transaction, context: Context) -> Result:
        if end_txn.is_done_v1(request, known):
            return Result(replies=[Reply(context.token, EndTxnResponse())])
        prepared = known.prepared(is_commit=request.committed, client_version=0, now_ms=context.wall_ms)
        return self._begin_end(prepared, EndTxnResponse(), context)

    def _begin_end(self, prepared: Transaction, answer: EndTxnResponse, context: Context) -> Result:
        is_local = all(self._is_led_here(*each) for each in prepared.partitions)
        return self._workflow.begin(prepared, Reply(context.token, answer), context, is_local=is_local)

    def _fence(self, known: Transaction, context: Context) -> Result:
        """Shut out the producer of an open transaction, and abort that."""
        self._remember_epoch(known.transactional_id, NO_EPOCH)
        level = context.world.feature("transaction.version")
        return self._workflow.begin_unasked(known.fenced(level, context.wall_ms), context)

    def _remember_epoch(self, transactional_id: str, last_epoch: int) -> None:
        if last_epoch == NO_EPOCH:
            self._last_epochs.pop(transactional_id, None)
        else:
            self._last_epochs[transactional_id] = last_epoch

    def _step(self, transaction: Transaction, answer: object, context: Context) -> Result:
        record = to_record(transaction, context.world.feature("transaction.version"))
        return Result([record], [Reply(context.token, answer)])

    # --- partitions ---------------------------------------------------------------------------------------------------

    def _add(self, request: AddPartitions, context: Context) -> Result:
        added = add_partitions.add(request, self.transactions.get(request.transactional_id), context.wall_ms)
        if added is None:
            return Result(replies=[Reply(context.token, ErrorCode.NONE)])
        return self._step(added, ErrorCode.NONE, context)

    def _verify(self, request: VerifyPartitions, context: Context) -> Result:
        codes = add_partitions.verify(request, self.transactions.get(request.transactional_id))
        return Result(replies=[Reply(context.token, codes)])

    # --- looking ------------------------------------------------------------------------------------------------------

    def _describe(self, request: DescribeTransaction, context: Context) -> Result:
        if not request.transactional_id:
            raise Reject(ErrorCode.INVALID_REQUEST)
        known = self.transactions.get(request.transactional_id)
        if known is None:
            raise Reject(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return Result(replies=[Reply(context.token, known)])

    def _list(self, request: ListTransactions, context: Context) -> Result:
        listed = [
            Listed(each.transactional_id, each.producer_id, each.state)
            for each in self.transactions.values()
            if _is_listed(each, request, context.wall_ms)
        ]
        return Result(replies=[Reply(context.token, listed)])

    # --- by the clock -------------------------------------------------------------------------------------------------

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        if key == ABORT:
            return self._abort_timed_out(context)
        if key == FORGET:
            return self._forget_unused(context)
        assert key[0] == MARKERS, key
        return self._workflow.retry(key[1], context)

    def _abort_timed_out(self, context: Context) -> Result:
        records: list[KeyedRecord] = []
        effects: list[Any] = []
        for transactional_id in self._ongoing:
            known = self.transactions[transactional_id]
            if _is_late(known, context.wall_ms):
                log.info("transaction of %r was open for more than %s ms: aborted", transactional_id, known.timeout_ms)
                result = self._fence(known, context)
                records += result.records
                effects += result.effects
        return Result(records, effects=effects, timers=[_abort_timer(context)], after=ABORT, is_atomic=False)

    def _forget_unused(self, context: Context) -> Result:
        unused_since_ms = context.wall_ms - context.world.settings["transactional.id.expiration.ms"]
        records = [
            forget_record(each.transactional_id)
            for each in self.transactions.values()
            if each.state.is_idle and each.updated_at_ms <= unused_since_ms
        ]
        return Result(records, timers=[_forget_timer(context)], after=FORGET, is_atomic=False)

    # --- what the runtime tells ---------------------------------------------------------------------------------------

    def replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        if not isinstance(record.key, TransactionLogKey):
            return  # of a kind that this release does not know
        transactional_id = record.key.transactional_id
        self._ongoing.pop(transactional_id, None)
        if record.value is None:
            self.transactions.pop(transactional_id, None)
            self._last_epochs.pop(transactional_id, None)
            return
        try:
            transaction = of_value(transactional_id, record.value)
        except ValueError:
            log.warning("offset %s has an unknown state of transactional id %r: skipped", offset, transactional_id)
            return
        self.transactions[transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self._ongoing[transactional_id] = None

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nothing in this topic is part of a transaction."""

    def loaded(self, context: Context) -> Result:
        unfinished = [each for each in self.transactions.values() if each.state.is_prepare]
        effects = [self._workflow.resume(each) for each in unfinished]
        return Result(effects=effects, timers=[_abort_timer(context), _forget_timer(context)])

    def unloaded(self) -> Iterable[Any]:
        return [context.token for _, context in self._waiting.values()] + list(self._workflow.tokens())

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        if isinstance(subject, TakeProducerId):
            return self._producer_id_taken(subject, outcome, context)
        if isinstance(subject, WriteMarkers):
            return self._workflow.markers_written(subject, outcome, context)
        if isinstance(subject, Written):
            return self._workflow.written(subject, outcome, context)
        return NOTHING if outcome.is_ok else self._look_again(subject, context)

    def _look_again(self, key: tuple[str], context: Context) -> Result:
        """What a look at all ids has found could not be written, and its timer was not set either."""
        return Result(timers=[_abort_timer(context) if key == ABORT else _forget_timer(context)])

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        return NOTHING  # a deleted partition is found out when its marker is written

    def hard_state(self) -> Mapping[Any, Any]:
        return {name: msgspec.to_builtins(each, order="deterministic") for name, each in self.transactions.items()}


def _is_late(transaction: Transaction, now_ms: int) -> bool:
    return transaction.timeout_ms != NO_TIMEOUT_MS and transaction.started_at_ms + transaction.timeout_ms < now_ms


def _is_listed(transaction: Transaction, request: ListTransactions, now_ms: int) -> bool:
    if request.states is not None and transaction.state not in request.states:
        return False
    if request.producer_ids and transaction.producer_id not in request.producer_ids:
        return False
    if request.older_than_ms >= 0 and now_ms - transaction.started_at_ms <= request.older_than_ms:
        return False
    return request.matches is None or request.matches(transaction.transactional_id)


def _abort_timer(context: Context) -> Timer:
    every_ms = context.world.settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
    return Timer(ABORT, context.now_ms + every_ms)


def _forget_timer(context: Context) -> Timer:
    every_ms = context.world.settings["transaction.remove.expired.transaction.cleanup.interval.ms"]
    return Timer(FORGET, context.now_ms + every_ms)
