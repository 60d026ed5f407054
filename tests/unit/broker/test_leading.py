"""A leader and its followers, which the test plays: what is committed, and who is in sync."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.broker.node import Node
from ottla.log.producer_state import Verification
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types import BrokerHeartbeatRequest, CreateTopicsRequest, FetchRequest, ListOffsetsRequest
from tests.unit.broker.played_broker import another_broker
from tests.unit.broker.virtual_node import Client, produce_to, run, running
from tests.unit.log.logs import NOW, producer_batch

LEADER, FOLLOWER = 1, 2
CONSUMER = -1


class Played:
    """A follower with an empty log."""

    def __init__(self, loop: VirtualLoop, heartbeat: BrokerHeartbeatRequest, topic_id: bytes) -> None:
        self.heartbeat = heartbeat
        self.topic_id = topic_id
        self.client, self.controller = Client(loop, 9092), Client(loop, 9093)

    async def fetch(
        self, offset: int, *, broker_epoch: int | None = None, replica_id: int = FOLLOWER, leader_epoch: int = 0
    ) -> Any:
        kind = FetchRequest
        wanted = kind.FetchPartition(0, leader_epoch, offset, log_start_offset=0, partition_max_bytes=1 << 20)
        epoch = self.heartbeat.broker_epoch if broker_epoch is None else broker_epoch
        request = kind(
            replica_state=kind.ReplicaState(replica_id, epoch),
            max_wait_ms=0,
            topics=(kind.FetchTopic(topic_id=self.topic_id, partitions=(wanted,)),),
            session_epoch=-1,
        )
        (topic,) = (await self.client.ask(request, 17)).responses
        return topic.partitions[0]

    async def stay(self) -> None:
        await self.controller.ask(self.heartbeat, 2)


async def led_topic(loop: VirtualLoop, node: Node, **configs: str) -> Played:
    """A topic that the node leads and a played broker follows."""
    heartbeat = await another_broker(loop, node, FOLLOWER)
    kind = CreateTopicsRequest
    topic = kind.CreatableTopic(
        "orders",
        assignments=(kind.CreatableReplicaAssignment(0, (LEADER, FOLLOWER)),),
        num_partitions=-1,
        replication_factor=-1,
        configs=tuple(kind.CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()),
    )
    (created,) = (await Client(loop, 9093).ask(kind((topic,)), 7)).topics
    assert created.error_code == 0, created
    return Played(loop, heartbeat, created.topic_id)


def partition(node: Node) -> Any:
    return node.image.topics_by_name["orders"].partitions[0]


def test_a_write_is_acknowledged_when_the_follower_has_it() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            played = await led_topic(loop, node)
            writing = loop.create_task(Client(loop, 9092).ask(produce_to(played.topic_id), 13))
            await asyncio.sleep(0.5)
            assert (await played.fetch(0)).high_watermark == 0
            assert not writing.done()
            assert (await played.fetch(1)).high_watermark == 1
            assert (await writing).responses[0].partition_responses[0].error_code == 0

    run(scenario)


def test_with_fsync_a_write_that_asks_for_the_leader_alone_waits_for_no_follower() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), settings={"ottla.fsync": "true"}) as node:
            played = await led_topic(loop, node)
            writing = loop.create_task(Client(loop, 9092).ask(produce_to(played.topic_id, acks=1), 13))
            await asyncio.sleep(0.5)
            assert writing.done()
            assert writing.result().responses[0].partition_responses[0].error_code == 0
            log = node.replicas.by_key["orders", 0].log
            assert (log.recovery_point, log.high_watermark) == (1, 0)

    run(scenario)


@pytest.mark.prompt
def test_a_silent_follower_leaves_the_in_sync_replicas_and_comes_back() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        settings = {"replica.lag.time.max.ms": "4000", "broker.session.timeout.ms": "60000"}
        async with running(loop, VirtualDisk(), settings=settings) as node:
            played = await led_topic(loop, node)
            writing = loop.create_task(Client(loop, 9092).ask(produce_to(played.topic_id, timeout_ms=20_000), 13))
            await asyncio.sleep(8)
            assert partition(node).isr == (LEADER,)
            assert (await writing).responses[0].partition_responses[0].error_code == 0
            await played.fetch(0)
            assert partition(node).isr == (LEADER,), "it has not come far enough"
            await played.fetch(1)
            await asyncio.sleep(0.1)
            assert partition(node).isr == (LEADER, FOLLOWER)

    run(scenario)


@pytest.mark.prompt
@pytest.mark.parametrize("is_fenced", [True, False])
def test_who_is_fenced_or_of_an_earlier_life_does_not_join(is_fenced: bool) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        settings = {"replica.lag.time.max.ms": "4000"}
        async with running(loop, VirtualDisk(), settings=settings) as node:
            played = await led_topic(loop, node)
            await Client(loop, 9092).ask(produce_to(played.topic_id, acks=1), 13)
            await asyncio.sleep(12)
            assert partition(node).isr == (LEADER,)
            assert node.image.brokers[FOLLOWER].fenced
            if not is_fenced:
                await played.stay()
            await played.fetch(1, broker_epoch=None if is_fenced else played.heartbeat.broker_epoch - 1)
            await asyncio.sleep(0.5)
            assert partition(node).isr == (LEADER,)
            await played.stay()
            await played.fetch(1)
            await asyncio.sleep(0.5)
            assert partition(node).isr == (LEADER, FOLLOWER)

    run(scenario)


def test_a_fetch_of_an_earlier_life_is_refused() -> None:
    """A request that was on its way when its sender ended."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            played = await led_topic(loop, node)
            await Client(loop, 9092).ask(produce_to(played.topic_id, acks=1), 13)
            assert (await played.fetch(0)).error_code == 0
            stale = await played.fetch(1, broker_epoch=played.heartbeat.broker_epoch - 1)
            assert stale.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert node.replicas.by_key["orders", 0].high_watermark == 0
            assert (await played.fetch(1)).high_watermark == 1

    run(scenario)


@pytest.mark.parametrize(
    ("leader_epoch", "code"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_fetch_of_a_node_without_a_replica_is_refused(leader_epoch: int, code: ErrorCode) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            played = await led_topic(loop, node)
            answer = await played.fetch(0, replica_id=3, leader_epoch=leader_epoch)
            assert answer.error_code == code

    run(scenario)


@pytest.mark.prompt
def test_nothing_is_committed_under_the_minimum() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        settings = {"replica.lag.time.max.ms": "4000"}
        async with running(loop, VirtualDisk(), settings=settings) as node:
            played = await led_topic(loop, node, min_insync_replicas="2")
            client = Client(loop, 9092)
            await client.ask(produce_to(played.topic_id, acks=1), 13)
            await asyncio.sleep(12)
            answer = await client.ask(produce_to(played.topic_id), 13)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert node.replicas.by_key["orders", 0].high_watermark == 0
            assert partition(node).isr == (LEADER,)
            answer = await client.ask(produce_to(played.topic_id, acks=1), 13)
            assert answer.responses[0].partition_responses[0].error_code == 0
            seen = await played.fetch(0, replica_id=CONSUMER)
            assert (seen.error_code, seen.high_watermark, len(seen.records or b"")) == (0, 0, 0)
            await played.stay()
            await played.fetch(2)
            await asyncio.sleep(0.1)
            assert node.replicas.by_key["orders", 0].high_watermark == 2
            assert (await played.fetch(0, replica_id=CONSUMER)).records

    run(scenario)


def test_a_new_leader_does_not_tell_the_end_before_it_knows_what_is_committed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            played = await led_topic(loop, node)
            client, kind = Client(loop, 9092), ListOffsetsRequest
            await client.ask(produce_to(played.topic_id, acks=1), 13)
            leading = node.replicas.by_key["orders", 0].leading
            assert leading is not None
            leading.epoch_start_offset = 1  # as if it had become leader just now
            latest = kind(-1, 0, (kind.ListOffsetsTopic("orders", (kind.ListOffsetsPartition(0, -1, -1),)),))
            for version, code in ((4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)):
                answer = (await client.ask(latest, version)).topics[0].partitions[0]
                assert answer.error_code == code
            await played.fetch(1)
            answer = (await client.ask(latest, 5)).topics[0].partitions[0]
            assert (answer.error_code, answer.offset) == (0, 1)

    run(scenario)


def test_a_transaction_that_is_open_since_another_leader_does_not_hide_the_end() -> None:
    """What counts is the high watermark. The last stable offset stays below the start of the epoch until it ends."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            played = await led_topic(loop, node)
            client, kind = Client(loop, 9092), ListOffsetsRequest
            await client.ask(produce_to(played.topic_id, acks=1), 13)
            await played.fetch(1)
            replica = node.replicas.by_key["orders", 0]
            assert replica.leading is not None
            verified = Verification(replica.log.producers.verification_guard(5))
            records = producer_batch(5, 0, transactional=True)
            replica.log.append_as_leader(records, replica.leader_epoch, NOW, verification=verified)
            await played.fetch(2)
            assert (replica.high_watermark, replica.log.last_stable_offset) == (2, 1)
            replica.leading.epoch_start_offset = 2  # as if it had become leader just now
            topic = kind.ListOffsetsTopic("orders", (kind.ListOffsetsPartition(0, -1, -1),))
            for isolation_level, end_offset in ((0, 2), (1, 1)):
                answer = (await client.ask(kind(-1, isolation_level, (topic,)), 5)).topics[0].partitions[0]
                assert (answer.error_code, answer.offset) == (0, end_offset)

    run(scenario)


@pytest.mark.prompt
def test_followers_of_a_partition_that_was_never_written_to_are_in_sync() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        settings = {"replica.lag.time.max.ms": "4000"}
        async with running(loop, VirtualDisk(), settings=settings) as node:
            played = await led_topic(loop, node)
            await asyncio.sleep(12)
            assert partition(node).isr == (LEADER,)
            await played.stay()
            await played.fetch(0)
            await asyncio.sleep(0.5)
            assert partition(node).isr == (LEADER, FOLLOWER)
            assert not node.replicas.by_key["orders", 0].has_log

    run(scenario)
