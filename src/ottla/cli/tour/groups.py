"""The tour through groups: two members share a topic, and one delays the other."""

import asyncio
from typing import TYPE_CHECKING

from rich.text import Text

from ottla.cli.tour.step import Stage, Step

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.group_view import GroupView

GROUP, TOPIC, PARTITIONS = "billing", "orders", 4
ROUNDS_MAX = 200
"""The most heartbeats of a member; it takes two or three."""


class TourMember:
    """A member of a consumer group that only sends heartbeats, with what it owns, and gets its assignment."""

    def __init__(self, client: "Client", name: str) -> None:
        self._client = client
        self.name = name
        self.epoch = 0
        self.owned: set[int] = set()
        self.wanted: set[int] = set()
        self.topic_id = bytes(16)

    async def heartbeat(self) -> None:
        """Send one heartbeat and take the assignment. A new member joins with epoch 0."""
        from ottla.client.errors import check
        from ottla.wire.types import ConsumerGroupHeartbeatRequest

        is_new = self.epoch == 0
        owned = ConsumerGroupHeartbeatRequest.TopicPartitions(self.topic_id, tuple(sorted(self.owned)))
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.name,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000 if is_new else -1,
            subscribed_topic_names=(TOPIC,) if is_new else None,
            server_assignor="uniform" if is_new else None,
            topic_partitions=(owned,) if self.owned else (),
        )
        answer = await self._client.send(request, coordinator=("group", GROUP))
        check(None, "ConsumerGroupHeartbeat", answer.error_code, f"group {GROUP}", answer.error_message)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            self.wanted = {index for topic in topics for index in topic.partitions}
            self.topic_id = topics[0].topic_id if topics else self.topic_id

    async def settle(self, partitions: int) -> None:
        """Send heartbeats and reconcile, until it owns so many partitions."""
        for _ in range(ROUNDS_MAX):
            await self.heartbeat()
            self.owned = self.wanted
            if len(self.owned) == partitions:
                await self.heartbeat()  # confirms the assignment
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{self.name} never owns {partitions} partitions")


def share(stage: Stage) -> None:
    import ottla.testing

    # The assignment is computed at once, so that the tour does not wait.
    with ottla.testing.broker(auto_create_topics_enable=False, group_consumer_assignment_interval_ms=0) as broker:
        stage.code('await client.send(ConsumerGroupHeartbeatRequest(...), coordinator=("group", "billing"))')
        asyncio.run(_share(stage, broker.bootstrap_servers))
        broker.kill()
        broker.restart()
        kept = asyncio.run(_committed(broker.bootstrap_servers))
        stage.check("committed offsets survive a crash of the broker", set(kept.values()) == {1})


async def _share(stage: Stage, bootstrap_servers: str) -> None:
    from ottla.client import Client, Producer, groups, topics
    from ottla.client.group_view import rebalance_blockers

    async with Client(bootstrap_servers) as client:
        await topics.create(client, topics.NewTopic(TOPIC, partitions=PARTITIONS))
        for partition in range(PARTITIONS):
            for value in (b"tea", b"cake"):
                await Producer(client).send(TOPIC, value, partition=partition)
        one, two = TourMember(client, "one"), TourMember(client, "two")
        await one.settle(PARTITIONS)
        stage.check("a lone member has every partition", one.owned == set(range(PARTITIONS)))
        await two.heartbeat()
        await one.heartbeat()  # it must revoke something, and has not done so yet
        view = await groups.view(client, GROUP)
        _show(stage, view)
        (late,) = rebalance_blockers(view)
        holds_up = (late.member_id, late.waiting) == ("one", ("two",))
        stage.check(f"one has not revoked {len(late.awaited)} partitions yet, and two is waiting for them", holds_up)
        await one.settle(PARTITIONS // 2)
        await two.settle(PARTITIONS // 2)
        _show(stage, await groups.view(client, GROUP))
        stage.check("now each has half of them, and none is owned twice", not one.owned & two.owned)
        await _commit(stage, client, one, two)


def _show(stage: Stage, view: "GroupView") -> None:
    from ottla.cli.groups.describe import compact

    stage.show(Text(f"$ ottla groups describe {GROUP}", style="bold"))
    stage.show(f"  {view.state}, epoch {view.epoch}")
    for member in view.members:
        coming = [share for share in member.target or () if share not in member.assignment]
        more = f", to be assigned {compact(coming)}" if coming else ""
        stage.show(f"  {member.member_id}: epoch {member.epoch}, has {compact(member.assignment)}{more}")


async def _commit(stage: Stage, client: "Client", *members: TourMember) -> None:
    from ottla.client import TopicPartition
    from ottla.client.lag import lags
    from ottla.wire.types import OffsetCommitRequest

    kind = OffsetCommitRequest
    for member in members:
        partitions = tuple(kind.OffsetCommitRequestPartition(index, 1) for index in sorted(member.owned))
        topic = kind.OffsetCommitRequestTopic(TOPIC, partitions=partitions)
        request = kind(GROUP, member.epoch, member.name, topics=(topic,))
        await client.send(request, coordinator=("group", GROUP), max_version=9)
    behind = await lags(client, {TopicPartition(TOPIC, index): 1 for index in range(PARTITIONS)})
    stage.show(Text(f"$ ottla groups offsets {GROUP}", style="bold"))
    stage.show(f"  {sum(each.records or 0 for each in behind.values())} records behind")
    stage.check("one record of two is left in each partition", all(each.records == 1 for each in behind.values()))


async def _committed(bootstrap_servers: str) -> "dict[TopicPartition, int]":
    from ottla.client import Client
    from ottla.client.group_offsets import committed

    async with Client(bootstrap_servers) as client:
        return {at: each.offset for at, each in (await committed(client, GROUP)).items()}


STEPS = (
    Step(
        "a consumer group",
        "Two members share a topic. One revokes partitions first, then the other gets them.",
        share,
    ),
)
