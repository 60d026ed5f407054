"""The records of a streams group in `__consumer_offsets`, in Kafka's layout: lists in a fixed order, so that equal
states are equal bytes. And back: what a record says of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.core.coordinator.records import record, tombstone
from ottla.core.groups.streams.members import Current, MemberState, Metadata
from ottla.core.groups.streams.tasks import Held, Task, Tasks, by_subtopology, task_lists, tasks_in
from ottla.core.groups.streams.topology import Topology
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_streams import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
)

__all__ = [
    "assignment_epoch_record",
    "assignment_epoch_tombstone",
    "configs_of",
    "current_of",
    "current_record",
    "current_tombstone",
    "group_record",
    "group_tombstone",
    "member_record",
    "member_tombstone",
    "member_tombstones",
    "target_of",
    "target_record",
    "target_tombstone",
    "topology_record",
    "topology_tombstone",
]

_VERSION: Final = 0
_CurrentTaskIds = StreamsGroupCurrentMemberAssignmentValue.TaskIds


def group_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    configs: Mapping[str, str],
    descriptions: tuple[int, int],
) -> KeyedRecord:
    """`descriptions` are the stored and the failed epoch of the topology description. Every writer carries them on: a
    record without them would erase them."""
    kind = StreamsGroupMetadataValue
    value = kind(
        epoch,
        metadata_hash,
        validated_topology_epoch,
        tuple(kind.LastAssignmentConfig(key, configs[key]) for key in sorted(configs)),
        *descriptions,
    )
    return record(StreamsGroupMetadataKey(group_id), value, _VERSION)


def configs_of(value: StreamsGroupMetadataValue) -> dict[str, str]:
    return {each.key: each.value for each in value.last_assignment_configs or ()}


def group_tombstone(group_id: str) -> KeyedRecord:
    return tombstone(StreamsGroupMetadataKey(group_id))


def member_record(group_id: str, member_id: str, metadata: Metadata) -> KeyedRecord:
    return record(StreamsGroupMemberMetadataKey(group_id, member_id), metadata, _VERSION)


def member_tombstone(group_id: str, member_id: str) -> KeyedRecord:
    return tombstone(StreamsGroupMemberMetadataKey(group_id, member_id))


def assignment_epoch_record(group_id: str, assignment_epoch: int, at_ms: int) -> KeyedRecord:
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch, at_ms)
    return record(StreamsGroupTargetAssignmentMetadataKey(group_id), value, _VERSION)


def assignment_epoch_tombstone(group_id: str) -> KeyedRecord:
    return tombstone(StreamsGroupTargetAssignmentMetadataKey(group_id))


def target_record(group_id: str, member_id: str, target: Tasks) -> KeyedRecord:
    kind = StreamsGroupTargetAssignmentMemberValue
    active, standby, warmup = (task_lists(kind.TaskIds, tasks) for tasks in target)
    value = kind(active, standby, warmup)
    return record(StreamsGroupTargetAssignmentMemberKey(group_id, member_id), value, _VERSION)


def target_of(value: StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    return Tasks(tasks_in(value.active_tasks), tasks_in(value.standby_tasks), tasks_in(value.warmup_tasks))


def target_tombstone(group_id: str, member_id: str) -> KeyedRecord:
    return tombstone(StreamsGroupTargetAssignmentMemberKey(group_id, member_id))


def topology_record(group_id: str, topology: Topology) -> KeyedRecord:
    return record(StreamsGroupTopologyKey(group_id), topology, _VERSION)


def topology_tombstone(group_id: str) -> KeyedRecord:
    return tombstone(StreamsGroupTopologyKey(group_id))


def current_record(group_id: str, member_id: str, current: Current) -> KeyedRecord:
    assigned, pending = current.assigned, current.pending
    value = StreamsGroupCurrentMemberAssignmentValue(
        current.member_epoch,
        current.previous_member_epoch,
        current.state,
        _with_epochs(assigned.active),
        task_lists(_CurrentTaskIds, assigned.standby),
        task_lists(_CurrentTaskIds, assigned.warmup),
        _with_epochs(pending.active),
        task_lists(_CurrentTaskIds, pending.standby),
        task_lists(_CurrentTaskIds, pending.warmup),
    )
    return record(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id), value, _VERSION)


def _with_epochs(active: Mapping[Task, int]) -> tuple[Any, ...]:
    return tuple(
        _CurrentTaskIds(each, tuple(partitions), tuple(active[each, partition] for partition in partitions))
        for each, partitions in by_subtopology(active).items()
    )


def current_of(value: StreamsGroupCurrentMemberAssignmentValue) -> Current:
    return Current(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState(value.state) if value.state in _STATES else MemberState.UNKNOWN,
        Held(
            _epochs_in(value.active_tasks, value.member_epoch),
            tasks_in(value.standby_tasks),
            tasks_in(value.warmup_tasks),
        ),
        Held(
            _epochs_in(value.active_tasks_pending_revocation, value.member_epoch),
            tasks_in(value.standby_tasks_pending_revocation),
            tasks_in(value.warmup_tasks_pending_revocation),
        ),
    )


_STATES: Final = frozenset(MemberState)


def _epochs_in(lists: tuple[Any, ...], member_epoch: int) -> dict[Task, int]:
    """A record of an older release has no assignment epochs; its member epoch stands for them."""
    epochs: dict[Task, int] = {}
    for each in lists:
        given = each.assignment_epochs or ()
        if len(given) != len(each.partitions):
            given = (member_epoch,) * len(each.partitions)
        epochs.update(
            ((each.subtopology_id, partition), since) for partition, since in zip(each.partitions, given, strict=True)
        )
    return epochs


def current_tombstone(group_id: str, member_id: str) -> KeyedRecord:
    return tombstone(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id))


def member_tombstones(group_id: str, member_id: str) -> list[KeyedRecord]:
    """What removes a member."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]
