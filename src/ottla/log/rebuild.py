"""Rebuilds the producers' state from the log, after a truncation and at a start.

The newest snapshot is the beginning; what lies between it and the end of the log is read batch by batch, headers only
but for markers. It yields every hundred batches, so that the event loop can serve requests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Final

from ottla.log.disk import File
from ottla.log.producer_state import ProducerState
from ottla.log.scan import read_batch, walk_headers
from ottla.log.segment import Segment
from ottla.wire.batch import BatchView
from ottla.wire.fault import WireError

__all__ = ["BATCHES_PER_STEP", "rebuild_producers"]

# Less than a millisecond, so that a caller with two can stop in time.
BATCHES_PER_STEP: Final = 100


def rebuild_producers(
    producers: ProducerState,
    segments: Sequence[Segment],
    *,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    expiration_ms: int,
    may_assume_empty: bool = False,
    skip_scan: bool = False,
) -> Generator[None, None, list[str]]:
    """Let `producers` reflect the log up to an offset; gives what was wrong with snapshots.

    `may_assume_empty`: the log was closed cleanly, so without any snapshot there are no producers. `skip_scan`: there
    were none before, so there are none now.
    """
    bases = [segment.base_offset for segment in segments[-2:]]
    if may_assume_empty and not producers.snapshot_offsets:
        for offset in (*bases, end_offset):
            producers.map_end_offset = offset
            producers.take_snapshot(log_start_offset, sync=True)
        return []
    faults: list[str] = []
    producers.delete_snapshots_outside(log_start_offset, end_offset)
    if end_offset == producers.map_end_offset:
        producers.on_log_start_offset(log_start_offset)
    else:
        faults = producers.load_newest_snapshot(log_start_offset, now_ms, expiration_ms)
    if not skip_scan:
        for index, segment in enumerate(segments):
            is_below = index + 1 < len(segments) and segments[index + 1].base_offset <= producers.map_end_offset
            if is_below or segment.base_offset >= end_offset:
                continue
            start_offset = max(segment.base_offset, producers.map_end_offset, log_start_offset)
            producers.map_end_offset = start_offset
            if segment.base_offset in bases:
                producers.take_snapshot(log_start_offset, sync=True)
            yield from _scan(producers, segment, start_offset, end_offset)
    producers.map_end_offset = end_offset
    producers.take_snapshot(log_start_offset, sync=True)
    return faults


def _scan(
    producers: ProducerState, segment: Segment, start_offset: int, end_offset: int
) -> Generator[None, None, None]:
    found = segment.find_batch(start_offset)
    if found is None:
        return
    handle = segment.file.pin()
    try:
        for count, (position, batch) in enumerate(walk_headers(handle, found.position, segment.size_bytes), 1):
            if batch.last_offset >= end_offset:
                return
            if isinstance(batch, BatchView) and batch.has_producer_id:
                _note(producers, handle, position, batch)
            if count % BATCHES_PER_STEP == 0:
                yield
    finally:
        segment.file.unpin()


def _note(producers: ProducerState, handle: File, position: int, batch: BatchView) -> None:
    if batch.is_control:
        # The header's window may end before the marker does.
        whole = read_batch(handle, position, batch.size_bytes)
        assert isinstance(whole, BatchView)
        batch = whole
    with contextlib.suppress(WireError):  # a control batch that is no marker: not ours to judge
        producers.add(batch, batch.base_offset, batch.max_timestamp)
