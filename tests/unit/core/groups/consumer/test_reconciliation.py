"""Each row of the table in the module: where a member stands, what it reports, and where it goes from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from ottla.core.groups.consumer.members import ConsumerGroupMember, MemberState
from ottla.core.groups.consumer.reconciliation import Surroundings, reconcile
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS


class Owned(NamedTuple):
    topic_id: bytes
    partitions: tuple[int, ...]


def member(state: MemberState = STABLE, epoch: int = 5, **fields: Any) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member_id="m", member_epoch=epoch, previous_member_epoch=epoch - 1, state=state, **fields
    )


def around(
    epoch: int,
    target: Mapping[bytes, tuple[int, ...]],
    *owned: Owned,
    says_nothing: bool = False,
    has_changed: bool = False,
    topics: frozenset[bytes] = frozenset((T, U)),
    taken: tuple[int, ...] = (),
) -> Surroundings:
    return Surroundings(
        target_epoch=epoch,
        target=target,
        owned=None if says_nothing else owned,
        has_subscription_changed=has_changed,
        is_subscribed=topics.__contains__,
        is_free=lambda topic_id, partition: partition not in taken,
    )


def summary(found: ConsumerGroupMember) -> tuple[MemberState, int, int, dict[bytes, Any], dict[bytes, Any]]:
    pending = dict(found.pending_revocation)
    return found.state, found.member_epoch, found.previous_member_epoch, dict(found.assigned), pending


def test_stable_at_the_target_stays_itself():
    here = member(assigned={T: {0: 5}})
    assert reconcile(here, around(5, {T: (0,)}, says_nothing=True)) is here


def test_stable_with_nothing_to_revoke_takes_what_is_free():
    here = member(assigned={T: {0: 3}})
    assert summary(reconcile(here, around(7, {T: (0, 1), U: (2,)}, says_nothing=True))) == (
        STABLE,
        7,
        5,
        {T: {0: 3, 1: 7}, U: {2: 7}},
        {},
    )


def test_what_others_own_is_waited_for():
    here = member(assigned={})
    assert summary(reconcile(here, around(7, {T: (0, 1)}, taken=(1,)))) == (UNRELEASED, 7, 5, {T: {0: 7}}, {})
    assert summary(reconcile(here, around(7, {T: (1,)}, taken=(1,)))) == (UNRELEASED, 7, 5, {}, {})


def test_unreleased_gets_the_rest_when_it_is_free():
    here = member(UNRELEASED, 7, assigned={T: {0: 7}})
    assert summary(reconcile(here, around(7, {T: (0, 1)}))) == (STABLE, 7, 7, {T: {0: 7, 1: 7}}, {})


@pytest.mark.parametrize("state", [STABLE, UNRELEASED])
def test_what_it_still_lists_must_be_revoked_first(state: MemberState):
    here = member(state, assigned={T: {0: 3, 1: 4}})
    expected = (UNREVOKED, 5, 5, {T: {0: 3}}, {T: {1: 4}})
    assert summary(reconcile(here, around(7, {T: (0, 2)}, Owned(T, (0, 1))))) == expected
    assert summary(reconcile(here, around(7, {T: (0, 2)}, says_nothing=True))) == expected


def test_what_it_no_longer_lists_is_revoked_already():
    here = member(assigned={T: {0: 3, 1: 4}})
    assert summary(reconcile(here, around(7, {T: (0, 2)}, Owned(T, (0,))))) == (STABLE, 7, 5, {T: {0: 3, 2: 7}}, {})


def test_unrevoked_waits_for_the_member():
    here = member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}})
    assert reconcile(here, around(7, {T: (0,)}, says_nothing=True)) is here
    assert reconcile(here, around(7, {T: (0,)}, Owned(T, (0, 1)))) is here


def test_unrevoked_goes_on_when_the_member_has_let_go():
    here = member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}})
    assert summary(reconcile(here, around(7, {T: (0, 2)}, Owned(T, (0,))))) == (STABLE, 7, 5, {T: {0: 3, 2: 7}}, {})


def test_unrevoked_with_more_to_revoke_keeps_its_epoch():
    """A newer target has overtaken the one that it was on its way to (as Apache Kafka 4.3.1; 4.2 counted one up)."""
    here = member(UNREVOKED, assigned={T: {0: 3, 2: 3}}, pending_revocation={T: {1: 4}})
    found = reconcile(here, around(9, {T: (0,)}, Owned(T, (0, 2))))
    assert summary(found) == (UNREVOKED, 5, 5, {T: {0: 3}}, {T: {2: 3}})


def test_unrevoked_before_there_is_a_newer_target_keeps_its_epoch():
    here = member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={U: {1: 4}})
    found = reconcile(here, around(5, {T: (0,), U: (1,)}, Owned(T, (0,)), topics=frozenset((T,))))
    assert summary(found) == (STABLE, 5, 5, {T: {0: 3}}, {})


def test_what_was_to_be_revoked_may_come_back():
    here = member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}})
    assert summary(reconcile(here, around(7, {T: (0, 1)}, Owned(T, (0,))))) == (STABLE, 7, 5, {T: {0: 3, 1: 7}}, {})


def test_a_topic_that_is_no_longer_subscribed_to_goes_before_the_next_target():
    here = member(assigned={T: {0: 3}, U: {1: 4}})
    only_t = frozenset((T,))
    found = reconcile(here, around(5, {T: (0,), U: (1,)}, says_nothing=True, has_changed=True, topics=only_t))
    assert summary(found) == (UNREVOKED, 5, 4, {T: {0: 3}}, {U: {1: 4}})
    found = reconcile(here, around(5, {T: (0,), U: (1,)}, Owned(T, (0,)), has_changed=True, topics=only_t))
    assert summary(found) == (STABLE, 5, 4, {T: {0: 3}}, {})
    assert reconcile(here, around(5, {T: (0,), U: (1,)}, says_nothing=True, has_changed=True)) is here


def test_more_topics_to_give_up_join_those_pending():
    here = member(UNREVOKED, assigned={T: {0: 3}, U: {1: 4}}, pending_revocation={T: {5: 3}})
    found = reconcile(here, around(7, {}, Owned(T, (0, 5)), has_changed=True, topics=frozenset((U,))))
    assert summary(found) == (UNREVOKED, 5, 4, {U: {1: 4}}, {T: {5: 3, 0: 3}})


def test_a_target_of_a_topic_that_is_not_subscribed_to_counts_for_nothing():
    here = member(assigned={U: {1: 4}})
    found = reconcile(here, around(7, {U: (1, 2), T: (0,)}, says_nothing=True, topics=frozenset((T,))))
    assert summary(found) == (UNREVOKED, 5, 5, {}, {U: {1: 4}})


def test_a_state_of_a_newer_release_is_left_by_joining_again():
    here = member(MemberState.UNKNOWN, assigned={T: {0: 3}})
    for nothing_said in (around(7, {T: (0,)}, says_nothing=True), around(7, {T: (0,)}, Owned(T, (0,)))):
        with pytest.raises(Reject) as refused:
            reconcile(here, nothing_said)
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert summary(reconcile(here, around(7, {T: (0,)}))) == (STABLE, 7, 5, {T: {0: 3}}, {})


def test_the_member_given_is_never_changed():
    here = member(assigned={T: {0: 3, 1: 4}})
    before = msgspec.structs.asdict(here)
    reconcile(here, around(7, {T: (0, 2)}, Owned(T, (0,))))
    assert msgspec.structs.asdict(here) == before
