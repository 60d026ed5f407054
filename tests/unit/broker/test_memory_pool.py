"""The bound on requests under way, and signals that come too early."""

from __future__ import annotations

import asyncio

from ottla.broker.network.memory_pool import HELD_MAX_MS, MemoryPool
from ottla.broker.node import Node
from ottla.cli.node_process import _start
from tests.unit.broker.holder import Holder


def test_who_was_granted_finishes_and_who_was_not_is_told_when_there_is_room():
    memory_pool = MemoryPool(100)
    a, b, c, d = Holder(), Holder(), Holder(), Holder()
    assert memory_pool.take(a, 80, 0)
    assert memory_pool.take(b, 80, 0), "it may be overdrawn by one"
    assert not memory_pool.take(c, 10, 0)
    assert not memory_pool.take(d, 10, 0)
    memory_pool.give_back(d)
    assert not c.is_fed
    memory_pool.give_back(a)
    assert c.is_fed
    assert not d.is_fed, "it does not want anything any more"
    assert memory_pool.used_bytes == 80


def test_who_does_not_finish_is_closed_when_others_wait_and_not_before():
    memory_pool = MemoryPool(100)
    slow, waiting = Holder(), Holder()
    assert memory_pool.take(slow, 100, 0)
    memory_pool.expire(HELD_MAX_MS + 1)
    assert slow.closed is None, "nobody wants its room"
    assert not memory_pool.take(waiting, 10, HELD_MAX_MS)
    memory_pool.expire(HELD_MAX_MS)
    assert slow.closed is None
    memory_pool.expire(HELD_MAX_MS + 1)
    assert slow.closed is not None
    assert "others wait" in str(slow.closed)


class SlowNode:
    """A node that takes for ever to start."""

    was_cancelled = False

    async def start(self) -> Node:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        raise AssertionError("nobody has ended it")


def test_a_signal_ends_a_start():
    node = SlowNode()

    async def life() -> bool:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(ended.set_result, 0)
        return await _start(node.start(), ended) is None

    assert asyncio.run(life())
    assert node.was_cancelled
