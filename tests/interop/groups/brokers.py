"""The broker under test, with the same settings for both: nobody waits for members that never come."""

from __future__ import annotations

from pathlib import Path

from tests.interop.apache import ONE_NODE
from tests.interop.node.brokers import Node, node_of

GROUP_SETTINGS = {key: value for key, value in ONE_NODE.items() if key.startswith(("group.", "offsets."))}
"""What Apache Kafka has by `ONE_NODE`, and ottla is given as well."""


def new_node(kind: str, directory: Path, *, data_dir: Path | None = None, **settings: object) -> Node:
    """A node that has not been started yet."""
    return node_of(kind, directory, data_dir=data_dir, **(GROUP_SETTINGS | settings))
