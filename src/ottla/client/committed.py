"""What a consumer may see of the batches that a broker sends.

Brokers send whole batches, so records before the wanted offset come along; they send the markers that end transactions;
and to a consumer that reads only what was committed they send the batches of aborted transactions, too, with a list of
them: producer and first offset. A producer's batches from that offset on are hidden until its abort marker comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.wire.batch import AnyBatch, BatchView, ControlRecordType, read_control_type

__all__ = ["Aborted", "visible"]


class Aborted(NamedTuple):
    """An aborted transaction."""

    first_offset: int
    producer_id: int


def visible(batches: Iterable[AnyBatch], aborted: Sequence[Aborted]) -> Iterator[AnyBatch]:
    """The batches that hold records for the user: no markers, and nothing of the aborted transactions."""
    coming = sorted(aborted, reverse=True)
    hidden: set[int] = set()
    for batch in batches:
        while coming and coming[-1].first_offset <= batch.last_offset:
            hidden.add(coming.pop().producer_id)
        if batch.is_control:
            if isinstance(batch, BatchView) and _is_abort(batch):
                hidden.discard(batch.producer_id)
        elif not (isinstance(batch, BatchView) and batch.is_transactional and batch.producer_id in hidden):
            yield batch


def _is_abort(batch: BatchView) -> bool:
    records = batch.records()
    return bool(records) and read_control_type(records[0].key) == ControlRecordType.ABORT
