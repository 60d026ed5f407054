"""Topics without a controller: a table that tests change."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ottla.core.coordinator.contract import TopicsChange

__all__ = ["VirtualTopic", "VirtualTopics"]


class VirtualTopic(msgspec.Struct, frozen=True):
    name: str
    topic_id: bytes
    partition_count: int
    partition_racks: Sequence[frozenset[str]] = ()

    def racks(self, partition: int) -> frozenset[str]:
        return self.partition_racks[partition] if partition < len(self.partition_racks) else frozenset()


class VirtualTopics:
    """The `Topics` of a coordinator. An id depends on the name and on how often it was created."""

    def __init__(self) -> None:
        self._by_name: dict[str, VirtualTopic] = {}
        self._by_id: dict[bytes, VirtualTopic] = {}
        self._version = 0
        self._names_of_ids: dict[bytes, str] = {}
        self._created: Counter[str] = Counter()

    @property
    def version(self) -> int:
        return self._version

    def by_name(self, name: str) -> VirtualTopic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> VirtualTopic | None:
        return self._by_id.get(topic_id)

    def names(self) -> Iterable[str]:
        return self._by_name.keys()

    def name_of_id(self, topic_id: bytes) -> str | None:
        """The name of a topic id, also of a deleted topic."""
        return self._names_of_ids.get(topic_id)

    def name_was_used(self, name: str) -> bool:
        """Whether a topic of that name exists or existed."""
        return self._created[name] > 0

    def put(self, name: str, partition_count: int, racks: Sequence[frozenset[str]] = ()) -> TopicsChange:
        """Create a topic, or add partitions."""
        self._version += 1
        known = self._by_name.get(name)
        topic_id = self._new_id(name) if known is None else known.topic_id
        topic = VirtualTopic(name, topic_id, partition_count, racks or (known.partition_racks if known else ()))
        self._by_name[name] = self._by_id[topic_id] = topic
        self._names_of_ids[topic_id] = name
        return TopicsChange(created=(name,)) if known is None else TopicsChange(grown=(name,))

    def delete(self, name: str) -> TopicsChange:
        self._version += 1
        topic = self._by_name.pop(name)
        del self._by_id[topic.topic_id]
        return TopicsChange(deleted=((name, topic.topic_id),))

    def _new_id(self, name: str) -> bytes:
        self._created[name] += 1
        return hashlib.blake2b(f"{name} {self._created[name]}".encode(), digest_size=16).digest()
