"""Apache Kafka's tools for replicas on three nodes: what they print and do is the same for both kinds.

The tests build on each other: partitions move, leaders go home, a node is away and comes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop import process
from tests.interop.apache import dump_log, tool, tool_command
from tests.interop.quorum.members import WAIT_S, Quorum, until

NODES = (1, 2, 3)
TOPIC, PARTITIONS, RECORDS = "orders", 3, 3_000
TOPICS = "org.apache.kafka.tools.TopicCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
VERIFICATION = "org.apache.kafka.tools.ReplicaVerificationTool"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


@pytest.fixture(scope="module")
def quorum(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    settings = {"auto.leader.rebalance.enable": "false", "min.insync.replicas": 1}
    with Quorum(tmp_path_factory.mktemp("quorum"), voters=dict.fromkeys(NODES, kind), **settings) as quorum:
        run(quorum, TOPICS, "--create", "--topic", TOPIC, "--replica-assignment", ",".join(["1:2"] * PARTITIONS))
        write(quorum)
        yield quorum
        quorum.check_health()


def servers(quorum: Quorum) -> str:
    return ",".join(node.bootstrap_servers for node in quorum.nodes.values() if node.running)


def run(quorum: Quorum, main: str, *arguments: str) -> str:
    return tool(main, "--bootstrap-server", servers(quorum), *arguments, timeout_s=WAIT_S)


def write(quorum: Quorum) -> None:
    producer = Producer({"bootstrap.servers": servers(quorum), "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def values(quorum: Quorum) -> list[int]:
    consumer = Consumer({"bootstrap.servers": servers(quorum), "group.id": "nobody", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found: list[int] = []

    def read() -> bool:
        for message in consumer.consume(1_000, timeout=1):
            assert message.error() is None, message.error()
            found.append(int(message.value() or b""))
        return len(found) >= RECORDS

    until(lambda: read() or None, "all records")
    consumer.close()
    return sorted(found)


def described(quorum: Quorum, *flags: str) -> dict[int, tuple[int, list[int], set[int]]]:
    """Leader, replicas and those in sync, by partition."""
    said = run(quorum, TOPICS, "--describe", "--topic", TOPIC, *flags)
    rows = re.findall(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S*)\s+Isr: (\S*)", said)
    return {
        int(number): (-1 if leader == "none" else int(leader), _ids(replicas), set(_ids(isr)))
        for number, leader, replicas, isr in rows
    }


def in_sync(quorum: Quorum) -> list[set[int]]:
    """The replicas in sync of all partitions; a node that has just started may not know of any."""

    def known() -> dict[int, tuple[int, list[int], set[int]]] | None:
        found = described(quorum)
        return found if len(found) == PARTITIONS else None

    return [isr for _, _, isr in until(known, "all partitions").values()]


def _ids(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def test_partitions_are_reassigned(quorum: Quorum, tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": TOPIC}]}))
    said = run(quorum, REASSIGN, "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3", "--generate")
    before, proposed = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    assert [each["replicas"] for each in before["partitions"]] == [[1, 2]] * PARTITIONS
    assert all(len(set(each["replicas"])) == 2 for each in proposed["partitions"])
    plan = tmp_path / "plan.json"
    wanted = [[2, 3], [3, 1], [1, 2, 3]]
    partitions = [{"topic": TOPIC, "partition": number, "replicas": each} for number, each in enumerate(wanted)]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    begun = run(quorum, REASSIGN, "--reassignment-json-file", str(plan), "--execute")
    assert "Successfully started partition reassignments for orders-0,orders-1,orders-2" in begun

    def verified() -> bool:
        said = run(quorum, REASSIGN, "--reassignment-json-file", str(plan), "--verify")
        return all(f"Reassignment of partition {TOPIC}-{number} is completed." in said for number in range(PARTITIONS))

    until(lambda: verified() or None, "the reassignment")
    assert "No partition reassignments found." in run(quorum, REASSIGN, "--list")
    found = described(quorum)
    assert [found[number][1] for number in range(PARTITIONS)] == wanted
    assert all(isr == set(replicas) for _, replicas, isr in found.values())
    assert values(quorum) == list(range(RECORDS))


def test_preferred_leaders_are_elected(quorum: Quorum, tmp_path: Path) -> None:
    wanted = tmp_path / "partitions.json"
    partitions = [{"topic": TOPIC, "partition": number} for number in range(PARTITIONS)]
    wanted.write_text(json.dumps({"partitions": partitions}))
    said = run(quorum, ELECTION, "--election-type", "PREFERRED", "--path-to-json-file", str(wanted))
    assert re.search(r"(Successfully completed leader election|Valid replica already elected)", said), said
    until(lambda: [leader for leader, _, _ in described(quorum).values()] == [2, 3, 1] or None, "leaders at home")
    assert values(quorum) == list(range(RECORDS))


def test_a_node_is_away_and_comes_back(quorum: Quorum) -> None:
    assert described(quorum, "--under-replicated-partitions") == {}
    quorum.nodes[3].kill()
    until(lambda: all(3 not in isr for isr in in_sync(quorum)) or None, "the ISR without node 3")
    short = described(quorum, "--under-replicated-partitions")
    assert {number: (replicas, isr) for number, (_, replicas, isr) in short.items()} == {
        0: ([2, 3], {2}),
        1: ([3, 1], {1}),
        2: ([1, 2, 3], {1, 2}),
    }
    assert described(quorum, "--unavailable-partitions") == {}
    assert values(quorum) == list(range(RECORDS))
    quorum.start(3)
    until(lambda: in_sync(quorum) == [{2, 3}, {1, 3}, {1, 2, 3}] or None, "all in sync")
    assert described(quorum, "--under-replicated-partitions") == {}


def test_log_directories_have_the_same_of_all_replicas(quorum: Quorum) -> None:
    said = run(quorum, LOG_DIRS, "--describe", "--broker-list", "1,2,3", "--topic-list", TOPIC)
    answer = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    sizes: dict[str, set[int]] = {}
    count = 0
    for broker in answer["brokers"]:
        for each in (each for directory in broker["logDirs"] for each in directory["partitions"]):
            sizes.setdefault(each["partition"], set()).add(each["size"])
            assert (each["offsetLag"], each["isFuture"]) == (0, False)
            count += 1
    assert count == 7
    assert all(len(found) == 1 for found in sizes.values()), sizes


def test_logs_are_equal(quorum: Quorum) -> None:
    for number, (_, replicas, _) in described(quorum).items():
        paths = [quorum.nodes[each].data_dir / f"{TOPIC}-{number}" / "00000000000000000000.log" for each in replicas]
        said = {re.sub(r"(?m)^Dumping .*$", "", dump_log(path, "--print-data-log")) for path in paths}
        assert len(said) == 1
        assert len({path.read_bytes() for path in paths}) == 1


def test_replicas_are_verified(quorum: Quorum, tmp_path: Path) -> None:
    """The tool reads every replica as a consumer that leaders and followers answer, and goes on until it is stopped."""
    said = tmp_path / "verification.txt"
    chosen = ("--topics-include", TOPIC, "--report-interval-ms", "500")
    command = tool_command(VERIFICATION, "--broker-list", servers(quorum), *chosen)
    whole = f"max lag is 0 for partition {TOPIC}-\\d at offset {RECORDS // PARTITIONS} among {PARTITIONS} partitions"
    with said.open("wb") as output:
        running = process.start(command, output)
        try:
            until(lambda: re.search(whole, said.read_text()), "a report of all records")
        finally:
            process.kill(running)
    assert "mismatch" not in said.read_text().lower()
