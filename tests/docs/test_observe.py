"""docs/how-to/observe.md: the table names every kind, and the program runs."""

import re
from pathlib import Path

import pytest

import ottla.testing
from ottla.health.facts import FACTS
from ottla.health.samples import OBSERVATIONS
from ottla.observe.kinds import INTERVALS_S

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "observe.md").read_text()
ROWS = re.findall(r"^\| (`[^|]+`) \|([^|]*)\|", TEXT, re.MULTILINE)


def test_every_kind_is_in_the_table_with_its_interval():
    told = {kind: every.strip() for kinds, every in ROWS for kind in re.findall(r"`(\w+)`", kinds)}
    assert {kind: told.get(kind) for kind in INTERVALS_S} == {kind: f"{each:g} s" for kind, each in INTERVALS_S.items()}
    assert set(FACTS) - set(told) == {"failed"}  # an error of another kind


def test_the_program_on_the_page_runs(capsys: pytest.CaptureFixture[str]):
    (program,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    with ottla.testing.broker() as broker:
        there = program.replace("localhost:9092", broker.bootstrap_servers).replace("10_000", "1_500")
        exec(compile(there, "observe.md", "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out
    assert " quorum " in printed
    assert f" topic {OBSERVATIONS} " in printed
