"""What docs/reference/report.md says of the report is so."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.spark.report.groups import TIMELINES
from ottla.spark.report.html_table import CSV_BYTES, SHOWN_ROWS
from ottla.spark.report.lag import LINES
from ottla.spark.report.part import KEPT_ROWS
from ottla.spark.report.sections import SECTIONS
from ottla.spark.report.thin import POINTS_MAX
from tests.unit.spark.report import story

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "report.md").read_text()
PLAIN = " ".join(PAGE.split())


def test_limits_are_those_of_the_code():
    assert f"Tables show {SHOWN_ROWS} rows" in PLAIN
    assert f"up to {KEPT_ROWS:,}, or what fits into {CSV_BYTES // 1000} kB" in PLAIN
    assert f"at most {POINTS_MAX:,} points" in PLAIN
    assert f"the {TIMELINES} groups with most findings" in PLAIN
    assert f"lag for the {LINES} furthest behind" in PLAIN


def test_every_section_and_every_key_is_described():
    from ottla.spark.report import facts_of

    for _, title, _ in SECTIONS:
        assert title.lower() in PLAIN.lower(), title
    keys = {key for row in re.findall(r"^\| (`[^|]+) \|", PAGE, re.M) for key in re.findall(r"`(\w+)`", row)}
    assert keys == facts_of(*story.healthy(), 0).keys()
