"""What the share consumer gives, and what it says about it, against scripted brokers."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client import AcknowledgeType, ShareConsumer
from ottla.client.errors import ClosedError, ConfigurationError, ResponseError, UnsupportedVersionError
from ottla.wire.batch import read_header
from tests.component.client.share.leaders import (
    ACCEPT,
    EXPLICIT,
    GAP,
    INVALID,
    JOBS_0,
    QUICK,
    RENEW,
    OneLeader,
    assigned,
    batch,
    consuming,
    delivery,
    polled,
    steady,
)
from tests.unit.client.running import run

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


def test_a_fetch_is_one_request_with_limits_of_its_own():
    async def body() -> None:
        scene = OneLeader([delivery(0, 1)], [delivery(2, 3)])
        async with consuming(scene.cluster, **QUICK) as consumer:
            brought = await consumer.fetch(7, 5_000)
            assert [record.offset for each in brought for record in each.records()] == [0, 1]
            (request,) = scene.broker.asked_for("ShareFetch")
            assert (request.max_records, request.batch_size, request.max_wait_ms) == (7, 7, 5_000)
            brought = await consumer.fetch(8, 0)
            assert [record.offset for each in brought for record in each.records()] == [2, 3]
            assert scene.broker.asked_for("ShareFetch")[1].max_wait_ms == 0
            assert await consumer.fetch(8, 0) == []
            assert len(scene.leader.epochs) == 3, "no request is sent ahead"

    run(body)


def test_a_fetch_without_an_assignment_waits_no_longer_than_it_may():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        scene.broker.on("ShareGroupHeartbeat", assigned(), steady())
        async with consuming(scene.cluster, **QUICK) as consumer:
            assert await consumer.fetch(1, 0) == []
            assert await consumer.fetch(1, 20) == []
            assert scene.leader.epochs == []

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
            await consumer.renew(acquired)
            assert scene.leader.said == [(0, 0, 3, RENEW)]
            consumer.reject(records[1])
            with pytest.raises(ConfigurationError, match="offset 1 of jobs-0 is not acquired"):
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
            with pytest.raises(ConfigurationError, match="not acquired"):
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
                with pytest.raises(ConfigurationError, match="acknowledges implicitly"):
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
