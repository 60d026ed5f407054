"""Drops aborted transactions at read_committed, for columns; `ottla.client.committed` does so batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.wire.aborted import AbortedTransaction, AbortedTransactions

if TYPE_CHECKING:
    from ottla.wire.columns import BatchColumns
    from ottla.wire.columns_table import Bools

__all__ = ["AbortedFilter"]


class AbortedFilter:
    """Drops the batches of aborted transactions. One object gets all batches of a response, in order.

    The decoder may ask about the same batches twice, because it starts over if a batch needs another engine. So only
    `advance` changes the state, when the batches are done.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._transactions = AbortedTransactions(aborted)
        self._after = self._transactions

    def advance(self) -> None:
        """The batches of the last call of `keep` are done."""
        self._transactions = self._after

    def keep(self, batches: BatchColumns) -> Bools:
        """A mask over batches; the decoder itself drops markers."""
        import numpy as np

        kept = np.ones(len(batches), np.bool_)
        self._after = self._transactions
        if not self._transactions:
            return kept
        self._after = transactions = self._transactions.copy()
        rows = zip(
            batches.last_offset.tolist(),
            batches.field("producer_id").tolist(),
            batches.is_transactional.tolist(),
            batches.is_control.tolist(),
            strict=True,
        )
        for index, (last_offset, producer_id, is_transactional, is_marker) in enumerate(rows):
            if is_transactional and transactions.is_aborted(producer_id, last_offset, is_marker=is_marker):
                kept[index] = False
        return kept
