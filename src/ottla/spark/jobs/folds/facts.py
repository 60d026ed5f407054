"""Facts about a group from its records, so that the health rules can check a log without samples.

Records have more than a description of the group: partitions that a member has yet to revoke count as held, and the
hash of its topics changes only when a topic does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

from ottla.health.facts import Gone, Group, GroupMember, Subtopology, Tasks, TopicPartitions
from ottla.spark.jobs.folds.fold import RecordRow
from ottla.spark.jobs.folds.records import follow_record, read_target_partitions, read_target_tasks, tasks_of
from ottla.spark.jobs.folds.state import NOBODY, NOTHING, State, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.spark.jobs.folds.windows import Limits
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.record_json import json_reader
from ottla.wire.types.group_streams import StreamsGroupTopologyValue

__all__ = ["EVERY_MS", "group_fact", "group_facts"]

EVERY_MS: Final = 1_000
"""Changes within a second are one fact, except that each group epoch has its own."""
_EPOCHS: Final = frozenset(("GroupMetadata", "ConsumerGroupMetadata", "ShareGroupMetadata", "StreamsGroupMetadata"))
_STATES: Final = {0: "stable", 1: "unrevoked", 2: "unreleased"}

NameOf = Callable[[str], str]
"""Topic id -> name."""


_read_topology: Final = json_reader(StreamsGroupTopologyValue, only="subtopologies")


def group_facts(
    group: str, rows: Iterable[RecordRow], params: Params | None = None, every_ms: int = EVERY_MS
) -> Iterator[tuple[int, Group | Gone]]:
    """The facts about a group at each change, from its records in order."""
    params = params or Params()
    names = params.topic_names
    following = GroupTracker(State(), Limits.of(params))
    told_ms, is_told = NOBODY, True
    for ts, moment in groupby(rows, key=lambda row: row.timestamp):
        state, records = following.state, list(moment)
        if not is_told and any(each.type in _EPOCHS for each in records):
            yield state.ts, group_fact(group, state, names.get)
        was_there = bool(state.type)
        epoch = state.epoch
        _take(following, ts, records)
        state = following.state
        is_told = not state.type or state.epoch != epoch or ts - told_ms >= every_ms
        if state.type and is_told:
            yield ts, group_fact(group, state, names.get)
        elif was_there and not state.type:
            yield ts, Gone(what="group", name=group)
        told_ms = ts if is_told else told_ms
    if not is_told:
        yield following.state.ts, group_fact(group, following.state, names.get)


def _take(following: GroupTracker, ts: int, records: list[RecordRow]) -> None:
    for each in records:
        if each.partition == following.state.partition and each.offset <= following.state.offset:
            continue
        following.at(ts, each.offset)
        following.state.partition = each.partition
        follow_record(following, each.type, each.key, each.value)
    following.settle()
    following.out.take()


def group_fact(group: str, state: State, name_of: Callable[[str, str], str]) -> Group:
    """The fact about a group from its records. `name_of` returns the name of a topic id, or its second argument."""

    def named(topic: str) -> str:
        return name_of(topic, topic)

    return Group(
        group=group,
        type=state.type,
        state=state.state,
        protocol=state.protocol,
        group_epoch=max(0, state.epoch),
        assignment_epoch=max(0, state.assignment_epoch),
        members=tuple(_member(state, each, named) for each in state.members.values()),
        topology_epoch=state.topology_epoch,
        subtopologies=_subtopologies(state.topology) if state.topology else None,
        failed_topology_epoch=state.failed_topology_epoch,
        metadata_hash=state.fresh_hash,
    )


def _member(state: State, member: TrackedMember, named: NameOf) -> GroupMember:
    is_streams = state.type == "streams"
    return GroupMember(
        member=member.id,
        epoch=member.epoch,
        instance=member.instance,
        rack=member.rack,
        client=member.client,
        host=member.host,
        topology_epoch=member.topology_epoch,
        process=member.process,
        state=None if state.type == "classic" else _STATES.get(member.state, "unknown"),
        subscribed=tuple(member.subscribed.split(",")) if member.subscribed else None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        assigned=() if is_streams else _partitions(member.active | member.pending, named),
        target=() if is_streams else _target(state, member, named),
        tasks=_tasks(member) if is_streams else None,
        target_tasks=_target_tasks(member) if is_streams else None,
    )


def _partitions(held: frozenset[str], named: NameOf) -> tuple[TopicPartitions, ...]:
    found: dict[str, list[int]] = {}
    for each in held:
        topic, _, partition = each.rpartition("-")
        found.setdefault(topic, []).append(int(partition))
    return tuple(
        TopicPartitions(topic=named(topic), partitions=tuple(sorted(found[topic])), topic_id=topic)
        for topic in sorted(found)
    )


def _target(state: State, member: TrackedMember, named: NameOf) -> tuple[TopicPartitions, ...]:
    if state.type == "classic":
        return _partitions(member.active, named)
    found = read_target_partitions(member.target or "{}").topic_partitions
    return tuple(
        TopicPartitions(topic=named(each.topic_id), partitions=tuple(each.partitions), topic_id=each.topic_id)
        for each in found
    )


def _tasks(member: TrackedMember) -> Tasks:
    return Tasks(
        active=_sorted(member.active | member.pending), standby=_sorted(member.standby), warmup=_sorted(member.warmup)
    )


def _target_tasks(member: TrackedMember) -> Tasks:
    found = read_target_tasks(member.target or "{}")
    active, standby, warmup = map(tasks_of, (found.active_tasks, found.standby_tasks, found.warmup_tasks))
    return Tasks(active=_sorted(active), standby=_sorted(standby), warmup=_sorted(warmup))


def _sorted(tasks: frozenset[str] = NOTHING) -> tuple[str, ...]:
    return tuple(sorted(tasks))


def _subtopologies(topology: str) -> tuple[Subtopology, ...]:
    return tuple(
        Subtopology(
            id=each.subtopology_id,
            source=tuple(each.source_topics),
            repartition_source=tuple(topic.name for topic in each.repartition_source_topics),
            changelog=tuple(topic.name for topic in each.state_changelog_topics),
        )
        for each in _read_topology(topology).subtopologies
    )
