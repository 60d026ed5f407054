"""What the share consumer makes of errors, and of leaders that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client import ShareConsumer, TopicPartition
from ottla.client.errors import ClosedError, ConnectError, ResponseError
from ottla.wire import types
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import DROP, FakeCluster
from tests.component.client.share.leaders import (
    ACCEPT,
    EXPLICIT,
    INVALID,
    JOBS,
    JOBS_0,
    QUICK,
    Fetch,
    Leader,
    OneLeader,
    assigned,
    consuming,
    delivery,
    polled,
    steady,
)
from tests.unit.client.running import run

# --- answers with errors ----------------------------------------------------------------------------------------------


def outcomes() -> tuple[list[tuple[TopicPartition, int | None]], Callable[..., None]]:
    heard: list[tuple[TopicPartition, int | None]] = []

    def hear(at: TopicPartition, batches: Any, error: Any) -> None:
        heard.append((at, None if error is None else getattr(error, "code", -99)))

    return heard, hear


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ],
)
def test_a_lost_session_is_opened_anew(code: ErrorCode):
    async def body() -> None:
        scene = OneLeader([delivery(0)], [delivery(0, count=2)])
        heard, hear = outcomes()
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], on_acknowledged=hear, **QUICK) as consumer:
                await polled(consumer)
                scene.leader.errors["request"] = [code]
                assert [each.delivery_count for each in await polled(consumer)] == [2]
            assert scene.leader.epochs == [0, 1, 0, -1]
            assert heard == [(JOBS_0, code)]

    run(body)


def test_a_lost_connection_ends_the_session():
    async def body() -> None:
        scene = OneLeader([delivery(0)], [delivery(0, count=2)])
        heard, hear = outcomes()
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], on_acknowledged=hear, **QUICK) as consumer:
                await polled(consumer)
                scene.broker.on("ShareFetch", DROP, scene.leader.fetch)
                assert [each.delivery_count for each in await polled(consumer)] == [2]
            assert scene.leader.epochs == [0, 0, -1]
            assert heard == [(JOBS_0, -99)], "nobody knows whether they arrived"

    run(body)


def test_refused_acknowledgements_are_told():
    async def body() -> None:
        scene = OneLeader([delivery(0)], [delivery(1)])
        heard, hear = outcomes()
        async with consuming(scene.cluster, on_acknowledged=hear, **QUICK) as consumer:
            await polled(consumer)
            scene.leader.errors["acknowledge"] = [INVALID, INVALID]
            await polled(consumer)
            assert heard == [(JOBS_0, INVALID)]
            found = await consumer.commit()
            assert isinstance(found[JOBS_0], ResponseError)
            assert heard[1:] == [(JOBS_0, INVALID)]

    run(body)


def test_a_partition_that_is_left_out_is_refused():
    async def body() -> None:
        scene = OneLeader([delivery(0)], [delivery(1, partition=1)], partitions=2)
        heard, hear = outcomes()
        async with consuming(scene.cluster, on_acknowledged=hear, **QUICK) as consumer:
            await polled(consumer)
            scene.leader.leaves_out = True
            await polled(consumer)
            assert heard == [(JOBS_0, INVALID)]

    run(body)


def test_while_the_coordinator_is_away_it_is_said_again():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1)])
        heard, hear = outcomes()
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], on_acknowledged=hear, **EXPLICIT) as consumer:
                consumer.accept(*await polled(consumer))
                scene.leader.errors["acknowledge"] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
                assert await consumer.commit() == {JOBS_0: None}
            assert scene.leader.said == [(0, 0, 1, ACCEPT)] * 3
            assert heard == [(JOBS_0, None)]

    run(body)


def test_what_is_delivered_again_while_its_acknowledgement_waits_is_acknowledged_once():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1)], [delivery(0, 1, count=2)])
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            consumer.accept(*await polled(consumer))
            scene.leader.errors["acknowledge"] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
            again = await polled(consumer)
            assert [each.delivery_count for each in again] == [2, 2], "the locks have ended meanwhile"
            consumer.release(again[1])
            assert await consumer.commit() == {JOBS_0: None}
            assert scene.leader.said == [(0, 0, 1, ACCEPT), (0, 0, 1, (1, 2))]

    run(body)


def test_a_commit_that_is_cancelled_costs_no_later_acknowledgement():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1)])
        heard, hear = outcomes()
        may_answer = asyncio.Event()

        async def late(request: Any) -> Any:
            await may_answer.wait()
            return scene.leader.acknowledge(request)

        async with consuming(scene.cluster, on_acknowledged=hear, **EXPLICIT) as consumer:
            one, two = await polled(consumer)
            consumer.accept(one)
            scene.broker.on("ShareAcknowledge", late, scene.leader.acknowledge)
            commit = asyncio.create_task(consumer.commit())
            await scene.broker.was_asked("ShareAcknowledge")
            commit.cancel()
            with pytest.raises(asyncio.CancelledError):
                await commit
            assert heard == [(JOBS_0, -99)], "nobody knows whether they arrived"
            may_answer.set()
            consumer.accept(two)
            assert await consumer.commit() == {JOBS_0: None}
            assert scene.leader.epochs == [0, 1, 0, 1]

    run(body)


def test_what_cannot_be_sent_in_time_is_told_and_stays():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1)])
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            await lose_session(scene, consumer)
            scene.leader.errors["request"] = [ErrorCode.SHARE_SESSION_LIMIT_REACHED] * 1_000
            found = await consumer.commit(timeout_ms=20)
            assert isinstance(found[JOBS_0], ClosedError)
            scene.leader.errors["request"] = []
            assert await consumer.commit() == {JOBS_0: None}
            assert scene.leader.said == [(0, 1, 1, ACCEPT)]

    run(body)


def test_closing_opens_a_session_for_what_is_to_be_said():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1)])
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            await lose_session(scene, consumer)
        assert scene.leader.said == [(0, 1, 1, ACCEPT)]
        assert scene.leader.epochs == [0, 1, 0, -1]

    run(body)


def test_closing_tells_of_what_the_leader_did_not_take():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        heard, hear = outcomes()
        async with consuming(scene.cluster, on_acknowledged=hear, **EXPLICIT) as consumer:
            consumer.accept(*await polled(consumer))
            scene.leader.errors["acknowledge"] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert heard == [(JOBS_0, -99)]

    run(body)


async def lose_session(scene: OneLeader, consumer: ShareConsumer) -> None:
    """The leader has forgotten the session when the first of two records is acknowledged; the second comes after it."""
    one, two = await polled(consumer)
    consumer.accept(one)
    scene.leader.errors["request"] = [ErrorCode.SHARE_SESSION_NOT_FOUND]
    found = await consumer.commit()
    assert isinstance(found[JOBS_0], ResponseError)
    consumer.accept(two)


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_ID]
)
def test_errors_that_pass(code: ErrorCode):
    async def body() -> None:
        scene = OneLeader([delivery(7)])
        scene.leader.errors["fetch"] = [code]
        async with consuming(scene.cluster, **QUICK) as consumer:
            assert [each.offset for each in await polled(consumer)] == [7]

    run(body)


def test_errors_that_do_not_pass():
    async def body() -> None:
        scene = OneLeader([delivery(7)])
        scene.leader.errors["fetch"] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        async with consuming(scene.cluster, **QUICK) as consumer:
            with pytest.raises(ResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
                await polled(consumer)
            assert [each.offset for each in await polled(consumer)] == [7], "told once"

    run(body)


def test_an_error_of_one_partition_does_not_cost_the_records_of_others():
    async def body() -> None:
        refused = delivery(partition=1, data=b"", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        scene = OneLeader([delivery(3), refused, delivery(5, partition=2)], partitions=3)
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            with pytest.raises(ResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
                await polled(consumer)
            assert [(each.partition, each.offset) for each in await polled(consumer)] == [(0, 3), (2, 5)]

    run(body)


def test_a_request_that_is_refused_as_a_whole():
    async def body() -> None:
        scene = OneLeader([delivery(7)])
        scene.leader.errors["request"] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
        async with consuming(scene.cluster, **QUICK) as consumer:
            with pytest.raises(ResponseError, match="GROUP_AUTHORIZATION_FAILED"):
                await polled(consumer)

    run(body)


# --- leaders ----------------------------------------------------------------------------------------------------------


def test_partitions_of_several_leaders():
    async def body() -> None:
        cluster = FakeCluster(nodes=2, topics={"jobs": [1, 2]})
        one = Leader(cluster.broker(1), [delivery(0)])
        two = Leader(cluster.broker(2), [delivery(5, partition=1)])
        cluster.broker(1).on("ShareGroupHeartbeat", assigned(0, 1), steady())
        async with cluster, cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **EXPLICIT) as consumer:
                seen = {}
                while len(seen) < 2:
                    for record in await polled(consumer):
                        seen[record.partition] = record.offset
                        consumer.accept(record)
                assert seen == {0: 0, 1: 5}
                await consumer.commit()
            assert [each[0] for each in one.said] == [0]
            assert [each[0] for each in two.said] == [1]
            assert (one.epochs[-1], two.epochs[-1]) == (-1, -1)

    run(body)


def test_a_strict_limit_asks_one_leader_at_a_time():
    async def body() -> None:
        cluster = FakeCluster(nodes=2, topics={"jobs": [1, 2]})
        Leader(cluster.broker(1), [delivery(0)], [delivery(1)])
        Leader(cluster.broker(2), [delivery(5, partition=1)], [delivery(6, partition=1)])
        cluster.broker(1).on("ShareGroupHeartbeat", assigned(0, 1), steady())
        async with consuming(cluster, acquire_mode="record_limit", **QUICK) as consumer:
            first = await polled(consumer)
            full = [
                request.max_records
                for node in (1, 2)
                for request in cluster.broker(node).asked_for("ShareFetch")
                if request.max_records
            ]
            assert len(full) == len(first) == 1
            offsets = {first[0].offset}
            while len(offsets) < 4:
                offsets |= {each.offset for each in await polled(consumer)}
            assert offsets == {0, 1, 5, 6}

    run(body)


def test_what_is_held_of_a_leader_that_is_gone_fails_at_once():
    async def body() -> None:
        cluster = FakeCluster(nodes=2, topics={"jobs": [2]})
        Leader(cluster.broker(2), [delivery(0)])
        cluster.broker(1).on("ShareGroupHeartbeat", assigned(0), steady())
        heard, hear = outcomes()
        async with consuming(cluster, on_acknowledged=hear, **EXPLICIT) as consumer:
            (record,) = await polled(consumer)
            await cluster.broker(2).stop()
            await consumer.poll()
            consumer.accept(record)
            found = await consumer.commit(timeout_ms=1_000)
            assert isinstance(found[JOBS_0], ConnectError)
            assert heard == [(JOBS_0, -99)]
            assert await consumer.commit() == {}

    run(body)


def test_a_leader_that_moved_is_learned_from_the_answer():
    async def body() -> None:
        cluster = FakeCluster(nodes=2, topics={"jobs": [1]})
        Leader(cluster.broker(2), [delivery(9)])
        moved = Fetch.PartitionData(
            0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=Fetch.LeaderIdAndEpoch(2, 1), records=b""
        )

        def fetch(request: Any) -> Fetch:
            endpoint = Fetch.NodeEndpoint(2, "127.0.0.1", cluster.broker(2).port)
            topics = (Fetch.ShareFetchableTopicResponse(JOBS, (moved,)),) if request.body.max_records else ()
            return Fetch(responses=topics, node_endpoints=(endpoint,))

        cluster.broker(1).on("ShareFetch", fetch)
        cluster.broker(1).on("ShareAcknowledge", types.ShareAcknowledgeResponse())
        cluster.broker(1).on("ShareGroupHeartbeat", assigned(0), steady())
        async with cluster, cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                before = len(cluster.broker(1).asked_for("Metadata"))
                assert [each.offset for each in await polled(consumer)] == [9]
                assert len(cluster.broker(1).asked_for("Metadata")) <= before + 1, "nobody was asked who leads"
            forgotten = [each.forgotten_topics_data for each in cluster.broker(1).asked_for("ShareFetch")]
            assert any(forgotten), "the old leader hears that the partition is not wanted there"

    run(body)
