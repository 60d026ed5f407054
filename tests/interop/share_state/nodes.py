"""Nodes of both brokers, and what they have written to the topic of share state."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ottla import wire
from ottla.wire.batch import split_batches
from ottla.wire.keyed import decode_keyed
from tests.interop.apache import ONE_NODE
from tests.interop.node.brokers import Node, node_of

STATE_TOPIC = "__share_group_state"
SETTINGS = {key: value for key, value in ONE_NODE.items() if key.startswith(("group.", "offsets.", "share."))}
TIME_LIMIT_S = 60
PAUSE_S = 0.05
FIRST_SEGMENT = "00000000000000000000.log"


def new_node(kind: str, directory: Path, *, data_dir: Path | None = None, **settings: object) -> Node:
    """A node that has not been started yet. A setting of None is left to its default."""
    given = {name: value for name, value in {**SETTINGS, **settings}.items() if value is not None}
    return node_of(kind, directory, data_dir=data_dir, **given)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(PAUSE_S)


def state_file(node: Node) -> Path:
    return node.data_dir / f"{STATE_TOPIC}-0" / FIRST_SEGMENT


def state_records(node: Node, topic_id: bytes) -> list[tuple[int, str, int, Any]]:
    """Offset, kind, partition and value of each record about a topic, without times, which differ from run to run."""
    found = []
    for batch in split_batches(state_file(node).read_bytes()):
        for record in batch.records():
            value = None if record.value is None else bytes(record.value)
            keyed = decode_keyed(STATE_TOPIC, bytes(record.key or b""), value)
            if keyed.key.topic_id == topic_id:
                kind = type(keyed.key).__name__.removesuffix("Key")
                found.append((record.offset, kind, keyed.key.partition, _timeless(keyed.value)))
    return found


def _timeless(value: Any) -> Any:
    if not hasattr(value, "write_timestamp"):
        return value
    is_cold = value.write_timestamp != value.create_timestamp
    return msgspec.structs.replace(value, create_timestamp=0, write_timestamp=int(is_cold))


def text_of(topic_id: bytes) -> str:
    return wire.uuid_text(topic_id)
