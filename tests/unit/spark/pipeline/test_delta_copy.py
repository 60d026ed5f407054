"""Which files are copied to Delta tables, and what is there after a copy that was interrupted. A dictionary is in the
place of the tables."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.spark.jobs.tables import FINDINGS, Table
from ottla.spark.pipeline import delta_copy
from ottla.spark.pipeline.delta_copy import HOURS, DeltaCopy
from ottla.spark.pipeline.table_changes import hour_of
from ottla.spark.pipeline.tables import DAY, table_path


class KilledError(Exception):
    """The process ends here."""


class Spark:
    """Gives names of files back, instead of their rows."""

    @property
    def read(self) -> Spark:
        return self

    def schema(self, _: str) -> Spark:
        return self

    def option(self, *_: str) -> Spark:
        return self

    def parquet(self, *files: str) -> list[str]:
        return list(files)


class Deltas:
    """Delta tables, as the files whose rows they have."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.versions = 0

    def write(self, files: list[str], _: Table, target: Path, hours: Sequence[int]) -> None:
        self._delete(target, hours)
        self.files |= set(map(Path, files))

    def delete(self, _: Spark, table: Table, target: Path, hours: Sequence[int]) -> None:
        self._delete(target, hours)

    def _delete(self, target: Path, hours: Sequence[int]) -> None:
        target.mkdir(parents=True, exist_ok=True)
        self.files = {each for each in self.files if hours and hour_of(each.parent, each.name) not in hours}
        self.versions += 1


@pytest.fixture
def deltas(monkeypatch: pytest.MonkeyPatch) -> Deltas:
    found = Deltas()
    monkeypatch.setattr(delta_copy, "JOBS", (FINDINGS.name,))
    monkeypatch.setattr(delta_copy, "_write", found.write)
    monkeypatch.setattr(delta_copy, "_delete", found.delete)
    return found


def copy(out: Path) -> None:
    """By a new process."""
    DeltaCopy(out).copy(Spark())  # type: ignore[arg-type]


def put(out: Path, day: str, hour: int) -> Path:
    """A file of an hour."""
    file = table_path(out / HOURS, FINDINGS.name) / f"{DAY}={day}" / f"hour-{hour:02d}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"rows")
    return file


def test_a_copy_of_a_whole_table_that_was_interrupted_is_repeated_as_a_whole(
    tmp_path: Path, deltas: Deltas, monkeypatch: pytest.MonkeyPatch
):
    """When it was killed it had noted that the first day is copied."""
    files = {put(tmp_path, day, 7) for day in ("2026-11-15", "2026-11-16")}
    note = DeltaCopy._note

    def killed(self: DeltaCopy, day: Any) -> None:
        if "16" in day.directory.name:
            raise KilledError
        note(self, day)

    with monkeypatch.context() as m:
        m.setattr(DeltaCopy, "_note", killed)
        with pytest.raises(KilledError):
            copy(tmp_path)
    copy(tmp_path)
    assert deltas.files == files
    files.add(put(tmp_path, "2026-11-16", 8))
    copy(tmp_path)
    assert deltas.files == files


def test_a_table_that_is_made_anew_and_has_no_rows_loses_those_that_it_had(tmp_path: Path, deltas: Deltas):
    copy(tmp_path)
    assert deltas.versions == 0, "there is no table yet"
    put(tmp_path, "2026-11-15", 7)
    copy(tmp_path)
    shutil.rmtree(table_path(tmp_path / HOURS, FINDINGS.name))
    copy(tmp_path)
    assert deltas.files == set()
    versions = deltas.versions
    copy(tmp_path)
    assert deltas.versions == versions
    file = put(tmp_path, "2026-11-15", 9)
    copy(tmp_path)
    assert deltas.files == {file}
