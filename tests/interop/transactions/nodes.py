"""Nodes of both brokers whose clusters have a given transaction version."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.interop import process
from tests.interop.apache import ONE_NODE, ApacheKafka
from tests.interop.moving import MovingCluster
from tests.interop.node.brokers import APACHE, MOVING, Node
from tests.interop.serving import OttlaServe

SETTINGS = {
    **{key: value for key, value in ONE_NODE.items() if key.startswith(("group.", "offsets.", "transaction."))},
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
"""The same for both: nobody waits for members that never come or do not live, and old transactions are found soon."""


def new_node(kind: str, directory: Path, version: int, **settings: object) -> Node:
    """A node that has not been started yet."""
    feature = ("--feature", f"transaction.version={version}")
    if kind == APACHE:
        return ApacheKafka(directory, format_arguments=("--standalone", *feature), **{**SETTINGS, **settings})
    if kind == MOVING:
        return MovingCluster(directory, transaction_version=version, **{**SETTINGS, **settings})
    data_dir = directory / "data"
    if not (data_dir / "meta.properties").exists():
        process.run([sys.executable, "-m", "ottla", "storage", "format", "--data", str(data_dir), *feature])
    return OttlaServe(directory, data_dir=data_dir, **{**SETTINGS, **settings})
