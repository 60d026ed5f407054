"""All coordinators of a node, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.broker.coordinators.edge import Perform
from ottla.broker.coordinators.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS, InternalTopic, InternalTopics
from ottla.broker.coordinators.ports import CoordinatorPorts
from ottla.broker.coordinators.runtime import Runtime
from ottla.broker.coordinators.topics import TopicsView
from ottla.broker.coordinators.world import GroupValues, make_world
from ottla.broker.replicas.replicas import Replica
from ottla.core.metadata.image import BROKER, GROUP, Changes

__all__ = ["Coordinators", "Performers"]

Performers = Mapping[str, Callable[[], Mapping[type, Perform]]]
"""Topic -> what gives the performers of its cores' effects, by class of effect. Called when the first core is made."""


class Coordinators:
    def __init__(self, node: CoordinatorPorts, performers: Performers) -> None:
        self._node = node
        self._performers = performers
        self.internal_topics = InternalTopics(node)
        self.topics = TopicsView(node.image)
        self.group_values = GroupValues(node.settings, node.image)
        self.world = make_world(node.settings, node.image, self.topics, self.group_values, node.randomness)
        self.groups = self._runtime(GROUPS)
        self.transactions = self._runtime(TRANSACTIONS)
        self.share_state = self._runtime(SHARE_STATE)
        self._runtimes = (self.groups, self.transactions, self.share_state)

    def _runtime(self, topic: InternalTopic) -> Runtime:
        return Runtime(self._node, topic, self.internal_topics, self.world, self._performers.get(topic.name, dict))

    async def start(self) -> None:
        """Load the partitions that this node leads, before the node listens."""
        self.topics.remember()
        for runtime in self._runtimes:
            await runtime.start()

    def leader_changed(self, replica: Replica) -> None:
        """A partition has another leader. If it is one of ours, nothing is decided any more by what was known of it."""
        topic, partition = replica.topic_partition
        for runtime in self._runtimes:
            if runtime.topic.name == topic:
                runtime.leader_changed(partition)

    def follow(self, changes: Changes) -> None:
        """The cluster has changed."""
        if any(resource_type in (BROKER, GROUP) for resource_type, _ in changes.configs):
            self.group_values.forget()
            self.world.settings_version += 1
        elif changes.brokers:
            self.world.settings_version += 1
        change = self.topics.change(changes)
        if change is not None:
            for runtime in self._runtimes:
                runtime.topics_changed(change)
        for runtime in self._runtimes:
            runtime.follow(self._partitions(runtime.topic.name, changes))

    def _partitions(self, topic: str, changes: Changes) -> set[int]:
        """The partitions of a topic that have changed, or are gone."""
        found = self._node.image.topic(topic)
        partitions = {number for topic_id, number in changes.partitions if found and topic_id == found.topic_id}
        gone = [each.partitions for each in changes.topics_deleted.values() if each.name == topic]
        return partitions.union(*gone)

    def stop(self) -> None:
        """Answer all waiting requests with NOT_COORDINATOR; handle no more."""
        self._node.unit_of_work.end()
        for runtime in self._runtimes:
            runtime.stop()
        self._node.unit_of_work.end()
