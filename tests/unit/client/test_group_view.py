"""Groups of all kinds in one form, and whom a rebalance waits for."""

from typing import Any

import pytest

from ottla.client import TopicPartition
from ottla.client.address import Address, Peer
from ottla.client.group_view import Blocker, GroupView, MemberView, Task, rebalance_blockers, view_of
from ottla.wire import types
from ottla.wire.keyed import encode_framed

PEER = Peer(Address("127.0.0.1", 9092), 1)
Consumer = types.ConsumerGroupDescribeResponse
Classic = types.DescribeGroupsResponse
Streams = types.StreamsGroupDescribeResponse


def at(*names: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(name[:-1], int(name[-1])) for name in names)


def assignment(**topics: tuple[int, ...]) -> Any:
    kind = Consumer.TopicPartitions
    return Consumer.Assignment(tuple(kind(topic_name=name, partitions=indexes) for name, indexes in topics.items()))


def test_a_classic_consumer_s_assignment_is_read():
    held = types.ConsumerProtocolAssignment(
        assigned_partitions=(types.ConsumerProtocolAssignment.TopicPartition("orders", (1, 0)),)
    )
    wish = types.ConsumerProtocolSubscription(topics=("orders",), rack_id="r1")
    member = Classic.DescribedGroupMember("m", "i", "c", "/10.0.0.1", encode_framed(wish, 3), encode_framed(held, 3))
    group = Classic.DescribedGroup(
        group_id="g", group_state="Stable", protocol_type="consumer", protocol_data="range", members=(member,)
    )
    view = view_of(group, PEER)
    assert (view.type, view.state, view.assignor, view.epoch, view.coordinator) == (
        "classic",
        "Stable",
        "range",
        None,
        PEER,
    )
    (seen,) = view.members
    assert seen.assignment == at("orders0", "orders1")
    assert (seen.subscription, seen.rack_id, seen.instance_id, seen.is_classic) == (("orders",), "r1", "i", True)
    assert seen.target is None
    assert rebalance_blockers(view) == []


def test_an_assignment_of_a_newer_version_is_read_as_far_as_it_is_known():
    kind = types.ConsumerProtocolAssignment
    known = encode_framed(kind(assigned_partitions=(kind.TopicPartition("orders", (2,)),)), 3)
    newer = (99).to_bytes(2, "big") + known[2:] + b"more"
    member = Classic.DescribedGroupMember("m", member_assignment=newer)
    view = view_of(Classic.DescribedGroup(group_id="g", protocol_type="consumer", members=(member,)), PEER)
    assert view.members[0].assignment == at("orders2")


@pytest.mark.parametrize(
    ("protocol_type", "data"),
    [("connect", b"\0\1abc"), ("consumer", b"\0\1abc"), ("consumer", b"\xff\xffabc"), ("consumer", b"\0")],
)
def test_an_assignment_that_is_not_a_consumer_s_is_only_counted(protocol_type: str, data: bytes):
    member = Classic.DescribedGroupMember("m", member_assignment=data)
    view = view_of(Classic.DescribedGroup(group_id="g", protocol_type=protocol_type, members=(member,)), PEER)
    assert (view.members[0].unread_bytes, view.members[0].assignment) == (len(data), ())


def test_a_consumer_group():
    member = Consumer.Member(
        "m",
        None,
        "r",
        7,
        "c",
        "/10.0.0.1",
        ("orders",),
        "",
        assignment(orders=(1,)),
        assignment(orders=(1, 2)),
        member_type=0,
    )
    group = Consumer.DescribedGroup(
        group_id="g",
        group_state="Reconciling",
        group_epoch=9,
        assignment_epoch=8,
        assignor_name="uniform",
        members=(member,),
    )
    view = view_of(group, PEER)
    assert (view.type, view.epoch, view.assignment_epoch, view.assignor) == ("consumer", 9, 8, "uniform")
    (seen,) = view.members
    assert (seen.epoch, seen.is_classic, seen.subscription_regex, seen.rack_id) == (7, True, None, "r")
    assert (seen.assignment, seen.target) == (at("orders1"), at("orders1", "orders2"))


def test_a_share_group_has_no_target():
    kind = types.ShareGroupDescribeResponse
    held = kind.Assignment((kind.TopicPartitions(topic_name="orders", partitions=(0,)),))
    member = kind.Member("m", member_epoch=1, assignment=held)
    view = view_of(kind.DescribedGroup(group_id="g", group_epoch=2, assignment_epoch=2, members=(member,)), PEER)
    assert (view.type, view.members[0].assignment, view.members[0].target) == ("share", at("orders0"), None)
    assert rebalance_blockers(view) == []


def test_a_streams_group_has_tasks():
    held = Streams.Assignment(active_tasks=(Streams.TaskIds("0", (1,)),), standby_tasks=(Streams.TaskIds("1", (0,)),))
    member = Streams.Member("m", member_epoch=3, assignment=held, target_assignment=held)
    group = Streams.DescribedGroup(
        group_id="g", group_epoch=3, assignment_epoch=3, topology=Streams.Topology(epoch=5), members=(member,)
    )
    view = view_of(group, PEER)
    assert (view.type, view.topology_epoch) == ("streams", 5)
    assert view.members[0].assignment == (Task("0", 1), Task("1", 0, "standby"))
    assert list(map(str, view.members[0].assignment)) == ["0_1", "1_0 (standby)"]


def group_of(*members: MemberView, epoch: int = 5) -> GroupView:
    return GroupView("g", "consumer", "Reconciling", PEER, "consumer", "uniform", members, epoch, epoch)


def member(name: str, epoch: int, held: tuple[Any, ...], target: tuple[Any, ...]) -> MemberView:
    return MemberView(name, None, name, "/h", epoch=epoch, assignment=held, target=target)


def test_the_member_that_has_not_confirmed_holds_up_those_who_wait():
    giver = member("a", 4, at("t0"), at("t0"))  # t1 is revoked and not shown as anybody's any more
    getter = member("b", 5, (), at("t1"))
    assert rebalance_blockers(group_of(giver, getter)) == [Blocker("a", 4, at("t1"), ("b",))]
    still_has_it = member("a", 4, at("t0", "t1"), at("t0"))
    assert rebalance_blockers(group_of(still_has_it, getter)) == [Blocker("a", 4, at("t1"), ("b",))]


def test_what_another_member_has_is_not_awaited_from_a_late_one():
    late = member("a", 4, at("t0"), at("t0"))
    holder = member("b", 4, at("t1", "t2"), at("t2"))
    getter = member("c", 5, (), at("t1"))
    assert rebalance_blockers(group_of(late, holder, getter)) == [
        Blocker("a", 4, (), ()),
        Blocker("b", 4, at("t1"), ("c",)),
    ]


def test_nobody_holds_up_a_group_that_has_arrived():
    assert rebalance_blockers(group_of(member("a", 5, at("t0"), at("t0")), member("b", 5, at("t1"), at("t1")))) == []
