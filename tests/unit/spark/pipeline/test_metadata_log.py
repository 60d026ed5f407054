"""The metadata log, read step by step: the same facts as if it were read as a whole, for the price of what is new."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.log import storage
from ottla.spark.pipeline.metadata_log import TYPES, MetadataLog, read_metadata
from ottla.spark.pipeline.origins import DirectoryOrigin, directory_origin
from ottla.wire.batch import split_batches
from tests.unit.spark.pipeline.ingesting import TOPIC

LIFE = Path(__file__).parents[3] / "golden" / "storage" / "life"
LOG = "00000000000000000000.log"
BATCHES = [bytes(each.data) for each in split_batches((LIFE / LOG).read_bytes())]


def partition(path: Path) -> Path:
    return path / "__cluster_metadata-0"


def write_log(path: Path, batches: list[bytes], first_offset: int = 0) -> None:
    partition(path).mkdir(parents=True, exist_ok=True)
    for old in partition(path).glob("*.log"):
        old.unlink()
    (partition(path) / f"{first_offset:020d}.log").write_bytes(b"".join(batches))
    (partition(path) / f"{first_offset:020d}.index").touch()


def origin_of(path: Path) -> DirectoryOrigin:
    return directory_origin([str(path)], TOPIC)


def whole(path: Path) -> list[dict[str, Any]]:
    return [row for row in read_metadata(origin_of(path)).table.to_pylist() if row["type"] in TYPES]


def test_each_step_adds_what_is_new(tmp_path: Path):
    log = MetadataLog()
    for count in (1, len(BATCHES) // 2, len(BATCHES)):
        write_log(tmp_path, BATCHES[:count])
        facts = log.read(origin_of(tmp_path))
        assert facts.table.to_pylist() == whole(tmp_path)
        assert facts is log.read(origin_of(tmp_path)), "nothing is new"
    assert len(facts.topic_names) > 1
    assert len(facts.elections) > 1


def test_a_step_reads_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = MetadataLog()
    for count in (len(BATCHES) - 2, len(BATCHES) - 1):  # the second is the first that goes on
        write_log(tmp_path, BATCHES[:count])
        log.read(origin_of(tmp_path))
    write_log(tmp_path, BATCHES)
    read = 0
    real = storage.os.preadv

    def counted(descriptor: int, buffers: list[memoryview], position: int) -> int:
        nonlocal read
        count = real(descriptor, buffers, position)
        read += count
        return count

    monkeypatch.setattr(storage.os, "preadv", counted)
    log.read(origin_of(tmp_path))
    assert read < 5 * len(BATCHES[-1]) + 1_000 < len(b"".join(BATCHES)) / 2


def test_a_log_that_was_cut_is_read_anew(tmp_path: Path):
    log = MetadataLog()
    write_log(tmp_path, BATCHES)
    log.read(origin_of(tmp_path))
    write_log(tmp_path, BATCHES[: len(BATCHES) // 2])
    assert log.read(origin_of(tmp_path)).table.to_pylist() == whole(tmp_path)


def test_a_snapshot_that_took_the_place_of_what_was_not_read_yet_is_read(tmp_path: Path):
    log = MetadataLog()
    write_log(tmp_path, BATCHES[:3])
    log.read(origin_of(tmp_path))
    rest = [each for each in BATCHES if next(split_batches(each)).base_offset >= 33]
    write_log(tmp_path, rest, 33)
    shutil.copy(LIFE / "00000000000000000033-0000000001.checkpoint", partition(tmp_path))
    assert log.read(origin_of(tmp_path)).table.to_pylist() == whole(tmp_path)


def test_without_the_log_the_topics_are_known(tmp_path: Path):
    log = MetadataLog()
    assert log.read(None).table.num_rows == 0
    known = DirectoryOrigin("c", (), (), {"orders": "id-1"})
    facts = log.read(known)
    assert (facts.topic_names, facts.topic_ids) == ({"id-1": "orders"}, {"orders": "id-1"})
    assert log.read(known) is facts
    assert log.read(DirectoryOrigin("c", (), (), {"orders": "id-2"})).topic_ids == {"orders": "id-2"}
