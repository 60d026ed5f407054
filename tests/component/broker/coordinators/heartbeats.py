"""Heartbeats that a ledger reads as orders."""

from __future__ import annotations

from typing import Any

from ottla.broker.coordinators.shard import Shard
from ottla.core.coordinator.partitioner import partition_for
from ottla.wire.errors import ErrorCode
from tests.component.broker.coordinators.conftest import HEARTBEAT, VERSION
from tests.component.broker.raw_client import Connection, RunningNode
from tests.unit.broker.coordinators.ledger import Ledger, ask

PARTITIONS = 4
ATTEMPTS = 10_000


def say(running: RunningNode, verb: str, name: str = "a", number: int = 0, connection: Connection | None = None) -> Any:
    """The number, or the error."""
    answer = (connection or running.client.connection).ask(ask(verb, name, number), VERSION)
    return ErrorCode(answer.error_code) if answer.error_code else answer.throttle_time_ms


def send(connection: Connection, verb: str, name: str = "a", number: int = 0) -> int:
    return connection.send(ask(verb, name, number), VERSION)


def hear(connection: Connection, correlation_id: int) -> Any:
    answer = connection.receive(HEARTBEAT, VERSION, correlation_id)
    return ErrorCode(answer.error_code) if answer.error_code else answer.throttle_time_ms


def park(running: RunningNode, connection: Connection, verb: str = "park", name: str = "a", number: int = 0) -> int:
    """Send what is not answered yet, and see to it that the core has it."""
    handled = core_of(running, name).handled
    correlation_id = send(connection, verb, name, number)
    for _ in range(ATTEMPTS):
        if core_of(running, name).handled > handled:
            return correlation_id
        say(running, "get", _name_of((partition_for(name, PARTITIONS) + 1) % PARTITIONS))
    raise AssertionError("it does not arrive")


def shard_of(running: RunningNode, name: str) -> Shard:
    return running.node.groups.shards[partition_for(name, PARTITIONS)]


def core_of(running: RunningNode, name: str) -> Ledger:
    core = shard_of(running, name).core
    assert isinstance(core, Ledger)
    return core


def _name_of(partition: int) -> str:
    return next(name for name in map(str, range(100)) if partition_for(name, PARTITIONS) == partition)
