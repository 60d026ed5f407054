"""What must hold of coordinators.

At every step: in what a share coordinator has committed, the start of a share partition never falls (`share start`).
When the calm has come: whoever leads a partition of coordinators has loaded it, and nobody else; and what it knows is
what the log says, record by record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.coordinators.core_factory import CORES, CorePartition
from ottla.broker.coordinators.partition_writer import ReplicaWriter
from ottla.core.share.state import ShareStateCoordinator
from ottla.testing.trace import Violation
from simulation.virtual_replica import replay_partition

if TYPE_CHECKING:
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.coordinators.shard import Shard
    from ottla.broker.node import Node
    from ottla.core.share.state.kept import Key
    from simulation.cluster.machine import Machine
    from simulation.cluster.world import ClusterWorld

__all__ = ["ShareStarts", "coordinators_loaded", "coordinators_replayed", "has_former_coordinator"]


class ShareStarts:
    """Watches where share partitions start, as their coordinators have committed it."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[int, int]] = {}
        """The last leader epoch of the coordinator's partition, and the start."""

    def watch(self, machine: Machine, node: Node) -> None:
        runtime, advance = node.share_state, node.share_state.advance

        def watched(partition: int) -> None:
            advance(partition)
            shard = runtime.shards.get(partition)
            if shard is not None and shard.writer.high_watermark >= shard.end_offset:
                self._look(machine, partition, shard)

        node.unit_of_work.follow(runtime.topic.name, watched)

    def _look(self, machine: Machine, partition: int, shard: Shard) -> None:
        assert isinstance(shard.core, ShareStateCoordinator)
        assert isinstance(shard.writer, ReplicaWriter)
        epoch = shard.writer.replica.leader_epoch
        for key, kept in shard.core.kept.items():
            known_epoch, known_start = self._known.get(key, (epoch, kept.start_offset))
            if epoch < known_epoch:
                continue  # it has not heard of the next coordinator
            if kept.start_offset < known_start:
                place = f"{key.group_id} in partition {key.partition}"
                raise Violation(
                    "share start", f"{place}, coordinated by {machine.name}: {known_start}, then {kept.start_offset}"
                )
            self._known[key] = (epoch, kept.start_offset)


def _runtimes(world: ClusterWorld) -> Iterator[tuple[str, Node, Runtime]]:
    for machine in world.brokers:
        node = machine.node
        if node is not None and machine.is_serving:
            for runtime in (node.groups, node.transactions, node.share_state):
                yield machine.name, node, runtime


def has_former_coordinator(world: ClusterWorld) -> bool:
    """Whether a node coordinates what is led by another, of which it has not heard. What it knows may be old."""
    image = world.newest_image()
    for _, node, runtime in _runtimes(world):
        topic = image.topic(runtime.topic.name) if image is not None else None
        partitions = {} if topic is None else topic.partitions
        if any(partitions[each].leader != node.node_id for each in runtime.shards if each in partitions):
            return True
    return False


def coordinators_loaded(world: ClusterWorld) -> Iterator[str]:
    for name, node, runtime in _runtimes(world):
        topic = node.image.topic(runtime.topic.name)
        led = {number for number, each in topic.partitions.items() if each.leader == node.node_id} if topic else set()
        if led != set(runtime.shards):
            yield f"{name} leads {sorted(led)} of {runtime.topic.name}, and has loaded {sorted(runtime.shards)}"


def coordinators_replayed(world: ClusterWorld) -> Iterator[str]:
    for name, node, runtime in _runtimes(world):
        for partition, shard in runtime.shards.items():
            replica = node.replicas.by_key[runtime.topic.name, partition]
            at = CorePartition(partition, replica.leader_epoch, lambda *_: False, node.settings)
            replayed = CORES[runtime.topic.name](at)
            faults = replay_partition(replayed, replica.log) if replica.has_log else []
            if faults:
                yield f"{name}: {runtime.topic.name}-{partition} holds {faults}"
            live, again = shard.core.hard_state(), replayed.hard_state()
            if live != again:
                keys = [key for key in live.keys() | again.keys() if live.get(key) != again.get(key)]
                different = [f"{key} is {live.get(key)}, replayed {again.get(key)}" for key in sorted(keys, key=str)]
                yield f"{name}: of {runtime.topic.name}-{partition} {'; '.join(different)}"
