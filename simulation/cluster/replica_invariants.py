"""What must hold of replicated partitions, at every step that a leader takes and when the calm has come.

=========================  ===========================================================================================
invariant                  says
=========================  ===========================================================================================
replicated stays           what was committed at an offset of a partition once is committed there for ever
in sync                    every replica in sync that is up has all that is committed
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
        self._watermarks: dict[tuple[_Key, int], int] = {}
        """By leader epoch."""

    def watch(self, machine: Machine, node: Node) -> None:
        """Look at every change of a leader's high watermark."""
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
        last = max((each.end_offset for each in committed.values()), default=0)
        if partition.log_end_offset < last:
            raise Violation("replicated stays", f"{name}: ends at {partition.log_end_offset}, committed is {last}")
        self._check_in_sync(name, replica, high_watermark)

    def _check_in_sync(self, name: str, replica: Replica, high_watermark: int) -> None:
        """As the controller has committed it, which this leader may not have heard of yet."""
        controller = self._world.leader()
        if controller is None or controller.node is None:
            return
        image = controller.node.image.partition(*replica.topic_partition)
        if image is None or image.leader_epoch != replica.leader_epoch:
            return
        for number in image.isr:
            node = self._world.machines[number].node
            other = node.replicas.get(*replica.topic_partition) if node is not None else None
            if other is not None and other.has_log and other.log_end_offset < high_watermark:
                raise Violation(
                    "in sync", f"{name}: commits {high_watermark}, n{number} ends at {other.log_end_offset}"
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
