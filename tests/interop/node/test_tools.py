"""Apache Kafka's own tools as programs. What they print is the same for both brokers, but for times, ids and places.

Each expectation is a text in which what may differ is replaced by a word.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest

from tests.interop.apache import dump_log, tool
from tests.interop.node.brokers import Broker
from tests.interop.process import ProgramFailed

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
CLUSTER = "org.apache.kafka.tools.ClusterTool"


@pytest.fixture
def topic(broker: Broker) -> str:
    """Its name; the tests make it themselves where how it is made matters."""
    return f"tools-{uuid.uuid4().hex[:8]}"


def at(broker: Broker) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap_servers


def create(broker: Broker, topic: str, *arguments: str) -> str:
    return tool(TOPICS, *at(broker), "--create", "--topic", topic, *arguments)


def produce(broker: Broker, topic: str, *lines: str, arguments: tuple[str, ...] = ()) -> None:
    tool(CONSOLE_PRODUCER, *at(broker), "--topic", topic, *arguments, stdin="".join(f"{line}\n" for line in lines))


def refused(main: str, *arguments: str) -> str:
    """What a tool prints that must fail."""
    with pytest.raises(ProgramFailed) as failure:
        tool(main, *arguments)
    return failure.value.output


def test_topics_from_creation_to_deletion(broker: Broker, topic: str):
    made = create(broker, topic, "--partitions", "3", "--config", "retention.ms=60000")
    assert made == f"Created topic {topic}.\n"
    assert "TopicExistsException" in refused(TOPICS, *at(broker), "--create", "--topic", topic)
    assert topic in tool(TOPICS, *at(broker), "--list").splitlines()
    tool(TOPICS, *at(broker), "--alter", "--topic", topic, "--partitions", "4")
    described = tool(TOPICS, *at(broker), "--describe", "--topic", topic)
    assert re.sub(r"TopicId: \S{22}", "TopicId: ID", described).splitlines() == [
        f"Topic: {topic}\tTopicId: ID\tPartitionCount: 4\tReplicationFactor: 1\t"
        "Configs: min.insync.replicas=1,retention.ms=60000",
        *(
            f"\tTopic: {topic}\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
            for number in range(4)
        ),
    ]
    assert tool(TOPICS, *at(broker), "--delete", "--topic", topic) == ""
    gone = refused(TOPICS, *at(broker), "--describe", "--topic", topic)
    assert f"Topic '{topic}' does not exist as expected" in gone


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--replication-factor", "3"), "InvalidReplicationFactorException"),
        (("--partitions", "0"), "partitions must be greater than 0"),
        (("--config", "retention.ms=soon"), "Invalid value soon for configuration retention.ms"),
        (("--config", "no.such.setting=1"), "InvalidConfigurationException"),
    ],
)
def test_topics_that_cannot_be(broker: Broker, topic: str, arguments: tuple[str, ...], said: str):
    assert said in refused(TOPICS, *at(broker), "--create", "--topic", topic, *arguments)


def test_the_console_producer_and_consumer(broker: Broker, topic: str):
    create(broker, topic)
    produce(
        broker,
        topic,
        "a:1",
        "b:2",
        "c:3",
        arguments=("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
    )
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.offset=true")
    where = ("--topic", topic, "--partition", "0", "--timeout-ms", "10000")
    all_of_it = tool(CONSOLE_CONSUMER, *at(broker), *where, "--offset", "earliest", "--max-messages", "3", *shown)
    assert all_of_it.splitlines() == [
        "Offset:0\ta\t1",
        "Offset:1\tb\t2",
        "Offset:2\tc\t3",
        "Processed a total of 3 messages",
    ]
    last = tool(CONSOLE_CONSUMER, *at(broker), *where, "--offset", "2", "--max-messages", "1")
    assert last.splitlines() == ["3", "Processed a total of 1 messages"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_the_console_producer_compresses(broker: Broker, topic: str, codec: str):
    create(broker, topic)
    produce(broker, topic, "a" * 300, "b" * 300, arguments=("--compression-codec", codec, "--sync"))
    where = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "2")
    assert tool(CONSOLE_CONSUMER, *at(broker), *where).splitlines()[:2] == ["a" * 300, "b" * 300]
    dumped = dump_log(broker.data_dir / f"{topic}-0" / "00000000000000000000.log", "--print-data-log")
    assert f"compresscodec: {codec}" in dumped
    assert "isvalid: true" in dumped


def test_offsets_and_deleted_records(broker: Broker, topic: str, tmp_path: Path):
    create(broker, topic, "--partitions", "2")
    produce(broker, topic, "1", "2", "3", arguments=("--sync",))
    ends = dict(line.rsplit(":", 1) for line in offsets(broker, topic))
    assert sum(map(int, ends.values())) == 3
    full = max(ends, key=lambda key: int(ends[key]))
    partition = int(full.rpartition(":")[2])
    asked = {"partitions": [{"topic": topic, "partition": partition, "offset": 1}], "version": 1}
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps(asked))
    said = tool(DELETE_RECORDS, *at(broker), "--offset-json-file", str(file))
    assert said.splitlines() == [
        "Executing records delete operation",
        "Records delete operation completed:",
        f"partition: {topic}-{partition}\tlow_watermark: 1",
    ]
    starts = dict(line.rsplit(":", 1) for line in offsets(broker, topic, "--time", "earliest"))
    assert starts[full] == "1"
    newest = dict(line.rsplit(":", 1) for line in offsets(broker, topic, "--time", "max-timestamp"))
    assert int(newest[full]) in range(1, 3)
    assert offsets(broker, topic, "--time", "0", "--partitions", str(partition)) == [f"{full}:1"]


def offsets(broker: Broker, topic: str, *arguments: str) -> list[str]:
    return tool(GET_OFFSETS, *at(broker), "--topic", topic, *arguments).splitlines()


def test_the_quorum(broker: Broker):
    said = dict(
        re.split(r":\s+", line, maxsplit=1)
        for line in tool(METADATA_QUORUM, *at(broker), "describe", "--status").splitlines()
    )
    assert said["LeaderId"] == "1"
    assert len(said["ClusterId"]) == 22
    assert int(said["HighWatermark"]) > 0
    assert (said["MaxFollowerLag"], said["CurrentObservers"]) == ("0", "[]")
    (voter,) = json.loads(said["CurrentVoters"])
    assert (voter["id"], len(voter["directoryId"])) == (1, 22)
    assert [one.partition("://")[0] for one in voter["endpoints"]] == ["CONTROLLER"]
    replication = tool(METADATA_QUORUM, *at(broker), "describe", "--replication").splitlines()
    assert replication[0].split("\t")[0].strip() == "NodeId"
    assert replication[1].split("\t")[0].strip() == "1"
    assert replication[1].rstrip().endswith("Leader")


def test_the_features(broker: Broker):
    lines = tool(FEATURES, *at(broker), "describe").splitlines()
    assert [tuple(re.findall(r": (\S+)", line.partition("Epoch")[0])) for line in lines] == [
        ("eligible.leader.replicas.version", "0", "1", "1"),
        ("group.version", "0", "1", "1"),
        ("kraft.version", "0", "1", "1"),
        ("metadata.version", "3.3-IV3", "4.3-IV0", "4.3-IV0"),
        ("share.version", "0", "1", "1"),
        ("streams.version", "0", "1", "1"),
        ("transaction.version", "0", "2", "2"),
    ]


def test_the_cluster_id(broker: Broker):
    assert re.fullmatch(r"Cluster ID: \S{22}\n", tool(CLUSTER, "cluster-id", *at(broker)))


def test_the_performance_test(broker: Broker, topic: str):
    create(broker, topic, "--partitions", "2")
    settings = ("--bootstrap-server", broker.bootstrap_servers)
    said = tool(
        PERFORMANCE, "--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1", *settings
    )
    assert re.search(r"^20000 records sent, [\d.,]+ records/sec", said, re.MULTILINE)
    assert sum(int(line.rsplit(":", 1)[1]) for line in offsets(broker, topic)) == 20_000


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_the_verifiable_producer(broker: Broker, topic: str, acks: str):
    create(broker, topic)
    said = tool(VERIFIABLE_PRODUCER, *at(broker), "--topic", topic, "--max-messages", "200", "--acks", acks)
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    names = [event["name"] for event in events]
    assert names.count("producer_send_success") == 200
    assert names.count("producer_send_error") == 0
    if acks != "0":
        assert [event["offset"] for event in events if event["name"] == "producer_send_success"] == [*range(200)]


def test_dump_log_reads_what_was_written(broker: Broker, topic: str):
    create(broker, topic)
    produce(broker, topic, "first", "second", arguments=("--sync",))
    dumped = dump_log(broker.data_dir / f"{topic}-0" / "00000000000000000000.log", "--print-data-log")
    batches = [line for line in dumped.splitlines() if line.startswith("baseOffset")]
    seen = [re.sub(r"(producerId|CreateTime|size|crc|position|producerEpoch): \S+", r"\1: _", one) for one in batches]
    assert seen == [
        f"baseOffset: {number} lastOffset: {number} count: 1 baseSequence: {number} lastSequence: {number} "
        "producerId: _ producerEpoch: _ partitionLeaderEpoch: 0 isTransactional: false isControl: false "
        "deleteHorizonMs: OptionalLong.empty position: _ CreateTime: _ size: _ magic: 2 compresscodec: none crc: _ "
        "isvalid: true"
        for number in range(2)
    ]
    assert [line.rpartition("payload: ")[2] for line in dumped.splitlines() if "payload: " in line] == [
        "first",
        "second",
    ]
