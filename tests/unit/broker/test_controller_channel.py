"""The controller channel: what happens to requests that no controller has taken yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.controller.channel import ControllerChannel
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_topics import DeleteTopicsRequest, DeleteTopicsRequestDeleteTopicState
from tests.unit.broker.virtual_node import run

REQUEST = DeleteTopicsRequest((DeleteTopicsRequestDeleteTopicState("orders"),), timeout_ms=10_000)


class NoController:
    """Another node, of which nothing is heard."""

    def __init__(self) -> None:
        self.tries = 0

    def submit(self, request: Any, api_version: int, done: Callable[[Any], None], **terms: Any) -> None:
        self.tries += 1
        done(None)

    def controller_changed(self) -> None:
        """Nothing is under way."""


@pytest.mark.parametrize("is_changed", [False, True], ids=["later", "another controller"])
@pytest.mark.parametrize("is_gone", [False, True], ids=["client waits", "client is gone"])
def test_a_request_is_repeated_as_long_as_its_client_waits(is_gone: bool, is_changed: bool) -> None:
    """A client that is gone may have asked another node: what it asked for then must not be undone."""

    async def scenario(loop: VirtualLoop) -> None:
        remote: Any = NoController()
        nobody: Any = SimpleNamespace(is_active=False)
        channel = ControllerChannel(loop, nobody, remote, nobody, nobody)
        client: Any = SimpleNamespace(connection=SimpleNamespace(is_closed=False))
        replies: list[Any] = []
        channel.send(REQUEST, 6, replies.append, client=client)
        client.connection.is_closed = is_gone
        if is_changed:
            channel.controller_changed()
        await asyncio.sleep(5)
        assert (remote.tries == 1) == is_gone
        assert bool(replies) == is_gone
        await asyncio.sleep(6)
        assert replies[0].responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT

    run(scenario)
