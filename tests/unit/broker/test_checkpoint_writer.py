"""Checkpoints under a disk that stalls: one writer at a time, the newest content last."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.broker.loop.clock import ShiftedClock
from ottla.broker.loop.offload import Job
from ottla.broker.replicas.checkpoint_writer import CheckpointWriter
from ottla.log.checkpoint import parse_offsets
from ottla.log.directory import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    LogDirectory,
)
from ottla.log.disk import OsDisk, OsFile
from ottla.log.errors import StorageError
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.wire.properties import MetaProperties
from tests.unit.broker.raw_client import TIMEOUT_S, batch, running_node

ORDERS = TopicPartition("orders", 0)


class TracingDisk(OsDisk):
    """Knows in which order files were put in their place."""

    def __init__(self) -> None:
        super().__init__(durable=False)
        self.renamed: list[str] = []
        self.is_full = False

    def rename(self, source: str, target: str) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device", target)
        super().rename(source, target)
        self.renamed.append(Path(target).name)


class Stalled:
    """A writer whose jobs are done when the test says so."""

    def __init__(self, path: Path) -> None:
        self.disk = TracingDisk()
        self.path = path
        self.jobs: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self.failures: list[StorageError] = []
        directory = LogDirectory(LogStorage(self.disk), str(path), MetaProperties("c", 1))
        self.writer = CheckpointWriter(directory, self._hold, lambda _, error: self.failures.append(error))

    def _hold(self, work: Callable[[], None], then: Callable[[], None]) -> Job:
        self.jobs.append((work, then))
        return None  # type: ignore[return-value]  # nobody waits for it

    def write(self, **offsets: int) -> None:
        self.writer.write({name: {ORDERS: offset} for name, offset in offsets.items()})

    def do_job(self) -> None:
        (job,) = self.jobs
        self.jobs.clear()
        for part in job:
            part()

    def content(self, name: str) -> int:
        return parse_offsets((self.path / name).read_bytes())[ORDERS]


@pytest.fixture
def stalled(tmp_path: Path) -> Stalled:
    return Stalled(tmp_path)


def test_one_write_is_under_way_and_the_newest_content_follows_it(stalled: Stalled):
    for offset in range(5):
        stalled.write(a=offset)
    stalled.do_job()
    assert stalled.content("a") == 0
    stalled.do_job()
    assert stalled.content("a") == 4, "and nobody writes what lay between"
    assert not stalled.jobs


def test_a_content_that_comes_back_while_another_is_written_is_not_lost(stalled: Stalled):
    stalled.write(a=1)
    stalled.write(a=2)
    stalled.write(a=1)
    stalled.do_job()
    stalled.do_job()
    assert stalled.content("a") == 1


def test_what_would_stay_the_same_is_not_written(stalled: Stalled):
    stalled.write(a=1)
    stalled.do_job()
    stalled.write(a=1)
    assert not stalled.jobs


@pytest.mark.parametrize("again", [{"start": 2, "point": 2}, {"start": 2, "point": 1}, {"start": 1, "point": 2}])
@pytest.mark.parametrize("before", [{"start": 1, "point": 1}, {"point": 1}, {"other": 1, "point": 1}])
def test_a_file_never_overtakes_the_one_that_it_relies_on(
    stalled: Stalled, before: dict[str, int], again: dict[str, int]
):
    stalled.write(other=0)  # is under way
    stalled.write(**before)
    stalled.write(**again)
    stalled.do_job()
    stalled.do_job()
    written = [name for name in stalled.disk.renamed if name in again]
    assert written == sorted(written, reverse=True), "the start is on the disk before the point"
    assert {name: stalled.content(name) for name in again} == again


def test_a_disk_that_fails_is_told_and_not_written_to_again(stalled: Stalled):
    stalled.disk.is_full = True
    stalled.write(a=1, b=1)
    stalled.write(a=2)
    stalled.do_job()
    assert [str(error) for error in stalled.failures] == [
        f"writing {stalled.path}/a: [Errno 28] No space left on device: '{stalled.path}/a'"
    ]
    stalled.write(a=3)
    assert not stalled.jobs


# --- a node -----------------------------------------------------------------------------------------------------------


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
