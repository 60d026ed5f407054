"""Requests of a node to a controller of another release: they go in a version that it serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla import wire
from ottla.broker.controller.remote_controller import RemoteController
from ottla.broker.peers.peer_connection import Address
from ottla.wire.types import BrokerHeartbeatRequest, BrokerHeartbeatResponse

ADDRESS = Address("127.0.0.1", 9093)
DIRECTORY = bytes(range(16))
HEARTBEAT = BrokerHeartbeatRequest(2, 7, 40, offline_log_dirs=(DIRECTORY,), cordoned_log_dirs=())


class Connection:
    """To a controller that serves heartbeats up to a version."""

    address = ADDRESS

    def __init__(self, highest: int) -> None:
        self._highest = highest
        self.sent: list[tuple[Any, int]] = []

    def send(
        self, request: Any, versions: tuple[int, int], done: Callable[[Any], None], *, timeout_s: float, fit: Any = None
    ) -> None:
        version = min(versions[1], self._highest)
        assert version >= versions[0], "there is no version that both know"
        fitted = request if fit is None else fit(request, version)
        wire.encode(fitted, version)
        self.sent.append((fitted, version))
        done(BrokerHeartbeatResponse())


@pytest.mark.parametrize(("highest", "cordoned"), [(2, ()), (1, None)], ids=["4.3", "4.0 to 4.2"])
def test_a_heartbeat_says_what_the_controller_can_read(highest: int, cordoned: tuple[bytes, ...] | None) -> None:
    connection: Any = Connection(highest)
    controller = RemoteController(lambda: ADDRESS, lambda _: connection)
    replies: list[Any] = []
    controller.submit(HEARTBEAT, 2, replies.append, client=None, timeout_s=1)
    ((sent, version),) = connection.sent
    assert (version, sent.cordoned_log_dirs, sent.offline_log_dirs) == (highest, cordoned, (DIRECTORY,))
    assert replies == [BrokerHeartbeatResponse()]
