"""Administrators: create, change and delete topics, and look at the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ottla.client import cluster, configs, groups, log_dirs, open_transactions, topics
from ottla.client.configs import Change, Operation, Resource, ResourceType
from ottla.client.errors import check
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import LATEST, list_offsets
from ottla.wire.types.create_partitions import CreatePartitionsRequest
from simulation.cluster.clients.client import DATA_TOPIC, SimulatedClient

__all__ = ["Admin"]


class Admin(SimulatedClient):
    """Works on topics of its own."""

    KIND = "admin"

    _made = 0
    _own: tuple[str, ...] = ()

    async def work(self) -> None:
        await self.pause(20, 600)
        choice = self.random.random()
        if choice < 0.4 or not self._own:
            await self._create()
        elif choice < 0.6:
            await self._configure(self.random.choice(self._own))
        elif choice < 0.7:
            await self._add_partitions(self.random.choice(self._own))
        elif choice < 0.8:
            await self._delete(self.random.choice(self._own))
        else:
            await self._look()

    async def _create(self) -> None:
        self._made += 1
        name = f"{self.name}.{self._made}"
        self._own = (*self._own[-5:], name)

        async def create() -> str:
            factor = self.world.shape.replication_factor
            (made,) = await topics.create(self.client, topics.NewTopic(name, self.random.randint(1, 3), factor))
            return made.topic_id.hex()

        await self.do("create topic", name, create)

    async def _configure(self, name: str) -> None:
        value = str(self.random.randint(1, 1_000_000_000))
        change = Change(Operation.SET, "retention.ms", value)
        resource = Resource(ResourceType.TOPIC, name)
        await self.do("set retention", (name, value), lambda: configs.alter(self.client, resource, [change]))

    async def _add_partitions(self, name: str) -> None:
        count = self.random.randint(2, 5)
        kind = CreatePartitionsRequest
        request = kind((kind.CreatePartitionsTopic(name, count, None),), timeout_ms=2_000)

        async def add() -> None:
            (result,) = (await self.client.send(request)).results
            check(None, "CreatePartitions", result.error_code, f"topic {name}")

        await self.do("add partitions", (name, count), add)

    async def _delete(self, name: str) -> None:
        self._own = tuple(each for each in self._own if each != name)
        await self.do("delete topic", name, lambda: topics.delete(self.client, name))

    async def _look(self) -> None:
        """Ask for something that changes nothing."""
        client, partitions = self.client, [TopicPartition(DATA_TOPIC, number) for number in range(self.partitions)]
        looks: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: cluster.describe(client),
            lambda: cluster.describe_quorum(client),
            lambda: topics.describe(client),
            lambda: client.refresh(),
            lambda: configs.describe(client, Resource(ResourceType.TOPIC, self._own[-1])),
            lambda: configs.list_resources(client),
            lambda: self._describe_groups(),
            lambda: open_transactions.try_list(client),
            lambda: open_transactions.open_producers(client, partitions),
            lambda: log_dirs.try_describe_log_dirs(client),
            lambda: list_offsets(client, dict.fromkeys(partitions, LATEST)),
        )
        await self.random.choice(looks)()

    async def _describe_groups(self) -> None:
        for group in sorted(await groups.list_groups(self.client))[:3]:
            await groups.describe(self.client, group.group_id)
