"""What a node has of share groups, made when somebody first asks for it."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.share.persister import Persister

__all__ = ["ShareNode"]


class ShareNode:
    def __init__(self, node: Node) -> None:
        self._node = node

    @cached_property
    def persister(self) -> Persister:
        """Reads and writes the state of share partitions."""
        from ottla.broker.share.persister import Persister

        return Persister(self._node)

    def drop(self, group_id: str, topic_ids: Collection[bytes] | None = None) -> None:
        """Forget the share partitions of a group, of some topics or of all: their state was changed elsewhere."""
