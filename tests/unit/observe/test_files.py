"""Samples in files."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.health.samples import Sample
from ottla.observe.files import FILE_MAX_MS, FileSink, read_files
from ottla.observe.sinks import UnwrittenError

NOON_MS = 1_700_049_600_000  # 2023-11-15 12:00 UTC
DAY_MS = 86_400_000


def sample(seq: int, ts: int = NOON_MS, kind: str = "quorum", observer: str = "aaaaaaaa-1") -> Sample:
    return Sample(kind=kind, ts=ts, cluster="c", observer=observer, seq=seq, error="UNREACHABLE")


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[FileSink]:
    made = FileSink(tmp_path)
    yield made
    asyncio.run(made.close())


def write(sink: FileSink, *samples: Sample) -> None:
    asyncio.run(sink.write(samples))


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.glob("*/*/*"))


def test_a_file_for_each_kind_and_day(tmp_path: Path):
    sink = FileSink(tmp_path)
    write(sink, sample(0), sample(1, kind="group"), sample(2, NOON_MS + DAY_MS))
    asyncio.run(sink.close())
    assert names(tmp_path) == [
        "kind=group/date=2023-11-15/aaaaaaaa-000000000001.jsonl.zst",
        "kind=quorum/date=2023-11-15/aaaaaaaa-000000000000.jsonl.zst",
        "kind=quorum/date=2023-11-16/aaaaaaaa-000000000002.jsonl.zst",
    ]
    assert list(read_files(tmp_path)) == [sample(0), sample(1, kind="group"), sample(2, NOON_MS + DAY_MS)]


def test_a_file_has_its_name_when_it_is_complete(tmp_path: Path, sink: FileSink):
    write(sink, sample(0))
    write(sink, sample(1, NOON_MS + FILE_MAX_MS - 1))
    assert names(tmp_path) == ["kind=quorum/date=2023-11-15/aaaaaaaa-000000000000.jsonl.zst.part"]
    write(sink, sample(2, NOON_MS + FILE_MAX_MS))
    assert names(tmp_path) == ["kind=quorum/date=2023-11-15/aaaaaaaa-000000000000.jsonl.zst"]
    write(sink, sample(3, NOON_MS + FILE_MAX_MS + 1))
    assert len(names(tmp_path)) == 2
    assert [each.seq for each in read_files(tmp_path)] == [0, 1, 2, 3]


def test_a_file_whose_observer_was_killed_can_be_read_to_its_last_whole_frame(tmp_path: Path, sink: FileSink):
    write(sink, sample(0), sample(1))
    write(sink, sample(2))
    (path,) = tmp_path.glob("*/*/*.part")
    path.write_bytes(path.read_bytes()[:-3])
    assert [each.seq for each in read_files(tmp_path)] == [0, 1]
    path.write_bytes(b"")
    assert list(read_files(tmp_path)) == []


def test_a_file_that_is_completed_meanwhile_is_read_all_the_same(tmp_path: Path, sink: FileSink):
    write(sink, sample(0))
    found = read_files(tmp_path)
    write(sink, sample(1, NOON_MS + FILE_MAX_MS))
    assert [each.seq for each in found] == [0, 1]


def test_a_file_that_is_deleted_meanwhile_has_no_samples(tmp_path: Path, sink: FileSink):
    write(sink, sample(0))
    found = read_files(tmp_path)
    shutil.rmtree(tmp_path / "kind=quorum")
    assert list(found) == []


def test_an_observer_writes_on_when_its_files_are_deleted(tmp_path: Path, sink: FileSink):
    write(sink, sample(0))
    shutil.rmtree(tmp_path / "kind=quorum")
    write(sink, sample(1, NOON_MS + FILE_MAX_MS))
    write(sink, sample(2, NOON_MS + FILE_MAX_MS + 1))
    assert [each.seq for each in read_files(tmp_path)] == [2]


def test_samples_of_kinds_and_observers_come_in_the_order_of_time(tmp_path: Path):
    stories = {"aaaaaaaa-1": (0, 20, 10), "bbbbbbbb-2": (5, 15)}
    for observer, times in stories.items():
        sink = FileSink(tmp_path)
        kinds = ("quorum", "group", "quorum")
        some = [sample(seq, NOON_MS + time, kinds[seq], observer) for seq, time in enumerate(times)]
        write(sink, *some)
        asyncio.run(sink.close())
    assert [each.ts - NOON_MS for each in read_files(tmp_path)] == [0, 5, 10, 15, 20]


def test_what_is_no_sample_is_passed_over(tmp_path: Path):
    sink = FileSink(tmp_path)
    write(sink, sample(0))
    asyncio.run(sink.close())
    (folder,) = tmp_path.glob("*/*")
    (folder / "notes.txt").write_text("mine")
    (folder / "zzzzzzzz-0.jsonl.zst").write_bytes(b"no zstd at all")
    assert list(read_files(tmp_path)) == [sample(0)]


def test_what_the_disk_does_not_take_is_given_back(tmp_path: Path, sink: FileSink):
    (tmp_path / "kind=quorum").write_text("in the way")
    with pytest.raises(UnwrittenError) as caught:
        write(sink, sample(0, kind="group"), sample(1), sample(2, kind="topic"))
    assert [each.seq for each in caught.value.samples] == [1, 2]
