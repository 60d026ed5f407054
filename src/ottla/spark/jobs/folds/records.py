"""Coordinator records of groups, as steps of the group they are about.

Keys and values are in the JSON form of Kafka's own tools. A tombstone of something unknown is ignored. A record that
cannot be read is reported and skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

import msgspec

from ottla.spark.jobs.folds.classic import follow_classic
from ottla.spark.jobs.folds.state import NOBODY, NOTHING, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.spark.jobs.record_json import json_reader
from ottla.wire import WireError
from ottla.wire.types.group_consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.wire.types.group_share import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupStatePartitionMetadataValue,
)
from ottla.wire.types.group_streams import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
)

__all__ = ["GROUP_RECORDS", "follow_record", "read_target_partitions", "read_target_tasks", "tasks_of"]

_UNREADABLE: Final = (msgspec.MsgspecError, WireError, ValueError)


_read_member_key: Final = json_reader(ConsumerGroupMemberMetadataKey, only="member_id")
_read_regex_key: Final = json_reader(ConsumerGroupRegularExpressionKey, only="regular_expression")
_read_epoch: Final = json_reader(
    StreamsGroupMetadataValue,  # which has all that those of other groups have
    only="epoch metadata_hash validated_topology_epoch last_assignment_configs failed_description_topology_epoch",
    last_assignment_configs=msgspec.Raw,
)
_read_target_epoch: Final = json_reader(ConsumerGroupTargetAssignmentMetadataValue, only="assignment_epoch")
_read_metadata: Final = json_reader(
    ConsumerGroupMemberMetadataValue,
    StreamsGroupMemberMetadataValue,
    ShareGroupMemberMetadataValue,
    only="client_id client_host rack_id instance_id subscribed_topic_names subscribed_topic_regex rebalance_timeout_ms "
    "server_assignor topology_epoch process_id",
)
_read_current: Final = json_reader(
    ConsumerGroupCurrentMemberAssignmentValue,
    ShareGroupCurrentMemberAssignmentValue,
    only="member_epoch state assigned_partitions partitions_pending_revocation",
)
_TASKS: Final = "active_tasks standby_tasks warmup_tasks"
_read_current_tasks: Final = json_reader(
    StreamsGroupCurrentMemberAssignmentValue, only=f"member_epoch state active_tasks_pending_revocation {_TASKS}"
)
read_target_partitions: Final = json_reader(ConsumerGroupTargetAssignmentMemberValue, only="topic_partitions")
read_target_tasks: Final = json_reader(StreamsGroupTargetAssignmentMemberValue, only=_TASKS)
_read_regex: Final = json_reader(ConsumerGroupRegularExpressionValue, only="topics")
_read_topology: Final = json_reader(StreamsGroupTopologyValue, only="epoch")
_read_initialized: Final = json_reader(
    ShareGroupStatePartitionMetadataValue, only="initialized_topics", initialized_topics=msgspec.Raw
)


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


def _note_settings(group: GroupTracker, found: Any) -> None:
    state = group.state
    state.validated_topology_epoch = found.validated_topology_epoch
    failed = found.failed_description_topology_epoch
    state.failed_topology_epoch = None if failed == NOBODY else failed
    old, state.configs = state.configs, bytes(found.last_assignment_configs or b"[]").decode()
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
    regexes, regex = group.state.regexes, _read_regex_key(key).regular_expression
    if value is None:
        regexes.pop(regex, None)
        return
    text = ",".join(sorted(_read_regex(value).topics or ()))
    if regexes.get(regex) != text:
        regexes[regex] = text
        group.cause("regex_changed")


def _initialized(group: GroupTracker, _: str, value: str | None) -> None:
    """The partitions of a share group that can be assigned."""
    if value is None:
        return
    old, state = group.state.initialized, group.state
    state.initialized = crc32(_read_initialized(value).initialized_topics or b"[]")
    if old is not None and old != state.initialized:
        group.cause("partitions_initialized")


# --- its members ------------------------------------------------------------------------------------------------------


def _metadata(group: GroupTracker, key: str, value: str | None) -> None:
    member_id = _read_member_key(key).member_id
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


def _take_metadata(member: TrackedMember, found: Any) -> None:
    member.client, member.host, member.rack = found.client_id, found.client_host, found.rack_id
    member.instance, member.process = found.instance_id, found.process_id
    member.assignor, member.rebalance_timeout_ms = found.server_assignor, found.rebalance_timeout_ms


def _subscribed(found: Any) -> str:
    names = ",".join(sorted(found.subscribed_topic_names or ()))
    if not found.subscribed_topic_regex:
        return names
    return f"{names} ~{found.subscribed_topic_regex}".strip()


def _member(group: GroupTracker, key: str) -> TrackedMember:
    """The member that a record is about. If its first record is lost, it joined before the history began."""
    member_id = _read_member_key(key).member_id
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
    old = _placements(read_target_tasks(member.target or "{}"))
    new = _placements(read_target_tasks(value))
    member.target = value
    state.target_tasks_changed.update(task for task, _ in old ^ new)
    state.target_tasks_warming.update(task for task, role in old | new if role == "warmup")


def _placements(found: Any) -> set[tuple[str, str]]:
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


def _partitions(found: Iterable[Any]) -> frozenset[str]:
    return frozenset([_name(each.topic_id, "-", partition) for each in found for partition in each.partitions])


def tasks_of(found: Sequence[Any]) -> frozenset[str]:
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
