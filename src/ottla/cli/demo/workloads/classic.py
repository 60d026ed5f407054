"""The member of the classic group: it joins, leads and assigns all partitions to itself. It has no incident."""

from __future__ import annotations

from typing import Final

from ottla import wire
from ottla.cli.demo.plan import AUDIT, ORDERS, TOPICS
from ottla.cli.demo.workloads.member import Assignment, Reader, stay
from ottla.cli.demo.workloads.ordered import Ordered
from ottla.client import Client, TopicPartition
from ottla.client.errors import check
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.types.heartbeat import HeartbeatRequest
from ottla.wire.types.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.types.leave_group import LeaveGroupRequest
from ottla.wire.types.sync_group import SyncGroupRequest, SyncGroupRequestSyncGroupRequestAssignment

__all__ = ["run"]

PROTOCOL_TYPE: Final = "consumer"
ASSIGNOR: Final = "range"
EMBEDDED_VERSION: Final = 1
REBALANCE_TIMEOUT_MS: Final = 60_000
BEATS_A_SESSION: Final = 6


async def run(given: Ordered) -> None:
    async with given.client() as client:
        await stay(given, _Heartbeats(client, given.plan.session_ms), Reader(client, AUDIT, given.journal))


class _Heartbeats:
    def __init__(self, client: Client, session_ms: int) -> None:
        self._client = client
        self._session_ms = session_ms
        self._member_id = ""
        self._wanted: Assignment = frozenset()
        self._is_in = False
        self.interval_s = session_ms / 1000 / BEATS_A_SESSION

    async def beat(self, reader: Reader) -> Assignment:
        if self._is_in:
            request = HeartbeatRequest(AUDIT, reader.epoch, self._member_id)
            answer = await self._client.send(request, coordinator=("group", AUDIT))
            self._is_in = not answer.error_code
            if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
        if not self._is_in:
            await self._join(reader)
        return self._wanted

    async def _join(self, reader: Reader) -> None:
        joined = await self._joined()
        reader.member_id, reader.epoch = joined.member_id, joined.generation_id
        assignments = _assignments(joined) if joined.leader == joined.member_id else ()
        request = SyncGroupRequest(
            AUDIT, joined.generation_id, joined.member_id, None, PROTOCOL_TYPE, joined.protocol_name, assignments
        )
        answer = await self._client.send(request, coordinator=("group", AUDIT))
        check(None, "SyncGroup", answer.error_code, f"group {AUDIT}")
        self._is_in = True
        self._wanted = _partitions_in(answer.assignment)

    async def _joined(self) -> JoinGroupResponse:
        """A new member gets its id first, and has to join again with it."""
        answer = await self._client.send(self._join_request(), coordinator=("group", AUDIT))
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = await self._client.send(self._join_request(), coordinator=("group", AUDIT))
        check(None, "JoinGroup", answer.error_code, f"group {AUDIT}")
        self._member_id = answer.member_id
        return answer

    def _join_request(self) -> JoinGroupRequest:
        wanted = _embedded(ConsumerProtocolSubscription((ORDERS,)))
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(ASSIGNOR, wanted)
        return JoinGroupRequest(
            AUDIT, self._session_ms, REBALANCE_TIMEOUT_MS, self._member_id, None, PROTOCOL_TYPE, (protocol,)
        )

    async def leave(self, reader: Reader) -> None:
        if self._is_in:
            farewell = LeaveGroupRequest(AUDIT, members=(LeaveGroupRequest.MemberIdentity(self._member_id),))
            await self._client.send(farewell, coordinator=("group", AUDIT))


def _assignments(joined: JoinGroupResponse) -> tuple[SyncGroupRequestSyncGroupRequestAssignment, ...]:
    """The leader's assignment: partitions in turn to all members."""
    ids = sorted(member.member_id for member in joined.members)
    kind = ConsumerProtocolAssignment.TopicPartition
    return tuple(
        SyncGroupRequestSyncGroupRequestAssignment(
            member_id,
            _embedded(ConsumerProtocolAssignment((kind(ORDERS, tuple(range(place, TOPICS[ORDERS], len(ids)))),))),
        )
        for place, member_id in enumerate(ids)
    )


def _embedded(message: object) -> bytes:
    """A message of the consumer protocol, with its version before it."""
    return EMBEDDED_VERSION.to_bytes(2, "big") + wire.encode(message, EMBEDDED_VERSION)


def _partitions_in(assignment: bytes) -> Assignment:
    version = int.from_bytes(assignment[:2], "big")
    decoded = wire.decode("ConsumerProtocolAssignment", version, assignment[2:])
    assert isinstance(decoded, ConsumerProtocolAssignment)
    return frozenset(
        TopicPartition(each.topic, index) for each in decoded.assigned_partitions for index in each.partitions
    )
