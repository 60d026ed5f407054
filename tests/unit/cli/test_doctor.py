import json
import socket
import sys
from pathlib import Path

import pytest

from ottla.cli import doctor, run
from ottla.cli.doctor import Check, java_version

NAMES = ["Python", "Spark", "Java", "Maven", "ports", "disk", "clock", "files", "browser"]


def test_every_thing_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    run(["doctor"])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  ")]
    assert [line.split()[1] for line in lines] == NAMES


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]):
    run(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == NAMES
    assert {each["state"] for each in found} <= {"ok", "missing", "bad"}


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


def fake_java(home: Path, said: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)


def test_java_home_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake_java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = doctor.java()
    assert found.state == "missing"
    assert "11.0.2" in found.found
    assert "Java 17" in found.advice


def test_a_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java().found == f"JAVA_HOME={tmp_path} has no bin/java"


def test_nothing_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [doctor.java().state, doctor.maven().state, doctor.browser().state] == ["missing"] * 3


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(doctor, "PORTS", (port,))
        assert (doctor.ports().state, doctor.ports().found) == ("missing", f"{port} taken")
    assert doctor.ports().state == "ok"


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
