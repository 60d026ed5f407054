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
    """Leaves out the batches of aborted transactions. One object sees all batches of an answer, in order.

    A piece may be judged more than once, as the decoder begins anew where it meets something odd; so what is known goes
    on only when the piece is done, by `advance`.
    """

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._coming = tuple(sorted(aborted, reverse=True))
        self._hidden: frozenset[int] = frozenset()
        self._after = self._coming, self._hidden

    def advance(self) -> None:
        """The batches that were judged last are done; others follow."""
        self._coming, self._hidden = self._after

    def keep(self, batches: BatchColumns) -> Bools:
        """A mask over batches; markers are left out by the decoder itself."""
        import numpy as np

        kept = np.ones(len(batches), np.bool_)
        self._after = self._coming, self._hidden
        if not self._coming and not self._hidden:
            return kept
        coming, hidden = list(self._coming), set(self._hidden)
        rows = zip(
            batches.last_offset.tolist(),
            batches.field("producer_id").tolist(),
            batches.is_transactional.tolist(),
            batches.is_control.tolist(),
            batches.control_type.tolist(),
            strict=True,
        )
        for index, (last_offset, producer_id, is_transactional, is_control, control_type) in enumerate(rows):
            while coming and coming[-1].first_offset <= last_offset:
                hidden.add(coming.pop().producer_id)
            if is_control:
                if control_type == ControlRecordType.ABORT:
                    hidden.discard(producer_id)
            elif is_transactional and producer_id in hidden:
                kept[index] = False
        self._after = tuple(coming), frozenset(hidden)
        return kept
