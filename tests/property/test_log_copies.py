"""A copy of a partition that is made while it is written, cut and crashed is the partition in the end."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.replicas.log_dir_moves import copy_piece
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.log.read import Isolation
from ottla.wire.batch import BatchView
from tests.unit.log.logs import (
    NOW,
    all_batches,
    append_as_coordinator,
    batch,
    load_partition,
    marker,
    new_storage,
    producer_batch,
)

PRODUCERS = 3

steps = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 900)),
    st.tuples(st.just("produce"), st.integers(0, PRODUCERS - 1)),
    st.tuples(st.just("end"), st.integers(0, 2 * PRODUCERS - 1)),
    st.tuples(st.just("delete"), st.integers(0, 100)),
    st.tuples(st.just("drop"), st.just(1)),
    st.tuples(st.just("lead"), st.just(0)),
    st.tuples(st.just("copy"), st.sampled_from([1, 500, 5_000])),
    st.tuples(st.just("crash"), st.booleans()),
)


class Life:
    """A partition that is used, and its copy."""

    def __init__(self, root: Path, segment_bytes: int) -> None:
        self._root, self._segment_bytes = root, segment_bytes
        self.source = self._load("orders-0", is_clean=True)
        self.copy = self._load("future", is_clean=True)
        self._epoch = 0
        self._sequences = [0] * PRODUCERS
        self._open: set[int] = set()

    def _load(self, name: str, *, is_clean: bool) -> Partition:
        storage = new_storage()
        partition, _ = load_partition(
            self._root / name, storage=storage, is_clean=is_clean, segment_bytes=self._segment_bytes
        )
        return partition

    def take(self, step: str, number: int) -> None:
        getattr(self, f"_{step}")(number)
        self.source.update_high_watermark(self.source.log_end_offset)

    def _append(self, size: int) -> None:
        self.source.append_as_leader(batch(bytes(size), b"second"), self._epoch, NOW)

    def _produce(self, producer: int) -> None:
        guard = self.source.producers.verification_guard(producer)
        data = producer_batch(producer, self._sequences[producer], transactional=True)
        self.source.append_as_leader(data, self._epoch, NOW, verification=Verification(guard))
        self._sequences[producer] += 1
        self._open.add(producer)

    def _end(self, number: int) -> None:
        producer, committed = divmod(number, 2)
        if producer in self._open:
            self._open.remove(producer)
            append_as_coordinator(self.source, marker(producer, committed=bool(committed)), self._epoch, NOW)

    def _delete(self, percent: int) -> None:
        source = self.source
        span = source.high_watermark - source.log_start_offset
        source.delete_records(source.log_start_offset + span * percent // 100)

    def _drop(self, count: int) -> None:
        if len(self.source.segments) > count:
            self.source.delete_oldest_segments(count, NOW)

    def _lead(self, _: int) -> None:
        self._epoch += 1
        self.source.become_leader(self._epoch)

    def _copy(self, max_bytes: int) -> None:
        if self.copy.log_end_offset < self.source.log_end_offset:
            copy_piece(self.source, self.copy, max_bytes, NOW)

    def _crash(self, is_clean: bool) -> None:
        """The copy is loaded anew, after a clean stop or without one."""
        if is_clean:
            self.copy.close()
        else:
            self.copy.close_files()
        self.copy = self._load("future", is_clean=is_clean)

    def arrive(self) -> None:
        while self.copy.log_end_offset < self.source.log_end_offset:
            copy_piece(self.source, self.copy, 5_000, NOW)
        self.copy.stand_in_for(self.source)


def seen(partition: Partition) -> dict[str, object]:
    start, end = partition.log_start_offset, partition.log_end_offset
    return {
        "batches": [bytes(each.data) for each in all_batches(partition)],
        "offsets": (start, partition.high_watermark, partition.last_stable_offset, end),
        "epochs": partition.epochs.entries,
        "producers": [str(entry) for entry in partition.producers.entries],
        "committed": committed(partition),
    }


def committed(partition: Partition) -> list[int]:
    """The batches, by their first offsets, that a reader of committed data gets to see."""
    aborted = partition.aborted_transactions(partition.log_start_offset, partition.log_end_offset)
    return [
        each.base_offset
        for each in all_batches(partition, isolation=Isolation.TXN_COMMITTED)
        if isinstance(each, BatchView)
        and not any(
            one.producer_id == each.producer_id and one.first_offset <= each.base_offset <= one.last_offset
            for one in aborted
            if each.is_transactional and not each.is_control
        )
    ]


@settings(max_examples=60, deadline=None)
@given(life=st.lists(steps, max_size=30), segment_bytes=st.sampled_from([1_100, 4_000, 1 << 20]))
def test_a_copy_is_the_partition_in_the_end(life: list[tuple[str, int]], segment_bytes: int):
    root = Path(tempfile.mkdtemp(prefix="ottla-copy-"))
    try:
        both = Life(root, segment_bytes)
        for step in life:
            both.take(*step)
        both.arrive()
        assert seen(both.copy) == seen(both.source)
        both.source.close()
        both.copy.close()
    finally:
        shutil.rmtree(root)
