"""Checkpoints under a disk that stalls: one writer at a time, the newest content last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.broker.loop.offload import Job
from ottla.broker.replicas.checkpoint_writer import CheckpointWriter
from ottla.log.checkpoint import format_offsets, parse_offsets
from ottla.log.directory import (
    LogDirectory,
)
from ottla.log.disk import OsDisk
from ottla.log.errors import StorageError
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.wire.properties import MetaProperties

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
        self.writer.write({name: format_offsets({ORDERS: offset}) for name, offset in offsets.items()})

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
