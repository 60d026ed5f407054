"""Members of classic groups, each on a connection of its own."""

from __future__ import annotations

from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.component.broker.raw_client import READY_ATTEMPTS, Connection, RawClient


class Member:
    """A client on a connection of its own, which may wait at a parked request."""

    def __init__(self, client: RawClient, group: str, client_id: str = "app", **fields: Any) -> None:
        self.connection: Connection = client.connect(client_id)
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.fields = fields

    def join_request(self, **fields: Any) -> JoinGroupRequest:
        given: dict[str, Any] = {
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": protocols(range=b"r", sticky=b"s"),
        }
        return JoinGroupRequest(self.group, **({"member_id": self.member_id} | given | self.fields | fields))

    def join(self, version: int = 9, **fields: Any) -> JoinGroupResponse:
        return self._heard(self.connection.ask(self.join_request(**fields), version))

    def send_join(self, version: int = 9, **fields: Any) -> int:
        return self.connection.send(self.join_request(**fields), version)

    def receive_join(self, number: int, version: int = 9) -> JoinGroupResponse:
        return self._heard(self.connection.receive(11, version, number))

    def _heard(self, answer: JoinGroupResponse) -> JoinGroupResponse:
        self.member_id = answer.member_id or self.member_id
        self.generation = answer.generation_id
        return answer

    def sync_request(self, **assignments: bytes) -> SyncGroupRequest:
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        return SyncGroupRequest(
            self.group,
            self.generation,
            self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(kind(member_id, assignment) for member_id, assignment in assignments.items()),
        )

    def sync(self, version: int = 5, **assignments: bytes) -> SyncGroupResponse:
        answer: SyncGroupResponse = self.connection.ask(self.sync_request(**assignments), version)
        return answer

    def heartbeat(self) -> int:
        code: int = self.connection.ask(HeartbeatRequest(self.group, self.generation, self.member_id), 4).error_code
        return code

    def hear_of_rebalance(self) -> None:
        """Heartbeat until the broker says that a rebalance is in progress."""
        for _ in range(READY_ATTEMPTS):
            if self.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS:
                return
        raise AssertionError(f"no rebalance in {READY_ATTEMPTS} heartbeats")

    def leave(self) -> None:
        self.connection.ask(LeaveGroupRequest(self.group, self.member_id), 1)


def protocols(**metadata: bytes) -> tuple[JoinGroupRequest.JoinGroupRequestProtocol, ...]:
    return tuple(JoinGroupRequest.JoinGroupRequestProtocol(name, value) for name, value in metadata.items())
