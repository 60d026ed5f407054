"""Real traffic, and what is asked of it: every message read to its last byte, every response paired.

A request may stay without an answer: clients close while they wait.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ottla import wire
from ottla.explain.capture import Capture, Notice
from ottla.explain.capture_file import read_packets
from ottla.explain.exchanges import Exchange, Loss, Message
from ottla.explain.facts import TopicNames, exchange_facts
from ottla.explain.show_exchange import message_dissection
from ottla.explain.tree import Node

FOLDER = Path(__file__).parents[2] / "golden" / "captures"


def opened(path: Path) -> BinaryIO:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def exchanges_of(path: Path) -> list[Exchange]:
    """All exchanges of a capture that holds nothing else: no loss, no other protocol, no notice."""
    capture = Capture()
    found = []
    with opened(path) as file:
        for seen in capture.read(read_packets(file)):
            assert not isinstance(seen, Notice), seen
            assert not isinstance(seen.event, Loss), seen.event
            found.append(seen.event)
    assert capture.tally.foreign_count == capture.tally.tls_count == 0
    assert not capture.tally.unknown_links
    return found


def complaints(exchanges: list[Exchange]) -> Iterator[str]:
    """Everything that is not as it should be, in words."""
    topic_names = TopicNames()
    for exchange in exchanges:
        exchange_facts(exchange, topic_names)  # learns the topics' names
        first = exchange.first
        if exchange.outcome == "unpaired":
            yield f"a response #{first.correlation_id} has no request"
        for message in (exchange.request, exchange.response):
            if message is not None:
                yield from _complaints_of(message, topic_names)


def _complaints_of(message: Message, topic_names: TopicNames) -> Iterator[str]:
    what = f"{message.name} v{message.version} #{message.correlation_id}"
    if message.error is not None or message.body is None:
        yield f"{what}: {message.error}"
        return
    body = message.frame.data[message.body_start :]
    if wire.encode(message.body, message.version) != body:
        yield f"{what}: written again it has other bytes"
    dissected = message_dissection(message, topic_names)
    if dissected is None or dissected.error is not None or dissected.rest_bytes:
        yield f"{what}: not taken apart to the end: {dissected and dissected.error}"
        return
    for node in (node for root in dissected.nodes for node in root.walk()):
        if _is_unknown(node):
            yield f"{what}: {node.name} at byte {node.start}: {node.note or 'an unknown tagged field'}"


OPAQUE = {"Key", "Value", "UserData"}
"""Bytes that are the applications' own: records, and what an assignor tells its like."""
DOUBTS = ("breaks off", "not known", "is no ", "no batch", "cut off", "WRONG", "bytes are there")


def _is_unknown(node: Node) -> bool:
    """A tagged field that the schema does not have, or bytes that were to be opened and could not be."""
    is_unread = isinstance(node.value, bytes) and node.type.startswith("bytes") and node.name not in OPAQUE
    return (is_unread and bool(node.value)) or any(doubt in node.note for doubt in DOUBTS)
