"""Apache Kafka's own tools for transactions. What they print is the same for both brokers, but for times and names."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.component.broker.raw_client import RawClient, Topic
from tests.component.broker.transactional_producer import Producer
from tests.interop.apache import dump_log, tool
from tests.interop.transactions.nodes import Node

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
MOMENTS = 200


def transactions(broker: Node, *arguments: str, check: bool = True) -> str:
    return tool(TRANSACTIONS, "--bootstrap-server", broker.bootstrap_servers, *arguments, check=check)


def rows(printed: str) -> list[dict[str, str]]:
    """A table with its columns by name."""
    head, *lines = [[cell.strip() for cell in line.split("\t")] for line in printed.splitlines() if line.strip()]
    return [dict(zip(head, line, strict=False)) for line in lines]


@pytest.fixture
def producer(client: RawClient, txn_version: int) -> Producer:
    """A producer as the cluster's version wants it."""
    return (Producer(client) if txn_version == 2 else Producer.of_version_1(client)).begun()


@pytest.fixture
def topic(client: RawClient) -> Topic:
    return client.topic(2)


def open_transaction(producer: Producer, topic: Topic) -> Producer:
    if producer.end_version < 5:
        producer.add(topic.name, 0, 1)
    for partition in range(2):
        assert not producer.produce(topic, b"a", partition=partition).error_code
    return producer


def test_list(broker: Node, producer: Producer, topic: Topic):
    open_transaction(producer, topic)
    shown = {row["TransactionalId"]: row for row in rows(transactions(broker, "list"))}
    assert shown[producer.name] == {
        "TransactionalId": producer.name,
        "Coordinator": "1",
        "ProducerId": str(producer.producer_id),
        "TransactionState": "Ongoing",
        "": "",
    }
    (row,) = rows(transactions(broker, "list", "--transactional-id-pattern", f"{producer.name[:-1]}."))
    assert row["TransactionalId"] == producer.name
    old = rows(transactions(broker, "list", "--duration-filter", "600000"))  # and those that never began one
    assert producer.name not in [row["TransactionalId"] for row in old]
    producer.abort()


def test_describe(broker: Node, producer: Producer, topic: Topic):
    open_transaction(producer, topic)
    (row,) = rows(transactions(broker, "describe", "--transactional-id", producer.name))
    started_ms, lasted_ms = int(row.pop("CurrentTransactionStartTimeMs")), int(row.pop("TransactionDurationMs"))
    assert abs(started_ms + lasted_ms - time.time() * 1000) < 60_000
    assert set(row.pop("TopicPartitions").split(",")) == {f"{topic.name}-0", f"{topic.name}-1"}
    assert row == {
        "CoordinatorId": "1",
        "TransactionalId": producer.name,
        "ProducerId": str(producer.producer_id),
        "ProducerEpoch": "0",
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "60000",
        "": "",
    }
    producer.abort()
    missing = transactions(broker, "describe", "--transactional-id", "no-such-id", check=False)
    assert "failed because the ID could not be found" in missing


def test_describe_producers(broker: Node, producer: Producer, topic: Topic, txn_version: int):
    open_transaction(producer, topic)
    where = ("describe-producers", "--topic", topic.name, "--partition", "0")
    (row,) = rows(transactions(broker, *where))
    assert int(row.pop("LastTimestamp")) > 0
    assert row == {
        "ProducerId": str(producer.producer_id),
        "ProducerEpoch": "0",
        "LatestCoordinatorEpoch": "-1",
        "LastSequence": "0",
        "CurrentTransactionStartOffset": "0",
        "": "",
    }
    producer.commit()
    producer.settled()
    (row,) = rows(transactions(broker, *where))
    assert int(row.pop("LastTimestamp")) > 0
    assert row == {
        "ProducerId": str(producer.producer_id),
        "ProducerEpoch": "1" if txn_version == 2 else "0",
        "LatestCoordinatorEpoch": "0",
        "LastSequence": "-1" if txn_version == 2 else "0",
        "CurrentTransactionStartOffset": "None",
        "": "",
    }


def test_force_terminate(broker: Node, producer: Producer, topic: Topic):
    open_transaction(producer, topic)
    transactions(broker, "forceTerminateTransaction", "--transactionalId", producer.name)
    state = producer.settled()
    for _ in range(MOMENTS):
        if state.transaction_state != "Ongoing":
            break
        time.sleep(0.02)
        state = producer.settled()
    assert state.transaction_state in ("CompleteAbort", "Empty")
    (row,) = rows(transactions(broker, "describe-producers", "--topic", topic.name, "--partition", "1"))
    assert row["CurrentTransactionStartOffset"] == "None"


def test_a_hanging_transaction_is_found_and_aborted(boot: Callable[..., Node]):
    """One that no coordinator knows of, as older releases could leave behind: its partition was never added."""
    node = boot(transaction_partition_verification_enable="false")
    client = RawClient.at(node.bootstrap_servers)
    topic = client.topic(2)
    known = Producer.of_version_1(client, produce_version=9).begun()
    known.add(topic.name, 0)
    hanging = Producer.of_version_1(client, produce_version=9).begun()
    for partition, producer in enumerate((known, hanging)):
        assert not producer.produce(topic, b"a", partition=partition, timestamp=1_000_000_000_000).error_code
    (row,) = rows(transactions(node, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "1"))
    assert (row["Topic"], row["Partition"], row["ProducerId"], row["StartOffset"]) == (
        topic.name,
        "1",
        str(hanging.producer_id),
        "0",
    )
    where = ("--topic", topic.name, "--partition", "1")
    transactions(node, "abort", *where, "--start-offset", "0")
    (row,) = rows(transactions(node, "describe-producers", *where))
    assert (row["ProducerEpoch"], row["CurrentTransactionStartOffset"]) == ("0", "None")
    read = client.fetch(topic, partition=1, isolation_level=1, max_wait_ms=0)
    assert read.last_stable_offset == read.high_watermark == 2
    assert rows(transactions(node, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "1")) == []
    client.close()


def test_the_transaction_log(broker: Node, producer: Producer, topic: Topic, txn_version: int):
    open_transaction(producer, topic)
    producer.commit()
    producer.settled()
    seen = [value for name, value in transaction_log(broker.data_dir) if name == producer.name]
    stages = {0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 4: "CompleteCommit"}
    states = [stages[value["transactionStatus"]] for value in seen]
    added = ["Ongoing", "Ongoing"] if txn_version == 2 else ["Ongoing"]
    assert states == ["Empty", *added, "PrepareCommit", "CompleteCommit"]
    bumped = 1 if txn_version == 2 else 0
    assert [value["producerEpoch"] for value in seen] == [0] * (1 + len(added)) + [bumped, bumped]
    assert {value["previousProducerId"] for value in seen} == {producer.producer_id}
    assert {value.get("clientTransactionVersion", 0) for value in seen[1:]} == {2 if txn_version == 2 else 0}
    first, *_, prepared, complete = seen
    assert (first["transactionPartitions"], first["transactionStartTimestampMs"]) == (None, -1)
    assert [sorted(one["partitionIds"]) for one in prepared["transactionPartitions"]] == [[0, 1]]
    assert complete["transactionPartitions"] == []
    assert complete["transactionStartTimestampMs"] == prepared["transactionStartTimestampMs"] > 0


def transaction_log(data_dir: Path) -> list[tuple[str, dict[str, Any]]]:
    """Transactional id and value of all records, as kafka-dump-log decodes them."""
    files = [path for path in data_dir.glob("__transaction_state-*/*.log") if path.stat().st_size]
    printed = dump_log(files, "--transaction-log-decoder")
    found = re.findall(r"key: (\{.*?\}\}) payload: (\{.*\})$", printed, re.MULTILINE)
    return [(json.loads(key)["data"]["transactionalId"], json.loads(value)["data"]) for key, value in found]
