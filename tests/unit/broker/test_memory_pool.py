"""The bound on requests under way, and signals that come too early."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from ottla.broker.network.memory_pool import HELD_MAX_MS, MemoryPool
from ottla.broker.node import Node
from ottla.cli.node_process import _start
from ottla.wire import frames
from tests.unit.broker.holder import Holder
from tests.unit.broker.raw_client import Connection, batch, produce_request, running_node


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


def test_large_requests_wait_for_each_other_and_small_ones_do_not(tmp_path: Path):
    with running_node(tmp_path, queued_max_request_bytes=1) as running:
        client = running.client
        topic = client.topic()
        request = produce_request(topic, {0: batch(bytes(700_000))})
        frame = frames.write_request(request, 13, correlation_id=1, client_id="x")
        first, second, third = client.connect(), client.connect(), client.connect()
        half = len(frame) // 2

        def begin(connection: Connection) -> None:
            connection._sock.sendall(frame[:half])

        begin(first)
        assert client.produce(topic, batch(b"small")).error_code == 0
        begin(second)
        second._sock.sendall(frame[half:])
        begin(third)
        assert second.is_silent(0.2), "the first one is under way"
        third.close()
        first._sock.sendall(frame[half:])
        for connection in (first, second):
            assert connection.receive(0, 13, 1).responses[0].partition_responses[0].error_code == 0
            connection.close()
        memory_pool = running.node.memory_pool
        for _ in range(500):  # the loop has still to read that the third one is gone
            running.change(lambda: None)
            if memory_pool.used_bytes == 0:
                break
        assert memory_pool.used_bytes == 0


def test_a_connection_that_breaks_off_gives_its_room_back(tmp_path: Path):
    with running_node(tmp_path, queued_max_request_bytes=1) as running:
        topic = running.client.topic()
        frame = frames.write_request(
            produce_request(topic, {0: batch(bytes(700_000))}), 13, correlation_id=1, client_id="x"
        )
        first, second = running.client.connect(), running.client.connect()
        first._sock.sendall(frame[:1000])
        assert running.client.produce(topic, batch(b"small")).error_code == 0
        second._sock.sendall(frame)
        assert second.is_silent(0.1)
        first.close()
        with closing(second):
            assert second.receive(0, 13, 1).responses[0].partition_responses[0].error_code == 0


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


def test_a_start_that_is_given_up_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.replicas.partition_loader import PartitionLoader
    from ottla.log.lock import DirectoryLock

    async def for_ever(_: PartitionLoader) -> None:
        await asyncio.sleep(1000)

    monkeypatch.setattr(PartitionLoader, "run", for_ever)
    config = NodeConfig({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"})

    async def life() -> None:
        starting = asyncio.ensure_future(Node.start(config))
        await asyncio.wait([starting], timeout=0.2)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(life())
    DirectoryLock(str(tmp_path)).release(remove=True)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
