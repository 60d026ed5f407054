"""A second broker comes and goes: what its controller writes, and whom it keeps waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest

from ottla.broker.node import Node
from ottla.core.metadata import context, controller
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types import CreateDelegationTokenRequest, CreateTopicsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from tests.unit.broker.played_broker import another_broker
from tests.unit.broker.virtual_node import Client, create_topic, run, running

OTHER = 2
CONTROLLER_ONLY = {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:9093"}
SESSION_S = 9
PARTITIONS = 20
RECORDS_PER_SLICE = 5


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "SLICE_WORK", RECORDS_PER_SLICE * context.RECORD_WORK)


async def topic_on_all(loop: VirtualLoop, replicas: int) -> None:
    topic = CreateTopicsRequest.CreatableTopic("many", PARTITIONS, replicas)
    (created,) = (await Client(loop, 9093).ask(CreateTopicsRequest((topic,)), 7)).topics
    assert created.error_code == 0


async def second_broker(loop: VirtualLoop, node: Node) -> BrokerHeartbeatRequest:
    """Adds a broker and a topic whose partitions both have; gives the broker's heartbeat."""
    heartbeat = await another_broker(loop, node)
    await topic_on_all(loop, 2)
    return heartbeat


def in_sync(node: Node, without: str = "") -> set[int]:
    """The brokers that are in sync with something, of topics other than this one."""
    partitions = [partition for topic, partition in node.image.partitions() if topic.name != without]
    return {broker for partition in partitions for broker in partition.isr}


def held_up(tasks: Any) -> list[Generator[None, None, None]]:
    """Changes in slices are not written by themselves, but put into this list."""
    add = tasks.add
    steps: list[Generator[None, None, None]] = []

    def hold_up(name: str, work: Generator[None, None, None], **options: bool) -> None:
        steps.append(work) if name.startswith("controller") else add(name, work, **options)

    tasks.add = hold_up
    return steps


def test_a_silent_broker_is_fenced() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            heartbeat = await second_broker(loop, node)
            for _ in range(5):
                await asyncio.sleep(4)
                assert not (await Client(loop, 9093).ask(heartbeat, 2)).is_fenced
            await asyncio.sleep(12)
            assert {broker.broker_id for broker in node.image.brokers.values() if broker.fenced} == {OTHER}
            assert in_sync(node) == {1}

    run(scenario)


@pytest.mark.prompt
def test_a_silent_broker_is_fenced_when_its_session_ends() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            await second_broker(loop, node)
            heartbeat = await another_broker(loop, node, 3)
            await asyncio.sleep(1.234)  # whatever else is done every second or two
            assert not (await Client(loop, 9093).ask(heartbeat, 2)).is_fenced
            await asyncio.sleep(SESSION_S - 0.01)
            assert not node.image.brokers[3].fenced
            await asyncio.sleep(0.02)
            assert node.image.brokers[3].fenced

    run(scenario)


def test_brokers_that_fall_silent_together_are_fenced_one_after_the_other() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            for broker_id in (2, 3, 4):
                await another_broker(loop, node, broker_id)
            await topic_on_all(loop, 4)
            await asyncio.sleep(SESSION_S + 1)
            assert {broker.broker_id for broker in node.image.brokers.values() if broker.fenced} == {2, 3, 4}
            assert in_sync(node) == {1}
            (created,) = (await Client(loop, 9093).ask(create_topic("later"), 7)).topics
            assert created.error_code == 0

    run(scenario)


def test_who_was_heard_of_during_a_long_change_is_not_fenced_after_it() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), settings=CONTROLLER_ONLY) as node:
            await another_broker(loop, node, 2)
            heartbeat = await another_broker(loop, node, 3)
            await topic_on_all(loop, 2)
            await asyncio.sleep(SESSION_S - 1)
            await Client(loop, 9093).ask(heartbeat, 2)
            steps = held_up(node.cooperative_tasks)
            await asyncio.sleep(1.1)
            waiting = loop.create_task(Client(loop, 9093).ask(heartbeat, 2))
            await asyncio.sleep(2 * SESSION_S)
            for work in steps:  # grows as one follows another
                for _ in work:
                    await asyncio.sleep(0)
            await asyncio.sleep(0.1)
            assert not (await waiting).is_fenced
            assert {broker.broker_id for broker in node.image.brokers.values() if broker.fenced} == {2}

    run(scenario)


def test_a_controller_that_was_stopped_hears_of_brokers_before_it_fences_them() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            heartbeat = await second_broker(loop, node)
            await asyncio.sleep(3)
            loop._now_s += 60  # the process was stopped, and goes on
            await asyncio.sleep(0.1)
            assert not any(broker.fenced for broker in node.image.brokers.values())
            assert not (await Client(loop, 9093).ask(heartbeat, 2)).is_fenced
            await asyncio.sleep(4)
            assert not any(broker.fenced for broker in node.image.brokers.values())
            await asyncio.sleep(9)
            assert node.image.brokers[OTHER].fenced

    run(scenario)


def test_a_change_in_slices_may_follow_upon_another() -> None:
    """A broker that is being fenced comes back: what it leads again is written as soon as the fencing is."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            heartbeat = await second_broker(loop, node)
            kind = CreateTopicsRequest
            places = tuple(kind.CreatableReplicaAssignment(number, (OTHER,)) for number in range(PARTITIONS))
            await Client(loop, 9092).ask(kind((kind.CreatableTopic("alone", -1, -1, places),)), 7)
            tasks: Any = node.cooperative_tasks
            add, held = tasks.add, []
            tasks.add = lambda name, work, **options: held.append((name, work, options))
            await asyncio.sleep(12)
            returning = loop.create_task(Client(loop, 9093).ask(heartbeat, 2))
            await asyncio.sleep(0.1)
            tasks.add = add
            for name, work, options in held:
                add(name, work, **options)
            async with asyncio.timeout(5):
                assert not (await returning).is_fenced
                (created,) = (await Client(loop, 9092).ask(create_topic("later"), 7)).topics
            assert created.error_code == 0

    run(scenario)


def test_requests_wait_while_a_broker_is_fenced_in_slices() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            heartbeat = await second_broker(loop, node)
            tasks: Any = node.cooperative_tasks
            steps = held_up(tasks)
            await asyncio.sleep(12)
            (work,) = steps
            creating = loop.create_task(Client(loop, 9092).ask(create_topic("later"), 7))
            returning = loop.create_task(Client(loop, 9093).ask(heartbeat, 2))
            slices = 0
            is_fenced = False
            for _ in work:
                slices += 1
                before = node.raft.end_offset
                await asyncio.sleep(0.1)
                assert node.raft.end_offset - before <= RECORDS_PER_SLICE
                is_fenced |= node.controller.image.brokers[OTHER].fenced  # type: ignore[union-attr]
                assert is_fenced or not creating.done()
            assert slices >= PARTITIONS // RECORDS_PER_SLICE
            assert (await creating).topics[0].error_code == 0
            assert not (await returning).is_fenced  # it has spoken up after all
            assert in_sync(node, without="later") == {1}
            del tasks.add

    run(scenario)


def test_who_waits_hears_that_the_controller_has_resigned() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            await second_broker(loop, node)
            steps = held_up(node.cooperative_tasks)
            await asyncio.sleep(12)
            replies: list[Any] = []
            node.controller.submit(create_topic("later"), 7, lambda reply, offset: replies.append(reply))
            assert replies == []
            node.controller.resign()
            assert replies == [None]
            assert list(steps[0]) == []

    run(scenario)


def test_a_request_that_no_record_can_hold_keeps_nobody_waiting() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), settings={"delegation.token.secret.key": "secret"}) as node:
            await second_broker(loop, node)
            tasks: Any = node.cooperative_tasks
            steps = held_up(tasks)
            await asyncio.sleep(12)
            (work,) = steps
            replies: list[Any] = []
            kind = CreateDelegationTokenRequest
            for_nobody = kind(renewers=(kind.CreatableRenewers("User", "x" * 32_767),))
            for request, version in ((for_nobody, 3), (create_topic("later"), 7)):
                node.controller.submit(request, version, lambda reply, offset: replies.append(reply))
            for _ in work:
                await asyncio.sleep(0.1)
            refused, created = replies
            assert refused.error_code == ErrorCode.INVALID_REQUEST
            assert created.topics[0].error_code == 0
            del tasks.add

    run(scenario)


def test_a_request_with_an_unforeseen_error_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            await second_broker(loop, node)
            steps = held_up(node.cooperative_tasks)
            await asyncio.sleep(12)
            (work,) = steps
            replies: list[Any] = []
            for request, version in ((CreateDelegationTokenRequest(), 3), (create_topic("later"), 7)):
                node.controller.submit(request, version, lambda reply, offset: replies.append(reply))
            fail_to_handle(monkeypatch, CreateDelegationTokenRequest, lambda *_: {}["missing"])
            for _ in work:
                await asyncio.sleep(0.1)
            refused, created = replies
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert created.topics[0].error_code == 0
            assert "CreateDelegationTokenRequest failed" in caplog.text

    run(scenario)


def test_a_change_that_fails_half_way_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def steps() -> context.Steps:
        for _ in range(RECORDS_PER_SLICE * context.RECORD_WORK * 3):
            yield None
        raise LookupError

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            fail_to_handle(monkeypatch, CreateDelegationTokenRequest, lambda *_: context.in_slices(steps(), None))
            replies: list[Any] = []
            for request, version in ((CreateDelegationTokenRequest(), 3), (create_topic("later"), 7)):
                node.controller.submit(request, version, lambda reply, offset: replies.append(reply))
            assert replies == []
            await asyncio.sleep(1)
            refused, created = replies
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert created.topics[0].error_code == 0
            assert "CreateDelegationTokenRequest failed" in caplog.text

    run(scenario)


def fail_to_handle(monkeypatch: pytest.MonkeyPatch, kind: type, handle: Callable[..., Any]) -> None:
    _, refuse = controller._HANDLERS[kind]
    monkeypatch.setitem(controller._HANDLERS, kind, (handle, refuse))
