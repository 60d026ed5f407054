"""Asking for much at once: an answer for each, and why others have none."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client import TopicPartition
from ottla.client.errors import ClientError, ResponseError
from ottla.client.group_offsets import Committed, try_committed
from ottla.client.groups import ListedGroup, try_describe, try_list
from ottla.client.lag import times_at
from ottla.client.log_dirs import LogDirectory, try_describe_log_dirs
from ottla.client.open_transactions import OpenProducer, TransactionDescription, open_producers
from ottla.client.open_transactions import try_describe as try_describe_transactions
from ottla.client.reassignments import Reassignment, list_reassignments
from ottla.client.share.offsets import ShareOffset, try_describe_offsets
from ottla.wire import frames, types
from ottla.wire.batch import Record, build_batch
from tests.component.client.fake import FakeCluster, topic_id
from tests.unit.client.running import run

ORDERS_0 = TopicPartition("orders", 0)
DENIED = 30


def codes(outcomes: dict[Any, Any]) -> dict[Any, int]:
    return {key: each.code for key, each in outcomes.items() if isinstance(each, ResponseError)}


@pytest.mark.parametrize(("version", "requests"), [(9, 1), (8, 1), (7, 2)])
def test_committed_offsets_of_many_groups(version: int, requests: int):
    def answer(request: frames.Request) -> types.OffsetFetchResponse:
        kind = types.OffsetFetchResponse
        if request.version < 8:
            part = kind.OffsetFetchResponsePartition(0, 12, 3)
            code = DENIED if request.body.group_id == "yours" else 0
            return kind(topics=(kind.OffsetFetchResponseTopic("orders", (part,)),), error_code=code)
        parts = (kind.OffsetFetchResponsePartitions(0, 12, 3), kind.OffsetFetchResponsePartitions(1, -1))
        topics = (kind.OffsetFetchResponseTopics("orders", partitions=parts),)
        return kind(
            groups=(kind.OffsetFetchResponseGroup("mine", topics), kind.OffsetFetchResponseGroup("yours", (), DENIED))
        )

    async def body() -> None:
        async with FakeCluster() as cluster:
            cluster.broker().versions["OffsetFetch"] = (1, version)
            cluster.broker().on("OffsetFetch", answer)
            async with cluster.client() as client:
                outcomes = await try_committed(client, 1, ["mine", "yours"])
            assert outcomes["mine"] == {ORDERS_0: Committed(12, 3)}
            assert codes(outcomes) == {"yours": DENIED}
            assert len(cluster.broker().asked_for("OffsetFetch")) == requests

    run(body)


def test_offsets_of_many_share_groups():
    async def body() -> None:
        kind = types.DescribeShareGroupOffsetsResponse
        parts = (kind.DescribeShareGroupOffsetsResponsePartition(0, 7, 2, lag=5),
                 kind.DescribeShareGroupOffsetsResponsePartition(1, -1, 0, lag=-1))  # fmt: skip
        topic = kind.DescribeShareGroupOffsetsResponseTopic("orders", topic_id("orders"), parts)
        mine = kind.DescribeShareGroupOffsetsResponseGroup("mine", (topic,))
        yours = kind.DescribeShareGroupOffsetsResponseGroup("yours", error_code=DENIED)
        async with FakeCluster() as cluster:
            cluster.broker().on("DescribeShareGroupOffsets", kind(groups=(mine, yours)))
            async with cluster.client() as client:
                outcomes = await try_describe_offsets(client, 1, ["mine", "yours"])
        assert outcomes["mine"] == {
            ORDERS_0: ShareOffset(topic_id("orders"), 7, 2, 5),
            TopicPartition("orders", 1): ShareOffset(topic_id("orders"), None, 0, None),
        }
        assert codes(outcomes) == {"yours": DENIED}

    run(body)


def test_what_one_broker_does_not_tell_others_do():
    async def body() -> None:
        listed = types.ListGroupsResponse.ListedGroup("a", "consumer", "Stable", "classic")
        disk = types.DescribeLogDirsResponse.DescribeLogDirsResult(0, "/data", total_bytes=100, usable_bytes=40)
        failed = types.DescribeLogDirsResponse.DescribeLogDirsResult(56, "/broken")
        async with FakeCluster(nodes=2) as cluster:
            cluster.broker(1).on("ListGroups", types.ListGroupsResponse(groups=(listed,)))
            cluster.broker(2).on("ListGroups", types.ListGroupsResponse(error_code=31))
            cluster.broker(1).on("DescribeLogDirs", types.DescribeLogDirsResponse(results=(disk, failed)))
            cluster.broker(2).on("DescribeLogDirs", types.DescribeLogDirsResponse(error_code=31))
            async with cluster.client() as client:
                lists = await try_list(client)
                disks = await try_describe_log_dirs(client)
        assert lists[1] == [ListedGroup("a", "classic", "Stable", "consumer", 1)]
        assert codes(lists) == codes(disks) == {2: 31}
        told = disks[1]
        assert isinstance(told, list)
        assert told[0] == LogDirectory("/data", None, 0, 100, 40)
        assert told[1].error is not None
        assert told[1].error.code == 56

    run(body)


def test_a_coordinator_that_does_not_answer_takes_only_its_own_groups_along():
    def answer(request: frames.Request) -> types.DescribeGroupsResponse:
        kind = types.DescribeGroupsResponse.DescribedGroup
        return types.DescribeGroupsResponse(groups=tuple(kind(group_id=each) for each in request.body.groups))

    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            cluster.broker(1).on("DescribeGroups", answer)
            port = cluster.broker(2).port
            await cluster.broker(2).stop()
            listed = [ListedGroup(f"g{node}", "classic", "Stable", "consumer", node) for node in (1, 2)]
            async with cluster.client(default_api_timeout_ms=300) as client:
                outcomes = await try_describe(client, listed)
            await cluster.broker(2).start(port)
        assert not isinstance(outcomes["g1"], ClientError)
        assert isinstance(outcomes["g2"], ClientError)

    run(body)


def test_descriptions_of_topologies_are_asked_for_only_when_they_are_wanted():
    async def body() -> None:
        kind = types.StreamsGroupDescribeResponse
        async with FakeCluster() as cluster:
            cluster.broker().on("StreamsGroupDescribe", kind(groups=(kind.DescribedGroup(group_id="g"),)))
            listed = [ListedGroup("g", "streams", "Stable", "streams", 1)]
            async with cluster.client() as client:
                await try_describe(client, listed)
                await try_describe(client, listed, with_descriptions=True)
            asked = cluster.broker().asked_for("StreamsGroupDescribe")
            assert [each.include_topology_description for each in asked] == [False, True]

    run(body)


def test_transactions_and_who_holds_them_open():
    async def body() -> None:
        kind = types.DescribeTransactionsResponse
        place = kind.TopicData("orders", (0,))
        mine = kind.TransactionState(0, "mine", "Ongoing", 60_000, 5, 77, 3, (place,))
        yours = kind.TransactionState(53, "yours")
        producers = types.DescribeProducersResponse
        states = (producers.ProducerState(77, 3, 9, 8, 0, 40), producers.ProducerState(78, 0, 9, -1, 0, -1))
        part = producers.PartitionResponse(0, active_producers=states)
        async with FakeCluster(topics={"orders": [1]}) as cluster:
            cluster.broker().on("DescribeTransactions", kind(transaction_states=(mine, yours)))
            cluster.broker().on("DescribeProducers", producers(topics=(producers.TopicResponse("orders", (part,)),)))
            async with cluster.client() as client:
                outcomes = await try_describe_transactions(client, 1, ["mine", "yours"])
                held = await open_producers(client, [ORDERS_0])
        assert outcomes["mine"] == TransactionDescription("mine", 77, 3, "Ongoing", 5, 60_000, (ORDERS_0,))
        assert codes(outcomes) == {"yours": 53}
        assert held == {ORDERS_0: (OpenProducer(77, 3, 40, 8, 0),)}

    run(body)


def test_partitions_on_their_way():
    async def body() -> None:
        kind = types.ListPartitionReassignmentsResponse
        move = kind.OngoingPartitionReassignment(0, (1, 2), (2,), (1,))
        async with FakeCluster() as cluster:
            answer = kind(error_message=None, topics=(kind.OngoingTopicReassignment("orders", (move,)),))
            cluster.broker().on("ListPartitionReassignments", answer)
            async with cluster.client() as client:
                assert await list_reassignments(client) == {ORDERS_0: Reassignment((1, 2), (2,), (1,))}

    run(body)


def test_times_of_records():
    batch = build_batch([Record(offset=number, timestamp=100 + number, key=None, value=b"v") for number in range(5)])

    def answer(request: frames.Request) -> types.FetchResponse:
        asked = request.body.topics[0]
        kind = types.FetchResponse
        part = kind.PartitionData(partition_index=0, records=batch)
        return kind(responses=(kind.FetchableTopicResponse(asked.topic, asked.topic_id, (part,)),))

    async def body() -> None:
        async with FakeCluster(topics={"orders": [1]}) as cluster:
            cluster.broker().on("Fetch", answer)
            async with cluster.client() as client:
                assert await times_at(client, {ORDERS_0: 3}) == {ORDERS_0: 103}
                assert await times_at(client, {}) == {}

    run(body)
