"""Many groups: what each costs, and that what has gone leaves nothing behind."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from ottla.core.groups.classic import group as group_module
from ottla.wire.errors import ErrorCode
from ottla.wire.types.heartbeat import HeartbeatRequest
from ottla.wire.types.leave_group import LeaveGroupRequest
from ottla.wire.types.sync_group import SyncGroupRequest
from tests.unit.core.groups.classic.bench import Bench, join_request

GROUPS = 300
GROUP_MAX_BYTES = 6_000


def fill(bench: Bench, count: int) -> list[str]:
    """Stable groups of one member each; gives the members' ids."""
    for index in range(count):
        bench.ask(join_request(group_id=f"group-{index}"), index, 3)
    bench.advance(0)
    ids = [bench.replies.pop(index).member_id for index in range(count)]
    for index, member_id in enumerate(ids):
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(f"group-{index}", 1, member_id, assignments=(kind(member_id, b"work"),))
        bench.ask(request, index, 3)
    bench.log.clear()
    return ids


def test_a_group_takes_little_memory() -> None:
    fill(Bench(), 2)  # what is made once, such as encoders
    bench = Bench()
    gc.collect()
    tracemalloc.start()
    try:
        fill(bench, GROUPS)
        gc.collect()
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes / GROUPS < GROUP_MAX_BYTES


def test_members_that_come_and_go_leave_nothing_behind(bench: Bench) -> None:
    fill(bench, 1)
    for index in range(200):
        pending = bench.ask(join_request(group_id="group-0", protocols={f"own-{index}": b"", "range": b""}), "a", 9)
        bench.ask(LeaveGroupRequest("group-0", pending.member_id), "b", 1)
        bench.ask(join_request(group_id="h", protocols={f"own-{index}": b""}), "c", 3)
        bench.advance(0)
        bench.ask(LeaveGroupRequest("h", bench.replies.pop("c").member_id), "d", 1)
    group, other = bench.table.get("group-0"), bench.table.get("h")
    assert len(bench.timers) == 1
    assert not group.pending_members  # type: ignore[union-attr]
    assert not other._supporters  # type: ignore[union-attr]
    assert not other.members  # type: ignore[union-attr]
    assert not bench.family._arriving


def test_a_heartbeat_does_not_look_at_other_groups(bench: Bench) -> None:
    """It asks the table for one group, whatever else there is."""
    ids = fill(bench, 50)
    asked: list[str] = []
    get = bench.table.get
    bench.table.get = lambda group_id: (asked.append(group_id), get(group_id))[1]  # type: ignore[method-assign]
    bench.table.all = None  # type: ignore[assignment, method-assign]
    assert bench.ask(HeartbeatRequest("group-7", 1, ids[7])).error_code == 0
    assert asked == ["group-7"]


def test_ids_that_nobody_comes_back_with_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "PENDING_MEMBERS_MAX", 3)
    ids = [bench.ask(join_request(), "a", 9).member_id for _ in range(5)]
    assert list(bench.group.pending_members) == ids[2:]
    assert len(bench.timers) == 3
    assert bench.ask(join_request(ids[0]), "a", 9).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.ask(join_request(ids[4]), "a", 9) is None
