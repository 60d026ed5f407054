"""How a transaction is ended: the prepare record, markers in all partitions, the complete record.

The prepare record is the decision; from then on the end is only a matter of work. When it is committed the effect
`WriteMarkers` leaves. Its outcome tells how each partition took its marker:

===================================================  ===================================================================
a partition answers                                  then
===================================================  ===================================================================
no error; it is gone; it cannot hold transactions    it is done
INVALID_PRODUCER_EPOCH                               it is done: it has seen a later epoch of the producer, so what this
                                                     transaction wrote there has been ended
TRANSACTION_COORDINATOR_FENCED                       another node coordinates this id by now, and ends the transaction
anything else                                        it is asked again, later each time, as long as it takes
===================================================  ===================================================================

When all are done the complete record is written. After a restart the prepare records tell what is left to do, and the
markers of all partitions are written once more, which does no harm.

The producer is answered when the decision is committed. Where this node leads every partition of the transaction it is
answered only after the complete record: markers take no longer than the decision did, and the producer's next step
never meets a transaction that is still ending. If a marker cannot be written at once the producer does not wait for it.

Soft: who waits for an end (`parked`), which markers must be written again and how often they were tried (`left`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer
from ottla.core.txn.answers import refusal
from ottla.core.txn.messages import WriteMarkers, Written
from ottla.core.txn.transaction import Partition, Transaction, to_record
from ottla.wire.errors import ErrorCode
from ottla.wire.types.end_txn import EndTxnRequest

__all__ = ["MARKERS", "Workflow"]

MARKERS: Final = "markers"
"""First entry of the key of the timer that writes markers again; the second is the transactional id."""

_RETRY_FIRST_MS: Final = 20
_RETRY_MAX_MS: Final = 1_000
_DONE: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class _Left(NamedTuple):
    partitions: Sequence[Partition]
    attempt: int


class Workflow:
    """The transactions of one shard that are being ended."""

    def __init__(self, transactions: Mapping[str, Transaction], coordinator_epoch: int) -> None:
        self._transactions = transactions
        self._coordinator_epoch = coordinator_epoch
        self._parked: dict[str, tuple[Reply, Context]] = {}
        self._left: dict[str, _Left] = {}

    # --- beginning ----------------------------------------------------------------------------------------------------

    def begin(self, prepared: Transaction, reply: Reply, context: Context, *, is_local: bool) -> Result:
        """End a transaction for a producer who is told so with `reply`."""
        level = context.world.feature("transaction.version")
        if not prepared.partitions:  # then there is nothing between the two records
            records = [to_record(prepared, level), to_record(prepared.completed(context.wall_ms), level)]
            return Result(records, [reply])
        result = self.begin_unasked(prepared, context)
        if not is_local:
            return result._replace(replies=[reply])
        self._parked[prepared.transactional_id] = (reply, context)
        return result._replace(after=Written(prepared.transactional_id, prepared.state))

    def begin_unasked(self, prepared: Transaction, context: Context) -> Result:
        """End a transaction that its producer has left."""
        record = to_record(prepared, context.world.feature("transaction.version"))
        return Result([record], effects=[self._markers(prepared, sorted(prepared.partitions))])

    def resume(self, prepared: Transaction) -> WriteMarkers:
        """Go on where a coordinator has stopped."""
        return self._markers(prepared, sorted(prepared.partitions))

    def _markers(self, prepared: Transaction, partitions: Sequence[Partition]) -> WriteMarkers:
        return WriteMarkers(
            prepared.transactional_id,
            prepared.producer_id,
            prepared.producer_epoch,
            self._coordinator_epoch,
            prepared.client_version,
            prepared.is_commit,
            partitions,
        )

    # --- going on -----------------------------------------------------------------------------------------------------

    def markers_written(self, effect: WriteMarkers, outcome: Outcome, context: Context) -> Result:
        transactional_id = effect.transactional_id
        prepared = self._transactions.get(transactional_id)
        if prepared is None or not prepared.state.is_prepare or prepared.producer_epoch != effect.producer_epoch:
            return NOTHING  # it was ended another way
        answers: Mapping[Partition, ErrorCode] = outcome.value or {}
        codes = {each: answers.get(each, outcome.error or ErrorCode.UNKNOWN_SERVER_ERROR) for each in effect.partitions}
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in codes.values():
            return Result(replies=self._refuse(transactional_id, ErrorCode.NOT_COORDINATOR))
        left = [each for each, code in codes.items() if code not in _DONE]
        if left:
            return Result(replies=self._unpark(transactional_id), timers=[self._again(transactional_id, left, context)])
        return self._complete(prepared, context)

    def _complete(self, prepared: Transaction, context: Context) -> Result:
        completed = prepared.completed(context.wall_ms)
        record = to_record(completed, context.world.feature("transaction.version"))
        subject = Written(prepared.transactional_id, completed.state)
        return Result([record], self._unpark(prepared.transactional_id), after=subject)

    def _again(self, transactional_id: str, partitions: Sequence[Partition], context: Context) -> Timer:
        before = self._left.get(transactional_id)
        attempt = 0 if before is None else before.attempt + 1
        self._left[transactional_id] = _Left(partitions, attempt)
        delay_ms = min(_RETRY_FIRST_MS << min(attempt, 16), _RETRY_MAX_MS)
        return Timer((MARKERS, transactional_id), context.now_ms + delay_ms)

    def retry(self, transactional_id: str, context: Context) -> Result:
        """Write the markers, or the complete record, that could not be written before."""
        prepared, left = self._transactions.get(transactional_id), self._left.get(transactional_id)
        if prepared is None or left is None or not prepared.state.is_prepare:
            return NOTHING
        if not left.partitions:
            return self._complete(prepared, context)
        return Result(effects=[self._markers(prepared, left.partitions)])

    def written(self, subject: Written, outcome: Outcome, context: Context) -> Result:
        """How the write of a prepare or a complete record went."""
        if outcome.is_ok:
            if subject.state.is_complete:
                self._left.pop(subject.transactional_id, None)
            return NOTHING
        if subject.state.is_prepare:
            return Result(replies=self._refuse(subject.transactional_id, outcome.error))
        current = self._transactions.get(subject.transactional_id)
        if current is None or not current.state.is_prepare:
            return NOTHING  # it was only late
        return Result(timers=[self._again(subject.transactional_id, (), context)])

    # --- who waits ----------------------------------------------------------------------------------------------------

    def _unpark(self, transactional_id: str) -> Sequence[Reply]:
        parked = self._parked.pop(transactional_id, None)
        return () if parked is None else (parked[0],)

    def _refuse(self, transactional_id: str, code: ErrorCode) -> Sequence[Reply]:
        parked = self._parked.pop(transactional_id, None)
        if parked is None:
            return ()
        reply, context = parked
        return (Reply(reply.token, refusal(EndTxnRequest(), code, context.api_version)),)

    def tokens(self) -> Iterable[Any]:
        """Whoever waits, at the end of this shard."""
        return [reply.token for reply, _ in self._parked.values()]
