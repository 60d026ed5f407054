"""Which batches committed readers see, for columns: the twin of `ottla.client.committed`, which goes batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.client.committed import Aborted
from ottla.wire.batch import ControlRecordType

if TYPE_CHECKING:
    from ottla.wire.columns import BatchColumns
    from ottla.wire.columns_table import Bools

__all__ = ["AbortedFilter"]


class AbortedFilter:
    """Leaves out the batches of aborted transactions. One object sees all batches of an answer, in order."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._coming = sorted(aborted, reverse=True)
        self._hidden: set[int] = set()

    def keep(self, batches: BatchColumns) -> Bools:
        """A mask over batches; markers are left out by the decoder itself."""
        import numpy as np

        kept = np.ones(len(batches), np.bool_)
        if not self._coming and not self._hidden:
            return kept
        rows = zip(
            batches.last_offset.tolist(),
            batches.field("producer_id").tolist(),
            batches.is_transactional.tolist(),
            batches.is_control.tolist(),
            batches.control_type.tolist(),
            strict=True,
        )
        for index, (last_offset, producer_id, is_transactional, is_control, control_type) in enumerate(rows):
            while self._coming and self._coming[-1].first_offset <= last_offset:
                self._hidden.add(self._coming.pop().producer_id)
            if is_control:
                if control_type == ControlRecordType.ABORT:
                    self._hidden.discard(producer_id)
            elif is_transactional and producer_id in self._hidden:
                kept[index] = False
        return kept
