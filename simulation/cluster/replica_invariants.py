"""What must hold of replicated partitions, at every step that a leader takes and when the calm has come.

=========================  ===========================================================================================
invariant                  says
=========================  ===========================================================================================
replicated stays           what was committed at an offset of a partition once is committed there for ever
in sync                    every replica that is in sync or in the ELR, and up, has all that is committed
watermark                  the high watermark of a leader never falls in its leader epoch
replicas equal             in the calm, all replicas are in sync and have the same log
=========================  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.log.read import Isolation
from ottla.testing.trace import Violation
from simulation.cluster.raft_invariants import Batch, read_batches

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.replicas.replicas import Replica
    from ottla.core.metadata.topic_image import PartitionImage, TopicImage
    from ottla.log.partition import Partition
    from simulation.cluster.machine import Machine
    from simulation.cluster.world import ClusterWorld

__all__ = ["ReplicaInvariants", "replicas_equal", "replicas_out_of_sync"]

_ALL = 1 << 30
_LOOK_EVERY_MS = 50


class _Key(NamedTuple):
    """A partition, whatever its topic is called."""

    topic_id: bytes
    partition: int


class ReplicaInvariants:
    """Watches the leaders of all partitions that have followers."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._committed: dict[_Key, dict[int, Batch]] = {}
        """By base offset."""
        self._ends: dict[_Key, int] = {}
        """Where what is committed ends."""
        self._partition_epochs: dict[_Key, int] = {}
        """The last in which something was committed."""
        self._leader_epochs: dict[_Key, int] = {}
        """The same for leader epochs."""
        self._watermarks: dict[tuple[_Key, int], int] = {}
        """By leader epoch."""
        world.after(_LOOK_EVERY_MS, self._look)

    def _look(self) -> None:
        for key in self._ends:
            self._check_in_sync(key)
        self._world.after(_LOOK_EVERY_MS, self._look)

    def watch(self, machine: Machine, node: Node) -> None:
        """Look at every change of a leader's high watermark, at every truncation, and at what the image says anew."""
        truncated = node.follower_truncated

        def watched_truncation(replica: Replica) -> None:
            truncated(replica)
            self._check_in_sync(_Key(replica.topic_id, replica.topic_partition.partition))

        node.follower_truncated = watched_truncation  # type: ignore[method-assign]
        update = node.replicas._update

        def watched_update(topic: TopicImage, partition: PartitionImage) -> None:
            update(topic, partition)
            self._check_in_sync(_Key(topic.topic_id, partition.partition_id))

        node.replicas._update = watched_update  # type: ignore[method-assign]
        commit = node.replicas._commit

        def watched(replica: Replica, partition: Partition, end_offset: int) -> None:
            before = partition.high_watermark
            commit(replica, partition, end_offset)
            if replica.leading is not None and partition.high_watermark != before:
                self._moved(machine, replica, partition, before)

        node.replicas._commit = watched  # type: ignore[method-assign]

    def _moved(self, machine: Machine, replica: Replica, partition: Partition, before: int) -> None:
        key, high_watermark = _Key(replica.topic_id, replica.topic_partition.partition), partition.high_watermark
        name = f"{machine.name} {replica.topic_partition} epoch {replica.leader_epoch}"
        epoch_key = (key, replica.leader_epoch)
        known = self._watermarks.get(epoch_key, 0)
        if high_watermark < max(known, before):
            raise Violation("watermark", f"{name}: falls from {max(known, before)} to {high_watermark}")
        self._watermarks[epoch_key] = high_watermark
        committed = self._committed.setdefault(key, {})
        for batch in _batches(partition, before, high_watermark):
            first = committed.setdefault(batch.base_offset, batch)
            if first != batch:
                raise Violation("replicated stays", f"{name}: has {batch[:3]}, committed is {first[:3]}")
        last = self._ends[key] = max(high_watermark, self._ends.get(key, 0))
        newest = self._leader_epochs[key] = max(replica.leader_epoch, self._leader_epochs.get(key, 0))
        if replica.leader_epoch == newest and partition.log_end_offset < last:  # a former leader may not have heard
            raise Violation("replicated stays", f"{name}: ends at {partition.log_end_offset}, committed is {last}")
        self._partition_epochs[key] = max(replica.partition_epoch, self._partition_epochs.get(key, 0))
        self._check_in_sync(key)

    def _check_in_sync(self, key: _Key) -> None:
        """As the newest image has it that anybody knows."""
        nodes = {each.number: each.node for each in self._world.machines.values() if each.node and each.is_serving}
        image = self._world.newest_image()
        topic = image.topic_by_id(key.topic_id) if image is not None else None
        if image is None or topic is None or key not in self._ends:
            return
        partition = topic.partitions[key.partition]
        if partition.partition_epoch < self._partition_epochs[key]:
            return  # who knew more is down
        for number in {*partition.isr, *partition.elr} & nodes.keys():
            node, broker = nodes[number], image.brokers[number]
            replica = node.replicas.get(topic.name, key.partition)
            if replica is None or replica.is_offline or broker.fenced or broker.epoch != node.own_epoch():
                continue  # in this life it is not known to be in sync
            if replica.log_end_offset < self._ends[key]:
                raise Violation(
                    "in sync",
                    f"{replica.topic_partition} ends at {replica.log_end_offset} on n{number}, committed is"
                    f" {self._ends[key]}, in sync are {partition.isr}, eligible {partition.elr}",
                )


def _batches(partition: Partition, start_offset: int, end_offset: int) -> Iterator[Batch]:
    """The batches between two offsets."""
    offset = max(start_offset, partition.log_start_offset)
    while offset < end_offset:
        region = partition.read(offset, _ALL, Isolation.LOG_END)
        if region.file is None:
            return
        for batch in read_batches(region.file.handle().read(region.length, region.position)):
            if batch.end_offset > end_offset:
                return
            yield batch
            offset = batch.end_offset


# --- when the calm has come -------------------------------------------------------------------------------------------


def _replicated(world: ClusterWorld) -> Iterator[tuple[TopicImage, PartitionImage]]:
    controller = world.leader()
    if controller is not None and controller.node is not None:
        for topic in controller.node.image.topics_by_name.values():
            for partition in topic.partitions.values():
                if len(partition.replicas) > 1:
                    yield topic, partition


def replicas_out_of_sync(world: ClusterWorld) -> Iterator[str]:
    """What is missing until all replicas are in sync."""
    for topic, partition in _replicated(world):
        if set(partition.isr) != set(partition.replicas):
            yield f"of {topic.name}-{partition.partition_id} only {partition.isr} of {partition.replicas} are in sync"


def replicas_equal(world: ClusterWorld) -> Iterator[str]:
    for topic, partition in _replicated(world):
        name = f"{topic.name}-{partition.partition_id}"
        logs: dict[int, tuple[int, list[Batch]]] = {}
        for number in partition.replicas:
            node = world.machines[number].node
            replica = node.replicas.get(topic.name, partition.partition_id) if node is not None else None
            if replica is None:
                yield f"{name} is not on n{number}"
            elif replica.is_offline:
                yield f"{name} is offline on n{number}"
            elif replica.has_log:
                logs[number] = (replica.high_watermark, list(_batches(replica.log, 0, replica.log_end_offset)))
            else:
                logs[number] = (0, [])
        leader = logs.get(partition.leader)
        for number, (high_watermark, batches) in logs.items():
            if leader is not None and batches != leader[1]:
                yield f"{name} on n{number} has {_shown(batches)}, on its leader {_shown(leader[1])}"
            elif leader is not None and high_watermark != leader[0]:
                yield f"{name} on n{number} is committed to {high_watermark}, on its leader to {leader[0]}"


def _shown(batches: list[Batch]) -> list[tuple[int, int, int]]:
    return [each[:3] for each in batches[-3:]]
