"""Streams groups, as their coordinators tell of them: who has which task, how far behind it is, and who holds up whom.

Works on any cluster that serves StreamsGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.client import Client
from ottla.client.errors import check
from ottla.client.group_offsets import committed
from ottla.client.groups import describe
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import LATEST, try_list_offsets
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseAssignment as Assignment
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseDescribedGroup as Group
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseMember as Member
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescription as Description

__all__ = [
    "Blocker",
    "Described",
    "EpochWatch",
    "GroupSnapshot",
    "TaskRow",
    "blockers",
    "snapshot",
    "task_count",
    "task_rows",
    "topology_description",
]

Task = tuple[str, int]
ROLES: Final = ("active", "standby", "warmup")
_DESCRIPTION_VERSION: Final = 1
_WHY_NO_DESCRIPTION: Final = {
    1: "the cluster has no topology description, since no member has sent one or its brokers have no plugin",
    2: "the cluster's plugin failed to return the topology description",
}
"""By status of the description."""


class GroupSnapshot(NamedTuple):
    """A streams group at one moment, with its lag."""

    group: Group
    lags: Mapping[TopicPartition, int]
    """Records behind what the group has committed, where that is known."""


class TaskRow(NamedTuple):
    """A task, or a copy of its state, with a member."""

    task: str
    role: str
    """active, standby or warmup."""
    standing: str
    """running; waiting for another to give it up; leaving for another member."""
    member: Member
    lag: int | None
    """Of an active task: records that it has still to read, over all its topics."""
    restoring: int | None
    """Offsets that its state is behind, where the member has told so."""


class Blocker(NamedTuple):
    """A member that holds up a rebalance."""

    member: Member
    reason: str
    tasks: tuple[str, ...]


class Described(NamedTuple):
    """A topology's description (KIP-1331), or why there is none."""

    description: Description | None
    why_not: str
    group: Group
    """What the coordinator says besides: subtopologies with their topics, members with their tasks."""


async def topology_description(client: Client, group_id: str) -> Described:
    """Apache Kafka has descriptions from 4.4 on, if a plugin keeps them. ResponseError if there is no such group."""

    def build(version: int) -> StreamsGroupDescribeRequest:
        wanted = version >= _DESCRIPTION_VERSION
        return StreamsGroupDescribeRequest(group_ids=(group_id,), include_topology_description=wanted)

    answer = await client.ask("StreamsGroupDescribe", build, coordinator=("group", group_id))
    (group,) = answer.of(StreamsGroupDescribeResponse).groups
    check(answer.peer, "StreamsGroupDescribe", group.error_code, f"group {group_id}", group.error_message)
    if answer.version < _DESCRIPTION_VERSION:
        return Described(None, "the cluster's brokers do not store topology descriptions", group)
    why_not = _WHY_NO_DESCRIPTION.get(group.topology_description_status, _WHY_NO_DESCRIPTION[1])
    return Described(group.topology_description, "" if group.topology_description is not None else why_not, group)


async def snapshot(client: Client, group_id: str) -> GroupSnapshot:
    """ResponseError if there is no such group, or it is of another kind."""
    group = await describe(client, group_id, type="streams")
    assert isinstance(group, Group)
    offsets = await committed(client, group_id)
    ends = await try_list_offsets(client, dict.fromkeys(offsets, LATEST))
    lags = {at: max(0, end.offset - offsets[at].offset) for at, end in ends.items() if not isinstance(end, Exception)}
    return GroupSnapshot(group, lags)


def _tasks(assignment: Assignment, role: str) -> set[Task]:
    return {
        (each.subtopology_id, number) for each in getattr(assignment, f"{role}_tasks") for number in each.partitions
    }


def _name(task: Task) -> str:
    return f"{task[0]}_{task[1]}"


def task_count(member: Member, role: str) -> int:
    return len(_tasks(member.assignment, role))


def task_rows(seen: GroupSnapshot) -> list[TaskRow]:
    """Every task with everybody who has it or is to have it, in order."""
    inputs = _inputs(seen.group)
    rows = [row for member in seen.group.members for role in ROLES for row in _rows(member, role, seen, inputs)]
    return sorted(rows, key=lambda row: (_order(row.task), ROLES.index(row.role), row.member.member_id))


def _order(name: str) -> tuple[str, int]:
    subtopology_id, _, number = name.rpartition("_")
    return subtopology_id, int(number)


def _inputs(group: Group) -> dict[str, list[str]]:
    subtopologies = group.topology.subtopologies if group.topology is not None else ()
    return {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies or ()
    }


def _rows(member: Member, role: str, seen: GroupSnapshot, inputs: Mapping[str, list[str]]) -> Iterable[TaskRow]:
    has, target = _tasks(member.assignment, role), _tasks(member.target_assignment, role)
    for task in has | target:
        standing = "running" if task in has & target else "leaving" if task in has else "waiting"
        lag = _lag(task, seen.lags, inputs) if role == "active" and task in has else None
        yield TaskRow(_name(task), role, standing, member, lag, _restoring(member, task))


def _lag(task: Task, lags: Mapping[TopicPartition, int], inputs: Mapping[str, list[str]]) -> int | None:
    known = [lags.get(TopicPartition(topic, task[1])) for topic in inputs.get(task[0], ())]
    found = [each for each in known if each is not None]
    return sum(found) if found else None


def _restoring(member: Member, task: Task) -> int | None:
    offsets, ends = _reported(member.task_offsets), _reported(member.task_end_offsets)
    return max(0, ends[task] - offsets[task]) if task in offsets and task in ends else None


def _reported(offsets: Iterable[Any]) -> dict[Task, int]:
    return {(each.subtopology_id, each.partition): each.offset for each in offsets}


def blockers(group: Group) -> list[Blocker]:
    """Who holds up the members that wait for tasks, and by what.

    A member that has been told to give tasks up, and has not said that it did, is behind the assignment epoch; what it
    is giving up is no longer shown with it. One that has not been heard of since still shows all its tasks.
    """
    awaited = {
        task
        for member in group.members
        for role in ROLES
        for task in _tasks(member.target_assignment, role) - _tasks(member.assignment, role)
    }
    shown = {task for member in group.members for role in ROLES for task in _tasks(member.assignment, role)}
    hidden = tuple(sorted(map(_name, awaited - shown)))
    found = []
    for member in group.members:
        if member.member_epoch >= group.assignment_epoch:
            continue
        keeps = {
            task for role in ROLES for task in _tasks(member.assignment, role) - _tasks(member.target_assignment, role)
        }
        if keeps:
            names = tuple(sorted(map(_name, keeps)))
            found.append(Blocker(member, "has not yet learned that it must revoke", names))
        elif member.member_epoch == -2:
            found.append(Blocker(member, "has left temporarily, and keeps its tasks until its session expires", ()))
        elif hidden:
            found.append(Blocker(member, "has not confirmed that it revoked tasks; awaited:", hidden))
        else:
            found.append(Blocker(member, "has not sent a heartbeat since the last assignment", ()))
    return found


class EpochWatch:
    """Warns of a group whose epoch climbs though its members stay: something else changes all the time, such as a
    member's address, its tags or its endpoint, or the topics."""

    def __init__(self, climbs_max: int = 3) -> None:
        self._climbs_max = climbs_max
        self._climbs = 0
        self._last: tuple[int, frozenset[str]] | None = None

    def take(self, group: Group) -> str | None:
        """The warning, if there is one, after one more look."""
        members = frozenset(each.member_id for each in group.members)
        before, self._last = self._last, (group.group_epoch, members)
        if before is None or before[1] != members:
            self._climbs = 0
            return None
        self._climbs += group.group_epoch > before[0]
        if self._climbs < self._climbs_max:
            return None
        return f"the group epoch rose to {group.group_epoch} although the {len(members)} members are the same"
