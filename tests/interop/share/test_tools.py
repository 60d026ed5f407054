"""Apache Kafka's own tools for share groups print the same for both brokers, but for ids and the words of errors.

Together they run every command of kafka-share-groups.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.interop.apache import dump_log, tool
from tests.interop.share.brokers import Cluster, Node
from tests.interop.share.workers import Worker, Workers, closing, settled, until

GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
PERFORMANCE = "org.apache.kafka.tools.ShareConsumerPerformance"
VERIFIABLE = "org.apache.kafka.tools.VerifiableShareConsumer"
EXPLICIT = {"share.acknowledgement.mode": "explicit"}
CLIENT = "java-4.3.1"
LIMIT = 5
PER_PARTITION = 8


class Tools:
    """Runs tools against one broker. What is printed comes back as lines of words."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers

    def __call__(self, main: str, *words: str, check: bool = True) -> list[str]:
        said = tool(main, "--bootstrap-server", self._servers, *words, check=check)
        return [" ".join(line.split()) for line in said.splitlines() if line.strip()]

    def groups(self, *words: str) -> list[str]:
        return self(GROUPS, *words, check=False)

    def table(self, *words: str) -> tuple[str, list[str]]:
        """The headings, and the rows in order."""
        heading, *rows = self.groups(*words)
        return heading, sorted(rows)


@pytest.fixture(scope="module")
def tools(broker: Node) -> Tools:
    return Tools(broker.bootstrap_servers)


@pytest.fixture
def topic(cluster: Cluster, name: str) -> str:
    """Two partitions of eight records each, and a group that reads from the beginning."""
    cluster.topic(name, 2)
    for partition in range(2):
        cluster.produce(name, *(f"{partition}-{number}" for number in range(PER_PARTITION)), partition=partition)
    cluster.configure(name, {"share.auto.offset.reset": "earliest"})
    return name


def consume_all_but_one(worker: Worker) -> None:
    """Accept everything but the last record of partition 1."""
    seen = 0

    def step() -> bool:
        nonlocal seen
        given = worker.poll()
        seen += sum(each.delivery_count == 1 for each in given)
        for each in given:
            worker.acknowledge(each, "RELEASE" if (each.partition, each.offset) == (1, 7) else "ACCEPT")
        worker.commit()
        return seen == 2 * PER_PARTITION

    until("all records", step)


def test_groups_are_listed_and_described(tools: Tools, workers: Workers, cluster: Cluster, topic: str):
    cluster.configure(topic, {"share.delivery.count.limit": 10})
    worker = workers.open(CLIENT, topic, topic, EXPLICIT)
    with closing(worker):
        consume_all_but_one(worker)
        assert topic in tools.groups("--list")
        assert f"{topic} Stable" in tools.groups("--list", "--state")
        assert f"{topic} Stable" not in tools.groups("--list", "--state", "Empty")
        heading = "GROUP TOPIC PARTITION START-OFFSET LAG"
        # Start offsets are those of the last write, so they depend on how it was acknowledged; the lag does not.
        shown = tools.table("--describe", "--group", topic)
        assert (shown[0], lags(shown[1])) == (heading, ["0", "1"])
        assert tools.table("--describe", "--group", topic, "--offsets")[0] == heading
        verbose = tools.table("--describe", "--group", topic, "--verbose")
        assert verbose[0] == "GROUP TOPIC PARTITION LEADER-EPOCH START-OFFSET LAG"
        assert [row.split()[3] for row in verbose[1]] == ["0", "0"]
        members = tools.table("--describe", "--group", topic, "--members")
        assert members[0] == "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT"
        assert re.fullmatch(rf"{topic} \S{{22}} /127.0.0.1 worker-\d+ 2 {topic}:0,1", members[1][0])
        heading, (row,) = tools.table("--describe", "--group", topic, "--members", "--verbose")
        assert heading == "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS MEMBER-EPOCH ASSIGNMENT"
        heading, (row,) = tools.table("--describe", "--group", topic, "--state")
        assert heading == "GROUP COORDINATOR (ID) STATE #MEMBERS"
        assert re.fullmatch(rf"{topic} 127\.0\.0\.1:\d+ \(1\) Stable 1", row)
        heading, (row,) = tools.table("--describe", "--group", topic, "--state", "--verbose")
        assert heading == "GROUP COORDINATOR (ID) STATE GROUP-EPOCH ASSIGNMENT-EPOCH #MEMBERS"
        assert f"{topic} Share share" in tools(ALL_GROUPS, "--list")


def lags(rows: list[str]) -> list[str]:
    return [row.split()[4] for row in rows]


def test_a_group_with_members_stays(tools: Tools, workers: Workers, topic: str):
    worker = workers.open(CLIENT, topic, topic, EXPLICIT)
    with closing(worker):
        until("a record", worker.poll)
        reset = ("--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--execute")
        assert tools.groups(*reset) == [f"Share group '{topic}' is not empty."]
        refused = tools.groups("--delete", "--group", topic)
        assert refused[0] == "Error: Deletion of some share groups failed:"
        assert "GroupNotEmptyException" in refused[1]
        kept = tools.groups("--delete-offsets", "--group", topic, "--topic", topic)
        assert kept[1] == "TOPIC STATUS"
        assert kept[2].startswith(f"{topic} Error:")


def test_offsets_are_reset(tools: Tools, workers: Workers, cluster: Cluster, topic: str):
    worker = workers.open(CLIENT, topic, topic, EXPLICIT)
    with closing(worker):
        consume_all_but_one(worker)
    heading = "GROUP TOPIC PARTITION NEW-OFFSET"

    def reset(*how: str) -> tuple[str, list[str]]:
        return tools.table("--reset-offsets", "--group", topic, *how)

    beginning = [f"{topic} {topic} 0 0", f"{topic} {topic} 1 0"]
    before = cluster.starts(topic)
    assert reset("--topic", topic, "--to-earliest", "--dry-run") == (heading, beginning)
    assert cluster.starts(topic) == before
    end = [f"{topic} {topic} 0 8", f"{topic} {topic} 1 8"]
    assert reset("--topic", topic, "--to-latest", "--execute") == (heading, end)
    assert cluster.lag(topic) == 0
    long_ago = ("--to-datetime", "2020-01-01T00:00:00.000")
    assert reset("--topic", f"{topic}:0", *long_ago, "--execute") == (heading, beginning[:1])
    assert cluster.lag(topic) == PER_PARTITION
    assert reset("--all-topics", "--to-earliest", "--execute") == (heading, beginning)
    described = [f"{topic} {topic} 0 0 8", f"{topic} {topic} 1 0 8"]
    assert tools.table("--describe", "--group", topic)[1] == described
    again = workers.open(CLIENT, topic, topic)
    with closing(again):
        counts: list[int] = []
        until("all", lambda: counts.extend(each.delivery_count for each in again.poll()) or len(counts) == 16)
        assert counts == [1] * 16, "a reset forgets what was delivered"


def test_reset_makes_a_group(tools: Tools, workers: Workers, topic: str):
    new = f"{topic}-new"
    _, rows = tools.table("--reset-offsets", "--group", new, "--topic", topic, "--to-latest", "--execute")
    assert rows == [f"{new} {topic} 0 8", f"{new} {topic} 1 8"]
    assert f"{new} Empty" in tools.groups("--list", "--state")
    assert tools.table("--describe", "--group", new)[1] == [f"{new} {topic} 0 8 0", f"{new} {topic} 1 8 0"]


def test_groups_and_their_offsets_are_deleted(tools: Tools, topic: str):
    names = [f"{topic}-{number}" for number in range(2)]
    for each in names:
        tools.groups("--reset-offsets", "--group", each, "--topic", topic, "--to-earliest", "--execute")
    forget = ("--delete-offsets", "--group", names[0])
    assert tools.groups(*forget, "--topic", topic) == ["TOPIC STATUS", f"{topic} Successful"]
    assert tools.groups(*forget, "--topic", "nope")[1].startswith("nope Error:")
    assert tools.groups("--describe", "--group", names[0]) == [f"Share group '{names[0]}' has no offset information."]
    done = tools.groups("--delete", "--group", names[0], "--group", names[1])
    assert done[0].startswith("Deletion of requested share groups (")
    assert done[0].endswith("was successful.")
    assert "Group" in tools.groups("--delete", "--group", names[0])[1]
    assert "GroupIdNotFoundException" in tools.groups("--describe", "--group", names[0])[0]
    assert not set(names) & set(tools.groups("--list"))


def test_configs(tools: Tools, name: str):
    where = ("--entity-type", "groups", "--entity-name", name)
    tools(
        CONFIGS,
        "--alter",
        *where,
        "--add-config",
        "share.record.lock.duration.ms=20000,share.auto.offset.reset=earliest",
    )
    shown = "".join(tools(CONFIGS, "--describe", *where))
    assert "share.record.lock.duration.ms=20000" in shown
    assert "share.auto.offset.reset=earliest" in shown
    refused = tools(CONFIGS, "--alter", *where, "--add-config", "share.isolation.level=sometimes", check=False)
    assert "InvalidConfigurationException" in "".join(refused)


def console(tools: Tools, topic: str, *words: str) -> list[str]:
    said = tools(CONSOLE, "--topic", topic, "--group", topic, "--timeout-ms", "4000", *words, check=False)
    return [line for line in said if re.search(r"\d-\d$", line)]


def test_console_release_until_archived(tools: Tools, cluster: Cluster, topic: str):
    shown = console(tools, topic, "--release", "--formatter-property", "print.delivery=true")
    found = Counter(tuple(line.split()) for line in shown)
    values = [f"{partition}-{number}" for partition in range(2) for number in range(PER_PARTITION)]
    assert found == Counter((f"Delivery:{count}", value) for value in values for count in range(1, LIMIT + 1))
    assert cluster.lag(topic) == 0


def test_console_accept(tools: Tools, cluster: Cluster, topic: str):
    assert len(console(tools, topic)) == 2 * PER_PARTITION
    assert cluster.lag(topic) == 0
    assert console(tools, topic) == []


def test_console_reject(tools: Tools, cluster: Cluster, topic: str):
    console(tools, topic, "--reject")
    assert cluster.lag(topic) == 0


def test_the_performance_test(tools: Tools, topic: str):
    count = 2 * PER_PARTITION
    wanted = ("--topic", topic, "--num-records", str(count), "--group", topic, "--timeout", "30000")
    said = tools(PERFORMANCE, *wanted)
    place = next(number for number, line in enumerate(said) if line.startswith("start.time"))
    figures = dict(zip(said[place].split(", "), said[place + 1].split(", "), strict=True))
    assert figures["data.consumed.in.nMsg"] == str(count)


def test_the_verifiable_consumer(tools: Tools, topic: str):
    count = 2 * PER_PARTITION
    words = ("--topic", topic, "--group-id", topic, "--max-messages", str(count), "--acknowledgement-mode", "sync")
    events = [json.loads(line) for line in tools(VERIFIABLE, *words) if line.startswith("{")]
    names = [event["name"] for event in events]
    assert names[0] == "startup_complete"
    assert names[-1] == "shutdown_complete"
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == count
    acknowledged = [event for event in events if event["name"] == "offsets_acknowledged"]
    assert sum(event["count"] for event in acknowledged) == count
    assert all(event["success"] for event in acknowledged)


def test_every_record_of_the_internal_topics_is_read(broker: Node, tools: Tools, workers: Workers, topic: str):
    """kafka-dump-log knows the type of all that is written, and finds no error."""
    worker = workers.open(CLIENT, topic, topic, EXPLICIT)
    with closing(worker):
        for verdict in ("RELEASE", "REJECT"):
            settled(worker, until("records", worker.poll), verdict)
    for pattern, decoder in (
        ("__share_group_state-*", "--share-group-state-decoder"),
        ("__consumer_offsets-*", "--offsets-decoder"),
    ):
        logs = sorted(broker.data_dir.glob(f"{pattern}/*.log"))
        dumped = dump_log(logs, decoder)
        assert "Exception" not in dumped
        assert "isvalid: false" not in dumped
        rows = [line for line in dumped.splitlines() if line.startswith("| offset:")]
        assert rows
        assert [line for line in rows if not re.search(r"key: ?\{.*\} payload: ?(\{.*\}|<DELETE>)$", line)] == []
