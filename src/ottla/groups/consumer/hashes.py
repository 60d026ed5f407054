"""The metadata hash of a group's topics, without hashing again what has not changed.

A group may subscribe to ten thousand topics, and a thousand members may join it in a row. Hashes of topics are kept
until the topics change, and so is what they come to for the few sets of topics that were asked for last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.coordinator.contract import Topics
from ottla.groups.metadata_hash import combined_hash, topic_hash

__all__ = ["MetadataHashes"]

SETS_MAX: Final = 64
TOPICS_MAX: Final = 100_000


class MetadataHashes:
    def __init__(self) -> None:
        self._by_topic: dict[str, int] = {}
        self._by_set: dict[frozenset[str], int] = {}

    def of(self, names: frozenset[str], topics: Topics) -> int:
        """0 if none of the topics exists."""
        known = self._by_set.get(names)
        if known is None:
            known = combined_hash({name: each for name in names if (each := self._hash(name, topics)) is not None})
            if len(self._by_set) >= SETS_MAX:
                self._by_set.clear()
            self._by_set[names] = known
        return known

    def _hash(self, name: str, topics: Topics) -> int | None:
        known = self._by_topic.get(name)
        if known is None:
            topic = topics.by_name(name)
            if topic is None:
                return None
            if len(self._by_topic) >= TOPICS_MAX:
                self._by_topic.clear()
            known = self._by_topic[name] = topic_hash(topic)
        return known

    def forget(self, names: Iterable[str]) -> None:
        """These topics have changed."""
        for name in names:
            self._by_topic.pop(name, None)
        self._by_set.clear()
