"""`ottla cluster`: up in one process, the other commands in this one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from ottla.cli import run
from ottla.cli.local_cluster.control import STATE_FILE, Control
from ottla.testing.clusters import inspection

Capture = pytest.CaptureFixture[str]
NODE = re.compile(r"node=(\d) PLAINTEXT://127\.0\.0\.1:\d+ CONTROLLER://127\.0\.0\.1:\d+ pid=\d+ data=\S+\n")
TIMEOUT_S = 60


@contextmanager
def cluster_up(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process and what it says when the cluster serves."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", "cluster", "up", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("bootstrap="):
                break
        else:
            raise AssertionError(process.communicate(timeout=TIMEOUT_S)[1])
        yield process, lines
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def refused(capture: Capture, *words: str) -> str:
    assert run(["cluster", *words]) != 0
    return capture.readouterr().err


def test_a_cluster_is_broken_from_another_terminal_and_stopped(tmp_path: Path, capsys: Capture):
    def order(*words: str) -> str:
        capsys.readouterr()
        assert run(["cluster", *words, "--data", str(tmp_path)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    with cluster_up("--data", str(tmp_path), "--set", "broker.session.timeout.ms=3000") as (process, lines):
        assert [NODE.fullmatch(line)[1] for line in lines[:3]] == ["1", "2", "3"]  # type: ignore[index]
        first = lines[3].removeprefix("bootstrap=").split(",")[0]
        status = json.loads(order("status", "--json"))
        assert status["leader"] in (1, 2, 3)
        assert [each["state"] for each in status["rows"]] == ["running"] * 3
        assert "leads the quorum in epoch" in order("status")

        assert order("pause", "2", "3") == "node 2 is paused\nnode 3 is paused\n"
        assert "is already running" in refused(capsys, "up", "--data", str(tmp_path))
        assert "node 2 is paused" in refused(capsys, "stop", "2", "--data", str(tmp_path))
        assert order("resume", "2", "3") == "node 2 is running\nnode 3 is running\n"
        assert order("cut", "1", "2", "--one-way") == "2 receives nothing from 1\n"
        assert (
            order("cut", "3")
            == "1 and 3 cannot reach each other\n2 and 3 cannot reach each other\n2 receives nothing from 1\n"
        )
        assert order("heal") == "all links are up\n"
        assert order("kill", "3") == "node 3 is killed\n"
        assert "unknown node 7; known: 1, 2, 3" in refused(capsys, "kill", "7", "--data", str(tmp_path))
        assert order("start", "3") == "node 3 is running\n"
        assert inspection.unfenced(first) is not None

        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 0
    assert not (tmp_path / STATE_FILE).exists()
    assert (tmp_path / "node-1" / "data" / ".kafka_cleanshutdown").exists()
    assert "no cluster is running in" in refused(capsys, "status", "--data", str(tmp_path))


@pytest.mark.parametrize(
    "line", [b'{"secret": "\xc3\xbc", "command": "stop", "arguments": {}}', b"[" * 50_000, b"\xff"]
)
def test_what_strangers_send_is_refused(tmp_path: Path, line: bytes):
    performed: list[object] = []
    control = Control(tmp_path, lambda command, **_: performed.append(command))
    port = json.loads((tmp_path / STATE_FILE).read_text())["port"]
    with closing(control), socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(line + b"\n")
        control.serve(TIMEOUT_S)
        assert "problem" in json.loads(stranger.recv(1024))
    assert not performed


def test_a_stranger_who_sends_slowly_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now_s = count(step=1.5)
    monkeypatch.setattr("ottla.cli.local_cluster.control.monotonic", lambda: next(now_s))
    control = Control(tmp_path, lambda *_, **__: None)
    port = json.loads((tmp_path / STATE_FILE).read_text())["port"]
    with closing(control), socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b"[" * 0x10000)  # each piece takes 1.5 s
        control.serve(TIMEOUT_S)
        with suppress(ConnectionResetError):
            assert stranger.recv(1024) == b""


def test_temporary_data_are_found_and_removed(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert "no cluster with temporary data is running" in refused(capsys, "heal")
    with cluster_up("--nodes", "1", "--controllers", "1") as (process, lines):
        assert len(lines) == 3
        assert run(["cluster", "status"]) == 0
        assert "leads the quorum" in capsys.readouterr().out
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("up", "--nodes", "0"), "--nodes"),
        (("up", "--set", "no.such.setting=1"), "no.such.setting"),
        (("up", "--set", "node.id=1"), "node.id cannot be set"),
        (("cut", "1", "--one-way"), "--one-way needs two nodes"),
        (("kill",), "NODE..."),
        (("kil", "1"), "did you mean kill?"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], said: str, capsys: Capture):
    assert said in refused(capsys, *words)
