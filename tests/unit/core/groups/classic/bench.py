"""The group coordinator's classic and admin families with a log in memory, called directly: for what conversations in
tests/golden/scenarios cannot say, such as a write that fails in a certain way, or groups of other kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from ottla.core.coordinator.contract import COMMITTED, Context, Outcome, Result, World
from ottla.core.coordinator.records import encode_record
from ottla.core.groups.admin import AdminFamily
from ottla.core.groups.classic.family import ClassicFamily
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.coordinator import GroupCoordinator
from ottla.core.groups.table import Claim, ExpiryRule, GroupKind, GroupTable, HoldsNothingElsewhere
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.reject import Reject
from ottla.wire.types.group_classic import OffsetCommitKey
from ottla.wire.types.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.types.sync_group import SyncGroupRequest, SyncGroupResponse

START_MS = 1_700_000_000_000

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.max.session.timeout.ms": 1_800_000,
    "group.max.size": 2**31 - 1,
    "group.min.session.timeout.ms": 6_000,
}


class Topics:
    version = 0

    def by_name(self, name: str) -> None:
        return None

    def by_id(self, topic_id: bytes) -> None:
        return None

    def names(self) -> Iterable[str]:
        return ()


class OtherGroup(HoldsNothingElsewhere):
    """A group of another kind, whose tombstone is that of an offset."""

    protocol_type = "consumer"

    def __init__(self, group_id: str, kind: GroupKind, *, is_empty: bool, table: GroupTable | None = None) -> None:
        self.group_id = group_id
        self.kind = kind
        self.is_empty = is_empty

    def state_name(self) -> str:
        return "Empty" if self.is_empty else "Stable"

    def check_commit(self, claim: Claim, context: Context) -> None: ...
    def check_fetch(self, member_id: str, member_epoch: int) -> None: ...
    def check_delete(self) -> None:
        if not self.is_empty:
            raise Reject(ErrorCode.NON_EMPTY_GROUP)

    def check_offset_delete(self) -> None: ...
    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def expiry(self, context: Context) -> ExpiryRule | None:
        return None

    def tombstones(self) -> Sequence[KeyedRecord]:
        return [KeyedRecord(OffsetCommitKey(self.group_id, "of another kind", 0), 0, None, -1)]

    def hard_state(self) -> Any:
        return ()


class Bench:
    def __init__(self) -> None:
        self.table = GroupTable()
        self.family = ClassicFamily(self.table)
        self.core = GroupCoordinator([self.family, AdminFamily(self.table, self._offset_tombstones)])
        self.settings = dict(SETTINGS)
        self.now_ms = 0
        self.timers: dict[Any, int] = {}
        self.replies: dict[Any, Any] = {}
        """By token."""
        self.log: list[KeyedRecord] = []
        self.after: list[Any] = []
        """What asked to be told of its write."""
        self.effects: list[Any] = []
        """What nobody has performed yet."""
        self.holds = False
        """Whether writes stay uncommitted."""
        self._uuids = count(1)

    def _offset_tombstones(self, group_id: str) -> Sequence[KeyedRecord]:
        return [KeyedRecord(OffsetCommitKey(group_id, "t", 0), 0, None, -1)]

    def context(self, token: Any = "caller", version: int = 9) -> Context:
        world = World(
            self.settings,
            lambda group_id, name: None,
            Topics(),
            lambda name: 0,
            lambda: next(self._uuids).to_bytes(16, "big"),
            lambda: 0,
        )
        return Context(self.now_ms, START_MS + self.now_ms, world, token, version, "app", "/10.0.0.1")

    @property
    def group(self) -> ClassicGroup:
        group = self.table.get("g")
        assert isinstance(group, ClassicGroup)
        return group

    # --- calls --------------------------------------------------------------------------------------------------------

    def ask(self, request: object, token: Any = "caller", version: int = 9) -> Any:
        """The answer, or None if the request is parked; a code if it is refused."""
        try:
            self.take(self.core.handle(request, self.context(token, version)))
        except Reject as reject:
            return reject.code
        return self.replies.pop(token, None)

    def take(self, result: Result) -> None:
        """As a shard does it when all goes well."""
        for record in result.records:
            key, value = encode_record(record)
            self.log.append(decode_keyed("__consumer_offsets", key, value))
            self.core.replay(record, len(self.log), -1, -1)
        for key, at_ms in result.timers:
            self.timers.pop(key, None)
            if at_ms is not None:
                self.timers[key] = at_ms
        self.replies.update(dict(result.replies))
        self.effects.extend(result.effects)
        if result.after is not None:
            self.after.append(result.after)
            if not self.holds:
                self.settle()

    def settle(self, outcome: Outcome = COMMITTED) -> None:
        self.take(self.core.settled(self.after.pop(0), outcome, self.context()))

    def refuse_write(self, request: object, error: ErrorCode, token: Any = "caller", version: int = 9) -> Any:
        """Ask, and let the log refuse the records: nothing is replayed, and no timer set."""
        result = self.core.handle(request, self.context(token, version))
        assert result.records
        assert result.after is not None
        self.take(self.core.settled(result.after, Outcome(error), self.context()))
        return self.replies.pop(token, None)

    def advance(self, milliseconds: int) -> None:
        end_ms = self.now_ms + milliseconds
        while self.timers and min(self.timers.values()) <= end_ms:
            key = min(self.timers, key=lambda each: self.timers[each])
            self.now_ms = self.timers.pop(key)
            self.take(self.core.expire(key, self.context()))
        self.now_ms = end_ms

    def replayed(self) -> GroupCoordinator:
        """Another core that has the log."""
        other = Bench()
        for record in self.log:
            other.core.replay(record, 0, -1, -1)
        return other.core

    # --- members ------------------------------------------------------------------------------------------------------

    def join(self, token: Any, member_id: str = "", version: int = 9, **fields: Any) -> JoinGroupResponse | None:
        return self.ask(join_request(member_id, **fields), token, version)  # type: ignore[no-any-return]

    def sync(self, token: Any, member_id: str, **assignments: bytes) -> SyncGroupResponse | None:
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            "g",
            self.group.generation,
            member_id,
            assignments=tuple(kind(each, given) for each, given in assignments.items()),
        )
        return self.ask(request, token, 3)  # type: ignore[no-any-return]

    def stable_group(self, size: int = 1) -> list[str]:
        """A stable group of so many members; gives their ids. The first one leads."""
        for index in range(size):
            self.join(index, version=3)
        self.advance(0)
        ids = [self.replies.pop(index).member_id for index in range(size)]
        for index, member_id in enumerate(ids):
            self.sync(index, member_id, **({} if index else dict.fromkeys(ids, b"work")))
        self.replies.clear()
        return ids


def join_request(member_id: str = "", **fields: Any) -> JoinGroupRequest:
    protocols = tuple(
        JoinGroupRequest.JoinGroupRequestProtocol(name, metadata)
        for name, metadata in fields.pop("protocols", {"range": b"\0\0\0\0\0\0\xff\xff\xff\xff"}).items()
    )
    given = {"group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer"}
    return JoinGroupRequest(member_id=member_id, protocols=protocols, **(given | fields))
