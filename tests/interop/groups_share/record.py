"""Have the conversation with a broker and write down what it answers and writes.

    python -m tests.interop.groups_share.record

boots Apache Kafka and renews tests/golden/groups/share_conversation.jsonl.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ottla.wire.keyed import KeyedRecord
from ottla.wire.types import AlterShareGroupOffsetsRequest, CreatePartitionsRequest, DeleteTopicsRequest
from tests.component.broker.raw_client import Connection, RawClient
from tests.interop.groups.brokers import Node
from tests.interop.groups_consumer.noting import Note, Notebook
from tests.interop.groups_consumer.record import Log, await_coordinator, create_topics, record
from tests.interop.groups_share.conversation import TOPICS, Talk, converse

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "groups" / "share_conversation.jsonl"
CLIENT_ID = "talker"
SETTINGS = {"broker.rack": "r1", "group.share.assignment.interval.ms": 0, "group.initial.rebalance.delay.ms": 0}
ATTEMPTS = 200
PAUSE_S = 0.1
"""So long both brokers need to have written what they answered for."""
PATIENCE_S = 1.0
"""So long Apache Kafka may need for what it writes behind the answer."""
BEHIND_THE_ANSWER = (AlterShareGroupOffsetsRequest, CreatePartitionsRequest, DeleteTopicsRequest)


def listen_to(node: Node) -> list[Note]:
    """Have the conversation with a node that runs as a program."""
    connection = RawClient.at(node.bootstrap_servers).connect(CLIENT_ID)
    try:
        return listen(connection, node.data_dir, lambda is_behind: time.sleep(PATIENCE_S if is_behind else PAUSE_S))
    finally:
        connection.close()


def listen(connection: Connection, data_dir: Path, wait: Callable[[bool], None]) -> list[Note]:
    """`wait` lets the node end what it does behind an answer; it is told whether that may take a while."""
    notebook, log = Notebook(create_topics(connection, TOPICS)), Log(data_dir / "__consumer_offsets-0")
    await_coordinator(connection)

    def ask(request: Any, version: int) -> Any:
        answer = connection.ask(request, version)
        wait(isinstance(request, BEHIND_THE_ANSWER))
        return answer

    def send(request: Any, version: int) -> Any:
        answer = ask(request, version)
        notebook.take(request, version, answer, log.news())
        return answer

    def until(first: Any, version: int, again: Callable[[Any], Any | None]) -> Any:
        request, records = first, list[KeyedRecord]()
        for _ in range(ATTEMPTS):
            answer = ask(request, version)
            records += log.news()
            following = again(answer)
            if following is None:
                notebook.take(first, version, answer, records)
                return answer
            request = following
        raise AssertionError(f"nothing comes of {first}")

    converse(Talk(send, until))
    return notebook.notes


if __name__ == "__main__":
    record(GOLDEN, listen_to, SETTINGS)
