"""The broker under test, with the same settings for both: nobody waits for members that never come."""

from __future__ import annotations

from pathlib import Path

from tests.interop.apache import ONE_NODE, ApacheKafka
from tests.interop.node.brokers import APACHE
from tests.interop.serving import OttlaServe

Node = ApacheKafka | OttlaServe

GROUP_SETTINGS = {key: value for key, value in ONE_NODE.items() if key.startswith(("group.", "offsets."))}
"""What Apache Kafka has by `ONE_NODE`, and ottla is given as well."""


def new_node(kind: str, directory: Path, *, data_dir: Path | None = None, **settings: object) -> Node:
    """A node that has not been started yet."""
    if kind == APACHE:
        return ApacheKafka(directory, data_dir=data_dir, **settings)  # type: ignore[arg-type]
    return OttlaServe(directory, data_dir=data_dir, **(GROUP_SETTINGS | settings))
