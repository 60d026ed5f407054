"""The share consumer against scripted brokers: what it gives, what it says, and what it makes of errors."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.client import AcknowledgeType, ShareConsumer, TopicPartition
from ottla.client.errors import ClosedError, ConfigurationError, ResponseError, UnsupportedVersionError
from ottla.wire import types
from ottla.wire.batch import read_header
from ottla.wire.errors import ErrorCode
from tests.unit.client.fake import DROP, FakeCluster, run
from tests.unit.client.share.leaders import (
    INVALID,
    JOBS,
    LOCK_MS,
    Fetch,
    Heartbeat,
    Leader,
    OneLeader,
    assigned,
    batch,
    delivery,
    steady,
)

JOBS_0 = TopicPartition("jobs", 0)
ACCEPT, RELEASE, REJECT, RENEW, GAP = (1,), (2,), (3,), (4,), (0,)
QUICK: dict[str, Any] = {"max_wait_ms": 50}
EXPLICIT: dict[str, Any] = QUICK | {"acknowledgement": "explicit"}


@asynccontextmanager
async def consuming(cluster: FakeCluster, **options: Any) -> AsyncIterator[ShareConsumer]:
    async with cluster, cluster.client() as client, ShareConsumer(client, "g", ["jobs"], **options) as consumer:
        yield consumer


async def polled(consumer: ShareConsumer) -> list[Any]:
    """The records of the next poll that has some."""
    while not (found := await consumer.poll()):
        pass
    return [record for acquired in found for record in acquired.records()]


# --- implicit ---------------------------------------------------------------------------------------------------------


def test_polling_accepts_what_was_polled_before():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2)], [delivery(3, 4, count=2)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                first = await polled(consumer)
                assert [(each.offset, each.delivery_count) for each in first] == [(0, 1), (1, 1), (2, 1)]
                assert scene.leader.said == []
                second = await polled(consumer)
                assert [(each.offset, each.delivery_count) for each in second] == [(3, 2), (4, 2)]
                assert scene.leader.said == [(0, 0, 2, ACCEPT)]
                assert consumer.assignment == {JOBS_0}
            assert scene.leader.said == [(0, 0, 2, ACCEPT)], "the last ones are released by closing"
            assert scene.leader.epochs == [0, 1, -1]

    run(body)


def test_the_iterator_accepts_record_by_record():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2)], [delivery(3, 4, 5)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                async for record in consumer:
                    if record.offset == 4:
                        break
            assert scene.leader.said == [(0, 0, 2, ACCEPT), (0, 3, 3, ACCEPT)], "4 is in hand, 5 was never given"

    run(body)


def test_the_iterator_goes_on_where_it_was():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2)], [delivery(3, 4)])
        async with consuming(scene.cluster, **QUICK) as consumer:
            seen = []
            for stop in (0, 1, 3):
                async for record in consumer:
                    seen.append(record.offset)
                    if record.offset == stop:
                        break
            assert seen == [0, 1, 2, 3]

    run(body)


def test_polling_in_the_middle_of_an_iteration_gives_the_rest():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2, 3)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                async for record in consumer:
                    if record.offset == 1:
                        break
                assert [each.offset for each in await polled(consumer)] == [2, 3]
                assert await consumer.commit() == {JOBS_0: None}
            assert scene.leader.said == [(0, 0, 3, ACCEPT)]

    run(body)


def test_a_commit_accepts_the_record_in_hand():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                async for record in consumer:
                    if record.offset == 1:
                        break
                assert await consumer.commit() == {JOBS_0: None}
                assert scene.leader.said == [(0, 0, 1, ACCEPT)]
                assert await consumer.commit() == {}
            assert scene.leader.said == [(0, 0, 1, ACCEPT)]

    run(body)


def test_batches_are_accepted_one_by_one():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1), delivery(0, 1, partition=1)], partitions=2)
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                seen = []
                async for acquired in consumer.batches():
                    seen.append(acquired.at.partition)
                    if len(seen) == 2:
                        break
            assert seen == [0, 1]
            assert scene.leader.said == [(0, 0, 1, ACCEPT)]

    run(body)


# --- explicit ---------------------------------------------------------------------------------------------------------


def test_each_record_gets_its_verdict():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **EXPLICIT) as consumer:
                one, two, three = await polled(consumer)
                assert consumer.held_count == 3
                consumer.accept(one)
                consumer.release(two)
                consumer.reject(three)
                assert consumer.held_count == 0
                assert await consumer.commit() == {JOBS_0: None}
            assert scene.leader.said == [(0, 0, 2, (1, 2, 3))]

    run(body)


def test_verdicts_go_with_the_next_fetch_and_in_the_end_with_the_farewell():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2)], [delivery(3)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **EXPLICIT) as consumer:
                one, two, three = await polled(consumer)
                consumer.accept(one, two)
                (four,) = await polled(consumer)
                assert scene.leader.said == [(0, 0, 1, ACCEPT)]
                consumer.acknowledge(AcknowledgeType.RELEASE, three)
                consumer.accept(four)
            assert scene.leader.said == [(0, 0, 1, ACCEPT), (0, 2, 3, (2, 1))]
            assert scene.leader.acknowledges == 1, "the farewell"

    run(body)


def test_all_of_a_batch_at_once():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2, 3)])
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            (acquired,) = await polled_batches(consumer)
            records = list(acquired.records())
            consumer.reject(records[1])
            with pytest.raises(ConfigurationError, match="offset 1 of jobs-0 is not held"):
                consumer.accept(acquired)
            consumer.accept(*(record for record in records if record.offset not in (0, 1)))
            assert consumer.held_count == 0

    run(body)


async def polled_batches(consumer: ShareConsumer) -> list[Any]:
    while not (found := await consumer.poll()):
        pass
    return found


def test_nothing_is_acknowledged_twice():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            (record,) = await polled(consumer)
            consumer.accept(record)
            with pytest.raises(ConfigurationError, match="not held"):
                consumer.release(record)

    run(body)


def test_locks_are_renewed_at_once():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1)])
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            one, _ = await polled(consumer)
            await consumer.renew(one)
            assert scene.leader.said == [(0, 0, 0, RENEW)]
            (request,) = scene.broker.asked_for("ShareAcknowledge")
            assert request.is_renew_ack
            scene.leader.errors["acknowledge"] = [INVALID]
            with pytest.raises(ResponseError, match="INVALID_RECORD_STATE"):
                await consumer.renew(one)
            consumer.accept(one)

    run(body)


def test_old_brokers_cannot_renew():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        scene.broker.versions = {"ShareFetch": (1, 1), "ShareAcknowledge": (1, 1)}
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            (record,) = await polled(consumer)
            with pytest.raises(UnsupportedVersionError, match="renewed locks"):
                await consumer.renew(record)
            consumer.accept(record)
            assert await consumer.commit() == {JOBS_0: None}

    run(body)


def test_old_brokers_have_no_strict_limit():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        scene.broker.versions = {"ShareFetch": (1, 1)}
        async with consuming(scene.cluster, acquire_mode="record_limit", **QUICK) as consumer:
            with pytest.raises(UnsupportedVersionError, match="record_limit"):
                await polled(consumer)

    run(body)


def test_options_that_cannot_be():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        async with scene.cluster, scene.cluster.client() as client:
            for wrong in ({"acknowledgement": "maybe"}, {"acquire_mode": "some"}):
                with pytest.raises(ConfigurationError):
                    ShareConsumer(client, "g", ["jobs"], **wrong)
            for topics in ("jobs", []):
                with pytest.raises(ConfigurationError):
                    ShareConsumer(client, "g", topics)
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                (record,) = await polled(consumer)
                with pytest.raises(ConfigurationError, match="accepts by itself"):
                    consumer.accept(record)
                with pytest.raises(ConfigurationError, match="renew"):
                    await consumer.renew(record)
            async with ShareConsumer(client, "g", ["jobs"], **EXPLICIT) as consumer:
                with pytest.raises(ConfigurationError, match="GAP"):
                    consumer.acknowledge(AcknowledgeType.GAP)
            with pytest.raises(ClosedError):
                await consumer.poll()
            with pytest.raises(ClosedError):
                await consumer.commit()
            assert [record async for record in consumer] == []

    run(body)


# --- what is acquired and no record -----------------------------------------------------------------------------------


def test_gaps_and_damage_are_said_without_being_asked():
    async def body() -> None:
        broken = bytearray(batch(4, 5))
        broken[-1] ^= 1
        data = batch(0, 1) + bytes(broken)
        scene = OneLeader([delivery(0, 1, 2, 3, 4, 5, data=data)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **EXPLICIT) as consumer:
                assert [each.offset for each in await polled(consumer)] == [0, 1]
                assert await consumer.commit() == {JOBS_0: None}
            assert scene.leader.said == [(0, 2, 5, (0, 0, 3, 3))]

    run(body)


def test_a_fetch_of_gaps_alone_is_answered_though_nothing_is_given():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1, 2, data=b"")], [delivery(3)])
        async with consuming(scene.cluster, **QUICK) as consumer:
            assert [each.offset for each in await polled(consumer)] == [3]
            assert scene.leader.said == [(0, 0, 2, GAP)]

    run(body)


def test_a_batch_that_cannot_be_read_is_rejected_by_the_iterator():
    async def body() -> None:
        wrong = bytearray(batch(2))
        wrong[57:61] = (2).to_bytes(4, "big")  # it claims two records, and has one
        wrong[23:27] = (1).to_bytes(4, "big")
        wrong[17:21] = read_header(bytes(wrong)).compute_crc().to_bytes(4, "big")
        data = batch(0, 1) + bytes(wrong) + batch(4, 5)
        scene = OneLeader([delivery(0, 1, 2, 3, 4, 5, data=data)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                seen = []
                async for record in consumer:
                    seen.append(record.offset)
                    if record.offset == 5:
                        break
                assert seen == [0, 1, 4, 5]
                await consumer.commit()
            assert scene.leader.said == [(0, 0, 5, (1, 1, 3, 3, 1, 1))]

    run(body)


# --- locks ------------------------------------------------------------------------------------------------------------


class Clock:
    """Moves when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_s = 0.0
        for module in ("consumer", "exchange"):
            monkeypatch.setattr(f"ottla.client.share.{module}.monotonic", self)

    def __call__(self) -> float:
        return time.monotonic() + self._ahead_s

    def pass_locks(self, share: float) -> None:
        self._ahead_s += share * LOCK_MS / 1000


async def read(consumer: ShareConsumer, count: int) -> list[int]:
    return [(await anext(consumer)).offset for _ in range(count)]


def test_slow_work_is_accepted_in_time_and_the_rest_is_kept(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(*range(6))])
        clock = Clock(monkeypatch)
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                assert await read(consumer, 2) == [0, 1]
                clock.pass_locks(0.6)
                assert await read(consumer, 1) == [2]
                assert scene.leader.said == [(0, 0, 1, ACCEPT), (0, 2, 5, RENEW)]
                clock.pass_locks(0.6)
                assert await read(consumer, 2) == [3, 4]
                assert scene.leader.said[2:] == [(0, 2, 2, ACCEPT), (0, 3, 5, RENEW)]
            assert scene.leader.said[4:] == [(0, 3, 3, ACCEPT)]

    run(body)


def test_what_waits_behind_slow_work_is_kept_as_well(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(0, 1), delivery(0, 1, partition=1)], partitions=2)
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **QUICK) as consumer:
            assert await read(consumer, 1) == [0]
            clock.pass_locks(0.6)
            assert await read(consumer, 1) == [1]
            assert scene.leader.said == [(0, 0, 0, ACCEPT), (0, 1, 1, RENEW), (1, 0, 1, RENEW)]
            clock.pass_locks(0.45)
            assert await read(consumer, 2) == [0, 1], "of the other partition, whose first locks would have ended"

    run(body)


def test_explicit_verdicts_are_sent_in_time(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(*range(4))])
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            one, two = await anext(consumer), await anext(consumer)
            consumer.reject(one)
            clock.pass_locks(0.6)
            assert await read(consumer, 1) == [2]
            assert scene.leader.said == [(0, 0, 0, REJECT), (0, 2, 3, RENEW)], "what is in hand is the user's matter"
            consumer.accept(two)

    run(body)


def test_where_locks_cannot_be_renewed_they_are_used_up(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(*range(5))], [delivery(9)])
        scene.broker.versions = {"ShareFetch": (1, 1), "ShareAcknowledge": (1, 1)}
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            assert await read(consumer, 1) == [0]
            clock.pass_locks(0.6)
            assert await read(consumer, 2) == [1, 2]
            clock.pass_locks(0.6)
            assert await read(consumer, 1) == [9], "3 and 4 are for others"
            assert consumer.held_count == 4

    run(body)


def test_what_nobody_asked_for_in_time_is_not_given(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(0), delivery(0, partition=1)], [delivery(7)], partitions=2)
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            assert await read(consumer, 1) == [0]
            clock.pass_locks(1.1)
            assert [each.offset for each in await polled(consumer)] == [7]

    run(body)


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


# --- membership -------------------------------------------------------------------------------------------------------


def test_joining_and_leaving():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs", "jobs", "more"], rack_id="r1", **QUICK) as consumer:
                await polled(consumer)
                member_id = consumer.member_id
            first, *_, last = scene.heartbeats
            assert (first.group_id, first.member_id, first.member_epoch) == ("g", member_id, 0)
            assert (first.subscribed_topic_names, first.rack_id) == (("jobs", "more"), "r1")
            assert (last.member_epoch, last.subscribed_topic_names) == (-1, ())

    run(body)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_who_was_thrown_out_joins_again(code: ErrorCode):
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        scene.broker.on("ShareGroupHeartbeat", Heartbeat(error_code=code), assigned(0), steady())
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                await polled(consumer)
            assert [each.member_epoch for each in scene.heartbeats[:2]] == [0, 0]
            assert len({each.member_id for each in scene.heartbeats}) == 1

    run(body)


def test_what_ends_a_membership_is_told_every_time():
    async def body() -> None:
        scene = OneLeader()
        scene.broker.on("ShareGroupHeartbeat", Heartbeat(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        async with consuming(scene.cluster, **QUICK) as consumer:
            for _ in range(2):
                with pytest.raises(ResponseError, match="GROUP_MAX_SIZE_REACHED"):
                    await polled(consumer)

    run(body)


def test_a_topic_that_may_not_be_read_is_told_once():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        refused = Heartbeat(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        scene.broker.on("ShareGroupHeartbeat", refused, assigned(0), steady())
        async with consuming(scene.cluster, **QUICK) as consumer:
            with pytest.raises(ResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
                await polled(consumer)
            assert len(await polled(consumer)) == 1

    run(body)


def test_another_subscription_is_told_at_once():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        async with consuming(scene.cluster, **QUICK) as consumer:
            await polled(consumer)
            consumer.subscribe(["other"])
            while len(scene.heartbeats) < 2:
                await consumer.poll()
            assert scene.heartbeats[1].subscribed_topic_names == ("other",)
            assert scene.heartbeats[1].member_epoch == 3

    run(body)


def test_closing_the_client_closes_the_consumer():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        async with scene.cluster:
            async with scene.cluster.client() as client:
                consumer = await ShareConsumer(client, "g", ["jobs"], **QUICK).__aenter__()
                await polled(consumer)
            assert scene.leader.epochs[-1] == -1
            assert scene.heartbeats[-1].member_epoch == -1

    run(body)


def test_a_first_assignment_is_asked_for_soon(monkeypatch: pytest.MonkeyPatch):
    """A new group has none in its first answer, and its usual interval is long."""
    monkeypatch.setattr("ottla.client.share.membership.FIRST_INTERVAL_MS", 1)

    async def body() -> None:
        scene = OneLeader([delivery(0)])
        empty = Heartbeat(
            member_id="m", member_epoch=2, heartbeat_interval_ms=3_600_000, assignment=Heartbeat.Assignment(())
        )
        scene.broker.on("ShareGroupHeartbeat", empty, assigned(0), steady())
        async with consuming(scene.cluster, **QUICK) as consumer:
            assert len(await polled(consumer)) == 1

    run(body)


def test_a_farewell_that_is_refused_holds_nothing_up():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                await polled(consumer)
                scene.leader.errors["request"] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
            assert scene.heartbeats[-1].member_epoch == -1

    run(body)
