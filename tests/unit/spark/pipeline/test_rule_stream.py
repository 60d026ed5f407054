"""The health rules in a stream: what a batch costs, and what another process finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ottla.spark.jobs.params import Params
from ottla.spark.jobs.stream_fold import Change, GroupFact
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.event_lookup import metadata_table
from ottla.spark.pipeline.ingest import EventFiles, Positions
from ottla.spark.pipeline.rule_stream import RuleStream
from tests.unit.spark.pipeline.cluster_files import NOON

METADATA = metadata_table("", None, {})
STEP_MS = 30_000
GROUPS = 300
"""So many groups are known; each batch has news of one."""


def step_of(archive: Archive, out: Path, number: int) -> None:
    """A step without events: the facts come from the folds over groups."""
    work = out / "work"
    work.mkdir(parents=True)
    at_ms = NOON + number * STEP_MS
    archive.add(EventFiles(work, {}, at_ms, at_ms, 0), Positions(), {}, 0)


def facts_of(number: int) -> Iterator[tuple[bytes, bytes]]:
    """News of one group; the first batch has all groups."""
    for group in range(GROUPS) if number == 0 else [number % 7]:
        body = {"group": f"g-{group}", "type": "consumer", "state": "Stable", "group_epoch": number}
        fact = GroupFact(number, NOON + number * STEP_MS, "group", msgspec.json.encode(body), False)
        yield msgspec.msgpack.encode(["c", f"g-{group}"]), msgspec.msgpack.encode([fact])


def advance(stream: RuleStream, number: int) -> list[Change]:
    return stream.advance(number, list(facts_of(number)), METADATA, {})


def test_a_batch_writes_what_it_brings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not the state of all groups, which is written now and then."""
    archive = Archive(tmp_path)
    stream = RuleStream(tmp_path / "rules", archive, Params())
    written: list[int] = []
    write = Path.write_bytes

    def counted(path: Path, data: bytes) -> int:
        if path.parent.name == "rules":
            written[-1] += len(data)
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", counted)
    for number in range(400):
        step_of(archive, tmp_path, number)
        written.append(0)
        advance(stream, number)
    facts, state = min(written[1:]), max(written)
    assert state > 20 * facts
    assert sum(written[100:200]) < 4 * 100 * facts
    assert sum(written[300:]) < 1.5 * sum(written[100:200]), "it does not grow"
    assert len(list((tmp_path / "rules").iterdir())) < 3 * state / facts, "what is not needed any more is deleted"


@pytest.mark.parametrize("restart_after", [1, 3, 50])
def test_another_process_finds_the_state(tmp_path: Path, restart_after: int):
    """It may begin by repeating the last batch."""
    expected: list[list[Change]] = []
    archive = Archive(tmp_path / "one")
    stream = RuleStream(tmp_path / "one" / "rules", archive, Params(thresholds={"epochs-climb.rises": 2}))
    for number in range(60):
        step_of(archive, tmp_path / "one", number)
        expected.append(advance(stream, number))
    assert any(expected), "there are findings"
    archive = Archive(tmp_path / "two")
    for number in range(60):
        step_of(archive, tmp_path / "two", number)
        if number % restart_after == 0:
            stream = RuleStream(tmp_path / "two" / "rules", archive, Params(thresholds={"epochs-climb.rises": 2}))
        assert advance(stream, number) == expected[number]
        assert advance(stream, number) == expected[number], "Spark repeats a batch"
