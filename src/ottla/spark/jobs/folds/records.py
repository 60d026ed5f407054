"""Coordinator records of groups, as steps of the group they are about.

Keys and values are the bytes of the topic. A tombstone of something unknown is ignored. A record that cannot be read is
reported and skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from ottla.spark.jobs.folds.classic import follow_classic
from ottla.spark.jobs.folds.state import NOBODY, NOTHING, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.wire import WireError, uuid_text
from ottla.wire.keyed import GROUP_TOPIC, decode_keyed, versioned_decoder

__all__ = ["GROUP_RECORDS", "follow_record", "read_target", "tasks_of"]

read_target: Final = {
    kind.lower(): versioned_decoder(f"{kind}GroupTargetAssignmentMemberValue")
    for kind in ("Consumer", "Share", "Streams")
}
"""Group type -> a function that reads the target of a member."""
_read_topology: Final = versioned_decoder("StreamsGroupTopologyValue")


def follow_record(group: GroupTracker, record_type: str, key: bytes, value: bytes | None) -> None:
    """Take a record. `group.at` was called with its offset and time."""
    found = GROUP_RECORDS.get(record_type)
    if found is None or (value is None and found.group_type != group.state.type):
        return
    try:
        if value is None:
            found.step(group, key, None)
        else:
            group.set_type(found.group_type)
            found.step(group, key, found.read(value))
    except WireError as error:
        group.out.faults.append(f"{record_type} at offset {group.state.offset} cannot be read: {error}")


@lru_cache(maxsize=65_536)
def _key(key: bytes) -> Any:
    """The key of a record. Few are new: a group writes about the same members again and again."""
    return decode_keyed(GROUP_TOPIC, key, None).key


# --- the group --------------------------------------------------------------------------------------------------------


def _epoch(group: GroupTracker, _: bytes, found: Any) -> None:
    if found is None:
        group.delete()
        return
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
    old, state.configs = state.configs, {each.key: each.value for each in found.last_assignment_configs or ()}
    if old is not None and old != state.configs:
        group.cause("config_changed")


def _target_epoch(group: GroupTracker, _: bytes, found: Any) -> None:
    if found is not None:
        group.target(found.assignment_epoch)


def _topology(group: GroupTracker, _: bytes, value: bytes | None) -> None:
    if value is not None:
        group.set_topology(_read_topology(value).epoch)
        group.state.topology = value


def _regex(group: GroupTracker, key: bytes, found: Any) -> None:
    regexes, regex = group.state.regexes, _key(key).regular_expression
    if found is None:
        regexes.pop(regex, None)
        return
    text = ",".join(sorted(found.topics))
    if regexes.get(regex) != text:
        regexes[regex] = text
        group.cause("regex_changed")


def _initialized(group: GroupTracker, _: bytes, found: Any) -> None:
    """The partitions of a share group that can be assigned."""
    if found is None:
        return
    old, state = group.state.initialized, group.state
    state.initialized = crc32(msgspec.msgpack.encode(found.initialized_topics))
    if old is not None and old != state.initialized:
        group.cause("partitions_initialized")


# --- its members ------------------------------------------------------------------------------------------------------


def _metadata(group: GroupTracker, key: bytes, found: Any) -> None:
    member_id = _key(key).member_id
    if found is None:
        group.leave(member_id)
        return
    member = group.state.members.get(member_id)
    topology_epoch = getattr(found, "topology_epoch", None)
    if member is None:
        member = TrackedMember(member_id, group.state.ts)
        _take_metadata(member, found)
        member.subscribed, member.topology_epoch = _subscribed(found), topology_epoch
        group.join(member)
        return
    group.subscribe(member, _subscribed(found))
    if topology_epoch is not None:
        group.run_topology(member, topology_epoch)
    if member.assignor != getattr(found, "server_assignor", None):
        group.cause("assignor_changed", member_id)
    _take_metadata(member, found)


def _take_metadata(member: TrackedMember, found: Any) -> None:
    """All kinds of members have the first three; the rest depends on the kind."""
    member.client, member.host, member.rack = found.client_id, found.client_host, found.rack_id
    member.instance, member.process = getattr(found, "instance_id", None), getattr(found, "process_id", None)
    member.assignor = getattr(found, "server_assignor", None)
    member.rebalance_timeout_ms = getattr(found, "rebalance_timeout_ms", None)


def _subscribed(found: Any) -> str:
    names = ",".join(sorted(getattr(found, "subscribed_topic_names", ())))
    regex = getattr(found, "subscribed_topic_regex", None)
    return f"{names} ~{regex}".strip() if regex else names


def _member(group: GroupTracker, key: bytes) -> TrackedMember:
    """The member that a record is about. If its first record is lost, it joined before the history began."""
    member_id = _key(key).member_id
    member = group.state.members.get(member_id)
    if member is None:
        member = TrackedMember(member_id, NOBODY)
        group.join(member, is_new=False)
    return member


def _target(group: GroupTracker, key: bytes, value: bytes | None) -> None:
    if value is not None:
        _member(group, key).target = value


def _target_tasks(group: GroupTracker, key: bytes, value: bytes | None) -> None:
    if value is None:
        return
    member, state = _member(group, key), group.state
    if value == member.target:
        return
    old = _placements(read_target["streams"](member.target)) if member.target else set()
    new = _placements(read_target["streams"](value))
    member.target = value
    state.target_tasks_changed.update(task for task, _ in old ^ new)
    state.target_tasks_warming.update(task for task, role in old | new if role == "warmup")


def _placements(found: Any) -> set[tuple[str, str]]:
    roles = (("active", found.active_tasks), ("standby", found.standby_tasks), ("warmup", found.warmup_tasks))
    return {(task, role) for role, ids in roles for task in tasks_of(ids)}


def _current(group: GroupTracker, key: bytes, found: Any) -> None:
    if found is None:
        return
    group.current(
        _member(group, key),
        found.member_epoch,
        found.state,
        _partitions(found.assigned_partitions),
        _partitions(getattr(found, "partitions_pending_revocation", ())),  # share groups have none
    )


def _current_tasks(group: GroupTracker, key: bytes, found: Any) -> None:
    if found is None:
        return
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
    if not found:
        return NOTHING
    return frozenset([_partition(each.topic_id, number) for each in found for number in each.partitions])


def tasks_of(found: Sequence[Any]) -> frozenset[str]:
    if not found:
        return NOTHING
    return frozenset([_task(each.subtopology_id, number) for each in found for number in each.partitions])


# The same few names recur, so each is made once.


@lru_cache(maxsize=65_536)
def _partition(topic_id: bytes, number: int) -> str:
    return f"{uuid_text(topic_id)}-{number}"


@lru_cache(maxsize=65_536)
def _task(subtopology: str, number: int) -> str:
    return f"{subtopology}_{number}"


# --- types of records -------------------------------------------------------------------------------------------------

_Step = Callable[[GroupTracker, bytes, Any], None]
"""Takes the key of a record, and its value as `_RecordType.read` returns it; None for a tombstone."""


class _RecordType(NamedTuple):
    group_type: str
    """The type of the group that this record creates."""
    read: Callable[[bytes], Any]
    step: _Step


def _unread(value: bytes) -> bytes:
    """For values that are kept as they are, because they are seldom needed."""
    return value


_UNREAD: Final[frozenset[_Step]] = frozenset((_target, _target_tasks, _topology))
_COMMON: Final[dict[str, _Step]] = {
    "GroupMetadata": _epoch,
    "GroupMemberMetadata": _metadata,
    "GroupTargetAssignmentMetadata": _target_epoch,
    "GroupTargetAssignmentMember": _target,
    "GroupCurrentMemberAssignment": _current,
}


def _types(prefix: str, group_type: str, **more: _Step) -> dict[str, _RecordType]:
    return {prefix + name: _record_type(prefix + name, group_type, step) for name, step in {**_COMMON, **more}.items()}


def _record_type(name: str, group_type: str, step: _Step) -> _RecordType:
    return _RecordType(group_type, _unread if step in _UNREAD else versioned_decoder(f"{name}Value"), step)


GROUP_RECORDS: Final[dict[str, _RecordType]] = {
    "GroupMetadata": _record_type("GroupMetadata", "classic", follow_classic),
    **_types("Consumer", "consumer", GroupRegularExpression=_regex),
    **_types("Share", "share", GroupStatePartitionMetadata=_initialized),
    **_types(
        "Streams",
        "streams",
        GroupTopology=_topology,
        GroupTargetAssignmentMember=_target_tasks,
        GroupCurrentMemberAssignment=_current_tasks,
    ),
}
"""By Kafka's name of the record. Other records are ignored."""
