"""Apache Kafka's own tools for groups print the same for both brokers, but for ids and the words of errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.interop.apache import dump_log, tool
from tests.interop.groups.brokers import Node
from tests.interop.groups.members import (
    PARTITIONS,
    PER_PARTITION,
    Confluent,
    Running,
    all_committed,
    all_read,
    filled,
    shared,
    until,
)
from tests.interop.groups.tools import GROUPS, Tools

ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
VERIFIABLE = "org.apache.kafka.tools.VerifiableConsumer"
TOTAL = PARTITIONS * PER_PARTITION
OFFSET_COMMIT, GROUP_METADATA = "1", "2"
"""Types of records as kafka-dump-log names them."""


@pytest.fixture
def tools(bootstrap_servers: str, apache_jars: Path) -> Tools:
    return Tools(bootstrap_servers)


def sorted_rows(lines: list[str]) -> list[str]:
    """The heading first; members have no order."""
    return [lines[0], *sorted(lines[1:])]


def test_an_active_group(tools: Tools, name: str):
    topic = filled(tools.servers, name)
    with (
        Running(Confluent, tools.servers, name, topic, client_id="one") as one,
        Running(Confluent, tools.servers, name, topic, client_id="two", group_instance_id="inst") as two,
    ):
        shared(one, two)
        all_read(one, two)
        all_committed(one)
        described(tools, name, one.partitions)
        listed(tools, name)
        in_use(tools, name)


def described(tools: Tools, name: str, of_one: set[int]) -> None:
    rows = sorted(
        f"{name} {name} {index} {PER_PARTITION} {PER_PARTITION} 0 one-ID /127.0.0.1 one"
        if index in of_one
        else f"{name} {name} {index} - {PER_PARTITION} - inst-ID /127.0.0.1 two"
        for index in range(PARTITIONS)
    )
    heading = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    assert sorted_rows(tools.groups("--describe", "--group", name)) == [heading, *rows]
    with_epochs = tools.groups("--describe", "--group", name, "--offsets", "--verbose")
    assert sorted({line.split()[3] for line in with_epochs[1:]}) == ["-", "0"]
    parts = {
        "one": ",".join(map(str, sorted(of_one))),
        "two": ",".join(map(str, sorted(set(range(PARTITIONS)) - of_one))),
    }
    assert sorted_rows(tools.groups("--describe", "--group", name, "--members", "--verbose")) == [
        "GROUP CONSUMER-ID GROUP-INSTANCE-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT "
        "TARGET-EPOCH TARGET-ASSIGNMENT",
        f"{name} inst-ID inst /127.0.0.1 two 2 - {name}:{parts['two']} - -",
        f"{name} one-ID /127.0.0.1 one 2 - {name}:{parts['one']} - -",
    ]
    assert tools.groups("--describe", "--group", name, "--state", "--verbose") == [
        "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS",
        f"{name} {tools.servers} (1) range Stable - - 2",
    ]


def listed(tools: Tools, name: str) -> None:
    assert name in tools.groups("--list")
    assert f"{name} Stable" in tools.groups("--list", "--state", "stable")
    assert f"{name} Stable" not in tools.groups("--list", "--state", "Empty,Dead")
    assert f"{name} Classic" in tools.groups("--list", "--type", "classic")
    assert f"{name} Classic consumer" in tools(ALL_GROUPS, "--list")
    assert f"{name} Classic consumer" in tools(ALL_GROUPS, "--list", "--group-type", "classic")
    assert f"{name} Classic consumer" not in tools(ALL_GROUPS, "--list", "--share")


def in_use(tools: Tools, name: str) -> None:
    reset = tools.groups("--reset-offsets", "--group", name, "--topic", name, "--to-earliest", "--execute")
    assert reset == [
        f"Error: Assignments can only be reset if the group '{name}' is inactive, but the current state is Stable.",
        "GROUP TOPIC PARTITION NEW-OFFSET",
    ]
    assert tools.groups("--delete", "--group", name) == [
        "Error: Deletion of some consumer groups failed:",
        f"* Group '{name}' could not be deleted due to: org.apache.kafka.common.errors.GroupNotEmptyException: "
        "The group is not empty.",
    ]
    kept = tools.groups("--delete-offsets", "--group", name, "--topic", name)
    assert kept[0] == "Error: Encountered some partition-level error, see the follow-up details."
    assert sum("GroupSubscribedToTopicException" in line for line in kept) == PARTITIONS


def test_an_empty_group(tools: Tools, name: str):
    topic = filled(tools.servers, name)
    with Running(Confluent, tools.servers, name, topic) as member:
        shared(member)
        all_read(member)
        all_committed(member)
    until("the group is empty", lambda: f"{name} Empty" in tools.groups("--list", "--state"))
    ends = [f"{name} {name} {index} 25 25 0 - - -" for index in range(PARTITIONS)]
    idle = f"Consumer group '{name}' has no active members."
    heading = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    assert sorted(tools.groups("--describe", "--group", name)) == sorted([heading, *ends, idle])
    assert tools.groups("--describe", "--group", name, "--members") == [
        "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS",
        idle,
    ]
    reset(tools, name)
    deletion(tools, name)


def new_offsets(lines: list[str]) -> dict[int, int]:
    """By partition; the tool also says what it is going to change with its next release."""
    rows = [line.split() for line in lines if re.fullmatch(r"\S+ \S+ \d+ \d+", line)]
    return {int(partition): int(offset) for _, _, partition, offset in rows}


def reset(tools: Tools, name: str) -> None:
    of_group = ("--reset-offsets", "--group", name)
    planned = tools.groups(*of_group, "--topic", name, "--to-offset", "3", "--dry-run")
    assert new_offsets(planned) == dict.fromkeys(range(PARTITIONS), 3)
    back = tools.groups(*of_group, "--topic", f"{name}:0,1", "--shift-by", "-5", "--execute")
    assert new_offsets(back) == {0: PER_PARTITION - 5, 1: PER_PARTITION - 5}
    now = tools.groups(*of_group, "--all-topics", "--to-current", "--dry-run", "--export")
    assert sorted(now) == [f"{name},0,20", f"{name},1,20", f"{name},2,25", f"{name},3,25"]
    first = tools.groups(*of_group, "--all-topics", "--by-duration", "PT1H", "--execute")
    assert new_offsets(first) == dict.fromkeys(range(PARTITIONS), 0)
    last = tools.groups(*of_group, "--all-topics", "--to-datetime", "2100-01-01T00:00:00.000", "--execute")
    assert new_offsets(last) == dict.fromkeys(range(PARTITIONS), PER_PARTITION)


def deletion(tools: Tools, name: str) -> None:
    deleted = tools.groups("--delete-offsets", "--group", name, "--topic", f"{name}:0")
    assert deleted == [
        f"Request succeeded for deleting offsets from group {name}.",
        "TOPIC PARTITION STATUS",
        f"{name} 0 Successful",
    ]
    shown = tools.groups("--describe", "--group", name, "--offsets")
    assert not any(line.startswith(f"{name} {name} 0 ") for line in shown)
    assert tools.groups("--delete", "--group", name) == [
        f"Deletion of requested consumer groups ('{name}') was successful."
    ]
    again = tools.groups("--delete", "--group", name)
    assert again[1].startswith(f"* Group '{name}' could not be deleted due to: org.apache.kafka.common.errors.Group")
    assert again[1].endswith("GroupIdNotFoundException: The group id does not exist.")
    gone = tool(GROUPS, *tools.at, "--describe", "--group", name, check=False)
    assert "GroupIdNotFoundException" in gone


def test_settings_of_a_group(tools: Tools, name: str):
    where = ("--entity-type", "groups", "--entity-name", name)
    changes = "consumer.session.timeout.ms=50000,share.auto.offset.reset=earliest"
    nothing = [f"The group '{name}' doesn't exist and doesn't have dynamic config."]
    assert tools(CONFIGS, "--describe", *where) == nothing
    assert tools(CONFIGS, "--alter", *where, "--add-config", changes) == [
        f"Completed updating config for group {name}."
    ]
    own = [
        "consumer.session.timeout.ms=50000 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms="
        "50000, DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}",
        "share.auto.offset.reset=earliest sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.auto.offset.reset="
        "earliest, DEFAULT_CONFIG:share.auto.offset.reset=latest}",
    ]
    assert tools(CONFIGS, "--describe", *where) == [f"Dynamic configs for group {name} are:", *own]
    everything = tools(CONFIGS, "--describe", "--all", *where)
    assert own[0] in everything
    assert (
        "consumer.heartbeat.interval.ms=500 sensitive=false synonyms={STATIC_BROKER_CONFIG:"
        "group.consumer.heartbeat.interval.ms=500, DEFAULT_CONFIG:group.consumer.heartbeat.interval.ms=5000}"
    ) in everything
    every_group = tools(CONFIGS, "--describe", "--entity-type", "groups")
    assert every_group[every_group.index(f"Dynamic configs for group {name} are:") + 1] == own[0]
    too_short = ("--add-config", "consumer.session.timeout.ms=5")
    assert "InvalidConfigurationException" in tools.refused(CONFIGS, "--alter", *where, *too_short)
    tools(CONFIGS, "--alter", *where, "--delete-config", "consumer.session.timeout.ms,share.auto.offset.reset")
    assert tools(CONFIGS, "--describe", *where) == nothing


def test_the_console_consumer_in_a_group(tools: Tools, name: str):
    topic = filled(tools.servers, name)
    limits = ("--max-messages", str(TOTAL), "--timeout-ms", "20000")
    read = tools(CONSOLE_CONSUMER, "--topic", topic, "--group", name, "--from-beginning", *limits)
    assert read[-1] == f"Processed a total of {TOTAL} messages"
    values = [line for line in read if re.fullmatch(r"\d-\d+", line)]
    assert sorted(values) == sorted(f"{part}-{number}" for part in range(PARTITIONS) for number in range(PER_PARTITION))
    lags = [line.split()[5] for line in tools.groups("--describe", "--group", name) if line.startswith(f"{name} ")]
    assert lags == ["0"] * PARTITIONS
    again = tools(CONSOLE_CONSUMER, "--topic", topic, "--group", name, "--from-beginning", "--timeout-ms", "3000")
    assert again[-1] == "Processed a total of 0 messages", "what was committed is not read again"


def test_the_performance_test(tools: Tools, name: str):
    topic = filled(tools.servers, name)
    heading, row = tools(PERFORMANCE, "--topic", topic, "--num-records", str(TOTAL), "--group", name)[-2:]
    figures = dict(zip(heading.split(", "), row.split(", "), strict=True))
    assert figures["data.consumed.in.nMsg"] == str(TOTAL)


def test_the_verifiable_consumer(tools: Tools, name: str):
    topic = filled(tools.servers, name)
    words = ("--topic", topic, "--group-id", name, "--max-messages", str(TOTAL), "--reset-policy", "earliest")
    events = [json.loads(line) for line in tools(VERIFIABLE, *words) if line.startswith("{")]
    names = [event["name"] for event in events]
    assert names[:2] == ["startup_complete", "partitions_assigned"]
    assert {"partitions_revoked", "shutdown_complete"} <= set(names[-3:])
    assert [place["partition"] for place in events[1]["partitions"]] == [*range(PARTITIONS)]
    commits = [event for event in events if event["name"] == "offsets_committed"]
    assert all(event["success"] for event in commits)
    ends = {place["partition"]: place["offset"] for event in commits for place in event["offsets"]}
    assert ends == dict.fromkeys(range(PARTITIONS), PER_PARTITION)
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == TOTAL


def test_every_record_of_the_offsets_topic_is_read(broker: Node, tools: Tools, name: str):
    """Joins, commits, deletions: kafka-dump-log knows the type of all that is written, and finds no error."""
    topic = filled(tools.servers, name)
    with Running(Confluent, tools.servers, name, topic, group_instance_id="inst") as member:
        shared(member)
        all_read(member)
        all_committed(member)
    with Running(Confluent, tools.servers, f"{name}-2", topic, client_id="c") as member:
        shared(member)
        all_read(member)
        all_committed(member)
    until("the group is empty", lambda: f"{name}-2 Empty" in tools.groups("--list", "--state"))
    tools.groups("--delete-offsets", "--group", f"{name}-2", "--topic", f"{name}:1")
    tools.groups("--delete", "--group", f"{name}-2")
    logs = sorted(broker.data_dir.glob("__consumer_offsets-*/*.log"))
    assert logs
    dumped = dump_log(logs, "--offsets-decoder")
    assert "Exception" not in dumped
    assert "isvalid: false" not in dumped
    payloads = [line for line in dumped.splitlines() if line.startswith("| offset:")]
    assert payloads
    strange = [line for line in payloads if not re.search(r"key: \{.*\} payload: (\{.*\}|<DELETE>)$", line)]
    assert strange == []
    kinds = kinds_of(payloads, name)
    assert kinds == {
        (GROUP_METADATA, "value"),
        (OFFSET_COMMIT, "value"),
        (GROUP_METADATA, "tombstone"),
        (OFFSET_COMMIT, "tombstone"),
    }


def kinds_of(payloads: list[str], name: str) -> set[tuple[str, str]]:
    found = set()
    for line in payloads:
        if f'"{name}' in line:
            key = json.loads(line.partition("key: ")[2].partition(" payload: ")[0])
            found.add((key["type"], "tombstone" if line.endswith("<DELETE>") else "value"))
    return found
