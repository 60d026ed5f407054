"""Facts about a group from its records, so that the health rules can check a log without samples.

Records have more than a description of the group: partitions that a member has yet to revoke count as held, and the
hash of its topics changes only when a topic does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final

import msgspec

from ottla.health.facts import Gone, Group, GroupMember, Subtopology, Tasks, TopicPartitions
from ottla.spark.jobs.folds.records import Record, read_target, tasks_of
from ottla.spark.jobs.folds.state import NOBODY, Held, State, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.spark.jobs.params import Params
from ottla.wire import WireError, uuid_text
from ottla.wire.keyed import versioned_decoder

__all__ = ["EVERY_MS", "FactState", "GroupFacts"]

EVERY_MS: Final = 1_000
"""Changes within a second are one fact, except that each group epoch has its own."""
_EPOCHS: Final = frozenset(("GroupMetadata", "ConsumerGroupMetadata", "ShareGroupMetadata", "StreamsGroupMetadata"))
_STATES: Final = {0: "stable", 1: "unrevoked", 2: "unreleased"}

_Topics = Callable[..., tuple[TopicPartitions, ...]]
"""`_topics` of a cluster whose topics have these names."""

_read_topology: Final = versioned_decoder("StreamsGroupTopologyValue")


class FactState(msgspec.Struct, array_like=True):
    """What is known between two parts of a history."""

    noted_ms: int = NOBODY
    is_noted: bool = True
    """Whether there is a fact of the newest state."""
    was_there: bool = False
    epoch: int = NOBODY
    """Whether there was a group before the last moment, and its epoch."""
    is_open: bool = False
    """Whether more records of the last moment may follow."""
    before: tuple[int, Group] | None = None
    """The fact of the state before a moment that is open, in case that the rest of the moment has a new epoch."""


class GroupFacts:
    """Notes the facts about a group, from one moment of its history to the next."""

    def __init__(self, group: str, params: Params, kept: FactState | None = None) -> None:
        self.kept = kept or FactState()
        self._group = group
        self._topics = lru_cache(maxsize=1_000)(partial(_topics, params.topic_names))

    def before(self, tracker: GroupTracker, ts: int, records: Iterable[Record], *, is_over: bool) -> None:
        """These records are about to be taken. The last state before a new epoch is noted, and that before a pause:
        what follows later does not change it."""
        kept = self.kept
        if ts == tracker.state.ts:  # the first records of this moment have come before
            if kept.before is not None and _have_epoch(records):
                tracker.out.facts.append(kept.before)
                kept.before = None
            return
        if kept.is_open:
            tracker.settle()
            self.after(tracker)
        state = tracker.state
        kept.was_there, kept.epoch = bool(state.type), state.epoch
        if kept.is_noted:
            return
        if ts - kept.noted_ms >= EVERY_MS or _have_epoch(records):
            tracker.out.facts.append(self._fact(tracker))
        elif not is_over:
            kept.before = self._fact(tracker)

    def after(self, tracker: GroupTracker) -> None:
        """All records of this moment are taken."""
        kept, state = self.kept, tracker.state
        kept.is_open, kept.before = False, None
        kept.is_noted = not state.type or state.epoch != kept.epoch or state.ts - kept.noted_ms >= EVERY_MS
        if not kept.is_noted:
            return
        kept.noted_ms = state.ts
        if state.type:
            tracker.out.facts.append(self._fact(tracker))
        elif kept.was_there:
            tracker.out.facts.append((state.ts, Gone(what="group", name=self._group)))

    def end(self, tracker: GroupTracker) -> None:
        """No more records follow."""
        if self.kept.is_open:
            self.after(tracker)
        if not self.kept.is_noted:
            tracker.out.facts.append(self._fact(tracker))
        self.kept.is_noted = True

    def _fact(self, tracker: GroupTracker) -> tuple[int, Group]:
        state = tracker.state
        return state.ts, Group(
            group=self._group,
            type=state.type,
            state=state.state,
            protocol=state.protocol,
            group_epoch=max(0, state.epoch),
            assignment_epoch=max(0, state.assignment_epoch),
            members=self._members_of(tracker),
            topology_epoch=state.topology_epoch,
            subtopologies=_subtopologies(state.topology) if state.topology else None,
            failed_topology_epoch=state.failed_topology_epoch,
            metadata_hash=state.fresh_hash,
        )

    def _members_of(self, tracker: GroupTracker) -> tuple[GroupMember, ...]:
        """The members of the group. Few of them differ from those of the last fact, and only these are made."""
        state, told = tracker.state, tracker.told
        for member in state.members.values():
            if member.id not in told:
                told[member.id] = _member(state, member, self._topics)
        return tuple([told[member_id] for member_id in state.members])


def _have_epoch(records: Iterable[Record]) -> bool:
    return not _EPOCHS.isdisjoint([record_type for _, _, _, record_type, _, _ in records])


def _member(state: State, member: TrackedMember, topics: _Topics) -> GroupMember:
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
        assigned=() if is_streams else topics(_held(member)),
        target=() if is_streams else _target(state, member, topics),
        tasks=_tasks(_held(member), member.standby, member.warmup) if is_streams else None,
        target_tasks=_target_tasks(member.target) if is_streams else None,
    )


def _held(member: TrackedMember) -> Held:
    return member.active | member.pending if member.pending else member.active


def _target(state: State, member: TrackedMember, topics: _Topics) -> tuple[TopicPartitions, ...]:
    return topics(member.active) if state.type == "classic" else topics(member.target, state.type)


# Most members have the same target, and hold the same, in one fact after the other.


def _topics(names: Mapping[str, str], held: Held | bytes, group_type: str = "") -> tuple[TopicPartitions, ...]:
    """What a member holds, or its target in a group of this type, with the names of topics whose ids have one."""
    found = _target_partitions(held, group_type) if isinstance(held, bytes) else _held_partitions(held)
    return tuple(
        [TopicPartitions(topic=names.get(topic, topic), partitions=numbers, topic_id=topic) for topic, numbers in found]
    )


@lru_cache(maxsize=10_000)
def _held_partitions(held: Held) -> Sequence[tuple[str, tuple[int, ...]]]:
    found: dict[str, list[int]] = {}
    for each in held:
        topic, _, partition = each.rpartition("-")
        found.setdefault(topic, []).append(int(partition))
    return [(topic, tuple(sorted(found[topic]))) for topic in sorted(found)]


@lru_cache(maxsize=10_000)
def _target_partitions(target: bytes, group_type: str) -> Sequence[tuple[str, tuple[int, ...]]]:
    try:
        found = read_target[group_type](target).topic_partitions
    except WireError:  # there is none, or it cannot be read
        return ()
    return [(uuid_text(each.topic_id), each.partitions) for each in found]


@lru_cache(maxsize=10_000)
def _target_tasks(target: bytes) -> Tasks:
    try:
        found = read_target["streams"](target)
    except WireError:
        return Tasks()
    return _tasks(*map(tasks_of, (found.active_tasks, found.standby_tasks, found.warmup_tasks)))


@lru_cache(maxsize=1_000)
def _tasks(active: Held, standby: Held, warmup: Held) -> Tasks:
    return Tasks(active=tuple(sorted(active)), standby=tuple(sorted(standby)), warmup=tuple(sorted(warmup)))


@lru_cache(maxsize=1_000)
def _subtopologies(topology: bytes) -> tuple[Subtopology, ...]:
    return tuple(
        Subtopology(
            id=each.subtopology_id,
            source=tuple(each.source_topics),
            repartition_source=tuple(topic.name for topic in each.repartition_source_topics),
            changelog=tuple(topic.name for topic in each.state_changelog_topics),
        )
        for each in _read_topology(topology).subtopologies
    )
