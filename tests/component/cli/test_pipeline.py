"""`ottla pipeline`: what it refuses, and how it says so. Nothing here starts a JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import run
from ottla.cli.pipeline import _since_ms, _summary
from ottla.spark.pipeline import session
from tests.unit.spark.log_directories import new_directory

NOW = 1_800_000_000_000


def refusal(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    assert run(["pipeline", *words]) == code
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


def test_places_without_data(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    text = refusal(capsys, "run", "--from-log", str(tmp_path / "x"), "--out", str(tmp_path / "out"))
    assert text == f"ottla: {tmp_path / 'x'} does not exist\n"
    new_directory(tmp_path / "empty")
    text = refusal(capsys, "run", "--from-log", str(tmp_path / "empty"), "--out", str(tmp_path / "out"))
    assert text.startswith(f"ottla: {tmp_path / 'empty'} contains no partitions")
    text = refusal(capsys, "report", "--out", str(tmp_path / "none"))
    assert "run.json does not exist" in text


def test_sources_that_exclude_each_other(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    text = refusal(capsys, "run", "--from-log", str(tmp_path), "--bootstrap", "h:1", "--out", str(tmp_path))
    assert text.startswith("ottla: --bootstrap and --from-log exclude each other\n  → ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--since", "soon"], "--since 'soon' is not a time"),
        (["--rule", "no-such.rule=1"], "--rule: "),
    ],
)
def test_options_that_make_no_sense(capsys: pytest.CaptureFixture[str], words: list[str], text: str, tmp_path: Path):
    assert text in refusal(capsys, "run", "--from-log", str(tmp_path), "--out", str(tmp_path), *words)


def test_a_cluster_that_does_not_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    text = refusal(capsys, "run", "--bootstrap", "127.0.0.1:1", "--out", str(tmp_path), code=3)
    assert "127.0.0.1:1" in text


# --- Java -------------------------------------------------------------------------------------------------------------


def java(path: Path, version: str) -> Path:
    program = path / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392"])
def test_java_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str):
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, version)))
    with pytest.raises(session.OttlaSparkError, match=r"Spark needs Java 17 or newer; found (11|8)\S* in JAVA_HOME"):
        session.check_java()


def test_java_that_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, "21.0.1")))
    session.check_java()


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(session.OttlaSparkError, match="found none on the PATH"):
        session.check_java()


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyspark" else object())
    with pytest.raises(session.OttlaSparkError, match=r'pyspark is not installed: pip install "ottla\[spark\]"'):
        session.check_machine()


@pytest.mark.parametrize(
    ("pyspark", "is_too_new"), [("4.1.1", False), ("4.2.0", False), ("4.3.0", True), ("4.10.0", True)]
)
def test_delta_needs_a_spark_that_it_knows(monkeypatch: pytest.MonkeyPatch, pyspark: str, is_too_new: bool):
    versions = {"pyspark": pyspark, "delta-spark": "4.4.0"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    monkeypatch.setattr(
        "importlib.metadata.requires", lambda _: ["importlib_metadata<=8.7.1", "pyspark<=4.2.0,>=4.0.1"]
    )
    if is_too_new:
        with pytest.raises(
            session.OttlaSparkError, match=rf"works with pyspark 4\.2 at the newest, and pyspark {pyspark}"
        ):
            session.check_machine(delta=True)
    else:
        session.check_machine(delta=True)


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        (None, None),
        ("1h", NOW - 3_600_000),
        ("7d", NOW - 7 * 86_400_000),
        ("2026-11-15", 1_794_700_800_000),
        ("2026-11-15T02:30+01:00", 1_794_706_200_000),
    ],
)
def test_since(text: str | None, ms: int | None):
    assert _since_ms(text, NOW) == ms


def test_the_summary_counts_by_severity():
    def finding(severity: str, state: str) -> dict[str, Any]:
        return {"severity": severity, "state": state}

    assert _summary([]) == "findings none"
    some = [finding("critical", "resolved")] * 2 + [finding("warning", "open")] * 3
    assert _summary(some) == "findings 2 critical (resolved), 3 warning"
    assert _summary([finding("notice", "open"), finding("notice", "resolved")]) == "findings 2 notice (1 open)"


def test_a_report_is_written_again_from_what_is_there(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    told = {"v": 1, "ended_ms": NOW, "range": {"from_ms": NOW, "to_ms": NOW}, "inputs": [], "tables": [], "notes": []}
    (tmp_path / "run.json").write_text(json.dumps(told))
    assert run(["pipeline", "report", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"report {tmp_path / 'report.html'}  findings none")
    assert "<html" in (tmp_path / "report.html").read_text()[:200]
