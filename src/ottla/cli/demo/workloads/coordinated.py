"""Heartbeats of groups with server-side assignment: consumer groups (KIP-848) and streams groups (KIP-1071)."""

from __future__ import annotations

import uuid
from typing import Final, Protocol

from ottla.cli.demo.workloads.member import Assignment, Reader
from ottla.client import Client
from ottla.client.errors import check
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode

__all__ = ["JOINING", "LEAVING", "REBALANCE_TIMEOUT_MS", "Coordinated"]

JOINING: Final = 0
LEAVING: Final = -1
REJOIN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
REBALANCE_TIMEOUT_MS: Final = 60_000


class Answer(Protocol):
    """The fields that both responses have."""

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...

    @property
    def member_epoch(self) -> int: ...

    @property
    def heartbeat_interval_ms(self) -> int: ...


class Coordinated:
    """A member sends what it owns and gets its assignment; subclasses make the requests."""

    group = ""

    def __init__(self, client: Client) -> None:
        self.interval_s = 0.0
        self.client = client
        self.member_id = uuid_text(uuid.uuid4().bytes)
        self.epoch = JOINING
        self.wanted: Assignment = frozenset()

    async def send(self, owned: Assignment) -> Answer:
        """Send one heartbeat; the assignment goes into `wanted`."""
        raise NotImplementedError

    async def send_farewell(self) -> None:
        raise NotImplementedError

    async def beat(self, reader: Reader) -> Assignment:
        answer = await self.send(reader.owned)
        if answer.error_code in REJOIN:
            for at in reader.owned:
                reader.forget(at)
            self.epoch, self.wanted = JOINING, frozenset()
            return self.wanted
        check(None, "heartbeat", answer.error_code, f"group {self.group}", answer.error_message)
        self.epoch = reader.epoch = answer.member_epoch
        reader.member_id = self.member_id
        self.interval_s = answer.heartbeat_interval_ms / 1000
        return self.wanted

    async def leave(self, reader: Reader) -> None:
        if self.epoch != JOINING:
            await self.send_farewell()
