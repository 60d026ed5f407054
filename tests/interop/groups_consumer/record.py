"""Have the conversation with a broker and write down what it answers and writes.

    python -m tests.interop.groups_consumer.record

boots Apache Kafka and renews tests/golden/groups/consumer_conversation.jsonl.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.types import ConsumerGroupHeartbeatRequest, CreateTopicsRequest, FindCoordinatorRequest
from tests.component.broker.raw_client import Connection, RawClient
from tests.interop.groups.brokers import Node, new_node
from tests.interop.groups_consumer.conversation import TOPICS, Talk, converse
from tests.interop.groups_consumer.noting import Note, Notebook
from tests.interop.node.brokers import APACHE

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "groups" / "consumer_conversation.jsonl"
CLIENT_ID = "talker"
RACK = "r1"
SETTINGS = {"broker.rack": RACK, "group.consumer.assignment.interval.ms": 0, "group.initial.rebalance.delay.ms": 0}
ATTEMPTS = 200
PATIENCE_S = 0.5
"""How long a pattern may take to be resolved behind the answer."""
PAUSE_S = 0.05
"""So long both brokers need to have written what they answered for."""


def listen_to(node: Node) -> list[Note]:
    """Have the conversation with a node that runs as a program."""
    connection = RawClient.at(node.bootstrap_servers).connect(CLIENT_ID)
    try:
        return listen(
            connection, node.data_dir, lambda is_resolving: time.sleep(PATIENCE_S if is_resolving else PAUSE_S)
        )
    finally:
        connection.close()


def listen(connection: Connection, data_dir: Path, wait: Callable[[bool], None]) -> list[Note]:
    """`wait` lets the node end what it does behind an answer; it is told whether that is to resolve a pattern."""
    topic_ids = create_topics(connection, TOPICS)
    await_coordinator(connection)
    notebook, log = Notebook(topic_ids), Log(data_dir / "__consumer_offsets-0")

    def send(request: Any, version: int) -> Any:
        answer = connection.ask(request, version)
        wait(isinstance(request, ConsumerGroupHeartbeatRequest) and bool(request.subscribed_topic_regex))
        notebook.take(request, version, answer, log.news())
        return answer

    converse(Talk(send, topic_ids))
    return notebook.notes


def create_topics(connection: Connection, counts: Mapping[str, int]) -> dict[str, bytes]:
    wanted = tuple(CreateTopicsRequest.CreatableTopic(name, count, 1) for name, count in counts.items())
    created = connection.ask(CreateTopicsRequest(wanted, 30_000), 7).topics
    return {topic.name: topic.topic_id for topic in created}


def await_coordinator(connection: Connection) -> None:
    """Wait until there is one that has read its log: then it knows that there is no such group."""
    probe = ConsumerGroupHeartbeatRequest(group_id="share", member_id="nobody", member_epoch=1)
    for _ in range(ATTEMPTS):
        connection.ask(FindCoordinatorRequest(coordinator_keys=("share",)), 6)
        if connection.ask(probe, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return
        time.sleep(0.1)
    raise AssertionError("there is no coordinator")


class Log:
    """The records of a partition, read from its files as they grow."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._next_offset = 0

    def news(self) -> Iterator[KeyedRecord]:
        data = b"".join(path.read_bytes() for path in sorted(self._directory.glob("*.log")))
        for batch in split_batches(data):
            for record in batch.records():
                if record.offset >= self._next_offset:
                    self._next_offset = record.offset + 1
                    value = None if record.value is None else bytes(record.value)
                    yield decode_keyed("__consumer_offsets", bytes(record.key or b""), value)


def recorded(golden: Path = GOLDEN) -> list[Note]:
    return [json.loads(line) for line in golden.read_text().splitlines()]


def record(golden: Path, listen_to: Callable[[Node], list[Note]], settings: Mapping[str, object]) -> None:
    """Renew a recording."""
    with tempfile.TemporaryDirectory() as directory, new_node(APACHE, Path(directory), **settings) as node:
        notes = listen_to(node)
    golden.parent.mkdir(exist_ok=True)
    golden.write_text("".join(json.dumps(note) + "\n" for note in notes))


if __name__ == "__main__":
    record(GOLDEN, listen_to, SETTINGS)
