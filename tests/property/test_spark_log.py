"""Any log, cut anyhow, gives its records once and in order; committed readers see what a simple model says."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.log.producer_state import Verification
from ottla.spark.log.options import LogOptions
from ottla.spark.log.readers import LogReader
from ottla.spark.options import read_options
from tests.unit.log.logs import NOW, append_as_coordinator, batch, marker, open_partition, producer_batch
from tests.unit.spark.log_directories import close_cleanly, new_directory

SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def offsets(path: Path, **options: object) -> list[int]:
    given_options = {"path": str(path), **{name: str(value) for name, value in options.items()}}
    reader = LogReader(read_options(LogOptions, given_options))
    batches = (rows for partition in reader.partitions() for rows in reader.read(partition))
    return [offset for rows in batches for offset in rows.column("offset").to_pylist()]


def spoil(path: Path, what: str) -> None:
    """Take away from the files what a crash or a careless copy may take away."""
    for file in sorted((path / "orders-0").iterdir()):
        if what == "indexes" and file.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            file.unlink()
        elif what == "halves" and file.suffix in (".index", ".timeindex"):
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@SLOW
@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    segment_bytes=st.integers(1000, 5000),
    task_bytes=st.integers(1, 3000),
    cut=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    spoiled=st.sampled_from(["nothing", "indexes", "halves"]),
)
def test_every_record_of_a_range_comes_once_and_in_order(
    counts: list[int], segment_bytes: int, task_bytes: int, cut: tuple[float, float], spoiled: str
):
    with tempfile.TemporaryDirectory() as base:
        path = new_directory(Path(base))
        log = open_partition(path / "orders-0", segment_bytes=segment_bytes, index_interval_bytes=100)
        for count in counts:
            log.append_as_leader(batch(*[b"value"] * count), 0, NOW)
        close_cleanly(path, log)
        spoil(path, spoiled)
        total = sum(counts)
        first, until = sorted(int(each * total) for each in cut)
        places = {"startingOffsets": f'{{"orders":{{"0":{first}}}}}', "endingOffsets": f'{{"orders":{{"0":{until}}}}}'}
        assert offsets(path, maxBytesPerPartition=task_bytes, **places) == list(range(first, until))
        assert offsets(path, maxBytesPerPartition=task_bytes) == list(range(total))


Step = tuple[int, str]


def play(log: Any, steps: list[Step]) -> tuple[list[int], int]:
    """Write what some producers do; gives the offsets that a committed reader sees, and the last stable offset."""
    is_open: dict[int, list[int]] = {}
    sequences: dict[int, int] = {}
    seen: list[int] = []
    for producer, action in steps:
        offset = log.log_end_offset
        if action == "plain":
            log.append_as_leader(batch(b"v"), 0, NOW)
            seen.append(offset)
        elif action == "write":
            sequence = sequences.get(producer, 0)
            guard = log.producers.verification_guard(producer)
            data = producer_batch(producer, sequence, transactional=True)
            log.append_as_leader(data, 0, NOW, verification=Verification(guard))
            sequences[producer] = sequence + 1
            is_open.setdefault(producer, []).append(offset)
        elif producer in is_open:
            is_committed = action == "commit"
            append_as_coordinator(log, marker(producer, committed=is_committed), 0, NOW)
            written = is_open.pop(producer)
            seen += written if is_committed else []
    stable = min((first for first, *_ in is_open.values()), default=log.log_end_offset)
    return sorted(offset for offset in seen if offset < stable), stable


@SLOW
@given(
    steps=st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["plain", "write", "write", "commit", "abort"])), max_size=40
    ),
    segment_bytes=st.integers(150, 2000),
    spoiled=st.sampled_from(["nothing", "indexes", "halves"]),
    first=st.floats(0, 1),
)
def test_committed_readers_see_what_was_committed(steps: list[Step], segment_bytes: int, spoiled: str, first: float):
    with tempfile.TemporaryDirectory() as base:
        path = new_directory(Path(base))
        log = open_partition(path / "orders-0", segment_bytes=segment_bytes, index_interval_bytes=100)
        expected, stable = play(log, steps)
        close_cleanly(path, log)
        spoil(path, spoiled)
        assert offsets(path, isolation="read_committed") == expected
        start = int(first * stable)
        place = f'{{"orders":{{"0":{start}}}}}'
        found = offsets(path, isolation="read_committed", startingOffsets=place)
        assert found == [offset for offset in expected if offset >= start]
