"""Appending to a log and reading from it, beside plain files that are written and read in the same pieces.

    python -m benchmarks.log.bench_append [--rounds 15]

The plain file is what no log can beat: one write, or one read, of the same bytes. What is above it are offsets,
checksums, timestamps, indexes and rolling. Data need not last here, so neither side syncs.
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import runner
from benchmarks.runner import Case, Size, Subject
from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.read import Isolation
from ottla.log.recovery import LoadRequest, load
from ottla.wire.batch import Record, build_batch

NOW_MS = 1_700_000_000_000
GATHERED = 8
SIZES = (1_024, 16 * 1_024, 128 * 1_024)
READ_BYTES = 1 << 20
FILE_MAX_BYTES = 1 << 28
READ_FROM_BYTES = {Size.FULL: 1 << 27, Size.QUICK: 1 << 27, Size.SMOKE: 1 << 22}


def open_log(path: Path, topic: str) -> Partition:
    storage = LogStorage(OsDisk(durable=False))
    directory = f"{path}/{topic}-0"
    create_partition_directory(storage.disk, directory, bytes(range(16)))
    config = LogConfig(max_message_bytes=1 << 24, segment_bytes=FILE_MAX_BYTES)
    return load(storage, LoadRequest(directory, TopicPartition(topic, 0), config, is_clean=True), NOW_MS)[0]


def batch_of(size_bytes: int) -> bytes:
    """One batch of about this size, with records of 100 bytes."""
    count = max(1, size_bytes // 108)
    return build_batch([Record(offset, NOW_MS, None, os.urandom(100)) for offset in range(count)])


class PlainFile:
    """Written at its end, and begun anew when it is as long as a segment."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        self._size = 0

    def append(self, data: bytes) -> None:
        if self._size + len(data) > FILE_MAX_BYTES:
            os.ftruncate(self._file, 0)
            self._size = 0
        self._size += os.pwrite(self._file, data, self._size)

    def read(self, position: int) -> bytes:
        return os.pread(self._file, READ_BYTES, position)


def append_one(log: Partition, batch: bytes) -> None:
    log.append_as_leader(bytearray(batch), 0, NOW_MS)
    trim(log)


def append_gathered(log: Partition, batch: bytes) -> None:
    for _ in range(GATHERED):
        log.stage_as_leader(bytearray(batch), 0, NOW_MS)
    log.write()
    trim(log)


def trim(log: Partition) -> None:
    """Keep the disk from filling up over many windows."""
    if len(log.segments) > 2:
        log.update_high_watermark(log.log_end_offset)
        log.delete_oldest_segments(1, NOW_MS)
        for path in log.storage.due_deletions(NOW_MS + 1_000_000):
            if log.storage.disk.exists(path):
                log.storage.disk.unlink(path)


def read_region(log: Partition, offset: int) -> bytes:
    region = log.read(offset, READ_BYTES, Isolation.LOG_END, min_one_batch=True)
    assert region.file is not None
    return region.file.handle().read(region.length, region.position)


def append_cases(path: Path) -> list[Case]:
    cases = []
    for number, size in enumerate(SIZES):
        batch = batch_of(size)
        log, gathered = open_log(path, f"one{number}"), open_log(path, f"gathered{number}")
        plain, plain_gathered = PlainFile(path / f"plain{number}"), PlainFile(path / f"plaing{number}")
        facts: dict[str, int | str] = {"batch_bytes": len(batch)}
        cases.append(
            Case(
                f"append, one batch of {len(batch)} bytes",
                [
                    Subject("ottla", append_one, [(log, batch)]),
                    Subject("plain write", plain.append, [(batch,)]),
                ],
                facts,
            )
        )
        cases.append(
            Case(
                f"append, {GATHERED} batches of {len(batch)} bytes with one write",
                [
                    Subject("ottla", append_gathered, [(gathered, batch)]),
                    Subject("plain write", plain_gathered.append, [(batch * GATHERED,)]),
                ],
                facts,
            )
        )
    return cases


def read_case(path: Path, size_bytes: int) -> Case:
    log, plain, batch = open_log(path, "read"), PlainFile(path / "plain-read"), batch_of(16 * 1_024)
    while log.size_bytes < size_bytes:
        append_one(log, batch)
        plain.append(batch)
    step = log.log_end_offset // 97
    offsets = [(log, offset) for offset in range(0, log.log_end_offset - step, step)]
    positions = [(position,) for position in itertools.islice(range(0, log.size_bytes - READ_BYTES, 1_234_567), 97)]
    subjects = [Subject("ottla", read_region, offsets), Subject("plain read", plain.read, positions)]
    return Case(f"read {READ_BYTES} bytes from an offset", subjects, {"bytes": READ_BYTES})


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments, read_from_bytes=READ_FROM_BYTES)
    with TemporaryDirectory() as folder:
        path = Path(folder)
        cases = [*append_cases(path), read_case(path, options.read_from_bytes)]
        runner.run("log-append", cases, options, ("crc32c", "msgspec"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
