import re
import sys
from pathlib import Path

import pytest

from ottla.cli import doctor, run
from ottla.cli.doctor import Check, java_version


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("missing", 0), ("bad", 1)])
def test_only_what_is_bad_makes_it_fail(state: str, code: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "CHECKS", {"x": lambda: Check("x", state, "y", "do something")})
    assert run(["doctor"]) == code


def test_the_advice_stands_below(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "CHECKS", {"x": lambda: Check("x", "missing", "nothing", "do something")})
    run(["doctor"])
    assert capsys.readouterr().out.splitlines()[1].split(maxsplit=1)[1] == "do something"


def test_an_old_python_is_bad(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    found = doctor.python()
    assert (found.state, found.advice) == ("bad", "ottla needs Python 3.11 or newer")


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.15"', 17), ('java version "1.8.0_392"', 8), ('openjdk version "21"', 21), ("?", None)],
)
def test_versions_of_java(said: str, version: int | None):
    assert java_version(said) == version


def test_nothing_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [doctor.java().state, doctor.maven().state, doctor.browser().state] == ["missing"] * 3


def test_a_full_disk_is_bad(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "DISK_MIN_BYTES", 1 << 80)
    assert doctor.disk().state == "bad"


def test_few_files_are_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "FILES_MIN", 1 << 62)
    assert doctor.file_limit().state == "missing"


def test_files_from_another_time(monkeypatch: pytest.MonkeyPatch):
    real = doctor.time.time
    monkeypatch.setattr(doctor.time, "time", lambda: real() + 60)
    found = doctor.clock()
    assert found.state == "bad"
    assert "behind the clock" in found.found


def test_a_narrow_terminal_gets_lines_that_fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    path = "/a/path/" * 10 + "java"
    check = Check(
        "x",
        "missing",
        f"nothing in {path}",
        "a long advice that has more words than the line of the terminal has room for",
    )
    monkeypatch.setattr(doctor, "CHECKS", {"x": lambda: check})
    monkeypatch.setenv("COLUMNS", "60")
    run(["--color", "doctor"])
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    lines = [line.strip() for line in printed.splitlines()]
    assert [line for line in lines if len(line) > 60] == [path]
    assert " ".join(printed.split()).endswith(check.advice)
