"""The whole story at its own pace, and what the report must then say: on ottla with Spark, and on Apache Kafka."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ottla.cli.demo import evaluation, truth
from ottla.cli.demo.children import Children
from ottla.cli.demo.command import DemoOptions, run
from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.expected import Expectation, expectations
from ottla.cli.demo.ledger import accounts
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.plan import Plan
from ottla.cli.demo.story import Story
from ottla.cli.demo.watcher import Watcher
from ottla.cli.demo.word_totals import kafka_streams
from ottla.cli.demo.workload_processes import WorkloadProcesses
from tests.interop.demo.apache_nodes import ApacheNodes

pytestmark = pytest.mark.interop

DEMO_MAX_S = 600
RECORDING = Path(__file__).parents[3] / "docs" / "tutorial" / "first-run.txt"


def broken(report: dict[str, Any], told: dict[str, Any]) -> list[Expectation]:
    return [each for each in expectations(report, told) if not each.holds]


def test_the_demo_finds_out_what_happened(tmp_path: Path):
    out, terminal, began = tmp_path / "demo", StringIO(), time.monotonic()
    code = run(DemoOptions(out=out), Console(file=terminal, width=100))
    assert code == 0, terminal.getvalue()
    assert time.monotonic() - began < DEMO_MAX_S
    report, told = (json.loads((out / name).read_text()) for name in ("report.json", "truth.json"))
    assert broken(report, told) == []
    assert len(told["poison"]) == 12
    assert all(each["balanced"] for each in told["ledger"])
    assert "task_movement" in {each["name"] for each in report["tables"]["outputs"]["rows"]}
    assert (out / "report.html").stat().st_size > 10_000
    said = terminal.getvalue()
    assert masked(said.replace(str(out), "demo")) == masked(RECORDING.read_text().removeprefix("$ ottla demo\n"))


def masked(said: str) -> list[str]:
    """What was said, but for numbers, line breaks, signs of life and the machine; and for what is not the same each
    time: the findings, which are compared with the truth, and who led the quorum."""
    said = re.sub(r"^ +SINCE .*?^(?=expectations met)", "", said, flags=re.MULTILINE | re.DOTALL)
    said = said.replace(", and the quorum)", ")")
    lines = [line for line in said.splitlines() if "  … " not in line and "doctor:" not in line]
    return re.sub(r"[\d][\d.,:]*", "N", " ".join(lines)).split()


def test_without_java_and_maven_it_says_so_and_finds_the_same(tmp_path: Path):
    """Nothing but Python on the path."""
    bare = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    command = [sys.executable, "-m", "ottla", "demo", "--out", str(tmp_path / "demo")]
    ended = subprocess.run(command, env=bare, capture_output=True, text=True, timeout=DEMO_MAX_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "no Java development kit on the PATH: a Python client replaces Kafka Streams" in ended.stdout
    assert "no Spark (Spark needs Java 17 or newer" in ended.stdout
    report, told = (json.loads((tmp_path / "demo" / name).read_text()) for name in ("report.json", "truth.json"))
    assert broken(report, told) == []


async def tell_on_apache(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    plan, directory = Plan(), DemoDirectory(path / "demo")
    directory.prepare()
    narrator = Narrator(Console(file=StringIO()))
    nodes = ApacheNodes(path / "kafka", plan)
    try:
        async with Children(directory.said) as children:
            cast = WorkloadProcesses(children, directory, plan, nodes, await kafka_streams(narrator))
            await Story(plan, directory, nodes, cast, Watcher(children, plan), narrator).tell()
            report = await evaluation.without_spark(nodes, directory)
    finally:
        nodes.close()
    return report, truth.collect(directory, plan) | {"ledger": [each.facts() for each in accounts(directory)]}


def test_the_same_is_seen_on_apache_kafka(tmp_path: Path):
    report, told = asyncio.run(tell_on_apache(tmp_path))
    assert [each for each in told["ledger"] if not each["balanced"]] == []
    missed = [each for each in broken(report, told) if not is_slow_node(each)]
    if fenced_by_apache(tmp_path / "kafka") >= lost_besides(report, told["member_killed"]["client"]) > 0:
        missed = [each for each in missed if each.what != "exactly one member was lost"]
    assert missed == [], json.dumps([told, report["findings"]])


def lost_besides(report: dict[str, Any], client: str) -> int:
    """How many other members were found to be lost, if this one was found."""
    lost = [each["evidence"]["client"] for each in report["findings"] if each["rule"] == "member-lost"]
    return len(lost) - 1 if lost.count(client) == 1 else 0


def fenced_by_apache(path: Path) -> int:
    """How often a coordinator says that a session ended of a member that was not killed: a machine without enough
    processors starves some, and the report is right about it."""
    said = "".join(log.read_text() for log in path.glob("node-*/server.log"))
    return len(re.findall(r"\[GroupId word-totals\].* fenced from the group because the member session expired", said))


def is_slow_node(missed: Expectation) -> bool:
    """Three JVMs that start again beside others can keep a node from answering for some seconds; the report says so."""
    return missed.what == "no other node was fenced or unreachable" and "fenced" not in missed.seen


def test_a_second_run_is_set_up_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    narrator, took_s = Narrator(Console(file=StringIO())), []
    for _ in range(2):
        began = time.monotonic()
        asyncio.run(kafka_streams(narrator))
        took_s.append(time.monotonic() - began)
    assert took_s[1] < 0.6 * took_s[0]
