"""Compaction beside Apache Kafka's: its cleaner and ours on copies of one directory must leave the same."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.log.checkpoint import parse_offsets
from ottla.log.cleaner import cleanable, compact
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.disk import OsDisk
from ottla.log.files import LogStorage
from ottla.log.names import CLEANER_CHECKPOINT, TopicPartition
from ottla.log.partition import Partition
from ottla.log.recovery import load
from ottla.wire.batch import BatchView, split_batches
from tests.interop.apache import ApacheKafka, dump_log

pytestmark = pytest.mark.interop

SEGMENT_BYTES = 1_048_576
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NEVER = {"min.cleanable.dirty.ratio": "1.0"}
"""A ratio that no log exceeds: the cleaner leaves it alone until we say otherwise."""
CONFIG = LogConfig(cleanup_policy=frozenset(("compact",)), segment_bytes=SEGMENT_BYTES)
WAIT_S = 90


def fill(kafka: ApacheKafka, topic: str, **settings: Any) -> None:
    """Keys written again and again, some deleted, over several segments."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5, "batch.size": 16_000, **settings}
    )
    source = random.Random(topic)
    for number in range(9_000):
        key = f"key-{source.randrange(700)}"
        value = None if source.random() < 0.05 else source.randbytes(300 + number % 500)
        producer.produce(topic, value, key=key)
        if number % 500 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def fill_in_transactions(kafka: ApacheKafka, topic: str) -> None:
    """Two producers in turn, every third transaction aborted, over several segments."""
    producers = [
        Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-{number}"})
        for number in range(2)
    ]
    for producer in producers:
        producer.init_transactions(60)
    source = random.Random(topic)
    for number in range(60):
        producer = producers[number % 2]
        producer.begin_transaction()
        for _ in range(80):
            producer.produce(topic, source.randbytes(700), key=f"key-{source.randrange(400)}")
        producer.flush(60)
        if number % 3 == 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


@pytest.fixture(scope="module")
def directories(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One directory cleaned by Apache Kafka, and a copy from before, for us."""
    place = tmp_path_factory.mktemp("cleaner")
    kafka = ApacheKafka(place, log_segment_bytes=SEGMENT_BYTES, log_cleaner_backoff_ms=200, log_cleaner_threads=1)
    with kafka:
        for codec in CODECS:
            kafka.create_topic(codec, **{"cleanup.policy": "compact", **NEVER})
            fill(kafka, codec, **{"compression.type": codec, "enable.idempotence": codec in ("none", "zstd")})
        kafka.create_topic("transactions", **{"cleanup.policy": "compact", **NEVER})
        fill_in_transactions(kafka, "transactions")
    shutil.copytree(kafka.data_dir, place / "before")
    with kafka:
        for topic in (*CODECS, "transactions"):
            change = ("--entity-type", "topics", "--entity-name", topic, "--alter")
            where = ("--bootstrap-server", kafka.bootstrap_servers)
            kafka.tool("kafka.admin.ConfigCommand", *where, *change, "--add-config", "min.cleanable.dirty.ratio=0.01")
        wait_for_cleaner(kafka.data_dir)
    return kafka.data_dir, place / "before"


def wait_for_cleaner(data_dir: Path) -> None:
    wanted = {TopicPartition(topic, 0) for topic in (*CODECS, "transactions")}
    deadline = time.monotonic() + WAIT_S
    found: dict[TopicPartition, int] = {}
    while time.monotonic() < deadline:
        checkpoint = data_dir / CLEANER_CHECKPOINT
        found = parse_offsets(checkpoint.read_bytes()) if checkpoint.exists() else {}
        if wanted <= set(found):
            return
        time.sleep(0.1)
    pytest.fail(f"Apache Kafka has cleaned only {sorted(map(str, found))} in {WAIT_S} s")


def opened(path: Path, topic: str) -> tuple[LogDirectory, Partition]:
    directory = LogDirectory.open(LogStorage(OsDisk(durable=False)), str(path))
    partition, _ = load(directory.storage, directory.request_for(TopicPartition(topic, 0), CONFIG), now_ms())
    partition.update_high_watermark(partition.log_end_offset)
    return directory, partition


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def clean(partition: Partition) -> int | None:
    steps = compact(partition, cleanable(partition, None, now_ms()), now_ms())
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            end: int | None = stop.value.first_dirty_offset
            return end


def header(batch: BatchView) -> tuple[object, ...]:
    """What of a header must be the same; the delete horizon's time and what follows from it are not."""
    has_horizon = batch.delete_horizon_ms is not None
    return (
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        batch.attributes,
        None if has_horizon else batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.record_count,
    )


def content(partition: Partition, end_offset: int) -> list[tuple[object, ...]]:
    """Headers and records up to an offset, in order."""
    found: list[tuple[object, ...]] = []
    for segment in partition.segments:
        data = segment.file.handle().read(segment.size_bytes, 0)
        for batch in split_batches(data):
            assert isinstance(batch, BatchView)
            if batch.last_offset < end_offset:
                found.append(header(batch))
                found += [(record.offset, record.timestamp, record.key, record.value) for record in batch.records()]
    return found


@pytest.mark.parametrize("topic", [*CODECS, "transactions"])
def test_both_cleaners_leave_the_same(directories: tuple[Path, Path], topic: str) -> None:
    apache_dir, our_dir = directories
    checkpoint = parse_offsets((apache_dir / CLEANER_CHECKPOINT).read_bytes())[TopicPartition(topic, 0)]
    _, theirs = opened(apache_dir, topic)
    _, ours = opened(our_dir, topic)
    size_before = ours.size_bytes
    assert clean(ours) == checkpoint
    assert ours.size_bytes < size_before
    assert content(ours, checkpoint) == content(theirs, checkpoint)
    assert [segment.base_offset for segment in ours.segments] == [segment.base_offset for segment in theirs.segments]


@pytest.mark.parametrize("topic", [*CODECS, "transactions"])
def test_apaches_tools_find_nothing_wrong_in_what_we_cleaned(directories: tuple[Path, Path], topic: str) -> None:
    directory = directories[1] / f"{topic}-0"
    _, partition = opened(directories[1], topic)
    clean(partition)
    partition.close()
    logs = sorted(directory.glob("*.log"))
    deep = dump_log(logs, "--deep-iteration")
    assert "isvalid: false" not in deep.lower()
    assert "Found" not in deep
    indexes = sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")])
    for flag in ("--verify-index-only", "--index-sanity-check"):
        verdict = dump_log(indexes, flag)
        assert "mismatch" not in verdict.lower()
        assert "exception" not in verdict.lower()
