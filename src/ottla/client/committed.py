"""What a consumer may see of the batches that a broker sends.

Brokers send whole batches, so records before the wanted offset come along. They also send the markers that end
transactions, and, to a consumer at read_committed, the batches of aborted transactions (see `ottla.wire.aborted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ottla.wire.aborted import AbortedTransaction, AbortedTransactions
from ottla.wire.batch import AnyBatch, BatchView

__all__ = ["visible"]


def visible(batches: Iterable[AnyBatch], aborted: Sequence[AbortedTransaction]) -> Iterator[AnyBatch]:
    """The batches that hold records for the user: no markers, and nothing of the aborted transactions."""
    transactions = AbortedTransactions(aborted)
    for batch in batches:
        if (
            isinstance(batch, BatchView)
            and batch.is_transactional
            and transactions.is_aborted(batch.producer_id, batch.last_offset, is_marker=batch.is_control)
        ):
            continue
        if not batch.is_control:
            yield batch
