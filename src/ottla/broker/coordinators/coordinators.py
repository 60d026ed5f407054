"""All coordinators of a node, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.coordinators.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS, InternalTopic, InternalTopics
from ottla.broker.coordinators.runtime import Runtime
from ottla.broker.coordinators.topics import TopicsView
from ottla.broker.coordinators.turns import Turns
from ottla.broker.coordinators.world import GroupValues, make_world
from ottla.core.metadata.image import BROKER, GROUP, Changes

if TYPE_CHECKING:
    from ottla.broker.node import Node

__all__ = ["Coordinators"]


class Coordinators:
    def __init__(self, node: Node) -> None:
        self._node = node
        self.turns = Turns(node.loop, node.clock, node.replicas)
        self.internal_topics = InternalTopics(node)
        self.topics = TopicsView(node.image)
        self.group_values = GroupValues(node.settings, node.image)
        self.world = make_world(node, self.topics, self.group_values)
        self.groups = self._runtime(GROUPS)
        self.transactions = self._runtime(TRANSACTIONS)
        self.share_state = self._runtime(SHARE_STATE)

    def _runtime(self, topic: InternalTopic) -> Runtime:
        return Runtime(self._node, topic, self.turns, self.internal_topics, self.world)

    async def start(self) -> None:
        """Load what this node leads, before anybody can ask."""
        self.topics.remember()
        for runtime in self.turns.runtimes.values():
            await runtime.start()

    def follow(self, changes: Changes) -> None:
        """The cluster has changed."""
        if any(resource_type in (BROKER, GROUP) for resource_type, _ in changes.configs):
            self.group_values.forget()
            self.world.settings_version += 1
        change = self.topics.change(changes)
        if change is not None:
            for runtime in self.turns.runtimes.values():
                runtime.topics_changed(change)
        for runtime in self.turns.runtimes.values():
            runtime.follow(self._partitions(runtime.topic.name, changes))

    def _partitions(self, topic: str, changes: Changes) -> set[int]:
        """The partitions of a topic that have changed, or are gone."""
        found = self._node.image.topic(topic)
        partitions = {number for topic_id, number in changes.partitions if found and topic_id == found.topic_id}
        gone = [each.partitions for each in changes.topics_deleted.values() if each.name == topic]
        return partitions.union(*gone)

    def stop(self) -> None:
        """Send away whoever waits; nothing is decided any more."""
        self.turns.end()
        for runtime in self.turns.runtimes.values():
            runtime.stop()
        self.turns.end()
