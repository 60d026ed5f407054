"""Movers: give partitions other replicas, other log directories, and their preferred leaders back."""

from __future__ import annotations

from typing import Final

from ottla.client.metadata import TopicPartition
from ottla.client.reassignments import try_reassign
from ottla.wire.types.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.types.elect_leaders import ElectLeadersRequest
from simulation.cluster.clients.client import SimulatedClient

__all__ = ["ReplicaMover"]

_PREFERRED: Final = 0


class ReplicaMover(SimulatedClient):
    """Moves partitions of the data topic."""

    KIND = "mover"

    async def work(self) -> None:
        await self.pause(200, 1_500)
        at = TopicPartition(await self.data_topic(), self.random.randrange(self.partitions))
        move = self.random.choice((self._reassign, self._elect, self._change_directory))
        await move(at)

    async def _reassign(self, at: TopicPartition) -> None:
        brokers = [each.number for each in self.world.brokers]
        replicas = self.random.sample(brokers, self.world.shape.replication_factor)

        async def reassign() -> bool:
            return not (await try_reassign(self.client, {at: replicas}))[at]

        await self.do("reassign", (str(at), tuple(replicas)), reassign)

    async def _elect(self, at: TopicPartition) -> None:
        kind = ElectLeadersRequest
        request = kind(_PREFERRED, (kind.TopicPartitions(at.topic, (at.partition,)),), timeout_ms=2_000)

        async def elect() -> None:
            await self.client.send(request, broker="controller")

        await self.do("elect", str(at), elect)

    async def _change_directory(self, at: TopicPartition) -> None:
        machine = self.random.choice(self.world.brokers)
        path = self.random.choice(machine.directories)
        kind = AlterReplicaLogDirsRequest
        request = kind((kind.AlterReplicaLogDir(path, (kind.AlterReplicaLogDirTopic(at.topic, (at.partition,)),)),))

        async def move() -> None:
            await self.client.send(request, broker=machine.number)

        await self.do("change directory", (str(at), path), move)
