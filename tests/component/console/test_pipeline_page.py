"""Runs of pipelines: what they say of themselves, their reports, and directories without any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.component.console.served import Browser, console

RUN = {
    "v": 1,
    "run_id": "a",
    "ended_ms": 1_794_912_366_245,
    "spark": "4.2.0",
    "clusters": ["c-1"],
    "range": {"from_ms": 1_794_912_300_000, "to_ms": 1_794_912_360_000},
    "inputs": [{"name": "samples", "where": "dir <b>", "rows": 184_220, "dropped": 0, "late": 0}],
    "tables": [{"name": "group_timeline", "rows": 1_204, "format": "parquet", "path": "x"}],
    "notes": ["nothing was left out"],
    "command": "ottla pipeline run --out out",
    "something_new": 1,
}


def test_a_console_that_knows_no_runs_says_how_to_tell_it(browser: Browser):
    assert browser.twin("/pipeline.json")["data"] == {"runs": []}
    assert "--pipeline out" in browser.page("/pipeline").words
    assert browser.ask("/pipeline/report/out").status == 404


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, ...]:
    good, twin, broken, empty = (tmp_path / name for name in ("a/out", "b/out", "broken", "empty"))
    for path in (good, twin, broken, empty):
        path.mkdir(parents=True)
    (good / "run.json").write_text(json.dumps(RUN))
    (good / "report.html").write_text("<!doctype html><script>1</script>the report")
    (twin / "run.json").write_text("{}")
    (broken / "run.json").write_text("{ nonsense")
    return good, twin, broken, empty


def test_runs_and_their_reports(directories: tuple[Path, ...], browser: Browser):
    with console(browser.watcher.bootstrap_servers, pipelines=directories) as other:
        twin = other.twin("/pipeline.json")
        assert [(each["name"], each["has_report"]) for each in twin["data"]["runs"]] == [
            ("out", True),
            ("out-2", False),
        ]
        assert twin["data"]["runs"][0]["run"]["tables"] == [
            {"name": "group_timeline", "rows": 1_204, "format": "parquet"}
        ]
        assert [each["what"] for each in twin["degraded"]] == [str(each) for each in directories[2:]]
        page = other.page("/pipeline")
        assert "184,220" in page.words
        assert "dir <b>" not in page.text
        report = other.page("/pipeline/report/out")
        assert report.text.endswith("the report")
        assert report.headers["content-security-policy"].startswith(
            "sandbox allow-scripts allow-downloads; default-src"
        )
        assert other.ask("/pipeline/report/out-2").status == 404
        assert other.ask("/pipeline/report/..").status == 400
