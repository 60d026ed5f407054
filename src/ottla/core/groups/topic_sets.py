"""What groups must know of the topics they subscribe to, without asking again for what has not changed.

A group may subscribe to ten thousand topics, and a thousand members may join it in a row, all with the same set of
names. What was found out about a topic, and about the few sets that were asked for last, is kept until topics change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import Topics
from ottla.core.groups.metadata_hash import combined_hash, topic_hash

__all__ = ["ExistingTopics", "TopicSets", "named"]

SETS_MAX: Final = 64
TOPICS_MAX: Final = 100_000


class ExistingTopics(NamedTuple):
    """Those of a set that exist."""

    topic_ids: frozenset[bytes]
    partition_counts: Mapping[bytes, int]


class TopicSets:
    def __init__(self) -> None:
        self._hash_of_topic: dict[str, int] = {}
        self._hash_of_set: dict[frozenset[str], int] = {}
        self._existing: dict[frozenset[str], ExistingTopics] = {}

    def metadata_hash(self, names: frozenset[str], topics: Topics) -> int:
        """0 if none of the topics exists."""
        known = self._hash_of_set.get(names)
        if known is None:
            known = combined_hash({name: each for name in names if (each := self.topic_hash(name, topics)) is not None})
            _bound(self._hash_of_set, SETS_MAX)
            self._hash_of_set[names] = known
        return known

    def topic_hash(self, name: str, topics: Topics) -> int | None:
        """None if there is no such topic. Those of a large set can be asked for bit by bit, before that of the set."""
        known = self._hash_of_topic.get(name)
        if known is None:
            topic = topics.by_name(name)
            if topic is None:
                return None
            _bound(self._hash_of_topic, TOPICS_MAX)
            known = self._hash_of_topic[name] = topic_hash(topic)
        return known

    def existing(self, names: frozenset[str], topics: Topics) -> ExistingTopics:
        known = self._existing.get(names)
        if known is None:
            found = [topic for name in names if (topic := topics.by_name(name)) is not None]
            counts = {topic.topic_id: topic.partition_count for topic in found}
            _bound(self._existing, SETS_MAX)
            known = self._existing[names] = ExistingTopics(frozenset(counts), counts)
        return known

    def forget(self, names: Iterable[str]) -> None:
        """These topics have changed, or have come, or are gone."""
        for name in names:
            self._hash_of_topic.pop(name, None)
        self._hash_of_set.clear()
        self._existing.clear()


def named(topic_ids: Iterable[bytes], topics: Topics) -> list[tuple[str, bytes]]:
    """Names and ids in the order of names. Topics that are gone have no name and are left out."""
    return sorted((topic.name, topic_id) for topic_id in topic_ids if (topic := topics.by_id(topic_id)) is not None)


def _bound(known: dict[Any, Any], size_max: int) -> None:
    if len(known) >= size_max:
        known.clear()
