"""`ottla configs`: what is shown of settings, how changes are sent, and what is said of those that cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli import run
from ottla.wire import types
from tests.component.broker.raw_client import RunningNode, running_node
from tests.component.cli.cluster_thread import fake_cluster
from tests.component.cli.live import Live, live_node
from tests.component.client.fake import FakeCluster

Capture = pytest.CaptureFixture[str]
Entry = types.DescribeConfigsResponse.DescribeConfigsResourceResult
Result = types.DescribeConfigsResponse.DescribeConfigsResult
Synonym = types.DescribeConfigsResponse.DescribeConfigsSynonym

ENTRIES = (
    Entry("retention.ms", "5", False, 1, False, (Synonym("log.retention.ms", "7", 4),), 5, "How long."),
    Entry("cleanup.policy", "delete", False, 5, False, (), 7, None),
    Entry("ssl.key", None, True, 4, True, (), 9, None),
)
TOPIC = types.DescribeConfigsResponse(results=(Result(0, None, 2, "orders", ENTRIES),))
ALTERED = types.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
LOCK = "share.record.lock.duration.ms"


def to(cluster: FakeCluster, *words: str) -> list[str]:
    return ["configs", *words, "--bootstrap-server", cluster.bootstrap_servers]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"), ssl_key_password="hush")


@pytest.fixture
def ottla(running: RunningNode, capsys: Capture) -> Live:
    return Live(running, capsys)


# --- list -------------------------------------------------------------------------------------------------------------


def test_what_differs_from_the_defaults_is_shown(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "list", "topic", "orders")) == 0
        assert capsys.readouterr().out.splitlines() == [
            "NAME          VALUE     SOURCE         TYPE      NOTE",
            "retention.ms  5         topic          long",
            "ssl.key       (hidden)  broker's file  password  read-only, sensitive",
        ]


def test_all_is_shown_when_asked_for(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "list", "topic", "orders", "--all")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["cleanup.policy", "retention.ms", "ssl.key"]


def test_synonyms_and_documentation_are_shown_when_asked_for(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "list", "topic", "orders", "--synonyms", "--doc")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[2].split(None, 2) == ["log.retention.ms", "7", "broker's file"]
        assert lines[-5:-3] == ["retention.ms", "  How long."]
        (asked,) = cluster.broker().asked_for("DescribeConfigs")
        assert (asked.include_synonyms, asked.include_documentation) == (True, True)


@pytest.mark.parametrize("words", [("get", "topic", "orders", "retention.ms"), ("list", "topic", "orders", "--doc")])
def test_control_characters_of_a_broker_do_not_reach_the_terminal(words: tuple[str, ...], capsys: Capture):
    entry = Entry("retention.ms", "5\x1b[31m", False, 1, False, (), 5, "How long.\x1b[31m\nReally.")
    answer = types.DescribeConfigsResponse(results=(Result(0, None, 2, "orders", (entry,)),))
    with fake_cluster(DescribeConfigs=answer) as cluster:
        assert run(to(cluster, *words)) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "5\\x1b[31m" in out
    assert "--doc" not in words or out.endswith("  How long.\\x1b[31m\n  Really.\n")


def test_control_characters_of_an_error_do_not_reach_the_terminal_while_watching(capsys: Capture):
    answer = types.DescribeConfigsResponse(results=(Result(29, "not\x1b[31m you", 2, "orders"),))
    with fake_cluster(DescribeConfigs=answer) as cluster:
        assert run(to(cluster, "list", "topic", "orders", "--watch", "--count", "1")) == 0
    assert "not\\x1b[31m you" in capsys.readouterr().err


def test_json(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "list", "topic", "orders", "--json", "--doc")) == 0
        retention, secret = json.loads(capsys.readouterr().out)["rows"]
        assert retention == {
            "name": "retention.ms",
            "value": "5",
            "sensitive": False,
            "read_only": False,
            "source": "TOPIC",
            "type": "LONG",
            "default": None,
            "doc": "How long.",
            "synonyms": [{"name": "log.retention.ms", "value": "7", "source": "STATIC_BROKER"}],
        }
        assert (secret["value"], secret["sensitive"]) == (None, True)


def test_nothing_to_show_says_how_to_see_more(ottla: Live):
    ottla("topics", "create", "plain")
    ottla("configs", "set", "group", "g0", f"{LOCK}=20000")
    ottla("configs", "unset", "group", "g0", LOCK)
    ottla.capture.readouterr()
    assert ottla.code("configs", "list", "group", "g0") == 0
    out, err = ottla.capture.readouterr()
    assert (out, err) == ("", "group g0 has only default settings; --all shows them\n")


def test_who_has_settings(ottla: Live):
    ottla("topics", "create", "some", "--config", "retention.ms=5")
    ottla("configs", "set", "group", "workers", f"{LOCK}=20000")
    ottla("configs", "set", "broker", "1", "log.retention.ms=7")
    assert "some" in ottla("configs", "list", "topic")
    owners = {row["name"]: row["settings"] for row in ottla.json("configs", "list", "topic")["rows"]}
    assert owners["some"] == ["retention.ms"]
    assert ottla.json("configs", "list", "group")["rows"] == [{"name": "workers", "settings": [LOCK]}]
    brokers = {row["name"]: row["settings"] for row in ottla.json("configs", "list", "broker")["rows"]}
    assert brokers == {"1": ["log.retention.ms"], "default": ["min.insync.replicas"]}
    assert ottla.json("configs", "list", "client-metrics")["rows"] == []
    assert ottla.json("configs", "list", "broker-logger")["rows"] == [{"name": "1", "settings": []}]
    ottla("configs", "unset", "broker", "1", "log.retention.ms")


# --- get --------------------------------------------------------------------------------------------------------------


def test_single_settings_say_where_they_come_from_and_what_they_may_be(ottla: Live):
    ottla("topics", "create", "orders", "--config", "retention.ms=5", "--config", "compression.type=gzip")
    ottla("configs", "set", "group", "risk", f"{LOCK}=45000")
    assert ottla("configs", "get", "group", "risk", LOCK) == (
        f"{LOCK}  45000  (group; broker default 30000, allowed 15000–60000)\n"
    )
    assert ottla.lines("configs", "get", "topic", "orders", "retention.ms", "compression.type", "preallocate") == [
        "retention.ms  5  (topic; allowed ≥ -1)",
        "compression.type  gzip  (topic; default producer, allowed uncompressed, zstd, lz4, snappy, gzip, producer)",
        "preallocate  false  (default)",
    ]
    assert ottla("configs", "get", "broker", "1", "num.partitions") == (
        "num.partitions  1  (default; allowed ≥ 1, read-only)\n"
    )
    assert ottla("configs", "get", "broker", "1", "ssl.key.password").startswith(
        "ssl.key.password  (hidden)  (broker's"
    )
    (row,) = ottla.json("configs", "get", "topic", "orders", "compression.type")["rows"]
    assert (row["default"], row["source"], bool(row["doc"])) == ("producer", "TOPIC", True)


def test_a_setting_that_is_not_there_is_named_with_the_nearest(ottla: Live):
    ottla("topics", "create", "near")
    assert ottla.refused(2, "configs", "get", "topic", "near", "retention.mss") == (
        "ottla: topic near has no setting 'retention.mss'\n  → did you mean retention.ms?\n"
    )
    assert "UNKNOWN_TOPIC_OR_PARTITION" in ottla.refused(1, "configs", "get", "topic", "nowhere", "retention.ms")


# --- set and unset ----------------------------------------------------------------------------------------------------


def test_settings_are_set_and_taken_away(ottla: Live):
    ottla("topics", "create", "mine")
    said = ottla("configs", "set", "topic", "mine", "retention.ms=5", "cleanup.policy+=compact")
    assert said == "topic mine changed: retention.ms, cleanup.policy\n"
    rows = {row["name"]: row["value"] for row in ottla.json("configs", "list", "topic", "mine")["rows"]}
    assert (rows["retention.ms"], rows["cleanup.policy"]) == ("5", "delete,compact")
    assert ottla("configs", "set", "topic", "mine", "retention.ms=6", "--dry-run") == (
        "topic mine could be changed: retention.ms\n"
    )
    ottla("configs", "set", "topic", "mine", "cleanup.policy-=compact")
    ottla("configs", "unset", "topic", "mine", "retention.ms")
    rows = {row["name"]: row["value"] for row in ottla.json("configs", "list", "topic", "mine")["rows"]}
    assert (rows.get("retention.ms"), rows["cleanup.policy"]) == (None, "delete")


def test_all_brokers_and_one(ottla: Live):
    ottla("configs", "set", "broker", "default", "log.retention.ms=3000")
    ottla("configs", "set", "broker", "1", "log.retention.ms=2000")
    (row,) = ottla.json("configs", "get", "broker", "1", "log.retention.ms")["rows"]
    assert [(each["value"], each["source"]) for each in row["synonyms"]][:2] == [
        ("2000", "DYNAMIC_BROKER"),
        ("3000", "DYNAMIC_DEFAULT_BROKER"),
    ]
    for name in ("1", "default"):
        ottla("configs", "unset", "broker", name, "log.retention.ms")


def test_levels_of_loggers(ottla: Live):
    assert ottla("configs", "set", "broker-logger", "1", "ottla.core.txn=ERROR").startswith("broker-logger 1 changed")
    assert ottla("configs", "get", "broker-logger", "1", "ottla.core.txn") == "ottla.core.txn  ERROR  (logger)\n"
    ottla("configs", "unset", "broker-logger", "1", "ottla.core.txn")
    assert "INVALID_CONFIG (40)" in ottla.refused(1, "configs", "set", "broker-logger", "1", "ottla.core.txn=LOUD")


def test_what_is_outside_the_broker_s_bounds_says_so(ottla: Live):
    assert ottla.refused(2, "configs", "set", "group", "risk", f"{LOCK}=500") == (
        f"ottla: {LOCK}=500 is outside this broker's 15000–60000\n"
        "  → change group.share.min.record.lock.duration.ms first\n"
    )
    assert "group.share.max.record.lock.duration.ms" in ottla.refused(
        2, "configs", "set", "group", "risk", f"{LOCK}=99999"
    )


def test_a_refused_change_has_the_broker_s_words(capsys: Capture, ottla: Live):
    said = ottla.refused(1, "configs", "set", "broker", "1", "num.partitions=7")
    assert "INVALID_REQUEST (42): num.partitions cannot be changed while brokers run." in said
    answer = types.IncrementalAlterConfigsResponse(responses=(ALTERED(44, "no such\nkey", 32, "g"),))
    with fake_cluster(IncrementalAlterConfigs=answer) as cluster:
        assert run(to(cluster, "set", "group", "g", "a=b")) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.endswith("for group g: POLICY_VIOLATION (44): no such key\n")


# --- quotas -----------------------------------------------------------------------------------------------------------


def test_quotas_are_settings_of_users_clients_and_addresses(ottla: Live):
    ottla("configs", "set", "user", "alice", "producer_byte_rate=10000")
    ottla("configs", "set", "user", "default", "consumer_byte_rate=5")
    ottla("configs", "set", "user", "alice", "--client", "app", "request_percentage=50")
    ottla("configs", "set", "client", "batch", "producer_byte_rate=7")
    ottla("configs", "set", "ip", "127.0.0.9", "connection_creation_rate=3")
    assert sorted(ottla.lines("configs", "list", "user")) == [
        "WHO                        NAME                 VALUE",
        "user (default)             consumer_byte_rate       5",
        "user alice                 producer_byte_rate  10,000",
        "user alice, client-id app  request_percentage      50",
    ]
    rows = ottla.json("configs", "list", "client")["rows"]
    assert rows == [{"entity": {"client-id": "batch"}, "key": "producer_byte_rate", "value": 7.0}]
    assert ottla.json("configs", "get", "user", "alice", "producer_byte_rate")["rows"][0]["value"] == 10000
    assert ottla.json("configs", "list", "ip", "127.0.0.9")["rows"][0]["key"] == "connection_creation_rate"
    ottla("configs", "unset", "user", "alice", "producer_byte_rate")
    assert ottla.json("configs", "list", "user", "alice")["rows"] == []
    assert "has no quota producer_byte_rate" in ottla.refused(
        1, "configs", "get", "user", "alice", "producer_byte_rate"
    )


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["list", "topics", "orders"], "'topics' is not one of 'topic'"),
        (["get", "topic", "orders"], "Missing argument 'KEY...'"),
        (["set", "topic", "orders"], "Missing argument 'KEY=VALUE...'"),
        (["set", "topic", "orders", "retention.ms"], "'retention.ms' is not KEY=VALUE"),
        (["set", "topic", "orders", "a=1", "a=2"], "a is given twice"),
        (["set", "user", "alice", "producer_byte_rate=much"], "a quota is a number"),
        (["set", "ip", "127.0.0.1", "--client", "x", "connection_creation_rate=1"], "--client goes with user"),
        (["lst"], "did you mean list?"),
    ],
)
def test_bad_input_is_named(words: list[str], fragment: str, capsys: Capture):
    assert run(["configs", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") <= 2
    assert fragment in err


def test_a_broker_that_is_not_there(capsys: Capture):
    with fake_cluster() as cluster:
        assert run(to(cluster, "list", "broker", "7")) == 1
        assert "the cluster has no broker 7; its brokers are 1" in capsys.readouterr().err
        assert run(to(cluster, "list", "broker", "seven")) == 2
        assert "'seven' is not a node id" in capsys.readouterr().err


def test_a_default_in_another_unit_says_so(tmp_path: Path, capsys: Capture) -> None:
    with running_node(tmp_path, log_retention_ms=123_456) as running:
        live = Live(running, capsys)
        topic = running.client.topic(retention_bytes=1_000_000, retention_ms=5_000).name
        assert "log.retention.hours 168" in live("configs", "get", "broker", "1", "log.retention.ms")
        assert '"default": "168"' not in live("configs", "get", "broker", "1", "log.retention.ms", "--json")
        assert "123456" in live("configs", "get", "topic", topic, "retention.ms")


def test_a_broker_takes_any_name_and_the_command_says_so(ottla: Live):
    ottla.capture.readouterr()
    assert ottla.code("configs", "set", "broker", "default", "log.retention.mss=1") == 0
    out, err = ottla.capture.readouterr()
    assert out == "broker default changed: log.retention.mss\n"
    assert err == "log.retention.mss is not a setting of Kafka's brokers; did you mean log.retention.ms?\n"
    ottla("configs", "unset", "broker", "default", "log.retention.mss")
