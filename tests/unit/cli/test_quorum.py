"""`ottla quorum describe`: who leads, and how far behind the others are."""

import json

import pytest

from ottla.cli import quorum, run
from ottla.wire import types, uuid_text
from tests.unit.cli.cluster_thread import fake_cluster
from tests.unit.client.fake import CLUSTER_ID
from tests.unit.client.test_admin import quorum as answer

Capture = pytest.CaptureFixture[str]
NOW_MS = 60_000 * 90


def test_a_table(capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(quorum.time, "time_ns", lambda: NOW_MS * 1_000_000)
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
    assert quorum._ago(NOW_MS - ago_ms, NOW_MS) == text
    assert quorum._ago(None, NOW_MS) is None


def test_json(capsys: Capture):
    with fake_cluster(DescribeQuorum=answer()) as cluster:
        assert run(["quorum", "describe", "--json", "--bootstrap-server", cluster.bootstrap_servers]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert {key: shown[key] for key in ("clusterId", "leaderId", "leaderEpoch", "highWatermark")} == {
            "clusterId": CLUSTER_ID,
            "leaderId": 3,
            "leaderEpoch": 8,
            "highWatermark": 95,
        }
        assert [(each["nodeId"], each["role"], each["lag"]) for each in shown["replicas"]] == [
            (3, "leader", 0),
            (4, "voter", 10),
            (7, "observer", None),
        ]
        assert shown["replicas"][0]["endpoints"] == [{"listener": "CONTROLLER", "host": "host", "port": 9093}]


def test_a_cluster_without_a_quorum_says_so(capsys: Capture):
    refused = types.DescribeQuorumResponse(error_code=31, error_message=None)
    with fake_cluster(DescribeQuorum=refused) as cluster:
        assert run(["quorum", "describe", "--bootstrap-server", cluster.bootstrap_servers]) == 4
        assert "CLUSTER_AUTHORIZATION_FAILED" in capsys.readouterr().err
        cluster.broker().versions["DescribeQuorum"] = (0, -1)
        assert run(["quorum", "describe", "--bootstrap-server", cluster.bootstrap_servers]) == 5
        assert "cannot be asked DescribeQuorum: it does not have this API" in capsys.readouterr().err
