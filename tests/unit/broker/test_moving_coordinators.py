"""Coordinators on several nodes, on virtual time: what they ask of each other, and what stays when one goes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.broker.node import Node
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.batch import Record, build_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeShareGroupOffsetsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from tests.unit.broker.coordinator_requests import (
    INTERNAL,
    KIND_GROUP,
    KIND_SHARE,
    KIND_TRANSACTION,
    again,
    coordinator,
)
from tests.unit.broker.share_state_requests import codes, initialize, write
from tests.unit.broker.virtual_cluster import NODES, Cluster, cluster, until
from tests.unit.broker.virtual_node import run

TOPIC, GROUP, TRANSACTIONAL_ID = "orders", "billing", "payments"
MANY = INTERNAL | {"offsets.topic.num.partitions": "9", "transaction.state.log.num.partitions": "9"}
"""So many partitions that each node coordinates something."""
SESSION_S = 9


class Transaction:
    """A producer with the newest protocol (transaction version 2)."""

    def __init__(self, it: Cluster) -> None:
        self._it = it
        self.producer_id = self.producer_epoch = -1

    async def begin(self) -> None:
        request = InitProducerIdRequest(TRANSACTIONAL_ID, 60_000)
        answer = await again(self._it, TRANSACTIONAL_ID, KIND_TRANSACTION, request, 5, lambda answer: answer.error_code)
        assert answer.error_code == 0, answer
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    async def produce(self, leader: int, topic_id: bytes, partition: int) -> int:
        kind = ProduceRequest
        records = build_batch(
            [Record(0, 0, b"k", b"v", ())],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = kind.TopicProduceData("", topic_id, (kind.PartitionProduceData(partition, records),))
        answer = await self._it.client(leader).ask(kind(TRANSACTIONAL_ID, -1, 10_000, (data,)), 13)
        return int(answer.responses[0].partition_responses[0].error_code)

    async def commit_offset(self, group: str, topic_id: bytes, offset: int) -> int:
        kind = TxnOffsetCommitRequest
        partition = kind.TxnOffsetCommitRequestPartition(0, offset, -1, None)
        topic = kind.TxnOffsetCommitRequestTopic("", topic_id, (partition,))
        request = kind(TRANSACTIONAL_ID, group, self.producer_id, self.producer_epoch, topics=(topic,))
        answer = await again(
            self._it, group, KIND_GROUP, request, 6, lambda answer: answer.topics[0].partitions[0].error_code
        )
        return int(answer.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool = True) -> int:
        request = EndTxnRequest(TRANSACTIONAL_ID, self.producer_id, self.producer_epoch, commit)
        answer = await again(self._it, TRANSACTIONAL_ID, KIND_TRANSACTION, request, 5, lambda answer: answer.error_code)
        if not answer.error_code:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)


def borders(it: Cluster, partition: int, leader: int) -> tuple[int, int]:
    """The last stable offset and the end."""
    log = it.nodes[leader].replicas.by_key[TOPIC, partition].log
    return log.last_stable_offset, log.log_end_offset


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_over_partitions_of_all_nodes(commit: bool) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=INTERNAL) as it:
            topic_id = await it.create_topic(TOPIC, (1,), (2,), (3,))
            transaction = Transaction(it)
            await transaction.begin()
            for round_number in range(2):
                for number in NODES:
                    assert await transaction.produce(number, topic_id, number - 1) == 0, f"node {number}"
                    assert borders(it, number - 1, number)[0] == 2 * round_number
                assert await transaction.end(commit=commit) == 0
                await asyncio.sleep(0.5)
                ended = 2 * round_number + 2
                assert [borders(it, number - 1, number) for number in NODES] == [(ended, ended)] * 3

    run(scenario)


def test_a_transaction_ends_when_its_coordinator_is_killed_after_the_decision() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=INTERNAL) as it:
            topic_id = await it.create_topic(TOPIC, (1, 2, 3), (2, 3, 1), (3, 1, 2))
            transaction = Transaction(it)
            await transaction.begin()
            for number in NODES:
                assert await transaction.produce(number, topic_id, number - 1) == 0
            first = await coordinator(it, TRANSACTIONAL_ID, KIND_TRANSACTION)
            others = [number for number in NODES if number != first]
            node = it.nodes[first]
            node.brokers.close()
            node.brokers.send = lambda *_: None  # type: ignore[method-assign]  # no marker leaves it
            assert await transaction.end() == 0
            assert borders(it, others[0] - 1, others[0]) == (0, 1)
            await it.kill(first)
            await asyncio.sleep(20)
            assert await coordinator(it, TRANSACTIONAL_ID, KIND_TRANSACTION) != first
            for partition in range(3):
                leader = it.nodes[others[0]].image.topics_by_name[TOPIC].partitions[partition].leader
                stable, end = borders(it, partition, leader)
                assert stable == end >= 2, f"partition {partition}"  # a marker may be there twice

    run(scenario)


def test_offsets_of_a_transaction_whose_group_has_another_coordinator() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=MANY) as it:
            topic_id = await it.create_topic(TOPIC, (1,))
            transaction = Transaction(it)
            await transaction.begin()
            group = await group_elsewhere(it)
            assert await transaction.commit_offset(group, topic_id, 42) == 0
            assert await committed(it, group, topic_id) == -1
            assert await transaction.end() == 0
            await asyncio.sleep(0.5)
            assert await committed(it, group, topic_id) == 42

    run(scenario)


@pytest.mark.parametrize("adding_takes_s", [0, 0.1], ids=["the marker comes later", "the marker comes first"])
def test_a_transaction_commits_offsets_while_the_one_before_it_ends(adding_takes_s: float) -> None:
    """The end is answered before the other node has the marker, which comes when the next commit is being verified:
    while the coordinator is asked again, or is about to be asked."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=MANY) as it:
            topic_id = await it.create_topic(TOPIC, (1,))
            transaction = Transaction(it)
            await transaction.begin()
            group = await group_elsewhere(it)
            delay(
                loop, it.nodes[await coordinator(it, TRANSACTIONAL_ID, KIND_TRANSACTION)], WriteTxnMarkersRequest, 0.05
            )
            delay(loop, it.nodes[await coordinator(it, group, KIND_GROUP)], AddPartitionsToTxnRequest, adding_takes_s)
            for offset in (1, 2):
                assert await transaction.commit_offset(group, topic_id, offset) == 0
                assert await transaction.end() == 0
            await asyncio.sleep(0.5)
            assert await committed(it, group, topic_id) == 2

    run(scenario)


def delay(loop: VirtualLoop, node: Node, kind: type, seconds: float) -> None:
    """Let a node's requests of a kind reach other nodes late."""
    send = node.brokers.send

    def send_late(broker: int, request: Any, *others: Any) -> None:
        loop.call_later(seconds if isinstance(request, kind) else 0, send, broker, request, *others)

    node.brokers.send = send_late  # type: ignore[method-assign]


async def group_elsewhere(it: Cluster) -> str:
    """A group that another node coordinates than the transaction."""
    own = await coordinator(it, TRANSACTIONAL_ID, KIND_TRANSACTION)
    group = GROUP
    while await coordinator(it, group, KIND_GROUP) == own:
        group += "'"
    return group


async def committed(it: Cluster, group: str, topic_id: bytes) -> int:
    kind = OffsetFetchRequest
    asked = kind.OffsetFetchRequestGroup(group, topics=(kind.OffsetFetchRequestTopics("", topic_id, (0,)),))
    answer = await again(it, group, KIND_GROUP, kind(groups=(asked,)), 10, lambda answer: answer.groups[0].error_code)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def test_a_group_whose_topic_was_made_a_moment_ago_is_asked_for_again() -> None:
    """A node knows of the topic before its coordinators do."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=INTERNAL) as it:
            topics = it.nodes[1].internal_topics
            topics.ensure = lambda topic, done: done(ErrorCode.NONE)  # type: ignore[method-assign]
            answer = await it.client(1).ask(AddOffsetsToTxnRequest(TRANSACTIONAL_ID, 0, 0, GROUP), 3)
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario)


def test_a_member_goes_on_when_its_coordinator_is_killed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=INTERNAL) as it:
            topic_id = await it.create_topic(TOPIC, (1, 2, 3))
            beat = ConsumerGroupHeartbeatRequest
            joined = await again(
                it,
                GROUP,
                KIND_GROUP,
                beat(
                    GROUP,
                    "a member",
                    0,
                    rebalance_timeout_ms=60_000,
                    subscribed_topic_names=(TOPIC,),
                    topic_partitions=(),
                ),
                1,
                lambda answer: answer.error_code,
            )
            assert (joined.error_code, joined.assignment.topic_partitions[0].partitions) == (0, (0,))
            kind = OffsetCommitRequest
            topic = kind.OffsetCommitRequestTopic("", topic_id, (kind.OffsetCommitRequestPartition(0, 7, -1, None),))
            commit = kind(GROUP, joined.member_epoch, "a member", topics=(topic,))
            answer = await again(
                it, GROUP, KIND_GROUP, commit, 10, lambda answer: answer.topics[0].partitions[0].error_code
            )
            assert answer.topics[0].partitions[0].error_code == 0
            first = await coordinator(it, GROUP, KIND_GROUP)
            await it.kill(first)
            owned = (beat.TopicPartitions(topic_id, (0,)),)
            again_there = await again(
                it,
                GROUP,
                KIND_GROUP,
                beat(GROUP, "a member", joined.member_epoch, topic_partitions=owned),
                1,
                lambda answer: answer.error_code,
            )
            assert await coordinator(it, GROUP, KIND_GROUP) != first
            assert (again_there.error_code, again_there.member_epoch) == (0, joined.member_epoch)
            assert await committed(it, GROUP, topic_id) == 7

    run(scenario)


def test_the_state_of_share_partitions_is_with_a_coordinator_elsewhere() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=INTERNAL) as it:
            topic_id = await it.create_topic(TOPIC, (1,), (2,), (3,))
            for number in NODES:
                heard: list[Any] = []
                persister = it.nodes[number].share.persister
                persister.ask(initialize(topic_id, (number - 1,), start=0, group=GROUP), heard.append)
                persister.ask(
                    write(topic_id, (1, 1, 2, 1), partitions=(number - 1,), start=0, count=1, group=GROUP), heard.append
                )
                await until(lambda heard=heard: len(heard) == 2)
                assert [codes(each) for each in heard] == [{number - 1: 0}] * 2, f"node {number}"
            state = await coordinator(it, f"{GROUP}:{'A' * 22}:0", KIND_SHARE)
            assert len(it.nodes[state].share_state.shards) == 1
            for number in NODES:
                await produce_some(it, number, topic_id, number)
            kind = DescribeShareGroupOffsetsRequest
            topic = kind.DescribeShareGroupOffsetsRequestTopic(TOPIC, (0, 1, 2))
            request = kind((kind.DescribeShareGroupOffsetsRequestGroup(GROUP, (topic,)),))
            for number in NODES:
                described = (await it.client(number).ask(request, 1)).groups[0].topics[0].partitions
                assert [each.error_code for each in described] == [0, 0, 0]
                assert [each.lag for each in described] == [0, 1, 2], "what is done counts"

    run(scenario)


async def produce_some(it: Cluster, leader: int, topic_id: bytes, count: int) -> None:
    kind = ProduceRequest
    records = build_batch([Record(number, 0, b"k", b"v", ()) for number in range(count)])
    data = kind.TopicProduceData("", topic_id, (kind.PartitionProduceData(leader - 1, records),))
    answer = await it.client(leader).ask(kind(None, -1, 10_000, (data,)), 13)
    assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.prompt
def test_writes_of_share_state_outlive_their_coordinator() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=INTERNAL) as it:
            topic_id = await it.create_topic(TOPIC, (1, 2, 3))
            heard: list[Any] = []
            it.nodes[1].share.persister.ask(initialize(topic_id, start=0, group=GROUP), heard.append)
            state = await coordinator(it, f"{GROUP}:{'A' * 22}:0", KIND_SHARE)
            await until(lambda: bool(heard))
            asking = next(number for number in NODES if number != state)
            await it.kill(state)
            persister = it.nodes[asking].share.persister
            persister.ask(write(topic_id, (0, 4, 2, 1), start=0, count=5, group=GROUP), heard.append)
            persister.ask(write(topic_id, start=5, group=GROUP), heard.append)
            await asyncio.sleep(20)
            assert [codes(each) for each in heard] == [{0: 0}] * 3
            assert await coordinator(it, f"{GROUP}:{'A' * 22}:0", KIND_SHARE) != state

    run(scenario)


def test_a_coordinator_refuses_what_could_not_be_committed() -> None:
    settings = INTERNAL | {"min.insync.replicas": "2", "replica.lag.time.max.ms": "2000"}

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings=settings) as it:
            await it.create_topic(TOPIC, (1, 2, 3))
            leader = await coordinator(it, GROUP, KIND_GROUP)
            kind = OffsetCommitRequest
            topic = kind.OffsetCommitRequestTopic(
                TOPIC, partitions=(kind.OffsetCommitRequestPartition(0, 7, -1, None),)
            )
            client = it.client(leader)

            async def commit() -> int:
                answer = await client.ask(kind(GROUP, topics=(topic,)), 9)
                return int(answer.topics[0].partitions[0].error_code)

            assert await commit() == 0
            replica = it.nodes[leader].replicas.by_key["__consumer_offsets", 0]
            assert replica.leading is not None
            replica.leading.isr = frozenset({leader})  # as if the others had just fallen behind
            before = replica.log_end_offset
            assert await commit() == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert replica.log_end_offset == before

    run(scenario)
