"""Partitions on disk beside Apache Kafka's: our files judged by its tools, its files read by us, and byte by byte."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.log.checkpoint import parse_epochs, parse_offsets
from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition, parse_directory_name
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.producer_snapshot import parse_snapshot
from ottla.log.producer_state import Verification
from ottla.log.read import Isolation
from ottla.log.recovery import LoadRequest, RecoveryReport, load
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import (
    AnyBatch,
    BatchBuilder,
    BatchView,
    Compression,
    Record,
    build_end_txn_marker,
    split_batches,
    stamp,
)
from tests.interop.apache import ApacheKafka, dump_log
from tests.unit.log.logs import append_as_coordinator

SEGMENT_BYTES = 1_048_576
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TRANSACTIONS = 100
RECORDS = 6000
NOW = 1_700_000_000_000
OUR_CONFIG = LogConfig(segment_bytes=60_000, index_interval_bytes=2000)


# --- what Apache Kafka writes -----------------------------------------------------------------------------------------


def noise(seed: object, count: int, size_bytes: int = 100) -> list[bytes]:
    """The values of `count` records, always the same."""
    source = random.Random(str(seed))
    return [b"%d " % number + source.randbytes(size_bytes + number % 400) for number in range(count)]


def transaction_values(number: int) -> list[bytes]:
    return noise(number, 40, 700)


def produce(kafka: ApacheKafka, topic: str, count: int, **settings: Any) -> None:
    """Records of a few hundred bytes that hardly compress, several to a batch."""
    batching = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5, "batch.size": 20_000}
    producer = Producer(batching | settings)
    for number, value in enumerate(noise(topic, count)):
        producer.produce(topic, value, key=f"key-{number % 97}", headers={"n": str(number)})
        if number % 500 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def produce_transactions(kafka: ApacheKafka, topic: str, transactions: int, *, last_stays_open: bool = False) -> None:
    """Two producers in turn; every third transaction is aborted."""
    ids = [f"{topic}-{transactions}-{number}" for number in range(2)]
    producers = [
        Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": one, "linger.ms": 5}) for one in ids
    ]
    for producer in producers:
        producer.init_transactions(60)
    for number in range(transactions):
        producer = producers[number % 2]
        producer.begin_transaction()
        for value in transaction_values(number):
            producer.produce(topic, value)
        producer.flush(60)
        if last_stays_open and number == transactions - 1:
            return
        if number % 3 == 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


@dataclass(frozen=True)
class Written:
    """Directories of one node: after its clean stop, as a kill left them, and damaged by us; what it made of those."""

    stopped: Path
    killed: Path
    killed_then_booted: Path
    damaged: Path
    damaged_then_booted: Path


@pytest.fixture(scope="module")
def written(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    place = tmp_path_factory.mktemp("apache-log")
    kafka = ApacheKafka(place, log_segment_bytes=SEGMENT_BYTES)
    with kafka:
        for codec in CODECS:
            kafka.create_topic(codec)
            produce(kafka, codec, RECORDS, **{"compression.type": codec, "enable.idempotence": codec != "snappy"})
        kafka.create_topic("append-time", **{"message.timestamp.type": "LogAppendTime"})
        produce(kafka, "append-time", RECORDS)
        kafka.create_topic("dense-index", **{"index.interval.bytes": 100})
        produce(kafka, "dense-index", 2000, **{"batch.num.messages": 2})
        kafka.create_topic("ours", **{"index.interval.bytes": OUR_CONFIG.index_interval_bytes})
        kafka.create_topic("transactions")
        produce_transactions(kafka, "transactions", TRANSACTIONS)
    shutil.copytree(kafka.data_dir, place / "stopped")
    kafka.start()
    for codec in CODECS:
        produce(kafka, codec, 1000, **{"compression.type": codec, "enable.idempotence": True})
    produce_transactions(kafka, "transactions", 8, last_stays_open=True)
    kafka.kill()
    found = Written(*(place / name for name in ("stopped", "killed", "killed-booted", "damaged", "damaged-booted")))
    shutil.copytree(kafka.data_dir, found.killed)
    shutil.copytree(found.killed, found.damaged)
    damage(found.damaged)
    for before, after in ((found.killed, found.killed_then_booted), (found.damaged, found.damaged_then_booted)):
        shutil.copytree(before, after)
        with ApacheKafka(place / f"{after.name}-node", data_dir=after, log_segment_bytes=SEGMENT_BYTES):
            pass
    return found


def damage(data_dir: Path) -> None:
    """Something else in each partition; without recovery points, so that all of it is looked at."""
    (data_dir / "recovery-point-offset-checkpoint").unlink()

    def logs(topic: str) -> list[Path]:
        return sorted((data_dir / f"{topic}-0").glob("*.log"))

    def cut(path: Path, size_bytes: int) -> None:
        path.write_bytes(path.read_bytes()[:-size_bytes])

    cut(logs("none")[-1], 7)
    middle = bytearray(logs("gzip")[1].read_bytes())
    middle[len(middle) // 2] ^= 1
    logs("gzip")[1].write_bytes(middle)
    for path in (data_dir / "snappy-0").glob("*index"):
        path.unlink()
    for path in (data_dir / "lz4-0").glob("*.snapshot"):
        cut(path, 1)
    (data_dir / "zstd-0" / "leader-epoch-checkpoint").unlink()
    logs("append-time")[-1].write_bytes(logs("append-time")[-1].read_bytes() + bytes(5000))
    cut(logs("dense-index")[-1], 40_000)
    for path in (data_dir / "dense-index-0").glob("*.timeindex"):
        path.unlink()
    cut(logs("transactions")[-2], 30_000)
    put_ours(data_dir / "ours-0")


def put_ours(path: Path) -> None:
    """Segments of ours, killed before they were closed, in a directory of Apache Kafka's."""
    metadata = (path / "partition.metadata").read_bytes()
    shutil.rmtree(path)
    our_log(path, codec=Compression.SNAPPY, epoch_length=10**9, now_ms=int(time.time() * 1000) - 10**6)
    (path / "partition.metadata").write_bytes(metadata)
    newest = max(path.glob("*.log"))
    newest.write_bytes(newest.read_bytes()[:-9])


def partition_directories(data_dir: Path) -> list[Path]:
    return sorted(path for path in data_dir.iterdir() if path.is_dir() and parse_directory_name(path.name))


TOPICS = (*CODECS, "append-time", "dense-index", "transactions", "__transaction_state")


def config_of(topic: str) -> LogConfig:
    return LogConfig(
        segment_bytes=SEGMENT_BYTES if not topic.startswith("__") else 100 << 20,
        index_interval_bytes={"dense-index": 100, "ours": OUR_CONFIG.index_interval_bytes}.get(topic, 4096),
        message_timestamp_type="LogAppendTime" if topic == "append-time" else "CreateTime",
    )


def open_log(path: Path, config: LogConfig, now_ms: int, **request: Any) -> tuple[Partition, RecoveryReport]:
    name = parse_directory_name(path.name)
    partition = name[0] if name else TopicPartition("orders", 0)
    storage = LogStorage(OsDisk(durable=False))
    return load(storage, LoadRequest(str(path), partition, config, **{"is_clean": True} | request), now_ms)


def stored_batches(path: Path) -> list[AnyBatch]:
    return [one for file in sorted(path.glob("*.log")) for one in split_batches(file.read_bytes())]


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.is_file()}


def append_again(log: Partition, batch: AnyBatch) -> None:
    """Give a stored batch to a log as its producer had sent it."""
    assert isinstance(batch, BatchView)
    data = bytearray(batch.data)
    stamp(data, base_offset=0, partition_leader_epoch=-1, max_timestamp=batch.max_timestamp)
    stage = log.stage_as_coordinator if batch.is_control else log.stage_as_leader
    stage(
        data,
        batch.partition_leader_epoch,
        batch.max_timestamp,
        verification=Verification(guard=log.producers.verification_guard(batch.producer_id)),
    )
    log.write()


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_appends_give_the_same_bytes(written: Written, tmp_path: Path, topic: str):
    theirs = written.stopped / f"{topic}-0"
    batches = stored_batches(theirs)
    ours = tmp_path / f"{topic}-0"
    ours.mkdir()
    shutil.copy(theirs / "partition.metadata", ours)
    log, _ = open_log(ours, config_of(topic), batches[0].max_timestamp)
    for batch in batches:
        append_again(log, batch)
    log.close()
    assert len(log.segments) > 1 or topic in ("dense-index", "__transaction_state")
    assert same_files(files(ours), files(theirs))


def same_files(ours: dict[str, bytes], theirs: dict[str, bytes]) -> bool:
    assert list(ours) == list(theirs)
    for name in theirs:
        assert ours[name] == theirs[name], name
    return True


# --- recovery beside Apache Kafka's -----------------------------------------------------------------------------------


def recovered(source: Path, target: Path) -> tuple[Partition, RecoveryReport]:
    """Our recovery of a copy, closed again."""
    shutil.copytree(source, target)
    points = source.parent / "recovery-point-offset-checkpoint"
    offsets = parse_offsets(points.read_bytes()) if points.exists() else {}
    name = parse_directory_name(source.name)
    assert name is not None
    config = config_of(name[0].topic)
    log, report = open_log(
        target, config, int(time.time() * 1000), is_clean=False, recovery_point=offsets.get(name[0], 0)
    )
    log.close()
    return log, report


def newest_snapshot(path: Path) -> list[str]:
    return [repr(entry) for entry in parse_snapshot(max(path.glob("*.snapshot")).read_bytes())]


@pytest.mark.parametrize(
    ("state", "topic"),
    [*((state, topic) for state in ("killed", "damaged") for topic in TOPICS), ("damaged", "ours")],
)
def test_recovery_gives_what_apache_kafkas_gives(written: Written, tmp_path: Path, state: str, topic: str):
    before: Path = getattr(written, state) / f"{topic}-0"
    theirs: Path = getattr(written, f"{state}_then_booted") / f"{topic}-0"
    log, report = recovered(before, tmp_path / f"{topic}-0")
    ours = tmp_path / f"{topic}-0"
    for kind in (".log", ".index", ".timeindex", ".txnindex"):
        assert same_files(of_kind(ours, kind), of_kind(theirs, kind))
    assert newest_snapshot(ours) == newest_snapshot(theirs)
    assert max(ours.glob("*.snapshot")).name == max(theirs.glob("*.snapshot")).name
    their_epochs = parse_epochs((theirs / "leader-epoch-checkpoint").read_bytes())
    assert [entry for entry in their_epochs if entry[1] < log.log_end_offset] == list(log.epochs.entries)
    assert bool(report.cuts) == (state == "damaged" and topic in CUT)


CUT = ("none", "gzip", "append-time", "dense-index", "transactions", "ours")


def of_kind(path: Path, kind: str) -> dict[str, bytes]:
    return {name: data for name, data in files(path).items() if name.endswith(kind)}


# --- reading ----------------------------------------------------------------------------------------------------------


def read_all(log: Partition, isolation: Isolation) -> Iterator[tuple[AnyBatch, tuple[AbortedTxn, ...]]]:
    """Each batch that a consumer gets, with what its fetch said of aborted transactions."""
    offset = log.log_start_offset
    while True:
        region = log.read(offset, 300_000, isolation, min_one_batch=True)
        data = region.file.handle().read(region.length, region.position) if region.file else b""
        batches = list(split_batches(data))
        if not batches:
            return
        for batch in batches:
            batch.check_crc()
            yield batch, region.aborted_transactions or ()
        offset = batches[-1].next_offset


@pytest.mark.parametrize("topic", [*CODECS, "append-time"])
def test_every_record_is_read_as_it_was_produced(written: Written, tmp_path: Path, topic: str):
    shutil.copytree(written.stopped / f"{topic}-0", tmp_path / f"{topic}-0")
    log, report = open_log(tmp_path / f"{topic}-0", config_of(topic), 0)
    assert not report.is_eventful
    records = [record for batch, _ in read_all(log, Isolation.LOG_END) for record in batch.records()]
    assert [record.offset for record in records] == list(range(RECORDS))
    assert [record.value for record in records] == noise(topic, RECORDS)
    assert [record.key for record in records] == [b"key-%d" % (number % 97) for number in range(RECORDS)]
    assert [record.headers for record in records] == [(("n", b"%d" % number),) for number in range(RECORDS)]
    for record in records[:: RECORDS // 50]:
        found = log.offset_for_timestamp(record.timestamp)
        assert found is not None
        assert (found.offset, found.timestamp) == first_not_older(records, record.timestamp)


def first_not_older(records: list[Record], timestamp: int) -> tuple[int, int]:
    return next((record.offset, record.timestamp) for record in records if record.timestamp >= timestamp)


def test_readers_of_committed_data_get_what_was_committed(written: Written, tmp_path: Path):
    shutil.copytree(written.stopped / "transactions-0", tmp_path / "transactions-0")
    log, _ = open_log(tmp_path / "transactions-0", config_of("transactions"), 0)
    log.update_high_watermark(log.log_end_offset)
    values = []
    for batch, aborted in read_all(log, Isolation.TXN_COMMITTED):
        assert isinstance(batch, BatchView)
        is_aborted = any(
            txn.producer_id == batch.producer_id and txn.first_offset <= batch.base_offset <= txn.last_offset
            for txn in aborted
        )
        if not batch.is_control and not is_aborted:
            values += [record.value for record in batch.records()]
    expected = [value for number in range(TRANSACTIONS) if number % 3 != 2 for value in transaction_values(number)]
    assert values == expected


# --- our files under Apache Kafka's eyes ------------------------------------------------------------------------------


def our_log(path: Path, *, codec: Compression, epoch_length: int = 100, now_ms: int = NOW) -> Partition:
    """Segments with transactions, epochs and times that go back and forth."""
    create_partition_directory(OsDisk(durable=False), str(path), b"0123456789abcdef")
    log, _ = open_log(path, OUR_CONFIG, now_ms)
    for number in range(400):
        builder = BatchBuilder()
        for value in noise(number, 6):
            builder.append(now_ms + number * 1000 - value[-1], b"key", value, [("h", value[:3])])
        is_transactional = number % 10 == 4
        header = {"producer_id": 5 + number % 2, "producer_epoch": 0, "base_sequence": number // 2 * 6}
        data = builder.build(compression=codec, is_transactional=is_transactional, **header)  # type: ignore[arg-type]
        log.append_as_leader(
            data, number // epoch_length, now_ms + 10**9, verification=Verification(log.producers.verification_guard(5))
        )
        if is_transactional:
            end = build_end_txn_marker(
                committed=number % 20 == 4, coordinator_epoch=0, producer_id=5, producer_epoch=0, timestamp=now_ms
            )
            append_as_coordinator(log, end, number // epoch_length, now_ms + 10**9)
    return log


COMPLAINTS = (
    "Mismatches in",
    "Found timestamp mismatch",
    "Found out of order timestamp",
    "are not found in",
    "invalid bytes",
    "isvalid: false",
    "Exception",
    "is empty",
    "Ignoring",
)


def assert_no_complaint(output: str) -> None:
    lowered = output.lower()
    for complaint in COMPLAINTS:
        assert complaint.lower() not in lowered, output[-2000:]


def judge(path: Path) -> None:
    """Let kafka-dump-log look at every file of a partition in every way it can."""
    log_files = sorted(path.glob("*.log"))
    deep = dump_log(log_files, "--deep-iteration")
    assert_no_complaint(deep)
    # Each segment but the first begins with an offset that does not follow 0; nothing else may be out of order.
    gaps = re.findall(r"^  (\d+) is followed by (\d+)$", deep, re.MULTILINE)
    bases = {int(file.stem) for file in log_files}
    assert {int(second) for first, second in gaps if int(second) != int(first) + 1} <= bases
    indexes = [file for file in sorted(path.glob("*index")) if file.suffix != ".txnindex" and file.stat().st_size]
    assert_no_complaint(dump_log(indexes, "--verify-index-only"))
    sane = dump_log(indexes, "--index-sanity-check")
    assert_no_complaint(sane)
    assert sane.count("passed sanity check") == len(indexes)
    rest = [file for file in sorted(path.iterdir()) if file.suffix in (".snapshot", ".txnindex")]
    assert_no_complaint(dump_log(rest))


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_apaches_tool_finds_nothing_wrong(apache_jars: Path, tmp_path: Path, codec: Compression):
    path = tmp_path / "orders-0"
    log = our_log(path, codec=codec)
    assert len(log.segments) > 3
    log.close()
    judge(path)
    log, _ = open_log(path, log.config, NOW)
    log.truncate_to(log.segments[2].base_offset + 137, NOW)
    log.close()
    judge(path)
    file = max(path.glob("*.log"))
    file.write_bytes(file.read_bytes()[:-55])
    for index in path.glob("*index"):
        index.unlink()
    log, report = open_log(path, log.config, NOW, is_clean=False)
    assert len(report.cuts) == 1
    log.close()
    judge(path)
