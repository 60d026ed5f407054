"""Metadata that is not committed: nobody acts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.node import Node
from ottla.core.metadata.context import Result
from ottla.core.metadata.image import CLIENT_METRICS
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import InlineOffload, VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import ConfigRecord
from tests.unit.broker.virtual_node import Client, create_topic, run, running


class SlowOffload(InlineOffload):
    """Lets syncs wait while `is_held`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.is_held = False
        self._held: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def __call__(self, work: Callable[[], None], then: Callable[[], None]) -> Any:
        if not self.is_held:
            return super().__call__(work, then)
        self._held.append((work, then))
        return object()

    def go_on(self) -> None:
        self.is_held = False
        held, self._held = self._held, []
        for each in held:
            self(*each)


async def begin_to_create(loop: VirtualLoop, node: Node, name: str) -> asyncio.Task[Any]:
    """Send a CreateTopics whose records are appended and not committed."""
    slow: Any = node.offload
    slow.is_held = True
    creating = loop.create_task(Client(loop, 9092).ask(create_topic(name), 7))
    await asyncio.sleep(1)
    assert not creating.done()
    return creating


def test_the_broker_acts_on_committed_records_only() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), SlowOffload) as node:
            creating = await begin_to_create(loop, node, "orders")
            fork = node.controller.image
            assert fork is not None
            assert fork.topic("orders") is not None, "the controller must know what it has decided"
            assert node.image.topic("orders") is None
            assert node.replicas.get("orders", 0) is None
            node.offload.go_on()
            (created,) = (await creating).topics
            assert created.error_code == ErrorCode.NONE
            assert node.replicas.get("orders", 0) is not None

    run(scenario)


def test_nobody_is_fenced_for_the_time_in_which_nothing_could_be_committed() -> None:
    """Not even the broker of the controller's own process, whose heartbeat waits for its reply."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), SlowOffload) as node:
            creating = await begin_to_create(loop, node, "orders")
            await asyncio.sleep(50)
            node.offload.go_on()
            assert (await creating).topics[0].error_code == ErrorCode.NONE
            await asyncio.sleep(5)
            assert not node.image.brokers[1].fenced
            partition = node.image.partition("orders", 0)
            assert partition is not None
            assert (partition.leader, partition.leader_epoch) == (1, 0)

    run(scenario)


def test_a_batch_that_is_committed_is_published_when_the_next_one_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is too large for one batch may lose its end together with the leadership."""
    monkeypatch.setattr("ottla.core.metadata.records.BATCH_RECORDS_MAX", 2)

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), SlowOffload) as node:
            slow: Any = node.offload
            slow.is_held = True
            first_end = node.raft.end_offset + 2
            names = ("kept", "kept, too", "lost")
            records = [ConfigRecord(CLIENT_METRICS, name, "interval.ms", "1000") for name in names]
            node.controller.append(Result(tuple(Versioned(each, 0) for each in records), None, is_atomic=False))
            node.truncated(first_end)
            node.committed(first_end)
            assert node.image.config_resources(CLIENT_METRICS) == ["kept", "kept, too"]
            assert node.image.last_offset == first_end - 1
            slow.go_on()

    run(scenario)
