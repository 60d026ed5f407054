"""`ottla topics`: what it asks, what it prints, and how it refuses."""

import json
from typing import Any

import pytest

from ottla.cli import run
from ottla.wire import types, uuid_text
from tests.unit.cli.cluster_thread import fake_cluster
from tests.unit.client.fake import DROP, FakeCluster, topic_id
from tests.unit.client.test_admin import offsets_answer

START_ONE = "is it running? 'ottla serve' starts one; --bootstrap says where it is"
Capture = pytest.CaptureFixture[str]
Described = types.DescribeTopicPartitionsResponse
Partition = Described.DescribeTopicPartitionsResponsePartition
Topic = Described.DescribeTopicPartitionsResponseTopic

ORDERS = Topic(
    0,
    "orders",
    topic_id("orders"),
    False,
    (Partition(0, 0, 1, 7, (1, 2), (1,), (2,), (), (2,)), Partition(5, 1, -1, 8, (2,), (), (), (), (2,))),
)
OFFSETS = Topic(0, "__consumer_offsets", topic_id("__consumer"), True, (Partition(0, 0, 1, 0, (1,), (1,)),))
MISSING = Topic(3, "ordres")
OWN = types.DescribeConfigsResponse.DescribeConfigsResourceResult("retention.ms", "5", False, 1)
INHERITED = types.DescribeConfigsResponse.DescribeConfigsResourceResult("flush.ms", "9", False, 4)
CONFIGS = types.DescribeConfigsResponse(
    results=(
        types.DescribeConfigsResponse.DescribeConfigsResult(0, None, 2, "orders", (OWN, INHERITED)),
        types.DescribeConfigsResponse.DescribeConfigsResult(29, "hidden", 2, "__consumer_offsets"),
    )
)
ID = uuid_text(topic_id("orders"))


def described(*topics: Any) -> types.DescribeTopicPartitionsResponse:
    return Described(topics=topics)


def to(cluster: FakeCluster, *words: str) -> list[str]:
    return ["topics", *words, "--bootstrap-server", cluster.bootstrap_servers]


def test_list(capsys: Capture):
    with fake_cluster(DescribeTopicPartitions=described(OFFSETS, ORDERS)) as cluster:
        assert run(to(cluster, "list")) == 0
        assert capsys.readouterr().out.splitlines() == [
            "TOPIC               PARTITIONS  REPLICAS  ID                      NOTE",
            f"__consumer_offsets           1         1  {uuid_text(topic_id('__consumer'))}  internal",
            f"orders                       2         2  {ID}  2 under-replicated",
        ]
        assert run(to(cluster, "list", "--exclude-internal", "--json")) == 0
        assert json.loads(capsys.readouterr().out) == [
            {"name": "orders", "topicId": ID, "isInternal": False, "partitionCount": 2, "replicationFactor": 2}
        ]


def test_describe(capsys: Capture):
    answers = {"DescribeTopicPartitions": described(ORDERS), "DescribeConfigs": CONFIGS, "ListOffsets": offsets_answer}
    with fake_cluster(topics={"orders": [1, -1]}, **answers) as cluster:
        assert run(to(cluster, "describe", "orders", "--offsets")) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"orders  id {ID}",
            "  retention.ms=5",
            "PARTITION  LEADER  EPOCH  REPLICAS  ISR  ELR  OFFLINE  START  END",
            "        0       1      7  1,2       1    2    2           10   10",
            "        1       -      8  2         -    -    2            -    -",
        ]


def test_describe_as_json(capsys: Capture):
    answers = {"DescribeTopicPartitions": described(OFFSETS, ORDERS), "DescribeConfigs": CONFIGS}
    with fake_cluster(
        **answers, ListOffsets=offsets_answer, topics={"orders": [1], "__consumer_offsets": [1]}
    ) as cluster:
        assert run(to(cluster, "describe", "--json")) == 0
        hidden, orders = json.loads(capsys.readouterr().out)
        assert hidden["configs"] == {}, "what may not be looked into is no failure"
        assert orders["configs"] == {"retention.ms": "5"}
        assert orders["partitions"][1] == {
            "partition": 1,
            "leader": -1,
            "leaderEpoch": 8,
            "replicas": [2],
            "isr": [],
            "elr": [],
            "lastKnownElr": [],
            "offlineReplicas": [2],
        }
        assert run(to(cluster, "describe", "--json", "--offsets")) == 0
        shown = json.loads(capsys.readouterr().out)[1]["partitions"]
        assert [(each["startOffset"], each["endOffset"]) for each in shown] == [(10, 10), (None, None)]


def test_several_topics_are_set_apart(capsys: Capture):
    with fake_cluster(DescribeTopicPartitions=described(OFFSETS, ORDERS), DescribeConfigs=CONFIGS) as cluster:
        assert run(to(cluster, "describe")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].endswith("internal")
        assert lines.index("") == 3


def test_a_topic_that_is_not_there_is_named_with_the_nearest(capsys: Capture):
    with fake_cluster(topics={"orders": [1]}, DescribeTopicPartitions=described(MISSING)) as cluster:
        assert run(to(cluster, "describe", "ordres")) == 2
        assert capsys.readouterr() == ("", "ottla: there is no topic 'ordres'\n  → did you mean orders?\n")
    with fake_cluster(DescribeTopicPartitions=described(Topic(29, "secret"))) as cluster:
        assert run(to(cluster, "describe", "secret")) == 4
        assert "TOPIC_AUTHORIZATION_FAILED" in capsys.readouterr().err


def test_create(capsys: Capture):
    result = types.CreateTopicsResponse.CreatableTopicResult
    answer = types.CreateTopicsResponse(topics=(result("b"), result("a", error_code=36, error_message="a is\n there")))
    with fake_cluster(CreateTopics=answer) as cluster:
        words = ("create", "b", "a", "--partitions", "3", "--replication-factor", "2", "--config", "retention.ms=5=6")
        assert run(to(cluster, *words)) == 2
        out, err = capsys.readouterr()
        assert out == "b created\n"
        assert err.count("\n") == 1
        assert "for topic a: TOPIC_ALREADY_EXISTS (36): a is there" in err
        assert run(to(cluster, "create", "a", "b", "--if-not-exists", "--validate-only")) == 0
        assert capsys.readouterr().out == "a was there already\nb could be created\n"
        first, second = cluster.broker().asked_for("CreateTopics")
        topic = first.topics[0]
        assert (topic.num_partitions, topic.replication_factor, topic.configs[0].value) == (3, 2, "5=6")
        assert (second.topics[0].num_partitions, second.validate_only) == (-1, True)


def test_delete(capsys: Capture):
    result = types.DeleteTopicsResponse.DeletableTopicResult
    answer = types.DeleteTopicsResponse(responses=(result("b", error_code=3), result("a")))
    with fake_cluster(DeleteTopics=answer) as cluster:
        assert run(to(cluster, "delete", "a", "b")) == 2
        out, err = capsys.readouterr()
        assert out == "a deleted\n"
        assert "for topic b: UNKNOWN_TOPIC_OR_PARTITION" in err
        assert run(to(cluster, "delete", "a", "b", "--if-exists")) == 0
        assert capsys.readouterr().out == "a deleted\nb was not there\n"


def test_partitions(capsys: Capture):
    result = types.CreatePartitionsResponse.CreatePartitionsTopicResult("orders")
    with fake_cluster(CreatePartitions=types.CreatePartitionsResponse(results=(result,))) as cluster:
        assert run(to(cluster, "partitions", "orders", "6")) == 0
        assert run(to(cluster, "partitions", "orders", "6", "--validate-only")) == 0
        assert capsys.readouterr().out == "orders has 6 partitions\norders could have 6 partitions\n"
        assert cluster.broker().asked_for("CreatePartitions")[1].validate_only


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["lst"], "there is no command 'lst' of 'ottla topics'\n  → did you mean list?"),
        (["create"], "Missing argument 'NAME...'"),
        (["create", "a", "--partitions", "0"], "--partitions"),
        (["create", "a", "--config", "retention.ms"], "--config 'retention.ms' is not KEY=VALUE"),
        (["create", "a", "--config", "=5"], "--config '=5' is not KEY=VALUE"),
        (["partitions", "a", "many"], "COUNT"),
        (["list", "--bootstrap-server", "nowhere"], "'nowhere' is not an address; write HOST:PORT"),
        (["list", "--bootstrap-server", "a:99999"], "'99999' is not a port"),
        (["list", "--timeout", "0"], "--timeout"),
        (["list", "--command-config", "/nowhere/client.properties"], "client.properties"),
    ],
)
def test_bad_input_is_one_line(words: list[str], fragment: str, capsys: Capture):
    assert run(["topics", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") <= 2
    assert fragment in err


def test_nobody_at_the_address_is_one_line_naming_it(capsys: Capture):
    with fake_cluster() as gone:
        address = gone.bootstrap_servers
    assert run(["topics", "list", "--bootstrap-server", address]) == 3
    assert capsys.readouterr() == ("", f"ottla: no broker at {address}: connection refused\n  → {START_ONE}\n")


def test_the_timeout_bounds_the_attempts(capsys: Capture):
    with fake_cluster(DescribeTopicPartitions=DROP) as cluster:
        assert run([*to(cluster, "list"), "--timeout", "0.5"]) == 3
        assert "was lost" in capsys.readouterr().err


def test_a_client_s_properties_are_used(tmp_path: Any, capsys: Capture):
    path = tmp_path / "client.properties"
    path.write_text("# ours\nclient.id=operator\\:1\nrequest.timeout.ms=5000\n")
    with fake_cluster(DescribeTopicPartitions=described(ORDERS)) as cluster:
        assert run([*to(cluster, "list"), "--command-config", str(path)]) == 0
        assert cluster.broker().requests[0].header.client_id == "operator:1"
        path.write_text("security.protocol=SASL\n")
        assert run([*to(cluster, "list"), "--command-config", str(path)]) == 2
        assert "security.protocol is 'SASL'" in capsys.readouterr().err


def test_alone_it_shows_its_commands(capsys: Capture):
    assert run(["topics"]) == 0
    out = capsys.readouterr().out
    for name in ("list", "create", "delete", "describe", "partitions"):
        assert f"  {name} " in out
