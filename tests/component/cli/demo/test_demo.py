"""The whole story, told fast and without Java; and what is left when it is broken off."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from ottla.cli import run

SPEED = "15"
KAFKA_PORT = 9092


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A story on a machine where somebody has Kafka's port already."""
    out = tmp_path_factory.mktemp("story") / "demo"
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if other.connect_ex(("127.0.0.1", KAFKA_PORT)):
            other.close()
            with socket.create_server(("127.0.0.1", KAFKA_PORT)):
                assert run(["demo", "--no-java", "--speed", SPEED, "--out", str(out)]) == 0
        else:
            assert run(["demo", "--no-java", "--speed", SPEED, "--out", str(out)]) == 0
    return out


def load(path: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(path.read_text())
    return loaded


def test_every_record_is_accounted_for(told: Path):
    truth = load(told / "truth.json")
    assert [(each["group"], each["wrong"]) for each in truth["ledger"]] == [
        ("billing", []),
        ("audit", []),
        ("risk-checks", []),
        ("word-totals", []),
    ]
    assert all(count > 100 for count in truth["written"].values())


def test_what_the_incidents_did_is_written_down(told: Path):
    truth = load(told / "truth.json")
    assert len(truth["poison"]) == 12
    assert len(truth["member_killed"]["partitions"]) == 2
    killed = truth["node_killed"]
    assert killed["led"] > 0
    assert killed["at_ms"] < killed["led_by_others_ms"] < killed["restarted_ms"] < killed["in_sync_ms"]
    assert (killed["epoch_after"] > killed["epoch_before"]) is (killed["leader_after"] != killed["leader_before"])
    assert truth["storm"]["deliveries"].keys() >= {"1", "2", "3"}
    assert sorted(truth["task_move"]["after"]["word-totals-2"]) != []


def test_the_rules_find_what_does_not_hang_on_time(told: Path):
    truth, report = load(told / "truth.json"), load(told / "report.json")
    found = {each["rule"]: each for each in report["findings"]}
    assert sorted(found["poison-records"]["evidence"]["records"]) == truth["poison"]
    if truth["node_killed"]["led_quorum"]:
        assert found["quorum-leader-changed"]["evidence"]["epoch"] == truth["node_killed"]["epoch_after"]
    assert not [each for each in report["findings"] if each["subject"]["name"] == "audit"]


# --- broken off -------------------------------------------------------------------------------------------------------


def start(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ottla", "demo", "--no-java", "--speed", SPEED, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(output: IO[str], pattern: str) -> str:
    for line in output:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"the demo never said {pattern!r}")


def processes_of(out: Path) -> list[str]:
    """Processes that name the directory of the demo."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(out).encode() in words and int(folder.name) != os.getpid():
            found.append(words.replace(b"\0", b" ").decode())
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("said", "running", "number", "code"),
    [(r"2/6 (workloads)", 10, signal.SIGINT, 130), (r"(session timeout)", 3, signal.SIGTERM, 143)],
)
def test_broken_off_nothing_is_left(tmp_path: Path, said: str, running: int, number: signal.Signals, code: int):
    out = tmp_path / "demo"
    with start(out) as demo:
        assert demo.stdout is not None
        port = int(wait_for(demo.stdout, r"1/6 cluster .* at 127\.0\.0\.1:(\d+)"))
        wait_for(demo.stdout, said)
        assert len(processes_of(out)) > running  # the demo itself is one more
        demo.send_signal(number)
        rest = demo.stdout.read()
        assert demo.wait(60) == code, rest
    assert processes_of(out) == []
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    assert "Traceback" not in rest
