"""Chores by the clock: what they write, remove and compact, and that long work leaves room for others."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.controller.metadata_chores import RECORDS_AT_STOP
from ottla.broker.loop.clock import ShiftedClock
from ottla.log.checkpoint import parse_offsets
from ottla.log.steps import finish
from ottla.wire.errors import ErrorCode
from ottla.wire.types import DeleteRecordsRequest, DeleteTopicsRequest
from ottla.wire.types.cluster_metadata import ConfigRecord
from tests.component.broker.raw_client import RunningNode, Topic, batch, batches, running_node

HOUR_MS = 3_600_000


class Timed:
    """A node whose time passes when a test says so."""

    def __init__(self, running: RunningNode, clock: ShiftedClock, directory: Path) -> None:
        self.running = running
        self.node = running.node
        self.client = running.client
        self.directory = directory
        self._clock = clock

    def later(self, ms: int) -> None:
        """Let time pass, and everything happen that is due then."""
        self.running.change(lambda: self._pass(ms))

    def _pass(self, ms: int) -> None:
        self._clock.shift_ms += ms
        self.node.housekeeping.run_due()
        self.node.cooperative_tasks.run_for(20)
        self.node.offload.finish_all()

    def checkpoint(self, name: str) -> dict[Any, int]:
        return dict(parse_offsets((self.directory / name).read_bytes()))

    def partition(self, topic: Topic) -> Path:
        return self.directory / f"{topic.name}-0"


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Timed]:
    clock = ShiftedClock()
    with running_node(tmp_path, clock, connections_max_idle_ms=10**12) as running:
        yield Timed(running, clock, tmp_path)


def fill(timed: Timed, topic: Topic, rounds: int, **header: Any) -> None:
    """Large batches, so that segments of a megabyte are full after two."""
    for _ in range(rounds):
        assert timed.client.produce(topic, batch(bytes(600_000), **header)).error_code == 0


def test_high_watermarks_are_noted_every_few_seconds(timed: Timed):
    topic = timed.client.topic()
    timed.client.produce(topic, batch(b"a", b"b"))
    timed.later(5_001)
    assert timed.checkpoint("replication-offset-checkpoint") == {(topic.name, 0): 2}
    timed.client.produce(topic, batch(b"c"))
    timed.later(5_001)
    assert timed.checkpoint("replication-offset-checkpoint") == {(topic.name, 0): 3}


def test_a_checkpoint_that_would_stay_the_same_is_not_written(timed: Timed):
    timed.client.produce(timed.client.topic(), batch(b"a"))
    timed.later(5_001)
    path = timed.directory / "replication-offset-checkpoint"
    path.unlink()
    timed.later(5_001)
    assert not path.exists()


def test_closed_segments_are_synced_and_noted(timed: Timed):
    topic = timed.client.topic(segment_bytes=1 << 20)
    fill(timed, topic, 3)
    timed.later(61_000)
    timed.later(61_000)
    assert timed.checkpoint("recovery-point-offset-checkpoint") == {(topic.name, 0): 3}


def test_a_raised_log_start_is_noted(timed: Timed):
    topic = timed.client.topic()
    timed.client.produce(topic, batch(b"a", b"b", b"c"))
    kind = DeleteRecordsRequest
    wanted = kind.DeleteRecordsTopic(topic.name, (kind.DeleteRecordsPartition(0, 2),))
    timed.client.ask(kind((wanted,), 5_000), 2)
    timed.later(61_000)
    assert timed.checkpoint("log-start-offset-checkpoint") == {(topic.name, 0): 2}


def test_flush_ms_is_kept(timed: Timed):
    topic = timed.client.topic(flush_ms=2_000)
    timed.client.produce(topic, batch(b"a"))
    log = timed.node.replicas.by_key[topic.name, 0].log
    timed.later(1_000)
    assert log.recovery_point == 0
    timed.later(1_500)
    assert log.recovery_point == 1


def test_retention_removes_old_segments_and_their_files_later(timed: Timed):
    now_ms = timed.node.clock.wall_ms()
    topic = timed.client.topic(segment_bytes=1 << 20, retention_ms=HOUR_MS, file_delete_delay_ms=60_000)
    fill(timed, topic, 3, timestamp=now_ms - 2 * HOUR_MS)
    fill(timed, topic, 1, timestamp=now_ms)
    timed.later(301_000)
    files = sorted(path.name for path in timed.partition(topic).glob("*.log*"))
    assert [name for name in files if name.endswith(".deleted")]
    log = timed.node.replicas.by_key[topic.name, 0].log
    assert log.log_start_offset == 3
    assert timed.client.fetch(topic, offset=0).error_code == 1, "what is gone is out of range"
    timed.later(61_000)
    timed.later(61_000)
    assert not list(timed.partition(topic).glob("*.deleted"))


def test_a_deleted_topics_directory_goes_after_a_while(timed: Timed):
    topic = timed.client.topic()
    timed.client.produce(topic, batch(b"a"))
    timed.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
    timed.later(1_001)
    assert len(list(timed.directory.glob("*-delete"))) == 1
    timed.later(61_000)
    assert not list(timed.directory.glob("*-delete"))


def test_compaction_keeps_the_last_value_of_each_key(timed: Timed):
    topic = timed.client.topic(
        cleanup_policy="compact", segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.01, min_compaction_lag_ms=0
    )
    for number in range(4):
        timed.client.produce(topic, batch(b"x" * 600_000 + bytes([number]), keys=[b"k"]))
    timed.client.produce(topic, batch(b"end", keys=[b"other"]))
    timed.later(16_000)
    (first,) = batches(timed.client.fetch(topic))
    assert first.base_offset == 2, "older values of the key are gone; the newest lies in the active segment"
    assert [one.base_offset for one in batches(timed.client.fetch(topic, offset=3))] == [3, 4]
    assert timed.checkpoint("cleaner-offset-checkpoint")[topic.name, 0] > 0


def compacted_topic(timed: Timed) -> Topic:
    """Its three partitions have an old value of a key each."""
    topic = timed.client.topic(
        3, cleanup_policy="compact", segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.01, min_compaction_lag_ms=0
    )
    for partition in range(3):
        for number in range(4):
            value = b"x" * 600_000 + bytes([number])
            timed.client.produce(topic, batch(value, keys=[b"k"]), partition=partition)
    return topic


def compacted_partitions(timed: Timed, topic: Topic) -> list[int]:
    checkpoint = timed.checkpoint("cleaner-offset-checkpoint")
    return [partition for partition in range(3) if checkpoint.get((topic.name, partition), 0) > 0]


def test_all_partitions_that_need_it_are_compacted(timed: Timed):
    """One at a time would leave none for others where some are dirty again before the next time."""
    topic = compacted_topic(timed)
    timed.later(16_000)
    assert compacted_partitions(timed, topic) == [0, 1, 2]


def test_a_topic_that_is_deleted_while_it_is_compacted_leaves_nothing_to_the_next_of_its_name(timed: Timed):
    topic = timed.client.topic(
        cleanup_policy="compact", segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.01, min_compaction_lag_ms=0
    )
    for number in range(60):
        timed.client.produce(topic, batch(b"x", keys=[b"k"]))
        if number % 3 == 0:
            timed.running.change(lambda: timed.node.replicas.by_key[topic.name, 0].log.roll(0))
    directory = timed.node.storage.directories[0]
    steps = timed.node.log_chores._compaction()
    timed.running.change(lambda: next(steps))
    timed.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
    timed.running.change(lambda: finish(steps))
    assert (topic.name, 0) not in directory.cleaner_offsets()


def test_a_damaged_log_does_not_keep_others_from_being_compacted(timed: Timed, caplog: pytest.LogCaptureFixture):
    topic = compacted_topic(timed)
    with min(timed.partition(topic).glob("*.log")).open("r+b") as file:
        file.seek(1_000)
        file.write(b"y")
    timed.later(16_000)
    assert compacted_partitions(timed, topic) == [1, 2]
    assert f"compaction partition={topic.name}-0 failed" in caplog.text


def test_a_disk_that_fails_under_compaction_is_offline(timed: Timed, monkeypatch: pytest.MonkeyPatch):
    topic = compacted_topic(timed)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr("ottla.log.cleaner._Writer.write", fail)
        timed.later(16_000)
    assert timed.client.produce(topic, batch(b"a", keys=[b"k"])).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_compaction_can_be_switched_off(tmp_path: Path):
    clock = ShiftedClock()
    with running_node(tmp_path, clock, log_cleaner_enable=False) as running:
        timed = Timed(running, clock, tmp_path)
        topic = timed.client.topic(cleanup_policy="compact", segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.01)
        for _ in range(4):
            timed.client.produce(topic, batch(b"x" * 600_000, keys=[b"k"]))
        timed.later(16_000)
        assert not (tmp_path / "cleaner-offset-checkpoint").exists()


def test_producers_that_were_silent_for_a_day_are_forgotten(timed: Timed):
    topic = timed.client.topic()
    header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    timed.client.produce(topic, batch(b"a", timestamp=timed.node.clock.wall_ms(), **header))
    log = timed.node.replicas.by_key[topic.name, 0].log
    timed.later(HOUR_MS)
    assert not log.producers.is_empty
    timed.later(25 * HOUR_MS)
    assert log.producers.is_empty


def snapshots(directory: Path) -> list[int]:
    ends = [int(path.name[:20]) for path in (directory / "__cluster_metadata-0").glob("*-*.checkpoint")]
    return sorted(end for end in ends if end > 0)


def test_the_metadata_is_snapshotted_every_hour_if_it_has_changed(timed: Timed):
    timed.client.topic()
    timed.later(HOUR_MS + 1_000)
    assert len(snapshots(timed.directory)) == 1
    timed.later(HOUR_MS + 1_000)
    assert len(snapshots(timed.directory)) == 1, "nothing has changed"
    timed.client.topic()
    timed.later(HOUR_MS + 1_000)
    assert len(snapshots(timed.directory)) == 2


def test_a_stop_writes_a_snapshot_if_the_next_start_would_have_much_to_replay(tmp_path: Path):
    def start_and_change(records: int) -> int:
        """How many records the next start has to replay."""
        with running_node(tmp_path) as running:
            running.commit(*(ConfigRecord(4, "", "k", str(number)) for number in range(records)))
            end_offset = running.node.image.last_offset + 1
        return end_offset - max(snapshots(tmp_path), default=0)

    assert start_and_change(100) > 100
    assert start_and_change(RECORDS_AT_STOP) < 10
    assert 100 < start_and_change(100) < 200
    with running_node(tmp_path) as running:
        assert running.node.image.configs(4, "")["k"] == "99"


def test_what_a_start_replays_counts_for_the_next_snapshot(tmp_path: Path):
    limit = {"metadata.log.max.record.bytes.between.snapshots": 100_000}
    for _ in range(3):
        with running_node(tmp_path, **limit) as running:
            running.commit(ConfigRecord(4, "", "k", "x" * 30_000))
    clock = ShiftedClock()
    with running_node(tmp_path, clock, **limit) as running:
        timed = Timed(running, clock, tmp_path)
        running.commit(ConfigRecord(4, "", "k", "x" * 30_000))
        timed.later(1_001)
        assert len(snapshots(timed.directory)) == 1


def test_old_snapshots_go_with_the_log_below_the_next_one(tmp_path: Path):
    clock = ShiftedClock()
    settings = {"metadata.log.segment.bytes": 8 << 20, "metadata.max.retention.bytes": 1 << 20}
    with running_node(tmp_path, clock, **settings) as running:
        timed = Timed(running, clock, tmp_path)
        value = "x" * 30_000

        records = [ConfigRecord(4, "", f"k{number}", value) for number in range(100)]
        for _ in range(4):
            for _ in range(3):
                running.commit(*records)
            timed.later(HOUR_MS + 1_000)
        kept = snapshots(timed.directory)
        assert len(kept) == 1, "one always stays"
        assert running.node.raft.partition.log_start_offset == kept[0]
        assert running.node.raft.partition.segments[0].base_offset > 0
    with running_node(tmp_path) as running:
        assert running.node.image.configs(4, "")["k99"] == value


def test_heartbeats_keep_the_own_broker_alive(timed: Timed):
    for _ in range(20):
        timed.later(8_000)
    assert not timed.node.image.brokers[1].fenced


def test_no_op_records_come_by_the_clock_if_they_are_wanted(tmp_path: Path):
    clock = ShiftedClock()
    with running_node(tmp_path, clock, metadata_max_idle_interval_ms=500) as running:
        timed = Timed(running, clock, tmp_path)
        before = running.node.image.last_offset
        timed.later(501)
        timed.later(501)
        assert running.node.image.last_offset >= before + 2
