"""Brokers that do not answer are left alone for a while."""

import time

import pytest

from ottla.client import ClientError
from ottla.client.address import Address, Peer
from ottla.client.errors import BackingOffError, ConnectError
from ottla.client.reconnects import Reconnects
from ottla.wire import types
from tests.component.client.fake import FakeCluster
from tests.unit.client.running import run

PEER, OTHER = Peer(Address("a", 1), 1), Peer(Address("b", 2), 2)
REFUSED = ConnectError(PEER, "connection refused")
JITTER = 0.2


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def test_pauses_grow_up_to_a_bound_and_end_with_the_first_success():
    clock = Clock()
    reconnects = Reconnects(1000, 8000, clock)
    for expected_s in (1, 2, 4, 8, 8):
        reconnects.check(PEER)
        reconnects.failed(PEER, REFUSED)
        clock.s += expected_s * (1 - JITTER) - 0.01
        with pytest.raises(BackingOffError, match=r"connection refused; the next attempt is in \d\.\d s"):
            reconnects.check(PEER)
        clock.s += expected_s * 2 * JITTER + 0.02
    reconnects.check(PEER)
    reconnects.succeeded(PEER)
    reconnects.failed(PEER, REFUSED)
    clock.s += 1 + JITTER
    reconnects.check(PEER)


def test_each_broker_has_its_own_pauses():
    reconnects = Reconnects(1000, 8000, Clock())
    reconnects.failed(PEER, REFUSED)
    reconnects.check(OTHER)


def test_without_a_pause_every_attempt_is_made():
    reconnects = Reconnects(0, 0, Clock())
    reconnects.failed(PEER, REFUSED)
    reconnects.check(PEER)


def test_a_client_fails_at_once_while_its_only_broker_is_left_alone():
    async def body() -> None:
        slow = {"reconnect_backoff_ms": 60_000, "default_api_timeout_ms": 20_000}
        async with FakeCluster() as cluster, cluster.client(**slow) as client:
            assert client.is_connected
            port = cluster.broker().port
            await cluster.broker().stop()
            began_s = time.monotonic()
            for _ in range(3):
                with pytest.raises(ClientError, match="connection refused; the next attempt is in"):
                    await client.send(types.ListGroupsRequest())
            assert time.monotonic() - began_s < 10
            assert not client.is_connected
            await cluster.broker().start(port)

    run(body)


def test_another_broker_is_asked_meanwhile():
    async def body() -> None:
        async with FakeCluster(nodes=2) as cluster:
            cluster.broker(2).on("ListGroups", types.ListGroupsResponse())
            async with cluster.client(reconnect_backoff_ms=60_000) as client:
                port = cluster.broker(1).port
                await cluster.broker(1).stop()
                for _ in range(3):
                    await client.send(types.ListGroupsRequest())
                await cluster.broker(1).start(port)

    run(body)
