"""What must hold of coordinators when the calm has come: whoever leads a partition of theirs has loaded it, and nobody
else; and what it knows is what the log says, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.coordinators.core_factory import CORES, CorePartition
from simulation.virtual_replica import replay_partition

if TYPE_CHECKING:
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.node import Node
    from simulation.cluster.world import ClusterWorld

__all__ = ["coordinators_loaded", "coordinators_replayed"]


def _runtimes(world: ClusterWorld) -> Iterator[tuple[str, Node, Runtime]]:
    for machine in world.brokers:
        node = machine.node
        if node is not None and machine.is_serving:
            for runtime in (node.groups, node.transactions, node.share_state):
                yield machine.name, node, runtime


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
