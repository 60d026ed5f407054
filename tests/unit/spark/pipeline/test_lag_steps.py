"""Lag from records, step by step: the table of a run, however the input is cut, from little that is old. No step is so
large that it needs Spark.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ottla.spark.jobs.consumer_lag import lag_table
from ottla.spark.jobs.params import HOUR_MS, MINUTE_MS, Params
from ottla.spark.jobs.tables import CONSUMER_LAG
from ottla.spark.pipeline import end_offsets, lag_in_process
from ottla.spark.pipeline.follow import Follower
from ottla.spark.pipeline.metadata_log import read_metadata
from ottla.spark.pipeline.options import RunOptions
from ottla.spark.pipeline.origins import directory_origin
from ottla.spark.pipeline.tables import table_path
from tests.unit.spark.jobs.lag_model import Row, key_of
from tests.unit.spark.pipeline.cluster_files import NOON, ClusterFiles
from tests.unit.spark.pipeline.ingesting import TOPIC

SECOND_MS = 1_000
TOPICS = ("orders", "payments", "seldom", "replayed")


class Steps:
    """A follower of which only the table of lag is computed."""

    def __init__(self, cluster: Path, out: Path) -> None:
        self._find = lambda: directory_origin([str(cluster)], TOPIC)
        self._out = out
        self.restart()

    def restart(self) -> None:
        work = self._out / ".work"
        work.mkdir(parents=True, exist_ok=True)
        self._follower = Follower(self._find, RunOptions(out=self._out), work, lambda _: None)
        last = self._follower._archive.last
        self._computed = -1 if last is None else last.number

    def step(self) -> bool:
        """Whether there was something new."""
        follower = self._follower
        follower.read(None)  # type: ignore[arg-type]
        new = follower._archive.after(self._computed)
        if new:
            self._computed = new[-1].number
            follower._compute_lag(None, read_metadata(None), Params(), new)  # type: ignore[arg-type]
        return bool(new)

    def table(self) -> list[Row]:
        files = [str(each) for each in table_path(self._out, CONSUMER_LAG.name).rglob("*.parquet")]
        return sorted(ds.dataset(files).to_table().to_pylist(), key=key_of) if files else []


def told_at_once(cluster: Path, out: Path) -> list[Row]:
    whole = Steps(cluster, out)
    whole.step()
    return whole.table()


class History:
    """What happens to a cluster in some hours: groups that stop, and are deleted, topics that are quiet, and one whose
    records are older than they look."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path = path
        self._rng = rng
        self._now = NOON + 59 * MINUTE_MS
        self._ends = dict.fromkeys(TOPICS, 0)

    def go_on(self, moments: int) -> None:
        with ClusterFiles(self.path) as made:
            for _ in range(moments):
                self._now += self._rng.choice((500, 4 * SECOND_MS, 4 * SECOND_MS, MINUTE_MS, 20 * MINUTE_MS))
                self._moment(made)

    def _moment(self, made: ClusterFiles) -> None:
        rng, now = self._rng, self._now
        for topic in TOPICS:
            if rng.random() < (0.02 if topic == "seldom" else 0.6):
                made.data(now - 3 * HOUR_MS if topic == "replayed" else now, topic)
                self._ends[topic] += 1
        for group in ("a", "b", "c", "d"):
            if rng.random() < (0.5 if group == "a" else 0.03):
                topic = rng.choice(TOPICS)
                # A coordinator on another node has another clock.
                ts = now - rng.choice((0, 0, 0, 5 * MINUTE_MS))
                is_deleted = group == "d" and rng.random() < 0.5
                made.commit(ts, group, None if is_deleted else rng.randint(0, self._ends[topic]), topic)


@pytest.mark.parametrize("seed", range(6))
def test_however_the_input_is_cut_the_table_is_that_of_a_run(tmp_path: Path, seed: int):
    rng = random.Random(seed)
    history = History(tmp_path / "cluster", rng)
    history.go_on(3)
    steps = Steps(history.path, tmp_path / "out")
    for _ in range(25):
        history.go_on(rng.choice((1, 2, 5, 20)))
        steps.step()
        if rng.random() < 0.1:
            steps.restart()
    found = steps.table()
    assert found == told_at_once(history.path, tmp_path / "whole")
    assert {row["group"] for row in found if row["lag_records"]} >= {"a", "b"}
    assert len({row["window_start"] // HOUR_MS for row in found}) > 5


def test_a_group_that_has_stopped_has_a_row_in_each_hour_with_records(tmp_path: Path):
    with ClusterFiles(tmp_path / "cluster") as made:
        made.commit(NOON, "stopped", 0)
        for minutes in (1, 30, 70, 200):
            made.data(NOON + minutes * MINUTE_MS)
    rows = told_at_once(tmp_path / "cluster", tmp_path / "out")
    assert [((row["window_start"] - NOON) // MINUTE_MS, row["lag_records"]) for row in rows] == [
        (0, None), (30, 2), (70, 3), (200, 4),
    ]  # fmt: skip


def test_a_group_whose_offset_was_deleted_has_no_more_rows(tmp_path: Path):
    path = tmp_path / "cluster"
    with ClusterFiles(path) as made:
        made.commit(NOON, "gone", 0)
        made.data(NOON + 61 * MINUTE_MS)
    steps = Steps(path, tmp_path / "out")
    steps.step()
    assert len(steps.table()) == 2
    with ClusterFiles(path) as made:
        made.commit(NOON + 62 * MINUTE_MS, "gone", None)
        made.data(NOON + 63 * MINUTE_MS)
    steps.step()
    assert [row["window_start"] for row in steps.table()] == [NOON]
    assert steps.table() == told_at_once(path, tmp_path / "whole")


class KilledError(Exception):
    """The process ends here."""


def test_a_process_that_is_killed_while_the_table_is_made_anew_leaves_none_of_its_hours_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, out = tmp_path / "cluster", tmp_path / "out"
    steps = Steps(path, out)
    for number in range(4):
        with ClusterFiles(path) as made:
            made.data(NOON + number * HOUR_MS)
            made.commit(NOON + number * HOUR_MS, "busy", number)
        if number < 3:
            steps.step()
    shutil.rmtree(table_path(out, CONSUMER_LAG.name))  # as a stream does whose state is made anew
    computed, write = steps._computed, pq.write_table

    def killed(rows: pa.Table, where: Path) -> None:
        if "hour-13" in where.name:
            raise KilledError
        write(rows, where)

    with monkeypatch.context() as m:
        m.setattr(pq, "write_table", killed)
        with pytest.raises(KilledError):
            steps.step()
    steps.restart()
    steps._computed = computed
    steps.step()
    assert len(steps.table()) == 4
    assert steps.table() == told_at_once(path, tmp_path / "whole")


class Counts:
    """What is read of logs and of the archive."""

    def __init__(self) -> None:
        self.headers = 0
        self.steps: list[str] = []
        self.rows = 0

    def clear(self) -> None:
        self.headers, self.steps, self.rows = 0, [], 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counted = Counts()
    dataset = ds.dataset

    class CountedSegment(end_offsets.Segment):
        def headers(self, position: int = 0) -> Iterator[tuple[int, Any]]:
            for each in super().headers(position):
                counted.headers += 1
                yield each

    def opened(source: Any, *more: Any, **named: Any) -> Any:
        if isinstance(source, list):
            counted.steps += [each.split("/events/")[1].split("/")[0] for each in source if "/events/" in each]
        return dataset(source, *more, **named)

    def table(events: pa.Table, inputs: dict[str, pa.Table], params: Params) -> pa.Table:
        counted.rows = events.num_rows
        return lag_table(events, inputs, params)

    monkeypatch.setattr(end_offsets, "Segment", CountedSegment)
    monkeypatch.setattr(ds, "dataset", opened)
    monkeypatch.setattr(lag_in_process, "lag_table", table)
    return counted


def test_a_step_reads_nothing_old(tmp_path: Path, counts: Counts):
    """Of twenty hours, a step reads its own events and those of a few hours, and one commit of each group that has
    stopped. If nothing is new, it reads nothing."""
    path = tmp_path / "cluster"
    steps = Steps(path, tmp_path / "out")
    rows = []
    for number in range(60):
        start = NOON + number * 20 * MINUTE_MS
        with ClusterFiles(path) as made:
            if number == 0:
                for stopped in range(5):
                    made.commit(start, f"stopped-{stopped}", 0)
            for second in range(0, 1_200, 120):
                made.data(start + second * SECOND_MS)
                made.commit(start + second * SECOND_MS, "busy", 10 * number + second // 120)
        counts.clear()
        assert steps.step()
        if number > 1:  # the second step begins to keep what is recent
            assert counts.headers == 10
            assert set(counts.steps) == {f"step={number:08d}"}
            rows.append(counts.rows)
    assert max(rows) < 7 * 3 * 20, "of 1,205 rows in all"
    counts.clear()
    assert not steps.step()
    assert (counts.headers, counts.steps, counts.rows) == (0, [], 0)
    newest = steps.table()[-6:]
    assert {row["group"] for row in newest} == {"busy", *(f"stopped-{each}" for each in range(5))}
    assert steps.table() == told_at_once(path, tmp_path / "whole")
