"""Members of share groups, and those who watch how far such a group has come."""

from __future__ import annotations

from ottla.client.share import ShareConsumer
from ottla.client.share.offsets import describe_offsets
from simulation.cluster.clients.client import SimulatedClient

__all__ = ["ShareMember", "ShareWatcher"]

GROUP_ID = "workers"


class ShareMember(SimulatedClient):
    """Takes records, and accepts or releases them."""

    KIND = "share"

    async def work(self) -> None:
        topic = await self.data_topic()
        async with ShareConsumer(
            self.client, GROUP_ID, [topic], acknowledgement="explicit", max_records=20
        ) as consumer:
            for _ in range(self.random.randint(3, 30)):
                if self.is_over:
                    return
                await self._take(consumer)

    async def _take(self, consumer: ShareConsumer) -> None:
        history = self.world.history
        delivered = history.begin(self.name, "deliver", GROUP_ID)
        taken = await consumer.poll(500)
        records = [record for acquired in taken for record in acquired.records()]
        history.end(delivered, result=[(each.partition, each.offset) for each in records])
        accepted = [each for each in records if self.random.random() < 0.8]
        consumer.accept(*accepted)
        consumer.release(*(each for each in records if each not in accepted))
        await self.pause(0, 300)
        committed = history.begin(self.name, "accept", GROUP_ID)
        outcomes = await consumer.commit()
        well = {at.partition for at, error in outcomes.items() if error is None}
        history.end(committed, result=[(each.partition, each.offset) for each in accepted if each.partition in well])


class ShareWatcher(SimulatedClient):
    """Reads where the partitions of a share group start."""

    KIND = "watcher"

    async def work(self) -> None:
        await self.pause(200, 1_000)

        async def look() -> list[tuple[int, int]]:
            found = await describe_offsets(self.client, GROUP_ID)
            return sorted(
                (at.partition, each.start_offset) for at, each in found.items() if each.start_offset is not None
            )

        await self.do("share start", GROUP_ID, look)
