"""`ottla observe` and `ottla health`: what they print, where samples go, and how they end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

import ottla.testing
from ottla.cli import GROUP, run
from ottla.health import Engine
from ottla.health.evaluator import SampleEvaluator
from ottla.health.facts import Broker as Node
from ottla.health.facts import Cluster, Coverage, Fact, Partition, Quorum, Topic
from ottla.health.samples import Sample, fact_in
from ottla.observe import FileSink, read_files
from ottla.observe.changes import ToWrite
from ottla.observe.outbox import Stamp
from ottla.observe.probe_result import probe_error, probe_result
from tests.component.cli.cluster_thread import fake_cluster

Capture = pytest.CaptureFixture[str]
NOON_MS = 1_700_049_600_000
SECOND_MS = 1000
TIMEOUT_S = 30
LONG_ENOUGH = "4s"
"""For every kind to be looked at once, on a busy machine, too."""
WRONG = "127.0.0.1:1"


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with ottla.testing.broker() as broker:
        yield broker.bootstrap_servers


def recorded(directory: Path, story: list[tuple[int, Fact | str]], cluster: str = "c1") -> None:
    """A recording: seconds, and what was seen then; a text is the error of a look at the cluster."""
    stamp = Stamp(f"{cluster}-observer")

    def sample(at_s: int, seen: Fact | str) -> Sample:
        result = probe_error("cluster", "", seen) if isinstance(seen, str) else probe_result("", seen)
        return stamp.sample(ToWrite(result), at_ms=NOON_MS + at_s * SECOND_MS, cluster=cluster)

    async def write() -> None:
        sink = FileSink(directory)
        await sink.write([sample(*each) for each in story])
        await sink.close()

    asyncio.run(write())


def nodes(*, reachable: bool = True) -> Cluster:
    return Cluster(controller=1, brokers=(Node(id=1, host="h", port=9092, fenced=False, reachable=reachable),))


OUTAGE: list[tuple[int, Fact | str]] = [
    (0, nodes()),
    (0, Quorum(leader=1, leader_epoch=1)),
    *((second, "UNREACHABLE") for second in range(10, 30, 2)),
]
NO_LEADER: list[tuple[int, Fact | str]] = [
    (second, Topic(topic="orders", partitions=(Partition(partition=0, leader=-1, replicas=(1,)),)))
    for second in range(0, 20, 5)
]


# --- recorded ---------------------------------------------------------------------------------------------------------


def test_the_worst_comes_first_and_what_is_hidden_last(tmp_path: Path, capsys: Capture):
    recorded(
        tmp_path, [*OUTAGE, (31, Coverage(what="group", visible=False, why="needs DESCRIBE on groups (answer: NO)"))]
    )
    assert run(["health", "--from", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cluster c1: 1 critical, 0 warning, 0 notice, 0 resolved  (12:00:00–12:00:31 UTC)"
    assert lines[2] == "▲ critical node-unreachable: Node 1 (h:9092) is unreachable (since 12:00:10)"
    assert lines[3].startswith("  → check the process, the network and the listener at h:9092")
    hidden = lines[lines.index("not visible here:") :]
    assert any("member-churn" in line and "needs DESCRIBE on groups (answer: NO)" in line for line in hidden)
    healthy = " ".join(lines[4 : lines.index("not visible here:")])
    assert "✓ healthy" in healthy
    assert "observer-stale" in healthy


@pytest.mark.parametrize(("severity", "code"), [("critical", 1), ("warning", 1), ("notice", 1)])
def test_something_critical_fails_every_check(severity: str, code: int, tmp_path: Path, capsys: Capture):
    recorded(tmp_path, OUTAGE)
    assert run(["health", "--from", str(tmp_path), "--fail-on", severity]) == code


def test_what_is_over_fails_no_check(tmp_path: Path, capsys: Capture):
    recorded(tmp_path, [*OUTAGE, *((second, nodes()) for second in range(30, 70, 2))])
    assert run(["health", "--from", str(tmp_path), "--fail-on", "notice"]) == 0
    line = "✓ critical node-unreachable: Node 1 (h:9092) was unreachable (resolved after 18 s)"
    assert line in capsys.readouterr().out


def test_rules_can_be_muted_and_their_thresholds_changed(tmp_path: Path, capsys: Capture):
    recorded(tmp_path, NO_LEADER)
    arguments = ["health", "--from", str(tmp_path), "--json"]
    assert run([*arguments, "--fail-on", "critical"]) == 1
    assert run([*arguments, "--fail-on", "critical", "--mute", "offline-partitions"]) == 0
    assert run([*arguments, "--fail-on", "critical", "--rule", "offline-partitions.hold_s=60"]) == 0


def test_json_has_the_findings_as_others_read_them(tmp_path: Path, capsys: Capture):
    recorded(tmp_path, OUTAGE)
    assert run(["health", "--from", str(tmp_path), "--json", "--mute", "disk-filling"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"cluster", "from_ms", "to_ms", "rows", "healthy", "muted", "unseen", "hidden"} == set(told)
    (finding,) = told["rows"]
    assert (finding["rule"], finding["severity"], finding["subject"]) == (
        "node-unreachable", "critical", {"kind": "node", "name": "1"},
    )  # fmt: skip
    assert "disk-filling" not in told["healthy"]
    assert {
        "rule": "auth-failures",
        "needs": ["login_failures"],
        "why": "needs the inspect listener of an ottla broker",
    } in told["unseen"]


def test_each_cluster_is_judged_by_itself(tmp_path: Path, capsys: Capture):
    recorded(tmp_path, OUTAGE, "c1")
    recorded(tmp_path, [(0, nodes())], "c2")
    assert run(["health", "--from", str(tmp_path)]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cluster ")]
    assert [line.split(" UTC")[0].split(",")[0] for line in heads] == [
        "cluster c1: 1 critical",
        "cluster c2: 0 critical",
    ]


def test_no_samples_at_all(tmp_path: Path, capsys: Capture):
    assert run(["health", "--from", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "ottla: no samples found\n  → write some: ottla observe --to DIR, or --to-topic\n"


def test_command_observer_and_rules_give_the_same_finding(tmp_path: Path, capsys: Capture):
    recorded(tmp_path, [*OUTAGE, *NO_LEADER])
    engine = Engine()
    for each in read_files(tmp_path):
        fact = fact_in(each)
        assert fact is not None
        engine.take(each.ts, fact)
    assert run(["health", "--from", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["rows"]
    assert [each["rule"] for each in told] == ["offline-partitions", "node-unreachable"]
    assert told == msgspec.json.decode(msgspec.json.encode(engine.findings()))


@pytest.mark.parametrize("quiet", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_only_where_they_are_wanted(quiet: dict[str, str], tmp_path: Path):
    recorded(tmp_path, OUTAGE)
    terminal = {"NO_COLOR": None, "TERM": "xterm"}
    coloured = CliRunner().invoke(GROUP, ["health", "--from", str(tmp_path)], color=True, env=terminal)
    plain = CliRunner().invoke(GROUP, ["health", "--from", str(tmp_path)], color=True, env={**terminal, **quiet})
    piped = CliRunner().invoke(GROUP, ["health", "--from", str(tmp_path)], env={**terminal, "COLUMNS": "40"})
    assert "\x1b[31m▲ critical node-unreachable" in coloured.output
    assert "\x1b" not in plain.output
    assert "\x1b" not in piped.output
    assert click.unstyle(coloured.output) == plain.output


@pytest.mark.parametrize(("every_s", "stale_after_s"), [(1, 30), (60, 180)])
def test_samples_that_are_taken_seldom_are_not_missed_soon(every_s: float, stale_after_s: int):
    evaluator = SampleEvaluator(intervals_s={"group": every_s * 2, "quorum": every_s})
    sample = Stamp("run").sample(ToWrite(probe_result("", nodes())), at_ms=NOON_MS, cluster="c")
    evaluator.take(sample)
    assert evaluator.advance(NOON_MS + stale_after_s * SECOND_MS - 1) == []
    (change,) = evaluator.advance(NOON_MS + stale_after_s * SECOND_MS)
    assert change.finding.rule == "observer-stale"


# --- live -------------------------------------------------------------------------------------------------------------


def test_a_healthy_broker(servers: str, capsys: Capture):
    assert run(["health", "--bootstrap", servers, "--for", "1s", "--fail-on", "warning"]) == 0
    out = capsys.readouterr().out
    assert "· notice single-voter: Node 1 is the only voter: metadata cannot change without it" in out
    assert "offline-partitions" in out
    assert "auth-failures, refused-requests: needs an ottla broker with --inspect-port" in out


def test_once_tells_at_once_what_is_wrong_and_writes_nothing(servers: str, capsys: Capture):
    assert run(["observe", "--bootstrap", servers, "--once", "--fail-on", "notice", "-q"]) == 1
    said = capsys.readouterr()
    assert "· single-voter __cluster_metadata: Node 1 is the only voter: metadata cannot change without it" in said.out
    assert said.err == ""
    assert run(["observe", "--bootstrap", servers, "--once", "--fail-on", "notice", "--mute", "single-voter"]) == 0


def test_samples_into_files_and_findings_as_json(servers: str, capsys: Capture, tmp_path: Path):
    words = ["--to", str(tmp_path), "--rules", "--json", "--every", "200ms", "--interval", "quorum=100ms"]
    assert run(["observe", "--bootstrap", servers, "--for", LONG_ENOUGH, *words]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["finding"]["rule"] == "single-voter"
    kinds = [each.kind for each in read_files(tmp_path)]
    assert kinds.count("quorum") > kinds.count("cluster") > 2


def test_samples_into_a_topic_and_back(servers: str, capsys: Capture):
    assert run(["observe", "--bootstrap", servers, "--for", LONG_ENOUGH, "--to-topic", "seen"]) == 0
    assert "1 node; writing samples to topic seen (created); for 4 s\n" in capsys.readouterr().err
    assert run(["health", "--bootstrap", servers, "--from-topic", "seen", "--since", "1h", "--json"]) == 0
    out = capsys.readouterr()
    assert [each["rule"] for each in json.loads(out.out)["rows"]] == ["single-voter"]


def test_watching_tells_of_changes_until_it_is_interrupted(servers: str):
    command = [sys.executable, "-m", "ottla", "health", "--bootstrap", servers, "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "· single-voter __cluster_metadata:" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(TIMEOUT_S) == 130


def test_watching_as_json_is_one_object_to_a_line(servers: str):
    command = [sys.executable, "-m", "ottla", "health", "--bootstrap", servers, "--watch", "100ms", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        states = [json.loads(watching.stdout.readline()) for _ in range(3)]
        watching.terminate()
        assert watching.wait(TIMEOUT_S) == 143
    assert states[0]["to_ms"] < states[2]["to_ms"]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["health"], ["observe"], ["observe", "--once"]])
def test_a_cluster_that_cannot_be_reached(command: list[str], capsys: Capture):
    assert run([*command, "--bootstrap", WRONG]) == 3
    assert "no broker at 127.0.0.1:1: connection refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["health", "--mute", "lag-growin"], 'unknown rule "lag-growin"\n  → did you mean lag-growing?'),
        (["health", "--rule", "lag-growing.lags=5"], 'unknown threshold "lag-growing.lags"'),
        (["health", "--rule", "lag-growing.lag=many"], "is not of the form rule.key=number"),
        (["health", "--watch", "--from", "."], "--watch observes a cluster, it does not read samples"),
        (["health", "--from", ".", "--from-topic", "t"], "--from-topic and --from cannot both be given"),
        (["observe", "--to", ".", "--to-topic", "t"], "--to-topic and --to cannot both be given"),
        (["observe", "--interval", "grup=1s"], 'unknown kind "grup"\n  → did you mean group?'),
        (["observe", "--interval", "group"], "is not KIND=TIME, such as group=1s"),
        (["observe", "--metrics", "localhost:9404"], "is not a URL"),
        (["observe", "--for", "soon"], "is not a time"),
    ],
)
def test_bad_input(words: list[str], says: str, capsys: Capture):
    assert run(words) == 2
    assert says in capsys.readouterr().err


def test_a_topic_that_may_not_be_created(capsys: Capture):
    from ottla.wire import types

    refused = types.CreateTopicsResponse.CreatableTopicResult("ottla.observations", error_code=29)
    with fake_cluster(CreateTopics=types.CreateTopicsResponse(topics=(refused,))) as cluster:
        assert run(["observe", "--bootstrap", cluster.bootstrap_servers]) == 4
    assert "TOPIC_AUTHORIZATION_FAILED (29)" in capsys.readouterr().err
