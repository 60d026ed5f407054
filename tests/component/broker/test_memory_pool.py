"""The bound on requests under way, and signals that come too early."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from ottla.broker.node import Node
from ottla.wire import frames
from tests.component.broker.raw_client import Connection, batch, produce_request, running_node


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
