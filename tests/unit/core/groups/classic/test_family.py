"""What goes beyond conversations: writes that fail, groups of other kinds, groups that change their kind."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.coordinator.contract import Context, Outcome, Reply, Result
from ottla.core.groups.classic.family import ClassicFamily
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.member import ClassicGroupMember, Parked, Protocol, Terms
from ottla.core.groups.classic.release import release
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.table import GroupKind
from ottla.wire.errors import ErrorCode
from ottla.wire.types.group_classic import GroupMetadataKey
from ottla.wire.types.heartbeat import HeartbeatRequest
from ottla.wire.types.leave_group import LeaveGroupRequest
from ottla.wire.types.sync_group import SyncGroupRequest
from tests.unit.core.groups.classic.bench import Bench, OtherGroup, join_request

APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.CORRUPT_MESSAGE: ErrorCode.CORRUPT_MESSAGE,
}


@pytest.mark.parametrize(("error", "told"), APPEND_ERRORS.items())
class TestWritesThatFail:
    def test_new_group(self, bench: Bench, error: ErrorCode, told: ErrorCode) -> None:
        answer = bench.refuse_write(join_request(), error, version=3)
        assert answer.error_code == told
        assert bench.table.get("g") is None
        assert bench.join("again").error_code == ErrorCode.MEMBER_ID_REQUIRED

    def test_assignment(self, bench: Bench, error: ErrorCode, told: ErrorCode) -> None:
        bench.join("a", version=3)
        bench.join("b", version=3)
        bench.advance(0)
        a, b = bench.replies.pop("a").member_id, bench.replies.pop("b").member_id
        assert bench.sync("b", b) is None
        answer = bench.refuse_write(SyncGroupRequest("g", 1, a), error, "a", 3)
        assert answer.error_code == bench.replies["b"].error_code == told
        assert bench.group.state is GroupState.PREPARING_REBALANCE
        assert bench.core.hard_state() == bench.replayed().hard_state()

    def test_static_member(self, bench: Bench, error: ErrorCode, told: ErrorCode) -> None:
        bench.join("a", group_instance_id="i", protocols={"range": b"old"})
        bench.advance(0)
        old_id = bench.replies["a"].member_id
        bench.sync("a", old_id, **{old_id: b"work"})
        request = join_request(group_instance_id="i", protocols={"range": b"new", "sticky": b""})
        answer = bench.refuse_write(request, error, "b")
        assert answer.error_code == told
        assert answer.member_id == ""
        assert list(bench.group.members) == [old_id]
        assert bench.group.statics == {"i": old_id}
        assert bench.group.leader_id == old_id
        assert bench.group.members[old_id].protocols == (Protocol("range", b"old"),)
        assert not bench.group.supports("consumer", ["sticky"])


def test_write_of_a_new_group_that_is_only_late_leaves_it_alone(bench: Bench) -> None:
    bench.holds = True
    bench.join("a", version=3)
    bench.settle(Outcome(ErrorCode.REQUEST_TIMED_OUT))
    assert "a" not in bench.replies
    bench.advance(0)
    assert bench.replies["a"].generation_id == 1


def test_outcome_of_a_write_of_an_older_generation_means_nothing(bench: Bench) -> None:
    (member_id,) = bench.stable_group()
    bench.holds = True
    bench.join("a", member_id)
    bench.sync("a", member_id)
    bench.join("a", member_id, protocols={"range": b"other"})
    bench.replies.clear()
    assert bench.group.generation == 3
    bench.settle()
    assert bench.group.state is GroupState.COMPLETING_REBALANCE
    bench.sync("a", member_id)
    bench.settle(Outcome(ErrorCode.REQUEST_TIMED_OUT))
    assert bench.replies["a"].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_outcome_for_a_group_that_is_gone_means_nothing(bench: Bench) -> None:
    (member_id,) = bench.stable_group()
    bench.holds = True
    bench.join("a", member_id)
    bench.sync("a", member_id)
    bench.take(Result(bench.group.tombstones()))
    bench.settle()
    assert bench.table.get("g") is None


class TestOtherKinds:
    @pytest.mark.parametrize("kind", [GroupKind.CONSUMER, GroupKind.STREAMS])
    def test_an_empty_group_is_replaced(self, bench: Bench, kind: GroupKind) -> None:
        bench.table.put(OtherGroup("g", kind, is_empty=True))
        answer = bench.join("a")
        assert answer is not None
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert [type(each.key).__name__ for each in bench.log] == ["OffsetCommitKey", "GroupMetadataKey"]
        assert set(bench.group.pending_members) == {answer.member_id}

    def test_a_member_of_an_empty_group_is_not_known_and_replaces_nothing(self, bench: Bench) -> None:
        other = OtherGroup("g", GroupKind.CONSUMER, is_empty=True)
        bench.table.put(other)
        answer = bench.join("a", "m")
        assert answer is not None
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "m")
        assert bench.table.get("g") is other
        assert not bench.log

    @pytest.mark.parametrize(
        ("kind", "is_empty"),
        [(GroupKind.CONSUMER, False), (GroupKind.STREAMS, False), (GroupKind.SHARE, False), (GroupKind.SHARE, True)],
    )
    def test_a_group_without_host_takes_nobody(self, bench: Bench, kind: GroupKind, is_empty: bool) -> None:
        bench.table.put(OtherGroup("g", kind, is_empty=is_empty))
        answer = bench.join("a", "m")
        assert answer is not None
        assert (answer.error_code, answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
        assert bench.ask(SyncGroupRequest("g", 1, "m"), version=3) == ErrorCode.UNKNOWN_MEMBER_ID
        assert bench.ask(HeartbeatRequest("g", 1, "m")) == ErrorCode.UNKNOWN_MEMBER_ID
        assert bench.ask(LeaveGroupRequest("g", "m"), version=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_host_is_asked(self, bench: Bench) -> None:
        group = OtherGroup("g", GroupKind.CONSUMER, is_empty=False)
        bench.table.put(group)
        bench.family.hosts[GroupKind.CONSUMER] = Host()
        assert bench.join("a", "m") == ("join", group)  # type: ignore[comparison-overlap]
        assert bench.ask(SyncGroupRequest("g", 1, "m"), version=3) == ("sync", group)
        assert bench.ask(HeartbeatRequest("g", 1, "m")) == ("heartbeat", group)
        assert bench.ask(LeaveGroupRequest("g", "m"), version=1) == ("leave", group)

    def test_deadlines_of_a_group_that_has_changed_its_kind_do_nothing(self, bench: Bench) -> None:
        (member_id,) = bench.stable_group()
        bench.join("a", member_id, protocols={"range": b"other"})
        bench.table.put(OtherGroup("g", GroupKind.CONSUMER, is_empty=False))
        bench.advance(1_000_000)
        assert not bench.timers

    def test_a_tombstone_leaves_a_group_of_another_kind(self, bench: Bench) -> None:
        """The tombstone may stand in the log behind what the group became, if the log was compacted."""
        (tombstone,) = ClassicGroup("g").tombstones()
        other = OtherGroup("g", GroupKind.CONSUMER, is_empty=False)
        bench.table.put(other)
        bench.core.replay(tombstone, 0, -1, -1)
        assert bench.table.get("g") is other


class Host:
    """Answers with what it was asked."""

    def join(self, group: Any, request: object, context: Context) -> Result:
        return Result(replies=(Reply(context.token, ("join", group)),))

    def sync(self, group: Any, request: object, context: Context) -> Result:
        return Result(replies=(Reply(context.token, ("sync", group)),))

    def heartbeat(self, group: Any, request: object, context: Context) -> Result:
        return Result(replies=(Reply(context.token, ("heartbeat", group)),))

    def leave(self, group: Any, request: object, context: Context) -> Result:
        return Result(replies=(Reply(context.token, ("leave", group)),))


class TestRelease:
    def test_parked_requests_are_answered_and_deadlines_cancelled(self, bench: Bench) -> None:
        ids = bench.stable_group(2)
        bench.join("a", ids[0])
        bench.join("pending")
        group = bench.group
        released = release(group, ErrorCode.REBALANCE_IN_PROGRESS)
        assert [(token, answer.error_code, answer.member_id) for token, answer in released.replies] == [
            ("a", ErrorCode.REBALANCE_IN_PROGRESS, ids[0])
        ]
        assert {timer.key for timer in released.timers} >= bench.timers.keys()
        assert all(timer.at_ms is None for timer in released.timers)
        assert list(bench.core.unloaded()) == []
        assert group.parked_join_count == 0

    def test_parked_syncs(self, bench: Bench) -> None:
        bench.join("a", version=3)
        bench.join("b", version=3)
        bench.advance(0)
        bench.sync("sync", bench.replies["b"].member_id)
        (reply,) = release(bench.group, ErrorCode.REBALANCE_IN_PROGRESS).replies
        assert reply.token == "sync"
        assert reply.message.error_code == ErrorCode.REBALANCE_IN_PROGRESS


class TestAdopt:
    def members(self) -> list[ClassicGroupMember]:
        terms = Terms(60_000, 10_000, (Protocol("range", b"r"), Protocol("sticky", b"s")))
        return [ClassicGroupMember("m1", None, "app", "/h", terms), ClassicGroupMember("m2", "i2", "app", "/h", terms)]

    def group(self) -> ClassicGroup:
        group = ClassicGroup.of_members("g", 7, "consumer", self.members(), 5)
        for member in group.members.values():
            member.assignment = b"work of " + member.member_id.encode()
        return group

    def test_a_group_that_goes_on(self, bench: Bench) -> None:
        group = self.group()
        bench.take(bench.family.adopt(group, bench.context(), rebalance=False, reason=""))
        assert bench.table.get("g") is group
        assert (group.state, group.generation, group.protocol_name) == (GroupState.STABLE, 7, "range")
        assert set(bench.timers.values()) == {10_000}
        assert bench.ask(HeartbeatRequest("g", 7, "m1")).error_code == 0
        (record,) = bench.log
        assert record.key == GroupMetadataKey("g")
        assert record.value is not None
        assert (record.value.generation, record.value.leader, record.value.protocol) == (7, "m1", "range")
        assert [each.assignment for each in record.value.members] == [b"work of m1", b"work of m2"]
        assert bench.core.hard_state() == bench.replayed().hard_state()

    def test_a_group_that_rebalances(self, bench: Bench) -> None:
        bench.take(bench.family.adopt(self.group(), bench.context(), rebalance=True, reason="somebody left"))
        assert bench.group.state is GroupState.PREPARING_REBALANCE
        assert bench.ask(HeartbeatRequest("g", 7, "m1")).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        bench.join("a", "m1")
        bench.join("b", "m2", group_instance_id="i2")
        assert bench.replies["a"].generation_id == 8

    def test_what_its_members_subscribe_to_is_known(self) -> None:
        subscription = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
        member = ClassicGroupMember("m1", None, "app", "/h", Terms(1, 1, (Protocol("range", subscription),)))
        assert ClassicGroup.of_members("g", 7, "consumer", [member], 5).subscribed_topics == {"t"}

    def test_members_keep_all_their_protocols(self, bench: Bench) -> None:
        bench.take(bench.family.adopt(self.group(), bench.context(), rebalance=False, reason=""))
        assert bench.group.supports("consumer", ["sticky"])

    def test_a_member_that_joins_with_it(self, bench: Bench) -> None:
        group = self.group()
        group.members["m2"].join = Parked("token", 9)
        group.parked_join_count = 1
        bench.take(bench.family.adopt(group, bench.context(), rebalance=True, reason=""))
        bench.join("a", "m1")
        assert bench.replies["token"].generation_id == 8

    def test_the_write_fails(self, bench: Bench) -> None:
        group = self.group()
        group.members["m2"].join = Parked("token", 9)
        result = bench.family.adopt(group, bench.context(), rebalance=True, reason="")
        bench.take(bench.core.settled(result.after, Outcome(ErrorCode.NOT_ENOUGH_REPLICAS), bench.context()))
        assert bench.replies["token"].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert bench.table.get("g") is None


def test_unloaded_gives_everybody_who_waits(bench: Bench) -> None:
    ids = bench.stable_group(2)
    bench.join("a", ids[0])
    bench.join("b", ids[1])
    bench.replies.clear()
    assert bench.sync("waits for its assignment", ids[1]) is None
    assert bench.join("waits for others", version=3, group_id="h") is None
    assert sorted(bench.core.unloaded()) == ["waits for its assignment", "waits for others"]


def test_a_second_request_of_a_member_sends_the_first_one_back(bench: Bench) -> None:
    ids = bench.stable_group(2)
    assert bench.join("first", ids[0]) is None
    assert bench.join("second", ids[0]) is None
    assert bench.replies["first"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.group.parked_join_count == 1


def test_a_heartbeat_sets_no_timer_and_writes_nothing(bench: Bench) -> None:
    """So its cost does not grow, and the session lasts all the same."""
    (member_id,) = bench.stable_group()
    result = bench.core.handle(HeartbeatRequest("g", 1, member_id), bench.context("hb", 4))
    assert (result.records, result.timers, result.effects, result.after) == ((), (), (), None)
    for _ in range(20):
        bench.advance(9_999)
        assert bench.ask(HeartbeatRequest("g", 1, member_id)).error_code == 0
        assert len(bench.timers) == 1
    bench.advance(10_000)
    assert bench.ask(HeartbeatRequest("g", 1, member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_shorter_session_counts_from_the_next_generation(bench: Bench) -> None:
    (member_id,) = bench.stable_group()
    bench.join("a", member_id, session_timeout_ms=6_000)
    bench.sync("a", member_id)
    bench.advance(6_000)
    assert bench.group.is_empty


def test_time_outs_of_zero_do_not_keep_the_broker_busy(bench: Bench) -> None:
    """A static member that wants no time for a rebalance, and does not come back to the one that another begins."""
    bench.settings["group.min.session.timeout.ms"] = 0
    bench.join("a", group_instance_id="i", rebalance_timeout_ms=0)
    bench.advance(0)
    member_id = bench.replies["a"].member_id
    bench.sync("a", member_id)
    bench.join("b", rebalance_timeout_ms=0, version=3, session_timeout_ms=0)
    bench.ask(LeaveGroupRequest("g", next(reversed(bench.group.members))), version=1)
    calls = 0
    for _ in range(100):
        if bench.timers and min(bench.timers.values()) <= bench.now_ms:
            bench.advance(0)
            calls += 1
    assert calls < 10
    bench.advance(10_000)
    assert bench.group.is_empty


def test_a_session_that_ended_while_a_static_member_was_being_written_begins_anew(bench: Bench) -> None:
    bench.join("a", group_instance_id="i")
    bench.advance(0)
    bench.sync("a", bench.replies["a"].member_id)
    bench.holds = True
    bench.join("b", group_instance_id="i")
    bench.advance(11_000)
    bench.settle()
    assert bench.replies["b"].error_code == 0
    bench.advance(9_999)
    assert not bench.group.is_empty
    bench.advance(1)
    assert bench.group.is_empty


def test_a_pending_member_must_not_have_an_instance_id(bench: Bench) -> None:
    pending = bench.join("a")
    assert pending is not None
    answer: Any = bench.join("a", pending.member_id, group_instance_id="i")
    assert answer == ErrorCode.UNKNOWN_SERVER_ERROR
    assert set(bench.group.pending_members) == {pending.member_id}


def test_names_of_handlers_are_as_the_coordinator_routes_them() -> None:
    family = ClassicFamily(Bench().table)
    assert {each.__name__ for each in family.handlers} == {
        "JoinGroupRequest",
        "SyncGroupRequest",
        "HeartbeatRequest",
        "LeaveGroupRequest",
    }
    assert set(family.replays) == {GroupMetadataKey}
