"""What probes ask, and what they make of answers: of old brokers, of missing rights, of nodes that are down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client import Client, TopicPartition
from ottla.client.errors import ResponseError, UnsupportedVersionError
from ottla.health.facts import Cluster, Coverage, Group, Lag, Topic, Transaction
from ottla.observe.memory import Bounds, Memory, ProbeContext, RecordTime
from ottla.observe.probe_result import ProbeResult
from ottla.observe.probes import PROBES
from ottla.wire import frames, types
from tests.component.client.fake import FakeBroker, FakeCluster
from tests.unit.client.running import run

NOW_MS = 1_700_000_000_000


DENIED_GROUP, DENIED_TOPIC, DENIED_CLUSTER = 30, 29, 31


LISTED = types.ListGroupsResponse.ListedGroup


KAFKA_3_6 = {
    "ListGroups": (0, 4),
    "ConsumerGroupDescribe": (0, -1),
    "ShareGroupDescribe": (0, -1),
    "StreamsGroupDescribe": (0, -1),
    "DescribeShareGroupOffsets": (0, -1),
    "DescribeCluster": (0, 1),
    "ListOffsets": (0, 8),
}


async def probe(kind: str, client: Client, memory: Memory, **more: Any) -> list[ProbeResult]:
    return list(await PROBES[kind](ProbeContext(client, memory, NOW_MS, **more)))


def of(seen: list[ProbeResult], kind: type[Any]) -> list[Any]:
    return [each.fact for each in seen if isinstance(each.fact, kind)]


def errors(seen: list[ProbeResult]) -> list[tuple[str, str, str | None]]:
    return [(each.kind, each.entity, each.error) for each in seen if each.error]


def described_cluster(cluster: FakeCluster) -> types.DescribeClusterResponse:
    kind = types.DescribeClusterResponse.DescribeClusterBroker
    brokers = tuple(kind(each.node_id, "127.0.0.1", each.port) for each in cluster.brokers.values())
    return types.DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=brokers)


def classic(*names: str) -> Callable[[frames.Request], types.DescribeGroupsResponse]:
    kind = types.DescribeGroupsResponse.DescribedGroup

    def answer(request: frames.Request) -> types.DescribeGroupsResponse:
        return types.DescribeGroupsResponse(
            groups=tuple(kind(group_id=each, group_state="Stable") for each in request.body.groups)
        )

    return answer


def on_cluster(work: Callable[[FakeCluster, Client], Awaitable[None]], nodes: int = 1, **topics: list[int]) -> None:
    async def body() -> None:
        async with FakeCluster(nodes, topics) as cluster, cluster.client() as client:
            await work(cluster, client)

    run(body)


def test_an_old_broker_is_seen_as_far_as_it_goes():
    async def work(cluster: FakeCluster, client: Client) -> None:
        broker = cluster.broker()
        broker.versions |= KAFKA_3_6
        broker.on("DescribeCluster", described_cluster(cluster))
        broker.on("ListGroups", types.ListGroupsResponse(groups=(LISTED("billing", "consumer", "Stable"),)))
        broker.on("DescribeGroups", classic())
        broker.disconnect()  # so that the versions are asked for again
        memory = Memory()
        (cluster_fact,) = of(await probe("cluster", client, memory), Cluster)
        assert [each.reachable for each in cluster_fact.brokers] == [True]
        seen = await probe("group", client, memory)
        assert [(each.group, each.type) for each in of(seen, Group)] == [("billing", "classic")]
        (hidden,) = of(seen, Coverage)
        assert hidden == Coverage(
            what="group.types",
            visible=False,
            why="group types are unknown: this cluster lists groups without them (before Kafka 3.8)",
        )
        assert await probe("share_offsets", client, memory) == []
        assert errors(seen) == []

    on_cluster(work)


def test_an_api_that_is_not_there_fails_as_a_whole():
    async def work(cluster: FakeCluster, client: Client) -> None:
        cluster.broker().versions["DescribeQuorum"] = (0, -1)
        cluster.broker().disconnect()
        with pytest.raises(UnsupportedVersionError):
            await probe("quorum", client, Memory())

    on_cluster(work)


def test_a_group_that_may_not_be_described_is_named():
    async def work(cluster: FakeCluster, client: Client) -> None:
        kind = types.DescribeGroupsResponse.DescribedGroup
        both = (kind(group_id="mine", group_state="Empty"), kind(error_code=DENIED_GROUP, group_id="yours"))
        listed = tuple(LISTED(name, "consumer", "Empty", "classic") for name in ("mine", "yours"))
        cluster.broker().on("ListGroups", types.ListGroupsResponse(groups=listed))
        cluster.broker().on("DescribeGroups", types.DescribeGroupsResponse(groups=both))
        seen = await probe("group", client, Memory())
        assert [each.group for each in of(seen, Group)] == ["mine"]
        assert errors(seen) == [("group", "yours", "GROUP_AUTHORIZATION_FAILED")]

    on_cluster(work)


def test_a_quorum_that_may_not_be_described():
    async def work(cluster: FakeCluster, client: Client) -> None:
        cluster.broker().on("DescribeQuorum", types.DescribeQuorumResponse(error_code=DENIED_CLUSTER))
        with pytest.raises(ResponseError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await probe("quorum", client, Memory())

    on_cluster(work)


def test_share_state_that_may_not_be_read():
    async def work(cluster: FakeCluster, client: Client) -> None:
        ends = iter((4, 9))

        def offsets(request: frames.Request) -> types.ListOffsetsResponse:
            part = types.ListOffsetsResponse.ListOffsetsPartitionResponse(0, 0, offset=next(ends))
            topic = types.ListOffsetsResponse.ListOffsetsTopicResponse("__share_group_state", (part,))
            return types.ListOffsetsResponse(topics=(topic,))

        def refused(request: frames.Request) -> types.FetchResponse:
            part = types.FetchResponse.PartitionData(partition_index=0, error_code=DENIED_TOPIC)
            asked = request.body.topics[0]
            topic = types.FetchResponse.FetchableTopicResponse(asked.topic, asked.topic_id, (part,))
            return types.FetchResponse(responses=(topic,))

        cluster.broker().on("ListOffsets", offsets)
        cluster.broker().on("Fetch", refused)
        memory = Memory(topics=await client.all_topics())
        first = await probe("share_state", client, memory)  # begins at the end: there is nothing to read
        assert of(first, Coverage) == [Coverage(what="share_state", visible=True)]
        (hidden,) = of(await probe("share_state", client, memory), Coverage)
        assert (hidden.visible, hidden.why) == (
            False, "needs READ on __share_group_state (error: TOPIC_AUTHORIZATION_FAILED)",
        )  # fmt: skip

    on_cluster(work, __share_group_state=[1])


def test_the_groups_of_other_coordinators_are_seen():
    async def work(cluster: FakeCluster, client: Client) -> None:
        for node_id, broker in cluster.brokers.items():
            listed = LISTED(f"group-{node_id}", "consumer", "Stable", "classic")
            broker.on("ListGroups", types.ListGroupsResponse(groups=(listed,)))
            broker.on("DescribeGroups", classic())
        memory = Memory()
        assert len(of(await probe("group", client, memory), Group)) == 2
        cluster.broker(2).on("ListGroups", types.ListGroupsResponse(error_code=41))
        seen = await probe("group", client, memory)
        assert [each.group for each in of(seen, Group)] == ["group-1"]
        assert errors(seen) == [("group", "node:2", "NOT_CONTROLLER")]

    on_cluster(work, nodes=2)


def test_a_node_that_does_not_answer_is_told_from_one_that_does():
    async def work(cluster: FakeCluster, client: Client) -> None:
        cluster.broker(1).on("DescribeCluster", described_cluster(cluster))
        port = cluster.broker(2).port
        await cluster.broker(2).stop()
        memory = Memory()
        (fact,) = of(await probe("cluster", client, memory), Cluster)
        assert [(each.id, each.reachable) for each in fact.brokers] == [(1, True), (2, False)]
        assert fact.brokers[1].error == "connection refused"
        assert memory.apis["ListGroups"] == 5
        await cluster.broker(2).start(port)

    on_cluster(work, nodes=2)


def test_groups_beyond_the_bound_are_reported_as_not_sampled():
    async def work(cluster: FakeCluster, client: Client) -> None:
        listed = tuple(LISTED(f"g{number}", "consumer", "Empty", "classic") for number in range(5))
        cluster.broker().on("ListGroups", types.ListGroupsResponse(groups=listed))
        cluster.broker().on("DescribeGroups", classic())
        seen = await probe("group", client, Memory(), bounds=Bounds(groups=3))
        assert [each.group for each in of(seen, Group)] == ["g0", "g1", "g2"]
        assert [each.why for each in of(seen, Coverage)] == ["only 3 of 5 groups are sampled, the first by name"]

    on_cluster(work)


def answer_offsets(broker: FakeBroker, end: int = 10) -> None:
    def offsets(request: frames.Request) -> types.ListOffsetsResponse:
        kind = types.ListOffsetsResponse
        return kind(
            topics=tuple(
                kind.ListOffsetsTopicResponse(
                    topic.name,
                    tuple(
                        kind.ListOffsetsPartitionResponse(
                            each.partition_index, 0, offset=end if each.timestamp == -1 else 0
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.body.topics
            )
        )

    broker.on("ListOffsets", offsets)


def test_partitions_are_asked_for_in_rounds_and_each_only_once_for_all_groups():
    async def work(cluster: FakeCluster, client: Client) -> None:
        broker = cluster.broker()
        listed = tuple(LISTED(name, "consumer", "Empty", "classic") for name in ("a", "b"))
        broker.on("ListGroups", types.ListGroupsResponse(groups=listed))
        broker.on("DescribeGroups", classic())
        answer_offsets(broker)

        def committed(request: frames.Request) -> types.OffsetFetchResponse:
            kind = types.OffsetFetchResponse
            parts = tuple(kind.OffsetFetchResponsePartitions(number, 10) for number in range(5))
            topics = (kind.OffsetFetchResponseTopics("orders", partitions=parts),
                      kind.OffsetFetchResponseTopics("deleted", partitions=parts[:1]))  # fmt: skip
            return kind(
                groups=tuple(kind.OffsetFetchResponseGroup(each.group_id, topics) for each in request.body.groups)
            )

        broker.on("OffsetFetch", committed)
        memory = Memory(topics=await client.all_topics())
        await probe("group", client, memory)
        seen = await probe("lag", client, memory, bounds=Bounds(partitions_per_round=2))
        lags = {(each.group, each.topic, each.partition): each for each in of(seen, Lag)}
        assert len(lags) == 12
        assert lags["a", "orders", 4].high_watermark == 10
        assert lags["b", "deleted", 0].high_watermark is None
        sizes = [sum(len(topic.partitions) for topic in each.topics) for each in broker.asked_for("ListOffsets")]
        assert max(sizes) == 2
        assert sum(sizes) == 3 * 5  # start, end and last stable of each partition
        asked = len(broker.asked_for("OffsetFetch"))
        await probe("lag", client, memory)
        assert len(broker.asked_for("OffsetFetch")) == asked + 1  # one request for both groups

    on_cluster(work, orders=[1] * 5)


def test_offsets_that_move_during_a_probe_make_no_group_lose_records_or_be_ahead():
    async def work(cluster: FakeCluster, client: Client) -> None:
        """With each request the log loses ten records at its start, and the group commits and the log grows by ten."""
        broker, moved = cluster.broker(), iter(range(100, 10_000, 10))

        def offsets(request: frames.Request) -> types.ListOffsetsResponse:
            now, kind = next(moved), types.ListOffsetsResponse
            is_start = request.body.topics[0].partitions[0].timestamp == -2
            part = kind.ListOffsetsPartitionResponse(0, 0, offset=now if is_start else now + 1)
            return kind(topics=(kind.ListOffsetsTopicResponse("orders", (part,)),))

        def committed(request: frames.Request) -> types.OffsetFetchResponse:
            kind = types.OffsetFetchResponse
            part = kind.OffsetFetchResponsePartitions(0, next(moved))
            topic = kind.OffsetFetchResponseTopics("orders", partitions=(part,))
            return kind(groups=(kind.OffsetFetchResponseGroup("a", (topic,)),))

        broker.on("ListGroups", types.ListGroupsResponse(groups=(LISTED("a", "consumer", "Empty", "classic"),)))
        broker.on("DescribeGroups", classic())
        broker.on("ListOffsets", offsets)
        broker.on("OffsetFetch", committed)
        memory = Memory(topics=await client.all_topics())
        await probe("group", client, memory)
        memory.times.touch(
            ("a", TopicPartition("orders", 0)), lambda: RecordTime(0, 1, NOW_MS)
        )  # so that nothing is read
        for _ in range(3):
            (lag,) = of(await probe("lag", client, memory), Lag)
            assert lag.log_start < lag.committed < lag.high_watermark

    on_cluster(work, orders=[1])


def producers(first_offset: int) -> types.DescribeProducersResponse:
    kind = types.DescribeProducersResponse
    state = kind.ProducerState(
        producer_id=77, producer_epoch=3, last_timestamp=5, current_txn_start_offset=first_offset
    )
    part = kind.PartitionResponse(0, active_producers=(state,))
    return kind(topics=(kind.TopicResponse("orders", (part,)),))


@pytest.mark.parametrize(("later", "is_hanging"), [(40, True), (50, False), (-1, False)])
def test_a_producer_hangs_if_it_has_the_same_transaction_open_before_and_after_nobody_knew_it(
    later: int, is_hanging: bool
):
    async def work(cluster: FakeCluster, client: Client) -> None:
        broker = cluster.broker()
        kind = types.ListOffsetsResponse

        def offsets(request: frames.Request) -> types.ListOffsetsResponse:
            end = 40 if request.body.isolation_level else 90
            part = kind.ListOffsetsPartitionResponse(0, 0, offset=end)
            return kind(topics=(kind.ListOffsetsTopicResponse("orders", (part,)),))

        broker.on("ListOffsets", offsets)
        broker.on("DescribeProducers", producers(40), producers(later))
        done = types.ListTransactionsResponse.TransactionState("t", 77, "CompleteCommit")
        broker.on("ListTransactions", types.ListTransactionsResponse(transaction_states=(done,)))
        seen = await probe("transactions", client, Memory(topics=await client.all_topics()))
        hanging = of(seen, Transaction)
        assert [each.producer for each in hanging] == ([77] if is_hanging else [])
        assert all(each.id is None and each.partitions[0].first_offset == 40 for each in hanging)

    on_cluster(work, orders=[1])


def test_details_are_requested_where_a_leader_or_replica_is_missing():
    async def work(cluster: FakeCluster, client: Client) -> None:
        moves = types.ListPartitionReassignmentsResponse
        move = moves.OngoingPartitionReassignment(0, (1, 2), adding_replicas=(2,))
        topic = moves.OngoingTopicReassignment("orders", (move,))
        cluster.broker().on("ListPartitionReassignments", moves(error_message=None, topics=(topic,)))
        pages = types.DescribeTopicPartitionsResponse
        part = pages.DescribeTopicPartitionsResponsePartition(0, 1, -1, 0, (1,), (), (1,), (), ())
        found = pages.DescribeTopicPartitionsResponseTopic(name="orders", partitions=(part,))
        cluster.broker().on("DescribeTopicPartitions", pages(topics=(found,)))
        facts = {each.topic: each for each in of(await probe("topic", client, Memory()), Topic)}
        moving, offline = facts["orders"].partitions
        assert (moving.adding, moving.elr) == ((2,), None)
        assert (offline.leader, offline.elr) == (-1, (1,))
        assert facts["bills"].partitions[0].adding == ()

    on_cluster(work, orders=[1, -1], bills=[1])


def test_without_authorization_for_details_the_rest_is_reported():
    async def work(cluster: FakeCluster, client: Client) -> None:
        denied = types.ListPartitionReassignmentsResponse(error_code=DENIED_CLUSTER, error_message="no")
        cluster.broker().on("ListPartitionReassignments", denied)
        (fact,) = of(await probe("topic", client, Memory()), Topic)
        assert [(each.leader, each.adding) for each in fact.partitions] == [(1, ())]

    on_cluster(work, orders=[1])
