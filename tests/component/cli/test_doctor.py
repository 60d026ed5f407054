"""None"""

import json
import socket
from pathlib import Path

import pytest

from ottla.cli import doctor, run

NAMES = ["Python", "Spark", "Java", "Maven", "ports", "disk", "clock", "files", "browser"]


def test_every_thing_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    run(["doctor"])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  ")]
    assert [line.split()[1] for line in lines] == NAMES


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]):
    run(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)["rows"]
    assert [each["name"] for each in found] == NAMES
    assert {each["state"] for each in found} <= {"ok", "missing", "bad"}


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


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(doctor, "PORTS", (port,))
        assert (doctor.ports().state, doctor.ports().found) == ("missing", f"{port} taken")
    assert doctor.ports().state == "ok"
