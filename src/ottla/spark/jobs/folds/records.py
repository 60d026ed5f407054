"""Coordinator records of groups, as steps of the group they are about.

Keys and values are the bytes of the topic. A tombstone of something unknown is ignored. A record that cannot be read is
reported and skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from ottla.spark.jobs.folds.classic import follow_classic
from ottla.spark.jobs.folds.state import NOBODY, NOTHING, Holding, TrackedMember
from ottla.spark.jobs.folds.tracker import SEQ_BITS, GroupTracker
from ottla.wire import WireError, uuid_text
from ottla.wire.keyed import GROUP_TOPIC, key_decoder, versioned_decoder

__all__ = ["GROUP_RECORDS", "Record", "follow_records", "read_target", "tasks_of"]

read_target: Final = {
    kind.lower(): versioned_decoder(f"{kind}GroupTargetAssignmentMemberValue")
    for kind in ("Consumer", "Share", "Streams")
}
"""Group type -> a function that reads the target of a member."""
_read_key: Final = key_decoder(GROUP_TOPIC)
_HEAD: Final = Struct(">hiib")
"""How the value of a member's current assignment begins, in all types of groups: its version, the member's epoch, the
one before, its state. What follows is what it holds."""
_MALFORMED: Final = (-1, 0, 0, 0)
"""The head of a value that is too short."""

Record = tuple[int, int, int, str, bytes, bytes | None]
"""A coordinator record, as a `RecordRow` has it."""
_Read = Callable[[bytes], Any]
_Step = Callable[[GroupTracker, bytes, bytes, _Read], None]
"""Takes the key of a record, its value, and what reads the value."""


def follow_records(group: GroupTracker, records: Iterable[Record]) -> None:
    """Take records of one time, with which `group.at` was called."""
    for partition, offset, _, record_type, key, value in records:
        state = group.state
        if offset <= state.offset and partition == state.partition:
            continue
        state.partition = partition
        state.offset = offset
        state.next_seq = offset << SEQ_BITS
        found = GROUP_RECORDS.get(record_type)
        if found is None:
            continue
        group_type, read, step, gone = found
        try:
            if value is None:
                if gone is not None and group_type == state.type:
                    gone(group, key)
                continue
            if group_type != state.type:
                group.set_type(group_type)
            step(group, key, value, read)
        except WireError as error:
            group.out.faults.append(f"{record_type} at offset {offset} cannot be read: {error}")


@lru_cache(maxsize=65_536)
def _member_id(key: bytes) -> str:
    """The member that a key names. Few keys are new: a group writes about the same members again and again."""
    found: str = _read_key(key).member_id
    return found


# --- the group --------------------------------------------------------------------------------------------------------


def _deleted(group: GroupTracker, _: bytes) -> None:
    group.delete()


def _epoch(group: GroupTracker, _: bytes, value: bytes, read: _Read) -> None:
    found, state = read(value), group.state
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


def _target_epoch(group: GroupTracker, _: bytes, value: bytes, read: _Read) -> None:
    group.target(read(value).assignment_epoch)


def _topology(group: GroupTracker, _: bytes, value: bytes, read: _Read) -> None:
    group.set_topology(read(value).epoch)
    group.state.topology = value


def _regex(group: GroupTracker, key: bytes, value: bytes, read: _Read) -> None:
    text, regex, regexes = ",".join(sorted(read(value).topics)), _pattern(key), group.state.regexes
    if regexes.get(regex) != text:
        regexes[regex] = text
        group.cause("regex_changed")


def _regex_gone(group: GroupTracker, key: bytes) -> None:
    group.state.regexes.pop(_pattern(key), None)


def _pattern(key: bytes) -> str:
    found: str = _read_key(key).regular_expression
    return found


def _initialized(group: GroupTracker, _: bytes, value: bytes, read: _Read) -> None:
    """The partitions of a share group that can be assigned."""
    state = group.state
    old, state.initialized = state.initialized, crc32(msgspec.msgpack.encode(read(value).initialized_topics))
    if old is not None and old != state.initialized:
        group.cause("partitions_initialized")


# --- its members ------------------------------------------------------------------------------------------------------


def _member_gone(group: GroupTracker, key: bytes) -> None:
    group.leave(_member_id(key))


def _metadata(group: GroupTracker, key: bytes, value: bytes, read: _Read) -> None:
    found, member_id = read(value), _member_id(key)
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
    member_id = _member_id(key)
    member = group.state.members.get(member_id)
    if member is None:
        member = TrackedMember(member_id, NOBODY)
        group.join(member, is_new=False)
    return member


def _target(group: GroupTracker, key: bytes, value: bytes, _: _Read) -> None:
    group.aim(_member(group, key), value)


def _target_tasks(group: GroupTracker, key: bytes, value: bytes, read: _Read) -> None:
    member, state = _member(group, key), group.state
    if value == member.target:
        return
    old, new = _placements(member.target, read), _placements(value, read)
    group.aim(member, value)
    state.target_tasks_changed.update([task for task, _ in old ^ new])
    state.target_tasks_warming.update([task for task, role in old | new if role == "warmup"])


@lru_cache(maxsize=4_096)
def _placements(target: bytes, read: _Read) -> frozenset[tuple[str, str]]:
    """The tasks of a target, each with its role."""
    if not target:
        return frozenset()
    found = read(target)
    roles = (("active", found.active_tasks), ("standby", found.standby_tasks), ("warmup", found.warmup_tasks))
    return frozenset([(task, role) for role, ids in roles for task in tasks_of(ids)])


def _current_step(stable: int) -> _Step:
    """The step of a member's current assignment, where this number says that it is stable.

    In a rebalance most members only reach another epoch: what they hold is the same to the byte, and is not read
    again."""

    def step(group: GroupTracker, key: bytes, value: bytes, read: _Read) -> None:
        member, held = group.state.members.get(_member_id(key)), value[_HEAD.size :]
        version, epoch, _, state = _HEAD.unpack_from(value) if held else _MALFORMED
        if version != 0:
            found = read(value)
            epoch, state, holding = found.member_epoch, found.state, _holding(found)
        elif member is not None and held == member.assignment:
            group.reach(member, epoch, state - stable)
            return
        else:
            holding = _holding_in(held, read)
        if member is None:
            member = _member(group, key)
        group.current(member, epoch, state - stable, holding)
        member.assignment = held

    return step


@lru_cache(maxsize=4_096)
def _holding_in(held: bytes, read: _Read) -> Holding:
    """What a member holds, from the bytes behind the head. Groups that do not come to rest go back and forth between a
    few assignments."""
    return _holding(read(bytes(_HEAD.size) + held))


def _holding(found: Any) -> Holding:
    if hasattr(found, "active_tasks"):
        active, revoking = tasks_of(found.active_tasks), tasks_of(found.active_tasks_pending_revocation)
        return active, revoking, tasks_of(found.standby_tasks), tasks_of(found.warmup_tasks)
    pending = getattr(found, "partitions_pending_revocation", ())  # share groups have none
    return _partitions(found.assigned_partitions), _partitions(pending), NOTHING, NOTHING


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

_Gone = Callable[[GroupTracker, bytes], None]
"""Takes the key of a tombstone."""


_current, _current_tasks = _current_step(0), _current_step(1)


class _RecordType(NamedTuple):
    group_type: str
    """The type of the group that this record creates."""
    read: _Read
    step: _Step
    gone: _Gone | None


_Steps = tuple[_Step, _Gone | None]
_COMMON: Final[dict[str, _Steps]] = {
    "GroupMetadata": (_epoch, _deleted),
    "GroupMemberMetadata": (_metadata, _member_gone),
    "GroupTargetAssignmentMetadata": (_target_epoch, None),
    "GroupTargetAssignmentMember": (_target, None),
    "GroupCurrentMemberAssignment": (_current, None),
}


def _types(prefix: str, group_type: str, **more: _Steps) -> dict[str, _RecordType]:
    return {prefix + name: _record_type(prefix + name, group_type, *steps) for name, steps in (_COMMON | more).items()}


def _record_type(name: str, group_type: str, step: _Step, gone: _Gone | None) -> _RecordType:
    return _RecordType(group_type, versioned_decoder(f"{name}Value"), step, gone)


GROUP_RECORDS: Final[dict[str, _RecordType]] = {
    "GroupMetadata": _record_type("GroupMetadata", "classic", follow_classic, _deleted),
    **_types("Consumer", "consumer", GroupRegularExpression=(_regex, _regex_gone)),
    **_types("Share", "share", GroupStatePartitionMetadata=(_initialized, None)),
    **_types(
        "Streams",
        "streams",
        GroupTopology=(_topology, None),
        GroupTargetAssignmentMember=(_target_tasks, None),
        GroupCurrentMemberAssignment=(_current_tasks, None),
    ),
}
"""By Kafka's name of the record. Other records are ignored."""
