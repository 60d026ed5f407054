"""Which share partitions of a group have state at the share coordinators, are getting it, or are losing it.

Only share partitions that have state are assigned to members. A topic that an administrator makes the group forget
stands under `deleting` until the share coordinators have forgotten it as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

__all__ = ["NO_STATE", "SharePartitionId", "StateTopic", "StateTopics"]

Value = TypeVar("Value")

SharePartitionId = tuple[bytes, int]
"""Topic id and partition: a share partition of a group that is known."""


class StateTopic(NamedTuple):
    name: str
    partitions: frozenset[int]


class StateTopics(NamedTuple):
    """By topic id. Changes give new ones."""

    initializing: Mapping[bytes, StateTopic]
    initialized: Mapping[bytes, StateTopic]
    deleting: Mapping[bytes, str]
    """Topic id -> name."""

    def initialize(self, wanted: Mapping[bytes, StateTopic]) -> StateTopics:
        """Partitions are about to get state. A topic that is being used again is no longer being deleted."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in wanted}
        return StateTopics(_union(self.initializing, wanted), self.initialized, deleting)

    def settle(self, partitions: Iterable[SharePartitionId], failed: Collection[SharePartitionId]) -> StateTopics:
        """Some were to get state, and all but those that failed have it. What was taken back meanwhile stays so."""
        asked: dict[bytes, set[int]] = {}
        for topic_id, partition in partitions:
            if topic_id in self.initializing and partition in self.initializing[topic_id].partitions:
                asked.setdefault(topic_id, set()).add(partition)
        done = {
            topic_id: StateTopic(
                self.initializing[topic_id].name,
                frozenset(each for each in numbers if (topic_id, each) not in failed),
            )
            for topic_id, numbers in asked.items()
        }
        return StateTopics(_without(self.initializing, asked), _union(self.initialized, done), self.deleting)

    def changing(self) -> list[SharePartitionId]:
        """Those that have state and are getting another one."""
        return [
            (topic_id, partition)
            for topic_id, topic in self.initializing.items()
            if topic_id in self.initialized
            for partition in topic.partitions & self.initialized[topic_id].partitions
        ]

    def delete(self, topic_ids: Collection[bytes], *, with_initializing: bool = False) -> StateTopics:
        """Topics are to lose their state: what has it, and if wanted what is getting it."""
        sources = (self.initialized, self.initializing) if with_initializing else (self.initialized,)
        names = {topic_id: topics[topic_id].name for topics in sources for topic_id in topic_ids if topic_id in topics}
        return StateTopics(
            _except(self.initializing, topic_ids) if with_initializing else self.initializing,
            _except(self.initialized, topic_ids),
            {**self.deleting, **names},
        )

    def deleted(self, topic_ids: Collection[bytes]) -> StateTopics:
        """The share coordinators have forgotten topics."""
        return self._replace(deleting=_except(self.deleting, topic_ids))

    def without(self, topic_ids: Collection[bytes]) -> StateTopics:
        """Topics do not exist any more."""
        return StateTopics(
            _except(self.initializing, topic_ids),
            _except(self.initialized, topic_ids),
            _except(self.deleting, topic_ids),
        )

    def knows(self, topic_id: bytes) -> bool:
        return topic_id in self.initialized or topic_id in self.initializing


NO_STATE: Final = StateTopics({}, {}, {})


def _union(some: Mapping[bytes, StateTopic], more: Mapping[bytes, StateTopic]) -> dict[bytes, StateTopic]:
    united = dict(some)
    for topic_id, topic in more.items():
        if topic.partitions:
            known = united.get(topic_id)
            partitions = topic.partitions if known is None else known.partitions | topic.partitions
            united[topic_id] = StateTopic(topic.name, partitions)
    return united


def _without(some: Mapping[bytes, StateTopic], less: Mapping[bytes, Collection[int]]) -> dict[bytes, StateTopic]:
    left = {
        topic_id: StateTopic(topic.name, topic.partitions.difference(less.get(topic_id, ())))
        for topic_id, topic in some.items()
    }
    return {topic_id: topic for topic_id, topic in left.items() if topic.partitions}


def _except(some: Mapping[bytes, Value], topic_ids: Collection[bytes]) -> dict[bytes, Value]:
    return {topic_id: value for topic_id, value in some.items() if topic_id not in topic_ids}
