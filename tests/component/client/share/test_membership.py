"""How share consumers join their groups, stay and leave."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ottla.client import ShareConsumer
from ottla.client.errors import ResponseError
from ottla.client.share.membership import Membership
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import HOLD
from tests.component.client.share.leaders import (
    QUICK,
    Heartbeat,
    OneLeader,
    assigned,
    consuming,
    delivery,
    polled,
    steady,
)
from tests.unit.client.running import run

WAITING_HEARTBEATS, POLLS_MAX = 10, 1_000


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


def test_who_closes_before_the_join_is_answered_leaves_as_well():
    """The coordinator may take its time for the first answer, and would keep partitions for the member."""

    async def body() -> None:
        scene = OneLeader()
        scene.broker.on("ShareGroupHeartbeat", HOLD, steady(epoch=-1))
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK):
                await scene.broker.was_asked("ShareGroupHeartbeat")
            assert [each.member_epoch for each in scene.heartbeats] == [0, -1]

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


def test_a_subscription_that_changes_during_a_heartbeat_is_told_at_once():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        may_answer = asyncio.Event()

        async def late() -> Heartbeat:
            await may_answer.wait()
            return msgspec.structs.replace(assigned(0), heartbeat_interval_ms=3_600_000)

        scene.broker.on("ShareGroupHeartbeat", lambda _: late(), steady())
        async with consuming(scene.cluster, **QUICK) as consumer:
            await scene.broker.was_asked("ShareGroupHeartbeat")
            consumer.subscribe(["other"])
            may_answer.set()
            while len(scene.heartbeats) < 2:
                await consumer.poll()
            assert [each.subscribed_topic_names for each in scene.heartbeats] == [("jobs",), ("other",)]

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
    paused: list[float] = []
    pause = Membership._pause

    async def note(self: Membership, interval_ms: float) -> None:
        paused.append(interval_ms)
        await pause(self, interval_ms)

    monkeypatch.setattr(Membership, "_pause", note)

    async def body() -> None:
        scene = OneLeader([delivery(0)])
        empty = Heartbeat(
            member_id="m", member_epoch=2, heartbeat_interval_ms=3_600_000, assignment=Heartbeat.Assignment(())
        )
        scene.broker.on("ShareGroupHeartbeat", empty, empty, empty, assigned(0), steady())
        async with consuming(scene.cluster, **QUICK) as consumer:
            assert len(await polled(consumer)) == 1

    run(body)
    assert paused == [1, 2, 4, 5_000], "each time later, so that a group without a topic is no burden"


def test_a_farewell_that_is_refused_holds_nothing_up():
    async def body() -> None:
        scene = OneLeader([delivery(0)])
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                await polled(consumer)
                scene.leader.errors["request"] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
            assert scene.heartbeats[-1].member_epoch == -1

    run(body)


def test_who_waits_for_a_topic_that_does_not_exist_is_told_once(caplog: pytest.LogCaptureFixture):
    async def body() -> None:
        scene = OneLeader()
        scene.broker.on("ShareGroupHeartbeat", Heartbeat(member_epoch=1, heartbeat_interval_ms=1))
        async with (
            scene.cluster,
            scene.cluster.client() as client,
            ShareConsumer(client, "g", ["jobs", "nowhere"], **QUICK) as consumer,
        ):
            for _ in range(POLLS_MAX):
                await consumer.poll(timeout_ms=10)
                if len(scene.heartbeats) > WAITING_HEARTBEATS:
                    return
        raise AssertionError("too few heartbeats")

    run(body)
    assert caplog.messages == ["share group g waits for nowhere, which does not exist"]
