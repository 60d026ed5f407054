"""Coordinator records of groups, as steps of the group they are about.

Keys and values are in the JSON form of Kafka's own tools. A tombstone of something unknown is ignored. A record that
cannot be read is reported and skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final
from zlib import crc32

import msgspec

from ottla.spark.jobs.folds.classic import follow_classic
from ottla.spark.jobs.folds.state import NOBODY, NOTHING, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.wire import WireError

__all__ = ["GROUP_RECORDS", "TargetPartitions", "TargetTasks", "follow_record", "tasks_of"]

_UNREADABLE: Final = (msgspec.MsgspecError, WireError, ValueError)


class _Record(msgspec.Struct, rename="camel", gc=False):
    pass


class _Key(_Record):
    member_id: str = ""
    regular_expression: str = ""


class _TopicPartitions(_Record):
    topic_id: str
    partitions: list[int]


class _TaskIds(_Record):
    subtopology_id: str
    partitions: list[int]


class _Epoch(_Record):
    epoch: int
    metadata_hash: int = 0
    validated_topology_epoch: int = NOBODY
    last_assignment_configs: msgspec.Raw = msgspec.Raw(b"[]")
    failed_description_topology_epoch: int = NOBODY


class _TargetEpoch(_Record):
    assignment_epoch: int


class _MemberMetadata(_Record):
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    instance_id: str | None = None
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int | None = None
    server_assignor: str | None = None
    topology_epoch: int | None = None
    process_id: str | None = None


class _Current(_Record):
    member_epoch: int
    state: int = 0
    assigned_partitions: list[_TopicPartitions] = []
    partitions_pending_revocation: list[_TopicPartitions] = []


class _CurrentTasks(_Record):
    member_epoch: int
    state: int = 1
    active_tasks: list[_TaskIds] = []
    standby_tasks: list[_TaskIds] = []
    warmup_tasks: list[_TaskIds] = []
    active_tasks_pending_revocation: list[_TaskIds] = []


class TargetPartitions(_Record):
    topic_partitions: list[_TopicPartitions] = []


class TargetTasks(_Record):
    active_tasks: list[_TaskIds] = []
    standby_tasks: list[_TaskIds] = []
    warmup_tasks: list[_TaskIds] = []


class _Topology(_Record):
    epoch: int


class _Initialized(_Record):
    initialized_topics: msgspec.Raw = msgspec.Raw(b"[]")


_read_key: Final = msgspec.json.Decoder(_Key).decode
_read_epoch: Final = msgspec.json.Decoder(_Epoch).decode
_read_target_epoch: Final = msgspec.json.Decoder(_TargetEpoch).decode
_read_metadata: Final = msgspec.json.Decoder(_MemberMetadata).decode
_read_current: Final = msgspec.json.Decoder(_Current).decode
_read_current_tasks: Final = msgspec.json.Decoder(_CurrentTasks).decode
_read_target_tasks: Final = msgspec.json.Decoder(TargetTasks).decode
_read_topology: Final = msgspec.json.Decoder(_Topology).decode
_read_initialized: Final = msgspec.json.Decoder(_Initialized).decode


def follow_record(group: GroupTracker, record_type: str, key: str | None, value: str | None) -> None:
    """Take a record. `group.at` was called with its offset and time."""
    found = GROUP_RECORDS.get(record_type)
    if found is None:
        return
    kind, step = found
    if value is None and kind != group.state.type:
        return
    try:
        if value is not None:
            group.set_type(kind)
        step(group, key or "{}", value)
    except _UNREADABLE as error:
        group.out.faults.append(f"{record_type} at offset {group.state.offset} cannot be read: {error}")


# --- the group --------------------------------------------------------------------------------------------------------


def _epoch(group: GroupTracker, _: str, value: str | None) -> None:
    if value is None:
        group.delete()
        return
    found = _read_epoch(value)
    state = group.state
    if state.type == "streams":
        _note_settings(group, found)
    if found.epoch != state.epoch or state.metadata_hash is None:
        group.see_hash(found.metadata_hash)
    group.bump_epoch(found.epoch)


def _note_settings(group: GroupTracker, found: _Epoch) -> None:
    state = group.state
    state.validated_topology_epoch = found.validated_topology_epoch
    failed = found.failed_description_topology_epoch
    state.failed_topology_epoch = None if failed == NOBODY else failed
    old, state.configs = state.configs, bytes(found.last_assignment_configs).decode()
    if old is not None and old != state.configs:
        group.cause("config_changed")


def _target_epoch(group: GroupTracker, _: str, value: str | None) -> None:
    if value is not None:
        group.target(_read_target_epoch(value).assignment_epoch)


def _topology(group: GroupTracker, _: str, value: str | None) -> None:
    if value is not None:
        group.set_topology(_read_topology(value).epoch)
        group.state.topology = value


def _regex(group: GroupTracker, key: str, value: str | None) -> None:
    regexes, regex = group.state.regexes, _read_key(key).regular_expression
    if value is None:
        regexes.pop(regex, None)
        return
    topics = msgspec.json.decode(value).get("topics")
    text = ",".join(sorted(topics or ()))
    if regexes.get(regex) != text:
        regexes[regex] = text
        group.cause("regex_changed")


def _initialized(group: GroupTracker, _: str, value: str | None) -> None:
    """The partitions of a share group that can be assigned."""
    if value is None:
        return
    old, state = group.state.initialized, group.state
    state.initialized = crc32(_read_initialized(value).initialized_topics)
    if old is not None and old != state.initialized:
        group.cause("partitions_initialized")


# --- its members ------------------------------------------------------------------------------------------------------


def _metadata(group: GroupTracker, key: str, value: str | None) -> None:
    member_id = _read_key(key).member_id
    if value is None:
        group.leave(member_id)
        return
    found = _read_metadata(value)
    member = group.state.members.get(member_id)
    if member is None:
        member = TrackedMember(member_id, group.state.ts)
        _take_metadata(member, found)
        member.subscribed, member.topology_epoch = _subscribed(found), found.topology_epoch
        group.join(member)
        return
    group.subscribe(member, _subscribed(found))
    if found.topology_epoch is not None:
        group.run_topology(member, found.topology_epoch)
    if member.assignor != found.server_assignor:
        group.cause("assignor_changed", member_id)
    _take_metadata(member, found)


def _take_metadata(member: TrackedMember, found: _MemberMetadata) -> None:
    member.client, member.host, member.rack = found.client_id, found.client_host, found.rack_id
    member.instance, member.process = found.instance_id, found.process_id
    member.assignor, member.rebalance_timeout_ms = found.server_assignor, found.rebalance_timeout_ms


def _subscribed(found: _MemberMetadata) -> str:
    names = ",".join(sorted(found.subscribed_topic_names or ()))
    if not found.subscribed_topic_regex:
        return names
    return f"{names} ~{found.subscribed_topic_regex}".strip()


def _member(group: GroupTracker, key: str) -> TrackedMember:
    """The member that a record is about. If its first record is lost, it joined before the history began."""
    member_id = _read_key(key).member_id
    member = group.state.members.get(member_id)
    if member is None:
        member = TrackedMember(member_id, NOBODY)
        group.join(member, is_new=False)
    return member


def _target(group: GroupTracker, key: str, value: str | None) -> None:
    if value is not None:
        _member(group, key).target = value


def _target_tasks(group: GroupTracker, key: str, value: str | None) -> None:
    if value is None:
        return
    member, state = _member(group, key), group.state
    if value == member.target:
        return
    old = _placements(_read_target_tasks(member.target or "{}"))
    new = _placements(_read_target_tasks(value))
    member.target = value
    state.target_tasks_changed.update(task for task, _ in old ^ new)
    state.target_tasks_warming.update(task for task, role in old | new if role == "warmup")


def _placements(found: TargetTasks) -> set[tuple[str, str]]:
    roles = (("active", found.active_tasks), ("standby", found.standby_tasks), ("warmup", found.warmup_tasks))
    return {(task, role) for role, ids in roles for task in tasks_of(ids)}


def _current(group: GroupTracker, key: str, value: str | None) -> None:
    if value is None:
        return
    found = _read_current(value)
    assigned, pending = found.assigned_partitions, found.partitions_pending_revocation
    group.current(
        _member(group, key),
        found.member_epoch,
        found.state,
        _partitions(assigned) if assigned else NOTHING,
        _partitions(pending) if pending else NOTHING,
    )


def _current_tasks(group: GroupTracker, key: str, value: str | None) -> None:
    if value is None:
        return
    found = _read_current_tasks(value)
    group.current(
        _member(group, key),
        found.member_epoch,
        found.state - 1,  # counted from 1 here, from 0 in consumer groups
        tasks_of(found.active_tasks),
        tasks_of(found.active_tasks_pending_revocation),
        tasks_of(found.standby_tasks),
        tasks_of(found.warmup_tasks),
    )


def _partitions(found: list[_TopicPartitions]) -> frozenset[str]:
    return frozenset([_name(each.topic_id, "-", partition) for each in found for partition in each.partitions])


def tasks_of(found: list[_TaskIds]) -> frozenset[str]:
    if not found:
        return NOTHING
    return frozenset([_name(each.subtopology_id, "_", number) for each in found for number in each.partitions])


@lru_cache(maxsize=65_536)
def _name(first: str, between: str, number: int) -> str:
    """Interned, because the same few names recur."""
    return f"{first}{between}{number}"


_Step = Callable[[GroupTracker, str, str | None], None]
_COMMON: Final[dict[str, _Step]] = {
    "GroupMetadata": _epoch,
    "GroupMemberMetadata": _metadata,
    "GroupTargetAssignmentMetadata": _target_epoch,
    "GroupTargetAssignmentMember": _target,
    "GroupCurrentMemberAssignment": _current,
}


def _steps(prefix: str, kind: str, **more: _Step) -> dict[str, tuple[str, _Step]]:
    return {prefix + name: (kind, step) for name, step in {**_COMMON, **more}.items()}


GROUP_RECORDS: Final[dict[str, tuple[str, _Step]]] = {
    "GroupMetadata": ("classic", follow_classic),
    **_steps("Consumer", "consumer", GroupRegularExpression=_regex),
    **_steps("Share", "share", GroupStatePartitionMetadata=_initialized),
    **_steps(
        "Streams",
        "streams",
        GroupTopology=_topology,
        GroupTargetAssignmentMember=_target_tasks,
        GroupCurrentMemberAssignment=_current_tasks,
    ),
}
"""Record type, by Kafka's name -> the type of group that it creates, and its step. Other records are ignored."""
