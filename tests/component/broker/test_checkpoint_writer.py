"""Checkpoints under a disk that stalls: one writer at a time, the newest content last."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ottla.broker.loop.clock import ShiftedClock
from ottla.log.checkpoint import parse_offsets
from ottla.log.disk import OsDisk, OsFile
from ottla.log.names import HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, TopicPartition
from tests.component.broker.raw_client import TIMEOUT_S, batch, running_node


class StallingDisk(OsDisk):
    """Whose first replacement of a file waits until it is let go; it sees how many write that file at once."""

    def __init__(self, name: str) -> None:
        super().__init__(durable=False)
        self.name = name
        self.has_stalled = threading.Event()
        self.let_go = threading.Event()
        self.writers_max = 0
        self._writers = 0

    def open(self, path: str, *, create: bool = False) -> OsFile:
        if create and path.endswith(f"/{self.name}.tmp"):
            self._writers += 1
            self.writers_max = max(self.writers_max, self._writers)
        return super().open(path, create=create)

    def rename(self, source: str, target: str) -> None:
        is_watched = target.endswith(f"/{self.name}")
        if is_watched and not self.has_stalled.is_set():
            self.has_stalled.set()
            assert self.let_go.wait(TIMEOUT_S)
        super().rename(source, target)
        self._writers -= is_watched


@pytest.mark.parametrize(
    ("name", "period_ms"),
    [(HIGH_WATERMARK_CHECKPOINT, 5_001), (RECOVERY_POINT_CHECKPOINT, 60_001), (LOG_START_CHECKPOINT, 60_001)],
)
def test_a_node_outlives_a_disk_that_stalls_longer_than_a_checkpoint_takes_to_be_due(
    tmp_path: Path, name: str, period_ms: int
):
    disk, clock = StallingDisk(name), ShiftedClock()
    with running_node(tmp_path, clock, disk=disk, connections_max_idle_ms=10**12) as running:
        topic, node = running.client.topic(flush_messages=1), running.node

        def pass_time() -> None:
            log = node.replicas.by_key[topic.name, 0].log
            log.delete_records(log.high_watermark)
            clock.shift_ms += period_ms
            node.housekeeping.run_due()
            node.cooperative_tasks.run_for(20)

        for _ in range(4):
            running.client.produce(topic, batch(b"a"))
            running.change(pass_time)
            assert disk.has_stalled.wait(TIMEOUT_S)
        disk.let_go.set()
        running.change(node.offload.finish_all)
        assert disk.writers_max == 1
        assert not node.storage.directories[0].is_offline
        log = node.replicas.by_key[topic.name, 0].log
        newest = {
            HIGH_WATERMARK_CHECKPOINT: log.high_watermark,
            RECOVERY_POINT_CHECKPOINT: log.recovery_point,
            LOG_START_CHECKPOINT: log.log_start_offset,
        }
        assert parse_offsets((tmp_path / name).read_bytes())[TopicPartition(topic.name, 0)] == newest[name]
