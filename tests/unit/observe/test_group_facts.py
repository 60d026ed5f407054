"""From what coordinators describe to facts, for each of the four kinds."""

from __future__ import annotations

import pytest

from ottla import wire
from ottla.client.address import Address, Peer
from ottla.health.facts import Group, GroupMember, Subtopology, Tasks, TopicPartitions
from ottla.observe.group_facts import group_fact, with_topic_ids
from ottla.wire import types, uuid_text

AT = Peer(Address("localhost", 9092), 3)
ID = bytes(range(16))


def test_a_classic_group():
    protocol = types.ConsumerProtocolSubscription(topics=("orders",), rack_id="r1")
    given = types.ConsumerProtocolAssignment(
        assigned_partitions=(types.ConsumerProtocolAssignment.TopicPartition("orders", (2, 0)),)
    )
    kind = types.DescribeGroupsResponse
    member = kind.DescribedGroupMember(
        member_id="m", group_instance_id="i", client_id="c", client_host="/h",
        member_metadata=b"\0\3" + wire.encode(protocol, 3), member_assignment=b"\0\3" + wire.encode(given, 3),
    )  # fmt: skip
    group = kind.DescribedGroup(
        group_id="g", group_state="Stable", protocol_type="consumer", protocol_data="range", members=(member,)
    )
    fact = group_fact(group, AT)
    assert fact == Group(
        group="g", type="classic", state="Stable", protocol="consumer", assignor="range", coordinator=3,
        members=(GroupMember(member="m", instance="i", rack="r1", client="c", host="/h", subscribed=("orders",),
                        assigned=(TopicPartitions(topic="orders", partitions=(0, 2)),)),),
    )  # fmt: skip
    assert with_topic_ids(fact, {"orders": "ID"}).members[0].assigned[0].topic_id == "ID"


def test_what_is_no_consumers_assignment_is_left_out():
    kind = types.DescribeGroupsResponse
    member = kind.DescribedGroupMember(member_id="w", client_id="connect", member_assignment=b"\0\1bytes")
    group = kind.DescribedGroup(group_id="g", group_state="Stable", protocol_type="connect", members=(member,))
    fact = group_fact(group, AT)
    assert (fact.protocol, fact.members[0].assigned) == ("connect", ())


def test_a_consumer_group():
    kind = types.ConsumerGroupDescribeResponse
    has = kind.Assignment((kind.TopicPartitions(ID, "orders", (1, 0)),))
    member = kind.Member(
        member_id="m", instance_id="i", rack_id="r", member_epoch=4, client_id="c", client_host="/h",
        subscribed_topic_names=("b", "a"), subscribed_topic_regex="x.*", assignment=has,
    )  # fmt: skip
    group = kind.DescribedGroup(
        group_id="g", group_state="Reconciling", group_epoch=5, assignment_epoch=4, assignor_name="uniform",
        members=(member,),
    )  # fmt: skip
    owned = (TopicPartitions(topic="orders", partitions=(0, 1), topic_id=uuid_text(ID)),)
    assert group_fact(group, AT) == Group(
        group="g", type="consumer", state="Reconciling", protocol="consumer", group_epoch=5, assignment_epoch=4,
        assignor="uniform", coordinator=3,
        members=(GroupMember(member="m", epoch=4, instance="i", rack="r", client="c", host="/h",
                        subscribed=("a", "b", "/x.*/"), assigned=owned, target=()),),
    )  # fmt: skip


def test_a_share_group():
    kind = types.ShareGroupDescribeResponse
    has = kind.Assignment((kind.TopicPartitions(ID, "orders", (0,)),))
    member = kind.Member(member_id="m", member_epoch=2, client_id="c", subscribed_topic_names=("a",), assignment=has)
    group = kind.DescribedGroup(
        group_id="g", group_state="Stable", group_epoch=2, assignment_epoch=2, members=(member,)
    )
    fact = group_fact(group, AT)
    assert (fact.type, fact.group_epoch, fact.members[0].epoch) == ("share", 2, 2)
    assert fact.members[0].assigned == (TopicPartitions(topic="orders", partitions=(0,), topic_id=uuid_text(ID)),)


@pytest.mark.parametrize(("status", "word"), [(0, None), (1, "not_stored"), (2, "error"), (3, "available")])
def test_a_streams_group(status: int, word: str | None):
    kind = types.StreamsGroupDescribeResponse
    part = kind.Subtopology(
        subtopology_id="1", source_topics=("lines",), state_changelog_topics=(kind.TopicInfo(name="counts"),),
        repartition_source_topics=(kind.TopicInfo(name="words"),),
    )  # fmt: skip
    member = kind.Member(
        member_id="m", member_epoch=3, client_id="c", topology_epoch=7, process_id="p",
        assignment=kind.Assignment(
            active_tasks=(kind.TaskIds("1", (10, 2)),), warmup_tasks=(kind.TaskIds("0", (1,)),)
        ),
        target_assignment=kind.Assignment(standby_tasks=(kind.TaskIds("1", (0,)),)),
        task_offsets=(kind.TaskOffset("0", 1, 40),), task_end_offsets=(kind.TaskOffset("0", 1, 90),),
    )  # fmt: skip
    group = kind.DescribedGroup(
        group_id="g", group_state="NotReady", group_epoch=3, assignment_epoch=3, members=(member,),
        topology=kind.Topology(epoch=8, subtopologies=(part,)), topology_description_status=status,
        assignor_name="sticky",
    )  # fmt: skip
    fact = group_fact(group, AT)
    assert (fact.type, fact.state, fact.topology_epoch, fact.assignor) == ("streams", "NotReady", 8, "sticky")
    assert fact.topology_description == word
    assert fact.subtopologies == (
        Subtopology(id="1", source=("lines",), repartition_source=("words",), changelog=("counts",)),
    )
    (seen,) = fact.members
    assert seen.tasks == Tasks(active=("1_2", "1_10"), warmup=("0_1",))
    assert seen.target_tasks == Tasks(standby=("1_0",))
    assert (seen.process, seen.topology_epoch) == ("p", 7)
    assert (seen.task_offsets, seen.task_end_offsets) == ({"0_1": 40}, {"0_1": 90})


def test_nothing_else_describes_a_group():
    with pytest.raises(TypeError, match="ListGroupsResponse describes no group"):
        group_fact(types.ListGroupsResponse(), AT)
