"""A group's protocols, and what any kind of group can be asked."""

from __future__ import annotations

import pytest

from ottla.core.groups.classic.group import ClassicGroup, InitialDelay, simple_group
from ottla.core.groups.classic.member import ClassicGroupMember, Protocol, Terms, terms_of
from ottla.core.groups.classic.states import TRANSITIONS, GroupState, is_step
from ottla.core.groups.table import Claim, GroupKind
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from tests.unit.core.groups.classic.bench import START_MS, Bench, join_request

SUBSCRIBED_TO_T = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"


def group_of(*members: str, protocol_type: str = "consumer") -> ClassicGroup:
    """Each member is the list of its protocols: "range sticky"."""
    named = [
        ClassicGroupMember(
            f"m{index}", None, "app", "/h", Terms(1, 1, tuple(Protocol(each, b"") for each in names.split()))
        )
        for index, names in enumerate(members)
    ]
    return ClassicGroup.of_members("g", 1, protocol_type, named, 0)


@pytest.mark.parametrize(
    ("members", "chosen"),
    [
        (["range sticky"], "range"),
        (["range sticky", "sticky range", "sticky range"], "sticky"),
        (["range sticky", "sticky"], "sticky"),
        (["a b c", "b c a", "c b a", "c a b"], "c"),
        (["a b", "b a"], "a"),
        (["x a b", "b a y"], "a"),
        (["roundrobin range", "range roundrobin"], "range"),
        (["range roundrobin", "roundrobin range"], "range"),
        (["range sticky", "sticky range"], "sticky"),
        (["cooperative-sticky range", "range cooperative-sticky"], "range"),
    ],
)
def test_selected_protocol(members: list[str], chosen: str) -> None:
    assert group_of(*members).select_protocol() == chosen


def test_protocols_that_only_some_know_do_not_count() -> None:
    group = group_of("range sticky", "range")
    assert group.supports("consumer", ["other", "range"])
    assert not group.supports("consumer", ["sticky"])
    assert not group.supports("connect", ["range"])
    assert not group.supports("consumer", [])


def test_an_empty_group_takes_any_protocol() -> None:
    group = simple_group("g")
    assert group.supports("connect", ["any"])
    assert not group.supports("", ["any"])
    assert not group.supports("connect", [])


def test_supporters_follow_members() -> None:
    group = group_of("range", "range sticky")
    group.remove("m0")
    assert group.supports("consumer", ["sticky"])
    group.change_terms(group.members["m1"], Terms(1, 1, (Protocol("roundrobin", b""),)))
    assert not group.supports("consumer", ["sticky"])
    assert group.supports("consumer", ["roundrobin"])


def test_a_leader_that_goes_is_succeeded_by_the_longest_standing_member() -> None:
    group = group_of("range", "range", "range")
    group.remove("m0")
    assert group.leader_id == "m1"
    group.remove("m2")
    group.remove("m1")
    assert group.leader_id is None


def test_a_member_with_a_new_id_keeps_its_place() -> None:
    group = group_of("range", "range", "range")
    group.pending_syncs = {"m0", "m1"}
    group.rename(group.members["m0"], "new")
    assert list(group.members) == ["new", "m1", "m2"]
    assert group.leader_id == "new"
    assert group.pending_syncs == {"new", "m1"}


def test_of_two_protocols_with_one_name_the_first_counts() -> None:
    kind = join_request().JoinGroupRequestProtocol
    request = join_request()
    protocols = (kind("a", b"1"), kind("b", b"2"), kind("a", b"3"))
    terms = terms_of(type(request)(protocols=protocols), 9)
    assert terms.protocols == (Protocol("a", b"1"), Protocol("b", b"2"))


@pytest.mark.parametrize(("version", "timeout_ms"), [(0, 10_000), (1, 60_000), (9, 60_000)])
def test_rebalance_timeout_of_version_0(version: int, timeout_ms: int) -> None:
    assert terms_of(join_request(), version).rebalance_timeout_ms == timeout_ms


class TestInitialDelay:
    def test_it_ends_when_nobody_comes(self) -> None:
        assert not InitialDelay(3_000, 60_000).extend(3_000)

    def test_it_is_extended_up_to_the_rebalance_timeout(self) -> None:
        delay, waited_ms = InitialDelay(3_000, 10_000), [3_000]
        for _ in range(9):
            delay.has_grown = True
            if delay.extend(3_000):
                waited_ms.append(delay.delay_ms)
        assert waited_ms == [3_000, 3_000, 3_000, 1_000]

    def test_a_rebalance_timeout_shorter_than_the_delay_does_not_extend_it(self) -> None:
        delay = InitialDelay(3_000, 1_000)
        delay.has_grown = True
        assert not delay.extend(3_000)


def test_steps_are_those_of_the_table() -> None:
    assert is_step(GroupState.EMPTY, GroupState.PREPARING_REBALANCE)
    assert not is_step(GroupState.EMPTY, GroupState.STABLE)
    assert not is_step(GroupState.PREPARING_REBALANCE, GroupState.PREPARING_REBALANCE)
    assert {each.source for each in TRANSITIONS} == {each.target for each in TRANSITIONS} == set(GroupState)


def test_a_step_that_is_not_in_the_table_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="no step to Stable"):
        simple_group("g").move_to(GroupState.STABLE, 0)


# --- what any kind of group can be asked ------------------------------------------------------------------------------


def code_of(bench: Bench, claim: Claim) -> ErrorCode:
    try:
        bench.group.check_commit(claim, bench.context())
    except Reject as reject:
        return reject.code
    return ErrorCode.NONE


def test_commits_to_a_group_with_members(bench: Bench) -> None:
    (member_id,) = bench.stable_group()
    assert code_of(bench, Claim(member_id, 1)) == 0
    assert code_of(bench, Claim(member_id, 0)) == ErrorCode.ILLEGAL_GENERATION
    assert code_of(bench, Claim(member_id, -1)) == ErrorCode.ILLEGAL_GENERATION
    assert code_of(bench, Claim("stranger", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(bench, Claim(member_id, 1, "i")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(bench, Claim()) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(bench, Claim(is_transactional=True)) == 0
    assert code_of(bench, Claim("stranger", -1, is_transactional=True)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_of_static_members(bench: Bench) -> None:
    bench.join("a", group_instance_id="i")
    bench.advance(0)
    member_id = bench.replies["a"].member_id
    bench.sync("a", member_id)
    assert code_of(bench, Claim(member_id, 1, "i")) == 0
    assert code_of(bench, Claim("old", 1, "i")) == ErrorCode.FENCED_INSTANCE_ID


def test_commits_while_the_assignment_is_awaited(bench: Bench) -> None:
    bench.join("a", version=3)
    bench.advance(0)
    member_id = bench.replies["a"].member_id
    assert code_of(bench, Claim(member_id, 1)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert code_of(bench, Claim(member_id, 1, is_transactional=True)) == 0


def test_commits_to_an_empty_group(bench: Bench) -> None:
    bench.join("a")
    assert code_of(bench, Claim("anybody", -1)) == 0
    assert code_of(bench, Claim("anybody", 0)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_anybody_may_fetch_offsets(bench: Bench) -> None:
    bench.stable_group()
    bench.group.check_fetch("stranger", 99)


def rejected(check: object) -> ErrorCode:
    try:
        check()  # type: ignore[operator]
    except Reject as reject:
        return reject.code
    return ErrorCode.NONE


def test_deleting(bench: Bench) -> None:
    bench.stable_group()
    assert rejected(bench.group.check_delete) == ErrorCode.NON_EMPTY_GROUP
    assert rejected(bench.group.check_offset_delete) == 0
    assert rejected(group_of("sessioned", protocol_type="connect").check_offset_delete) == ErrorCode.NON_EMPTY_GROUP
    bench.advance(10_000)
    assert rejected(bench.group.check_delete) == 0
    assert rejected(bench.group.check_offset_delete) == 0


def test_subscribed_topics(bench: Bench) -> None:
    assert not simple_group("g").is_subscribed_to("t")
    bench.join("a", version=3, protocols={"range": SUBSCRIBED_TO_T})
    assert bench.group.is_subscribed_to("anything")  # nobody knows before the first generation
    bench.advance(0)
    assert bench.group.is_subscribed_to("t")
    assert not bench.group.is_subscribed_to("u")


def test_a_member_whose_metadata_cannot_be_read(bench: Bench) -> None:
    bench.join("a", version=3, protocols={"range": SUBSCRIBED_TO_T})
    bench.join("b", version=3, protocols={"range": SUBSCRIBED_TO_T[:-5]})
    bench.advance(0)
    assert bench.group.subscribed_topics is None
    assert bench.group.is_subscribed_to("u")


class TestExpiry:
    def test_offsets_without_members(self, bench: Bench) -> None:
        rule = simple_group("g").expiry(bench.context())
        assert rule is not None
        assert rule.base_ms(7) == 7

    def test_an_empty_group_counts_from_when_it_became_empty(self, bench: Bench) -> None:
        bench.stable_group()
        bench.advance(10_000)
        rule = bench.group.expiry(bench.context())
        assert rule is not None
        assert rule.base_ms(7) == START_MS + 10_000
        assert not rule.is_subscribed("t")

    def test_an_empty_group_of_an_old_record_counts_from_the_commit(self, bench: Bench) -> None:
        group = ClassicGroup("g", None)
        group.protocol_type = "consumer"
        rule = group.expiry(bench.context())
        assert rule is not None
        assert rule.base_ms(7) == 7

    def test_stable_consumers_lose_what_they_do_not_subscribe_to(self, bench: Bench) -> None:
        bench.join("a", version=3, protocols={"range": SUBSCRIBED_TO_T})
        bench.advance(0)
        assert bench.group.expiry(bench.context()) is None  # not before it is stable
        bench.sync("a", bench.replies["a"].member_id)
        rule = bench.group.expiry(bench.context())
        assert rule is not None
        assert rule.base_ms(7) == 7
        assert rule.is_subscribed("t")
        assert not rule.is_subscribed("u")

    def test_others_keep_all(self, bench: Bench) -> None:
        assert group_of("sessioned", protocol_type="connect").expiry(bench.context()) is None
        assert group_of("range").expiry(bench.context()) is None  # what they subscribe to cannot be read


def test_what_is_shown(bench: Bench) -> None:
    bench.stable_group()
    group = bench.group
    assert (group.kind, group.state_name(), group.protocol_type, group.is_simple) == (
        GroupKind.CLASSIC,
        "Stable",
        "consumer",
        False,
    )
    assert simple_group("g").is_simple
    assert repr(group) == "ClassicGroup('g', Stable, generation=1, 1 members)"


def test_a_group_with_a_pending_member_is_not_simple(bench: Bench) -> None:
    bench.join("a")
    assert not bench.group.is_simple
