"""Batches of idempotent producers that were refused for now: what was sent right behind them is refused alike.

A producer has up to five batches of a partition under way. When a node refuses the first of them because it does not
lead the partition yet, and leads it when the second comes, the second does not follow what is in the log. By Kafka's
rules it gets OUT_OF_ORDER_SEQUENCE_NUMBER. librdkafka (2.16, its issue 4953) then takes a new epoch and sends what was
not answered once more, also what the former leader has written and replicated: those records are there twice. And
where the log knows nothing of the producer, the second batch is accepted, and the first is refused for ever.

So a connection remembers the first batch that was refused. What follows it and fits nothing in the log gets the same
error, until the refused batch comes again, another epoch begins, or as many batches have come as can have been under
way.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.wire.batch_view import BatchView
from ottla.wire.errors import ErrorCode

__all__ = ["PARTITIONS_MAX", "UNDER_WAY_MAX", "RefusedBatches"]

UNDER_WAY_MAX: Final = 5
"""Batches of a partition that a producer sends without waiting for answers; all clients keep to it."""
PARTITIONS_MAX: Final = 1_000
"""Of how many partitions a connection remembers something; the oldest are forgotten first."""

Partition = tuple[str | bytes, int]
"""The topic as the client names it, and the index."""


class _Refused(NamedTuple):
    producer_epoch: int
    base_sequence: int
    code: ErrorCode
    left: int
    """How many more batches can have been under way behind it."""


class RefusedBatches:
    """What one connection remembers."""

    def __init__(self) -> None:
        self._refused: dict[tuple[Partition, int], _Refused] = {}

    def __len__(self) -> int:
        return len(self._refused)

    def refuse(self, partition: Partition, batch: BatchView, code: ErrorCode) -> None:
        """Note that a batch was refused for now."""
        key = (partition, batch.producer_id)
        refused = self._before(key, batch)
        self._refused.pop(key, None)
        if refused is None:
            if len(self._refused) >= PARTITIONS_MAX:
                del self._refused[next(iter(self._refused))]
            self._refused[key] = _Refused(batch.producer_epoch, batch.base_sequence, code, UNDER_WAY_MAX - 1)
        elif refused.left > 1:
            self._refused[key] = refused._replace(left=refused.left - 1)

    def code_for(self, partition: Partition, batch: BatchView) -> ErrorCode | None:
        """The error of the refused batch that this one was sent behind, if there is one."""
        refused = self._before((partition, batch.producer_id), batch)
        return None if refused is None else refused.code

    def forget(self, partition: Partition, batch: BatchView) -> None:
        """Note that a batch of a producer is accepted."""
        self._refused.pop((partition, batch.producer_id), None)

    def _before(self, key: tuple[Partition, int], batch: BatchView) -> _Refused | None:
        refused = self._refused.get(key)
        if refused is None or batch.producer_epoch != refused.producer_epoch:
            return None
        return refused if batch.base_sequence > refused.base_sequence else None
