"""A window from what the coordinator has kept."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.core.share.partition.events import StateBatch
from ottla.core.share.partition.states import RecordState
from ottla.core.share.partition.window import Entry, Run, Window

__all__ = ["load"]


def load(start_offset: int, batches: Sequence[StateBatch]) -> Window:
    """Raises ValueError for batches that no leader would have written."""
    window = Window(start_offset)
    next_offset = start_offset
    gap_start = None
    for batch in sorted(batches):
        state = RecordState(batch.delivery_state)
        if state is RecordState.ACQUIRED or not next_offset <= batch.first_offset <= batch.last_offset:
            raise ValueError(f"{batch} does not belong behind {next_offset - 1}")
        if gap_start is None and batch.first_offset > next_offset:
            gap_start = next_offset
        run = Run(batch.first_offset, batch.last_offset, state, batch.delivery_count)
        window.insert(Entry(batch.first_offset, batch.last_offset, [run]))
        next_offset = batch.last_offset + 1
    window.start = start_offset  # there may be a gap in front of the first entry
    window.gap_start = gap_start
    window.advance()
    return window
