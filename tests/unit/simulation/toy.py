"""A core that counts heartbeats, small enough to see through: what the simulation's own tests drive.

`Heartbeat` writes a record and is answered with the count; after `SyncGroup` the answer waits for a second;
`LeaveGroup` writes a tombstone. With `changes_early` the second of these breaks the law.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, TopicsChange
from ottla.core.coordinator.records import record, tombstone
from ottla.wire import uuid_text
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_classic import OffsetCommitKey, OffsetCommitValue
from ottla.wire.types.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.types.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.types.sync_group import SyncGroupRequest, SyncGroupResponse
from simulation.coordinator_kinds import CoordinatorKind


class ToyCore:
    def __init__(self, *, changes_early: bool = False) -> None:
        self.counts: dict[str, int] = {}
        self._parked: dict[str, Any] = {}
        self._changes_early = changes_early
        self._handlers = {
            HeartbeatRequest: self._heartbeat,
            SyncGroupRequest: self._sync,
            LeaveGroupRequest: self._leave,
        }

    def handle(self, request: Any, context: Context) -> Result:
        return self._handlers[type(request)](request, context)

    def _heartbeat(self, request: HeartbeatRequest, context: Context) -> Result:
        group = request.group_id
        if not context.authorize(Operation.READ, ResourceType.GROUP, group):
            raise Reject(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if group == "broken":
            raise RuntimeError("a mistake")
        count = self.counts.get(group, 0) + 1
        value = OffsetCommitValue(offset=count, metadata=request.member_id, commit_timestamp=context.wall_ms)
        return Result([record(_key(group), value, 3)], [Reply(context.token, HeartbeatResponse())])

    def _sync(self, request: SyncGroupRequest, context: Context) -> Result:
        if self._changes_early:
            self.counts[request.group_id] = 7
        self._parked[request.group_id] = context.token
        return Result(timers=[Timer(("toy", request.group_id), context.now_ms + 1_000)])

    def _leave(self, request: LeaveGroupRequest, context: Context) -> Result:
        return Result([tombstone(_key(request.group_id))], [Reply(context.token, LeaveGroupResponse())])

    def replay(self, keyed: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        if keyed.value is None:
            self.counts.pop(keyed.key.group, None)
        else:
            self.counts[keyed.key.group] = keyed.value.offset

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        pass

    def loaded(self, context: Context) -> Result:
        return NOTHING

    def unloaded(self) -> Iterable[Any]:
        parked, self._parked = self._parked, {}
        return list(parked.values())

    def expire(self, key: Any, context: Context) -> Result:
        answer = SyncGroupResponse(protocol_name=uuid_text(context.world.new_uuid()))
        return Result(replies=[Reply(self._parked.pop(key[1]), answer)])

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:
        return NOTHING

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        return NOTHING

    def hard_state(self) -> Mapping[Any, Any]:
        return self.counts


def _key(group: str) -> OffsetCommitKey:
    return OffsetCommitKey(group=group, topic="beats")


TOY = CoordinatorKind("__consumer_offsets", lambda place: ToyCore())
