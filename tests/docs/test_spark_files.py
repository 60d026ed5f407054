"""The page about files names every option of both formats, and none that does not exist."""

import re
from pathlib import Path

import pytest

from ottla.spark.log.options import LogOptions, PathOptions
from ottla.spark.options import options_of
from ottla.spark.range_options import RangeOptions
from ottla.spark.records.options import PathRecordOptions, RecordTableOptions
from ottla.spark.records.tables import find_table

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "spark-files.md").read_text(encoding="utf-8")
FILES, RECORDS = PAGE.split("\n## ")[1:]


def own_options(table: type, *bases: type) -> set[str]:
    inherited = {name for base in bases for name in options_of(base)}
    return {line.name for field, line in options_of(table).items() if field not in inherited}


def named(section: str) -> set[str]:
    """The options in the first column of a section's table."""
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize(
    ("section", "tables", "base"),
    [(FILES, (PathOptions, LogOptions), RangeOptions), (RECORDS, (RecordTableOptions,), RangeOptions)],
)
def test_the_formats_own_options_are_told(section: str, tables: tuple[type, ...], base: type):
    inherited = {"includeHeaders", "includeLeaderEpoch", "includeTopicId", "arrowBatchRows", "arrowBatchBytes"}
    own = set().union(*(own_options(table, base) for table in tables)) - inherited - {"ignoreUnknownOptions"}
    assert own - named(section) == set()


def test_options_that_are_told_exist():
    known = {line.name for table in (LogOptions, PathRecordOptions) for line in options_of(table).values()}
    assert (named(FILES) | named(RECORDS)) - known == set()


def test_record_types_that_are_told_exist():
    for name in ("OffsetCommit", "ConsumerGroupMemberMetadata", "ShareSnapshot", "TransactionLog", "Partition"):
        assert f"`{name}`" in RECORDS
        assert find_table(name)
    for name in ("LeaderChange", "SnapshotHeader", "SnapshotFooter", "KRaftVersion", "Voters"):
        assert f"`{name}`" in RECORDS
        assert find_table(name).kind == "control"
