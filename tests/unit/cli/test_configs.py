"""`ottla configs`: what is shown of settings, and how changes are sent."""

import json

import pytest

from ottla.cli import run
from ottla.wire import types
from tests.unit.cli.cluster_thread import fake_cluster
from tests.unit.client.fake import FakeCluster

Capture = pytest.CaptureFixture[str]
Entry = types.DescribeConfigsResponse.DescribeConfigsResourceResult
Result = types.DescribeConfigsResponse.DescribeConfigsResult
Synonym = types.DescribeConfigsResponse.DescribeConfigsSynonym

ENTRIES = (
    Entry("retention.ms", "5", False, 1, False, (Synonym("log.retention.ms", None, 4),), 5, "How long."),
    Entry("cleanup.policy", "delete", False, 5, False, (), 7, None),
    Entry("ssl.key", None, True, 4, True, (), 9, None),
)
TOPIC = types.DescribeConfigsResponse(results=(Result(0, None, 2, "orders", ENTRIES),))
ALTERED = types.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


def to(cluster: FakeCluster, *words: str) -> list[str]:
    return ["configs", *words, "--bootstrap-server", cluster.bootstrap_servers]


def test_what_differs_from_the_defaults_is_shown(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "describe", "topic", "orders")) == 0
        assert capsys.readouterr().out.splitlines() == [
            "NAME          VALUE     SOURCE         TYPE      NOTE",
            "retention.ms  5         topic          long",
            "ssl.key       (hidden)  static broker  password  read-only, sensitive",
        ]


def test_all_is_shown_when_asked_for(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "describe", "topic", "orders", "--all")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["cleanup.policy", "retention.ms", "ssl.key"]


def test_synonyms_and_documentation_are_shown_when_asked_for(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "describe", "topic", "orders", "--key", "retention.ms", "--synonyms", "--doc")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[2].split() == ["log.retention.ms", "-", "static", "broker"]
        assert lines[-2:] == ["retention.ms", "  How long."]
        (asked,) = cluster.broker().asked_for("DescribeConfigs")
        assert (asked.include_synonyms, asked.include_documentation) == (True, True)


def test_json(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "describe", "topic", "orders", "--json", "--synonyms", "--doc")) == 0
        retention, secret = json.loads(capsys.readouterr().out)
        assert retention == {
            "name": "retention.ms",
            "value": "5",
            "source": "TOPIC",
            "type": "LONG",
            "isReadOnly": False,
            "isSensitive": False,
            "synonyms": [{"name": "log.retention.ms", "value": None, "source": "STATIC_BROKER"}],
            "documentation": "How long.",
        }
        assert secret["value"] is None


def test_nothing_to_show_says_how_to_see_more(capsys: Capture):
    answer = types.DescribeConfigsResponse(results=(Result(0, None, 4, "", ENTRIES[1:2]),))
    with fake_cluster(DescribeConfigs=answer) as cluster:
        assert run(to(cluster, "describe", "broker")) == 0
        assert capsys.readouterr().out == (
            "the default of every broker has no setting that differs from its default; --all shows 1\n"
        )


def test_a_setting_that_is_not_there_is_named_with_the_nearest(capsys: Capture):
    with fake_cluster(DescribeConfigs=TOPIC) as cluster:
        assert run(to(cluster, "describe", "topic", "orders", "--key", "retention.mss")) == 2
        assert "there is no setting 'retention.mss'\n  → did you mean retention.ms?" in capsys.readouterr().err


def test_changes_are_sent_together(capsys: Capture):
    answer = types.IncrementalAlterConfigsResponse(responses=(ALTERED(0, None, 2, "orders"),))
    with fake_cluster(IncrementalAlterConfigs=answer) as cluster:
        words = ("--set", "retention.ms=5", "--delete", "flush.ms", "--append", "cleanup.policy=compact")
        assert run(to(cluster, "alter", "topic", "orders", *words, "--subtract", "x=y", "--validate-only")) == 0
        assert capsys.readouterr().out == "topic orders could be changed: retention.ms, flush.ms, cleanup.policy, x\n"
        (asked,) = cluster.broker().asked_for("IncrementalAlterConfigs")
        assert asked.validate_only
        assert [(each.config_operation, each.name, each.value) for each in asked.resources[0].configs] == [
            (0, "retention.ms", "5"),
            (1, "flush.ms", None),
            (2, "cleanup.policy", "compact"),
            (3, "x", "y"),
        ]


def test_a_refused_change_is_one_line(capsys: Capture):
    answer = types.IncrementalAlterConfigsResponse(responses=(ALTERED(40, "no such\nkey", 32, "g"),))
    with fake_cluster(IncrementalAlterConfigs=answer) as cluster:
        assert run(to(cluster, "alter", "group", "g", "--set", "a=b")) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.endswith("for group g: INVALID_CONFIG (40): no such key\n")


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["describe", "topics", "orders"], "'topics' is not one of 'topic'"),
        (["describe", "topic"], "no topic is named"),
        (["describe", "client-metrics"], "no client metrics is named"),
        (["alter", "topic", "orders"], "there is nothing to change"),
        (["alter", "topic", "orders", "--set", "retention.ms"], "--set 'retention.ms' is not KEY=VALUE"),
        (["alter", "topic", "orders", "--set", "a=1", "--delete", "a"], "a is to be changed twice"),
        (["descrbe"], "did you mean describe?"),
    ],
)
def test_bad_input_is_one_line(words: list[str], fragment: str, capsys: Capture):
    assert run(["configs", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") <= 2
    assert fragment in err


def test_a_broker_that_is_not_there(capsys: Capture):
    with fake_cluster() as cluster:
        assert run(to(cluster, "describe", "broker", "7")) == 1
        assert "the cluster has no broker 7; its brokers are 1" in capsys.readouterr().err
        assert run(to(cluster, "describe", "broker", "seven")) == 2
        assert "'seven' is not a node id" in capsys.readouterr().err
