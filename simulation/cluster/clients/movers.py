"""Movers: give partitions other replicas, other log directories, and their preferred leaders back.

Those of coordinators' topics change the order of replicas as well: the coordinator moves with its leader.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ottla.client.metadata import TopicPartition
from ottla.client.reassignments import try_reassign
from ottla.wire.types.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.types.elect_leaders import ElectLeadersRequest
from simulation.cluster.clients.client import DATA_TOPIC, SimulatedClient

__all__ = ["CoordinatorMover", "LeaderMover", "ReplicaMover", "TransactionMover"]

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


class CoordinatorMover(ReplicaMover):
    """Moves the coordinators of groups, transactions and share partitions."""

    KIND = "coordinator-mover"
    topics: ClassVar[tuple[str, ...]] = ("__consumer_offsets", "__transaction_state", "__share_group_state")
    pause_ms: ClassVar[tuple[int, int]] = (100, 1_000)

    async def work(self) -> None:
        await self.pause(*self.pause_ms)
        image = self.world.newest_image()
        topics = [] if image is None else [each for each in self.topics if each in image.topics_by_name]
        if image is None or not topics:
            return
        name = self.random.choice(topics)
        at = TopicPartition(name, self.random.choice(sorted(image.topics_by_name[name].partitions)))
        await self._reassign(at)
        await self.pause(50, 500)
        await self._elect(at)


class LeaderMover(CoordinatorMover):
    """Moves the leaders of the data topic as well, and has no rest."""

    KIND = "leader-mover"
    topics = (*CoordinatorMover.topics, DATA_TOPIC)
    pause_ms = (10, 300)


class TransactionMover(CoordinatorMover):
    """Moves the coordinators of transactions."""

    KIND = "transaction-mover"
    topics = ("__transaction_state",)
    pause_ms = (50, 300)
