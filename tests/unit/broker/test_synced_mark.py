"""The mark of how far the metadata log is synced: too low at worst, whenever the power fails."""

from __future__ import annotations

import random

import pytest

from ottla.broker.controller.synced_mark import SyncedMark, read_mark
from ottla.log.disk import Disk
from ottla.testing.disk import VirtualDisk

PLACE = "/data"
PATH = f"{PLACE}/synced-offset"


def disk() -> VirtualDisk:
    made = VirtualDisk(random.Random(1))
    made.make_directory(PLACE)
    return made


def write(disk: Disk, content: bytes) -> None:
    file = disk.open(PATH, create=True)
    file.write([content], 0)
    file.close()


def test_it_is_there_from_the_beginning() -> None:
    cut = disk()
    assert read_mark(cut, PLACE) is None
    SyncedMark(cut, PLACE, 0)
    assert read_mark(cut.crash(power_loss=True), PLACE) == 0


@pytest.mark.parametrize("seed", range(20))
def test_after_a_power_cut_it_is_one_that_was_true(seed: int) -> None:
    cut = disk()
    cut.random.seed(seed)
    mark = SyncedMark(cut, PLACE, 9)
    mark.raise_to(120)
    mark.raise_to(100)
    assert read_mark(cut, PLACE) == 120
    assert read_mark(cut.crash(power_loss=True), PLACE) in (9, 120)


def test_a_log_that_was_cut_takes_it_back_for_good() -> None:
    cut = disk()
    mark = SyncedMark(cut, PLACE, 120)
    mark.reset(100)
    assert read_mark(cut.crash(power_loss=True), PLACE) == 100
    mark.raise_to(110)
    assert read_mark(cut, PLACE) == 110


@pytest.mark.parametrize("content", [b"", b"twelve", b"\0" * 21])
def test_what_is_no_number_is_no_mark(content: bytes) -> None:
    damaged = disk()
    write(damaged, content)
    assert read_mark(damaged, PLACE) is None
    SyncedMark(damaged, PLACE, 7)
    assert read_mark(damaged, PLACE) == 7


def test_a_mark_that_cannot_be_written_stays_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    full = disk()
    mark = SyncedMark(full, PLACE, 7)

    def refuse(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as broken:
        broken.setattr("ottla.testing.disk.VirtualFile.write", refuse)
        mark.raise_to(8)
    assert read_mark(full, PLACE) == 7
    mark.raise_to(8)
    assert read_mark(full, PLACE) == 8
