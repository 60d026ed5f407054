"""`ottla quorum`: who leads, how far behind the others are, features, and changes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli import run
from ottla.cli.quorum import replicas
from ottla.wire import types, uuid_text
from tests.component.broker.raw_client import running_node
from tests.component.cli.cluster_thread import fake_cluster
from tests.component.client.admin_answers import quorum as answer
from tests.component.client.fake import CLUSTER_ID

Capture = pytest.CaptureFixture[str]
NOW_MS = 60_000 * 90


def test_a_table(capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replicas.time, "time_ns", lambda: NOW_MS * 1_000_000)
    with fake_cluster(DescribeQuorum=answer()) as cluster:
        assert run(["quorum", "describe", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"cluster {CLUSTER_ID}: node 3 leads in epoch 8, high watermark 95",
            "NODE  ROLE      LOG END  LAG     FETCHED   CAUGHT UP  DIRECTORY               ENDPOINTS",
            f"   3  leader        100    0  89 min ago  89 min ago  {uuid_text(b'd' * 16)}  CONTROLLER://host:9093",
            "   4  voter          90   10           -           -  -                       -",
            "   7  observer        -    -           -           -  -                       -",
        ]


@pytest.mark.parametrize(
    ("ago_ms", "text"), [(0, "0.0 s ago"), (59_900, "59.9 s ago"), (60_000, "1 min ago"), (-5, "0.0 s ago")]
)
def test_times_are_told_as_people_do(ago_ms: int, text: str):
    assert replicas._ago(NOW_MS - ago_ms, NOW_MS) == text
    assert replicas._ago(None, NOW_MS) is None


def test_json(capsys: Capture):
    with fake_cluster(DescribeQuorum=answer()) as cluster:
        assert run(["quorum", "describe", "--json", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert {key: shown[key] for key in ("cluster_id", "leader_id", "leader_epoch", "high_watermark")} == {
            "cluster_id": CLUSTER_ID,
            "leader_id": 3,
            "leader_epoch": 8,
            "high_watermark": 95,
        }
        assert [(each["node_id"], each["role"], each["lag"]) for each in shown["rows"]] == [
            (3, "leader", 0),
            (4, "voter", 10),
            (7, "observer", None),
        ]
        assert shown["rows"][0]["endpoints"] == [{"listener": "CONTROLLER", "host": "host", "port": 9093}]


def test_a_cluster_without_a_quorum_says_so(capsys: Capture):
    refused = types.DescribeQuorumResponse(error_code=31, error_message=None)
    with fake_cluster(DescribeQuorum=refused) as cluster:
        assert run(["quorum", "describe", "--bootstrap-server", cluster.bootstrap_servers]) == 4
        assert "CLUSTER_AUTHORIZATION_FAILED" in capsys.readouterr().err
        cluster.broker().versions["DescribeQuorum"] = (0, -1)
        assert run(["quorum", "describe", "--bootstrap-server", cluster.bootstrap_servers]) == 5
        assert "it does not support this API" in capsys.readouterr().err


# --- in a line, and changes -------------------------------------------------------------------------------------------


def test_a_status(capsys: Capture):
    with fake_cluster(DescribeQuorum=answer()) as cluster:
        assert run(["quorum", "status", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        assert capsys.readouterr().out == (
            "leader 3  epoch 8  high watermark 95   voters 1/2 healthy (majority 2, margin -1)   "
            "node 4 behind 10 records   high watermark held back by node 4\n"
        )
        assert run(["quorum", "status", "--json", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["healthy_voters"], shown["majority"], shown["margin"]) == ([3], 2, -1)
        assert shown["high_watermark_held_back_by"] == [4]


def test_voters_alone(capsys: Capture):
    with fake_cluster(DescribeQuorum=answer()) as cluster:
        assert run(["quorum", "voters", "--json", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        assert [each["node_id"] for each in json.loads(capsys.readouterr().out)["rows"]] == [3, 4]


def test_voters_and_elections_are_watched(capsys: Capture):
    with fake_cluster(DescribeQuorum=answer()) as cluster:
        words = ["--watch", "10ms", "--count", "2", "--bootstrap-server", cluster.bootstrap_servers]
        assert run(["quorum", "voters", *words]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert [line.split("   ")[-1] for line in shown if line.startswith("leader 3")] == ["elections seen: 0"] * 2
        assert sum(line.startswith("NODE") for line in shown) == 2
        assert run(["quorum", "status", "--json", *words]) == 0
        looks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [each["elections_seen"] for each in looks] == [0, 0]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[str]:
    with running_node(tmp_path, unstable_feature_versions_enable="true") as running:
        advertised = running.node.advertised["PLAINTEXT"]
        yield f"{advertised.host}:{advertised.port}"


def quorum(node: str, *words: str) -> int:
    return run(["quorum", *words, "--bootstrap", node])


def test_features_are_shown_and_raised(node: str, capsys: Capture):
    assert quorum(node, "features", "--json") == 0
    shown = {each["name"]: each for each in json.loads(capsys.readouterr().out)["rows"]}
    assert (shown["share.version"]["finalized"], shown["share.version"]["supported_high"]) == (1, 2)
    assert quorum(node, "features", "upgrade", "share.version=2", "--dry-run") == 0
    assert capsys.readouterr().out == "share.version can be upgraded to 2\n"
    assert quorum(node, "features", "upgrade", "share.version=2") == 2
    told = capsys.readouterr()
    assert (told.out, "--yes" in told.err) == ("", True)
    assert quorum(node, "features", "upgrade", "share.version=2", "--yes") == 0
    assert capsys.readouterr().out == "share.version is at 2\n"
    assert quorum(node, "features") == 0
    assert "share.version" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("features", "upgrade", "share.version=9", "--yes"), 1, "INVALID_UPDATE_VERSION (95)"),
        (("features", "upgrade", "share.version", "--yes"), 2, "is not KEY=VALUE"),
        (("features", "upgrade", "share.version=new", "--yes"), 2, "is not a number"),
        (("features", "upgrade", "share.version=²", "--yes"), 2, "is not a number"),
        (("remove-voter", "1", "--directory-id", "AAAAAAAAAAAAAAAAAAAAAg", "--yes"), 1, "VOTER_NOT_FOUND (127)"),
        (("remove-voter", "1", "--directory-id", "short", "--yes"), 2, "is not a directory id"),
        (("remove-voter", "1", "--directory-id", "AAAAAAAAAAAAAAAAAAAAAg"), 2, "nothing was changed"),
        (
            ("add-voter", "2", "--listener", "nowhere", "--directory-id", "AAAAAAAAAAAAAAAAAAAAAg"),
            2,
            "NAME://HOST:PORT",
        ),
        (
            ("add-voter", "2", "--listener", "CONTROLLER://b:99999", "--directory-id", "AAAAAAAAAAAAAAAAAAAAAg"),
            2,
            "NAME://HOST:PORT",
        ),
    ],
)
def test_what_cannot_be_changed_is_said(node: str, capsys: Capture, words: tuple[str, ...], code: int, text: str):
    assert quorum(node, *words) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert text in told.err
