"""Partitions without news cost a leader nothing, however many its followers have; and what happens to them is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from ottla.broker.handlers import fetch
from ottla.testing.virtual_loop import VirtualLoop
from tests.unit.broker.virtual_cluster import NODES, Cluster, cluster
from tests.unit.broker.virtual_node import produce_to, run

TOPIC = "orders"
PARTITIONS = 30


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often leaders have looked at each partition of the topic for a follower."""
    found: Counter[int] = Counter()
    look = fetch._Fetch._look

    def counted(self: Any, wanted: Any, left: int, *, is_first: bool) -> Any:
        if self.is_follower and wanted.topic_id == topic_id_of(self.node):
            found[wanted.partition] += 1
        return look(self, wanted, left, is_first=is_first)

    monkeypatch.setattr(fetch._Fetch, "_look", counted)
    return found


def topic_id_of(node: Any) -> bytes | None:
    topic = node.image.topics_by_name.get(TOPIC)
    return None if topic is None else topic.topic_id


async def create(it: Cluster) -> bytes:
    """A topic whose first partition is led by the first node; all are in sync and at rest."""
    topic_id = await it.create_topic(TOPIC, *[NODES] * PARTITIONS)
    for number in range(PARTITIONS):
        assert await produce(it, topic_id, number, b"first") == 0
    await asyncio.sleep(5)
    return topic_id


async def produce(it: Cluster, topic_id: bytes, partition: int, value: bytes) -> int:
    answer = await it.client(1).ask(produce_to(topic_id, value, partition=partition, timeout_ms=10_000), 13)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def test_nobody_looks_at_partitions_at_rest(looks: Counter[int]) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it)
            looks.clear()
            await asyncio.sleep(60)
            assert looks == {}
            assert await produce(it, topic_id, 7, b"second") == 0
            await asyncio.sleep(2)
            assert set(looks) == {7}
            assert looks[7] < 20

    run(scenario)


def test_followers_learn_what_is_committed_and_where_the_log_starts(looks: Counter[int]) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it)
            assert await produce(it, topic_id, 3, b"second") == 0
            await asyncio.sleep(2)
            leader = it.nodes[1].replicas
            replica = leader.by_key[TOPIC, 3]
            replica.log.delete_records(1)
            leader.look_again(replica)
            await asyncio.sleep(2)
            for number in NODES:
                log = it.nodes[number].replicas.by_key[TOPIC, 3].log
                assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 2, 2), f"node {number}"

    run(scenario)


def test_a_follower_that_was_faster_learns_later_what_is_committed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it)
            it.cut(1, 3)
            answer = await it.client(1).ask(produce_to(topic_id, b"second", acks=1), 13)
            assert answer.responses[0].partition_responses[0].error_code == 0
            await asyncio.sleep(3)
            faster = it.nodes[2].replicas.by_key[TOPIC, 0].log
            assert (faster.high_watermark, faster.log_end_offset) == (1, 2)
            it.heal()
            await asyncio.sleep(60)
            assert faster.high_watermark == 2

    run(scenario)


def test_a_follower_that_fetched_all_the_time_stays_in_sync_when_a_quiet_partition_is_written() -> None:
    """It has the time of its last fetch, although nobody has looked at this partition then."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it)
            await asyncio.sleep(120)
            it.cut(1, 2)  # what follows reaches one follower only
            answer = asyncio.ensure_future(produce(it, topic_id, 0, b"second"))
            await asyncio.sleep(1)
            leader = it.nodes[1].replicas
            leader.shrink_isrs()
            leading = leader.by_key[TOPIC, 0].leading
            assert leading is not None
            assert set(leading.maximal_isr) == set(NODES)
            assert leading.pending is None
            it.heal()
            await answer  # in time or not

    run(scenario)


def test_a_node_that_leads_no_longer_says_so_of_quiet_partitions() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it)
            await it.stop(1)
            await asyncio.sleep(2)
            await it.start(1)
            await asyncio.sleep(400)  # until the preferred leaders lead again
            assert {each.leader for each in it.nodes[2].image.topics_by_name[TOPIC].partitions.values()} == {1}
            for number in range(PARTITIONS):
                assert await produce(it, topic_id, number, b"second") == 0
            for node in NODES:
                for number in range(PARTITIONS):
                    assert it.nodes[node].replicas.by_key[TOPIC, number].log_end_offset == 2

    run(scenario)


def test_a_follower_whose_link_has_failed_leaves_no_session_behind() -> None:
    """Its leader would look for each partition that is written to in all of them."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await create(it)
            followers = len(NODES) - 1
            assert len(it.nodes[1].fetch_sessions) == followers
            for _ in range(3):
                for fetcher in it.nodes[2].fetchers._by_leader.values():
                    fetcher._connection._lost("a test")
                await asyncio.sleep(5)
            assert len(it.nodes[1].fetch_sessions) == followers

    run(scenario)
