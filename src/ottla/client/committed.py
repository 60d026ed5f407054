"""What a consumer may see of the batches that a broker sends.

Brokers send whole batches, so records before the wanted offset come along. They also send the markers that end
transactions, and, to a consumer at read_committed, the batches of aborted transactions (see `ottla.wire.aborted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ottla.wire.aborted import AbortedTransaction, AbortedTransactions
from ottla.wire.batch import AnyBatch, BatchView, ControlRecordType, read_control_type

__all__ = ["visible"]


def visible(batches: Iterable[AnyBatch], aborted: Sequence[AbortedTransaction]) -> Iterator[AnyBatch]:
    """The batches that hold records for the user: no markers, and nothing of the aborted transactions."""
    transactions = AbortedTransactions(aborted)
    for batch in batches:
        if batch.is_control:
            if isinstance(batch, BatchView) and _is_abort(batch):
                transactions.end(batch.producer_id, batch.last_offset)
        elif not (
            isinstance(batch, BatchView)
            and batch.is_transactional
            and transactions.is_aborted(batch.producer_id, batch.last_offset)
        ):
            yield batch


def _is_abort(batch: BatchView) -> bool:
    records = batch.records()
    return bool(records) and read_control_type(records[0].key) == ControlRecordType.ABORT
