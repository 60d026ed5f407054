"""A group as its records tell it, and what other families ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ottla.core.coordinator.contract import Context
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.members import ClassicMetadata, ConsumerGroupMember, MemberState, Subscription
from ottla.core.groups.consumer.records import ResolvedRegex
from ottla.core.groups.table import Claim, GroupKind
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.group_consumer import ConsumerGroupMemberMetadataValueClassicProtocol as ClassicProtocol
from simulation.environment import Environment

T = b"t" * 16


def put(group: ConsumerGroup, member_id: str, **fields: Any) -> ConsumerGroupMember:
    group.change_member(member_id, lambda member: msgspec.structs.replace(member, **fields))
    return group.members[member_id]


def subscribed(*names: str, regex: str = "") -> Subscription:
    return Subscription(frozenset(names), regex)


@pytest.fixture
def group() -> ConsumerGroup:
    return ConsumerGroup("g")


@pytest.fixture
def context() -> Context:
    return Context(now_ms=0, wall_ms=0, world=Environment().world, api_version=9)


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(Reject) as refused:
        call()
    return refused.value.code


def test_states(group: ConsumerGroup):
    assert (group.kind, group.protocol_type, group.is_empty, group.state_name()) == (
        GroupKind.CONSUMER,
        "consumer",
        True,
        "Empty",
    )
    put(group, "a", member_epoch=1)
    assert group.state_name() == "Stable"
    group.group_epoch = 2
    assert group.state_name() == "Assigning"
    group.assignment_epoch = 2
    assert group.state_name() == "Reconciling"
    put(group, "a", member_epoch=2, state=MemberState.UNRELEASED_PARTITIONS)
    assert group.state_name() == "Reconciling"
    put(group, "a", state=MemberState.STABLE)
    assert group.state_name() == "Stable"


def test_equal_names_are_kept_once_and_forgotten_with_the_last_member(group: ConsumerGroup):
    many = [f"t{number}" for number in range(100)]
    first = put(group, "a", subscription=subscribed(*many))
    second = put(group, "b", subscription=subscribed(*reversed(many)))
    assert first.subscription.names is second.subscription.names
    assert group.subscriptions.counts == {first.subscription: 2}
    group.remove_member("a")
    group.remove_member("b")
    assert not group.subscriptions.counts
    assert not group._names


def test_subscribed_topics_are_names_and_what_patterns_match(group: ConsumerGroup):
    put(group, "a", subscription=subscribed("t"))
    put(group, "b", subscription=subscribed("u", regex="v.*"))
    assert group.subscribed_topics() == {"t", "u"}
    group.set_resolved("v.*", ResolvedRegex(frozenset(("v1",)), 0, 0))
    assert group.subscribed_topics() == {"t", "u", "v1"}
    assert group.is_subscribed_to("v1")
    assert not group.is_subscribed_to("v2")
    assert group.regexes() == {"v.*"}
    assert (group.regex_count("v.*"), group.regex_count("w")) == (1, 0)
    assert group.subscribed_topics_with([group.members["b"]]) == {"t"}
    come = ConsumerGroupMember(member_id="c", subscription=subscribed("w"))
    assert group.subscribed_topics_with([group.members["a"]], come) == {"u", "v1", "w"}
    group.remove_member("b")
    assert group.subscribed_topics() == {"t"}


def test_owners_follow_members(group: ConsumerGroup):
    put(group, "a", assigned={T: {0: 1}}, pending_revocation={T: {1: 1}})
    assert [group.owner(T, partition) for partition in range(3)] == ["a", "a", None]
    put(group, "a", pending_revocation={})
    put(group, "b", assigned={T: {1: 2}})
    assert [group.owner(T, partition) for partition in range(2)] == ["a", "b"]
    group.change_member("a", ConsumerGroupMember.released)
    assert group.owner(T, 0) is None
    put(group, "b", assigned={T: {0: 3, 1: 2}})
    group.remove_member("a")
    assert group.owner(T, 0) == "b"
    group.remove_member("b")
    assert group.owner(T, 0) is None


def test_who_waits_for_others(group: ConsumerGroup):
    waiting = put(group, "a", state=MemberState.UNRELEASED_PARTITIONS)
    group.targets["a"] = {T: (0, 1)}
    put(group, "b", assigned={T: {1: 2}})
    assert group.is_waiting_for(waiting)
    put(group, "b", assigned={})
    assert not group.is_waiting_for(waiting)


def test_a_name_that_moved_to_another_member_is_not_taken_from_it(group: ConsumerGroup):
    put(group, "a", instance_id="i")
    put(group, "b", instance_id="i")
    group.remove_member("a")
    assert group.static_member("i") is group.members["b"]
    assert group.static_member(None) is None
    group.remove_member("b")
    assert group.static_member("i") is None


def test_classic_members_are_counted(group: ConsumerGroup):
    protocols = (ClassicProtocol("range", b""), ClassicProtocol("sticky", b""))
    put(group, "a", classic=ClassicMetadata(1, protocols))
    put(group, "b", classic=ClassicMetadata(1, protocols[:1]), server_assignor="range")
    assert (group.classic_count, group.classic_protocols) == (2, {"range": 2, "sticky": 1})
    put(group, "a", classic=None)
    assert (group.classic_count, group.classic_protocols, group.assignors) == (1, {"range": 1}, {"range": 1})
    group.remove_member("b")
    assert (group.classic_count, group.classic_protocols, group.assignors) == (0, {}, {})


def test_commits(group: ConsumerGroup, context: Context):
    assert group.check_commit(Claim(), context) is None
    assert code_of(lambda: group.check_commit(Claim("a", 2), context)) is ErrorCode.UNKNOWN_MEMBER_ID
    put(group, "a", member_epoch=5, assigned={T: {0: 3, 1: 5}}, pending_revocation={T: {2: 4}})
    assert group.check_commit(Claim("a", 5), context) is None
    assert group.check_commit(Claim(is_transactional=True), context) is None
    assert code_of(lambda: group.check_commit(Claim(), context)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(lambda: group.check_commit(Claim("a", 6), context)) is ErrorCode.STALE_MEMBER_EPOCH
    old = msgspec.structs.replace(context, api_version=8)
    assert code_of(lambda: group.check_commit(Claim("a", 5), old)) is ErrorCode.UNSUPPORTED_VERSION
    assert group.check_commit(Claim("a", 5, is_transactional=True), old) is None


def test_commits_of_an_older_epoch_are_judged_by_partition(group: ConsumerGroup, context: Context):
    put(group, "a", member_epoch=5, assigned={T: {0: 3, 1: 5}}, pending_revocation={T: {2: 4}})
    check = group.check_commit(Claim("a", 4), context)
    assert check is not None
    check("t", T, 0)
    check("t", T, 2)
    for partition in (1, 3):
        assert code_of(lambda partition=partition: check("t", T, partition)) is ErrorCode.STALE_MEMBER_EPOCH
    assert code_of(lambda: check("u", b"u" * 16, 0)) is ErrorCode.STALE_MEMBER_EPOCH


def test_classic_members_are_told_of_generations(group: ConsumerGroup, context: Context):
    put(group, "a", member_epoch=5, classic=ClassicMetadata(1, (ClassicProtocol("range", b""),)))
    old = msgspec.structs.replace(context, api_version=2)
    assert group.check_commit(Claim("a", 5), old) is None
    assert code_of(lambda: group.check_commit(Claim("a", 6), old)) is ErrorCode.ILLEGAL_GENERATION
    assert code_of(lambda: group.check_fetch("a", 4)) is ErrorCode.ILLEGAL_GENERATION


def test_fetches_deletions_and_expiry(group: ConsumerGroup, context: Context):
    group.check_delete()
    put(group, "a", member_epoch=5, subscription=subscribed("t"))
    group.check_fetch("a", 5)
    group.check_fetch(None, -1)
    assert code_of(lambda: group.check_fetch("", -1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(lambda: group.check_fetch("a", 4)) is ErrorCode.STALE_MEMBER_EPOCH
    assert code_of(lambda: group.check_fetch("b", 5)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(group.check_delete) is ErrorCode.NON_EMPTY_GROUP
    group.check_offset_delete()
    rule = group.expiry(context)
    assert rule is not None
    assert (rule.base_ms(7), rule.is_subscribed("t"), rule.is_subscribed("u")) == (7, True, False)
