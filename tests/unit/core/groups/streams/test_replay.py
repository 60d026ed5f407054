"""Records of other releases and of compacted logs, and what every writer must carry on."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.coordinator.contract import Context, Reply, Result, World
from ottla.core.coordinator.records import encode_record, record, tombstone
from ottla.core.groups.streams import records
from ottla.core.groups.streams.family import StreamsFamily
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.members import Current, MemberState, Metadata
from ottla.core.groups.streams.tasks import Held, Tasks
from ottla.core.groups.table import Claim, GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.reject import Reject
from ottla.wire.types.group_streams import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMetadataKey,
    StreamsGroupTopologyValue,
)
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from simulation.environment import Environment

TOPOLOGY = StreamsGroupTopologyValue(0, (StreamsGroupTopologyValue.Subtopology("0", ("t",)),))
MEMBER = Metadata(
    instance_id=None, rack_id=None, client_id="c", client_host="/h", rebalance_timeout_ms=9, process_id="p"
)


class Coordinator:
    """A family whose results are taken for committed."""

    def __init__(self) -> None:
        environment = Environment()
        environment.topics.put("t", 4, None)
        self.world: World = environment.world
        self.table = GroupTable()
        self.family = StreamsFamily(self.table)

    def replay(self, *keyed: KeyedRecord) -> None:
        for each in keyed:
            key, value = encode_record(each)
            read = decode_keyed("__consumer_offsets", key, value)
            self.family.replays[type(read.key)](read, 0, -1, -1)

    def context(self, **fields: Any) -> Context:
        given = {"client_id": "c", "client_host": "/h", "token": "x"} | fields
        return Context(now_ms=1_000, wall_ms=1_000_000, world=self.world, **given)

    def beat(self, **fields: Any) -> Result:
        known = {"group_id": "g", "member_id": "A", "endpoint_information_epoch": 0}
        request = StreamsGroupHeartbeatRequest(**(known | fields))  # type: ignore[arg-type]
        result = self.family.heartbeat(request, self.context())
        self.replay(*result.records)
        return result

    @property
    def group(self) -> StreamsGroup:
        group = self.table.get("g")
        assert isinstance(group, StreamsGroup)
        return group


@pytest.fixture
def coordinator() -> Coordinator:
    """A group with one member at epoch 5, whose topology description is stored at epoch 0."""
    made = Coordinator()
    tasks = Tasks(frozenset(("0", each) for each in range(4)))
    held = Held({("0", 0): 3, ("0", 1): 5, ("0", 2): 5, ("0", 3): 5})
    from ottla.core.groups.metadata_hash import group_hash

    topic = made.world.topics.by_name("t")
    assert topic is not None
    made.replay(
        records.member_record("g", "A", MEMBER),
        records.topology_record("g", TOPOLOGY),
        records.group_record("g", 5, group_hash([topic]), 0, {"num.standby.replicas": "0"}, (0, 3)),
        records.target_record("g", "A", tasks),
        records.assignment_epoch_record("g", 5, 7),
        records.current_record("g", "A", Current(5, 4, MemberState.STABLE, held)),
    )
    return made


def test_a_steady_heartbeat_writes_nothing_and_answers_from_memory(coordinator: Coordinator):
    first, second, third = (coordinator.beat(member_epoch=5) for _ in range(3))
    assert [list(each.records) for each in (first, second, third)] == [[], [], []]
    assert third.replies[0].message is second.replies[0].message
    assert [timer.key for timer in third.timers] == [("streams", "session", "g", "A")]


def test_what_makes_a_heartbeat_unsteady_is_noticed(coordinator: Coordinator):
    for _ in range(2):
        coordinator.beat(member_epoch=5)
    assert coordinator.beat(member_epoch=5, process_id="q").records
    with pytest.raises(Reject):
        coordinator.beat(member_epoch=5, rack_id=" ")


def replies(result: Result) -> list[Reply]:
    return list(result.replies)


def test_every_writer_of_the_groups_record_keeps_the_epochs_of_its_description(coordinator: Coordinator):
    joined = coordinator.beat(member_epoch=5, process_id="q")
    assert coordinator.group.description_epochs == (0, 3)
    fenced = coordinator.family.expire(("streams", "session", "g", "A"), coordinator.context())
    for result in (joined, fenced):
        values = [each.value for each in result.records if isinstance(each.key, StreamsGroupMetadataKey)]
        assert [value.stored_description_topology_epoch for value in values] == [0]
        assert [value.failed_description_topology_epoch for value in values] == [3]
    left = coordinator.beat(member_epoch=-1)
    assert coordinator.group.description_epochs == (0, 3)
    assert replies(left)[0].message.member_epoch == -1


def test_a_record_without_assignment_epochs_is_judged_by_its_member_epoch(coordinator: Coordinator):
    kind = StreamsGroupCurrentMemberAssignmentValue
    value = kind(5, 4, 1, active_tasks=(kind.TaskIds("0", (0, 1)),))
    coordinator.replay(record(StreamsGroupCurrentMemberAssignmentKey("g", "A"), value, 0))
    check = coordinator.group.check_commit(Claim("A", 4), coordinator.context(api_version=9))
    assert check is not None
    with pytest.raises(Reject) as caught:
        check("t", b"", 0)
    assert caught.value.code is ErrorCode.STALE_MEMBER_EPOCH


def test_an_unknown_state_is_fenced_until_the_member_owns_nothing(coordinator: Coordinator):
    value = StreamsGroupCurrentMemberAssignmentValue(5, 4, 9)
    coordinator.replay(record(StreamsGroupCurrentMemberAssignmentKey("g", "A"), value, 0))
    with pytest.raises(Reject) as caught:
        coordinator.beat(member_epoch=5)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    nothing: Any = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
    coordinator.beat(member_epoch=5, **nothing)
    assert coordinator.group.members["A"].current.state is MemberState.STABLE


def test_a_late_transactional_commit_is_of_an_illegal_generation(coordinator: Coordinator):
    claim = Claim("A", 6, is_transactional=True)
    with pytest.raises(Reject) as caught:
        coordinator.group.check_commit(claim, coordinator.context(api_version=5))
    assert caught.value.code is ErrorCode.ILLEGAL_GENERATION
    check = coordinator.group.check_commit(claim._replace(generation=2), coordinator.context(api_version=5))
    assert check is not None
    with pytest.raises(Reject) as caught:
        check("t", b"", 0)
    assert caught.value.code is ErrorCode.ILLEGAL_GENERATION
    nobody = Claim(is_transactional=True)
    assert coordinator.group.check_commit(nobody, coordinator.context(api_version=5)) is None


def test_tombstones_of_what_is_not_there_do_nothing():
    coordinator = Coordinator()
    coordinator.replay(
        *records.member_tombstones("g", "A"),
        records.assignment_epoch_tombstone("g"),
        records.group_tombstone("g"),
        records.topology_tombstone("g"),
    )
    assert coordinator.family.hard_state() == {}
    coordinator.replay(records.member_record("g", "B", MEMBER), *records.member_tombstones("g", "A"))
    assert set(coordinator.group.members) == {"B"}


def test_a_member_whose_other_records_are_gone(coordinator: Coordinator):
    """Compaction may leave either part alone; the missing one has its defaults."""
    coordinator.replay(
        record(StreamsGroupCurrentMemberAssignmentKey("g", "B"), StreamsGroupCurrentMemberAssignmentValue(5, 5, 1), 0),
        records.member_record("g", "C", MEMBER),
    )
    assert coordinator.group.members["B"].metadata.process_id == ""
    assert coordinator.group.members["C"].current == Current()


def test_a_broken_order_is_survived(coordinator: Coordinator):
    coordinator.replay(tombstone(StreamsGroupMetadataKey("g")))
    assert coordinator.table.get("g") is None


def test_deadlines_begin_anew_when_loaded(coordinator: Coordinator):
    held = Held({("0", 0): 3})
    coordinator.replay(records.current_record("g", "A", Current(5, 5, MemberState.UNREVOKED_TASKS, held, held)))
    timers = dict(coordinator.family.loaded(coordinator.context()).timers)
    assert timers == {("streams", "session", "g", "A"): 46_000, ("streams", "rebalance", "g", "A"): 1_009}
