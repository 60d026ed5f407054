"""A node whose group coordinator is a ledger, asked by Heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.coordinators.core_factory import CORES
from ottla.broker.coordinators.internal_topics import GROUPS
from ottla.broker.handlers import SERVED, Served
from ottla.broker.loop.clock import ManualClock
from ottla.broker.network.dispatch import Api
from ottla.broker.network.request import Answer, Request
from ottla.broker.node import Node
from ottla.wire.types.heartbeat import HeartbeatResponse
from tests.component.broker.raw_client import RunningNode, running_node
from tests.unit.broker.coordinators.ledger import Ledger

HEARTBEAT = 12
VERSION = 4

StartNode = Callable[..., AbstractContextManager[RunningNode]]


def handle(node: Node, request: Request) -> Answer:
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


@pytest.fixture
def start_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StartNode:
    """Starts a node; a second time, on what the first has left."""
    monkeypatch.setitem(CORES, GROUPS.name, lambda place: Ledger())
    monkeypatch.setitem(SERVED, HEARTBEAT, Served("heartbeat", 0, VERSION))

    @contextmanager
    def start(**settings: Any) -> Iterator[RunningNode]:
        settings.setdefault("offsets_topic_num_partitions", 4)
        with running_node(tmp_path, ManualClock(), **settings) as running:
            running.node.dispatch._apis[HEARTBEAT] = Api(HEARTBEAT, "Heartbeat", 0, VERSION, handle, refuse)
            yield running

    return start


@pytest.fixture
def running(start_node: StartNode) -> Iterator[RunningNode]:
    with start_node() as running:
        yield running
