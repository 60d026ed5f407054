"""Large logs and many of them: recovery per gigabyte, a cold lookup, memory and open files of 10,000 partitions.

    python -m benchmarks.log.bench_size [--gigabytes 1] [--partitions 10000] [--out FILE]

Recovery and lookup are set beside reading the same file once, which is the least that each of them could need.
"""

import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import runner
from benchmarks.log.bench_append import NOW_MS, batch_of
from benchmarks.runner import Size
from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.read import Isolation
from ottla.log.recovery import LoadRequest, load

GIGABYTE = 1 << 30
CHUNK_BYTES = 1 << 20
LOOKUPS = 200
GIGABYTES = {Size.FULL: 1.0, Size.QUICK: 0.1, Size.SMOKE: 0.001}
PARTITIONS = {Size.FULL: 10_000, Size.QUICK: 1_000, Size.SMOKE: 10}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fill(path: Path, size_bytes: int) -> Partition:
    """One segment of this size, in batches of 16 KiB."""
    storage = LogStorage(OsDisk(durable=False))
    create_partition_directory(storage.disk, str(path), bytes(range(16)))
    config = LogConfig(segment_bytes=2 * GIGABYTE - 1)
    log = load(storage, LoadRequest(str(path), TopicPartition("large", 0), config, is_clean=True), NOW_MS)[0]
    batch = batch_of(16 * 1_024)
    while log.size_bytes < size_bytes:
        for _ in range(64):
            log.stage_as_leader(bytearray(batch), 0, NOW_MS)
        log.write()
    return log


def forget(path: Path) -> None:
    """Ask the system to drop a file from its cache, so that the next read is a cold one."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def read_through(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(CHUNK_BYTES):
            pass


def measure_large(folder: Path, size_bytes: int) -> dict[str, float]:
    directory = folder / "large-0"
    log = fill(directory, size_bytes)
    file = directory / "00000000000000000000.log"
    end_offset, size = log.log_end_offset, log.size_bytes
    request = LoadRequest(str(directory), TopicPartition("large", 0), log.config, is_clean=False)
    plain = seconds(lambda: read_through(file))
    recovery = seconds(lambda: load(LogStorage(OsDisk(durable=False)), request, NOW_MS))
    lookups = []
    for number in range(LOOKUPS):
        forget(file)
        offset = end_offset * number // LOOKUPS
        lookups.append(seconds(lambda offset=offset: log.read(offset, 1 << 20, Isolation.LOG_END)))  # type: ignore[misc]
    lookups.sort()
    return {
        "log_bytes": size,
        "recovery_s_per_gb": recovery * GIGABYTE / size,
        "plain_read_s_per_gb": plain * GIGABYTE / size,
        "cold_lookup_median_ms": lookups[LOOKUPS // 2] * 1e3,
        "cold_lookup_p99_ms": lookups[LOOKUPS * 99 // 100] * 1e3,
    }


def resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


def measure_many(folder: Path, count: int) -> dict[str, float]:
    """Partitions of one log directory, each written once."""
    storage = LogStorage(OsDisk(durable=False))
    batch = batch_of(1_024)
    before = resident_bytes()
    logs = []
    start = time.perf_counter()
    for number in range(count):
        path = str(folder / f"many-{number}")
        create_partition_directory(storage.disk, path, bytes(range(16)))
        request = LoadRequest(path, TopicPartition("many", number), LogConfig(), is_clean=True)
        logs.append(load(storage, request, NOW_MS)[0])
        logs[-1].append_as_leader(bytearray(batch), 0, NOW_MS)
    return {
        "partitions": count,
        "seconds": time.perf_counter() - start,
        "bytes_per_partition": (resident_bytes() - before) / count,
        "open_files": len(storage.open_files),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = runner.parser(__doc__)
    parser.add_argument("--gigabytes", type=float, help="size of the large log (1)")
    parser.add_argument("--partitions", type=int, help="number of the small ones (10,000)")
    options = runner.read_windows(parser, arguments, gigabytes=GIGABYTES, partitions=PARTITIONS)
    with TemporaryDirectory() as folder:
        large = measure_large(Path(folder), int(options.gigabytes * GIGABYTE))
        many = measure_many(Path(folder), options.partitions)
    content: dict[str, Any] = {
        "benchmark": "log-size",
        **runner.describe_surroundings(("crc32c", "msgspec")),
        "large": large,
        "many": many,
    }
    for part in ("large", "many"):
        for name, value in content[part].items():
            print(f"{name:24}{value:>16,.3f}")
    runner.write(runner.results_path("log-size", options), content, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
