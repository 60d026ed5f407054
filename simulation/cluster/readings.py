"""What a client reads from a cluster at the end, when all is calm: all records, and all committed offsets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ottla.client.errors import ClientError, ResponseError
from ottla.client.fetcher import Fetcher
from ottla.client.group_offsets import committed
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import EARLIEST, LATEST, Isolation, list_offsets
from ottla.wire.errors import ErrorCode
from simulation.cluster.clients.client import DATA_TOPIC, SimulatedClient

if TYPE_CHECKING:
    from simulation.cluster.world import ClusterWorld

__all__ = ["Reader", "Readings"]


class Readings(msgspec.Struct):
    """The data topic and the groups, as a client sees them."""

    values: dict[int, list[tuple[int, str]]] = {}
    """By partition: offsets and values of all records, those of aborted transactions included."""
    committed_values: dict[int, list[tuple[int, str]]] = {}
    """Only what a reader of committed records is given."""
    offsets: dict[tuple[str, int], int] = {}
    """By group and partition: the committed offset."""


class Reader(SimulatedClient):
    """Reads everything once."""

    KIND = "reader"

    def __init__(self, world: ClusterWorld, group_ids: list[str]) -> None:
        super().__init__(world)
        self._group_ids = group_ids
        self.readings: Readings | None = None
        self.failure = "it has not read anything"

    async def work(self) -> None:
        try:
            self.readings = await self._read()
            self.is_over = True
        except ClientError as error:
            self.failure = str(error)
            raise

    async def _read(self) -> Readings:
        readings = Readings()
        try:
            await self.client.topics([DATA_TOPIC])
        except ResponseError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return readings
        readings.values = await self._records("read_uncommitted")
        readings.committed_values = await self._records("read_committed")
        for group_id in self._group_ids:
            for at, offset in (await committed(self.client, group_id, require_stable=True)).items():
                readings.offsets[group_id, at.partition] = offset.offset
        return readings

    async def _records(self, isolation: Isolation) -> dict[int, list[tuple[int, str]]]:
        """All records. Transactions that are open are waited for: they are aborted sooner or later."""
        partitions = [TopicPartition(DATA_TOPIC, number) for number in range(self.partitions)]
        ends = await list_offsets(self.client, dict.fromkeys(partitions, LATEST))
        found: dict[int, list[tuple[int, str]]] = {at.partition: [] for at in partitions}
        async with Fetcher(self.client, dict.fromkeys(partitions, EARLIEST), isolation=isolation) as fetcher:
            at = dict.fromkeys(partitions, 0)
            while any(at[each] < ends[each].offset for each in partitions):
                for fetched in await fetcher.poll():
                    at[fetched.at] = fetched.next_position
                    found[fetched.at.partition] += [
                        (record.offset, (record.value or b"").decode()) for record in fetched.records()
                    ]
                await asyncio.sleep(0)
        return found
