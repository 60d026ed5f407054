"""The tour through the log on disk."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from ottla.cli.tour.step import Stage, Step
from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.dump import dump
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.read import Isolation
from ottla.log.recovery import LoadRequest, RecoveryReport, load
from ottla.wire.batch import Compression, Record, build_batch

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
BATCHES, RECORDS = 20, 50
TORN_BYTES = 100


def open_log(path: Path, *, is_clean: bool) -> tuple[Partition, RecoveryReport]:
    storage = LogStorage(OsDisk())
    if not path.exists():
        create_partition_directory(storage.disk, str(path), bytes(range(16)))
    config = LogConfig(segment_bytes=16_384, index_interval_bytes=2_048)
    return load(storage, LoadRequest(str(path), ORDERS, config, is_clean=is_clean), NOW_MS)


def fill(partition: Partition) -> None:
    for number in range(BATCHES):
        records = [Record(offset, NOW_MS + number, b"key", b"order %d" % offset) for offset in range(RECORDS)]
        partition.append_as_leader(bytearray(build_batch(records, compression=Compression.NONE)), 0, NOW_MS)
    partition.update_high_watermark(partition.log_end_offset)


def files(stage: Stage) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / str(ORDERS)
        partition, _ = open_log(path, is_clean=True)
        fill(partition)
        partition.close()
        for entry in sorted(path.iterdir()):
            stage.show(f"  {entry.stat().st_size:>7,}  {entry.name}")
        stage.check("Kafka's own names, sizes and formats", (path / "00000000000000000000.log").exists())
        first = next(line for line in dump(OsDisk(), str(path / "00000000000000000000.log")) if line["kind"] == "batch")
        stage.show(Text("$ ottla dump 00000000000000000000.log", style="bold"))
        stage.show(json.dumps({name: first[name] for name in ("base_offset", "last_offset", "record_count", "crc")}))
        stage.check("the dump reads what was written", first["record_count"] == RECORDS)


def crash(stage: Stage) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / str(ORDERS)
        partition, _ = open_log(path, is_clean=True)
        fill(partition)
        end_offset = partition.log_end_offset
        partition.close_files()
        last = max(path.glob("*.log"))
        with last.open("ab") as torn:
            torn.write(bytes(TORN_BYTES))
        again, report = open_log(path, is_clean=False)
        for line in report.lines():
            stage.show(line)
        stage.check("only the torn tail is truncated", [cut.size_bytes for cut in report.cuts] == [TORN_BYTES])
        stage.check("no record is missing", again.log_end_offset == end_offset)
        region = again.read(0, 1_000_000, Isolation.LOG_END)
        stage.check("a read is a place in a file, not bytes", region.file is not None and region.length > 0)
        again.close()


STEPS = (
    Step("a log on disk", "A thousand records in segments of 16 KiB, with their indexes.", files),
    Step("after a crash", "The machine stopped in the middle of a write. The next start recovers the log.", crash),
)
