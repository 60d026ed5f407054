"""What a heartbeat leads to.

In order: the member is updated and written if it changed; a changed subscription, changed topics, or share partitions
that have state and are nobody's raise the group epoch; a group epoch beyond the assignment epoch leads to a new target;
the member gets what its target says, at once, for partitions are shared; and share partitions that have no state yet
are to get it. Each part looks at what those before it decided, for nothing of it is replayed yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ottla.core.coordinator.contract import Context, Topic
from ottla.core.groups.assignors import MemberSpec
from ottla.core.groups.assignors.computation import Choice, TopicInput
from ottla.core.groups.assignors.simple import assign
from ottla.core.groups.modern.step import HeartbeatStep
from ottla.core.groups.modern.target_jobs import TargetJobs, TargetSource
from ottla.core.groups.modern.target_parts import GatheredMember, gather
from ottla.core.groups.topic_sets import TopicSets
from ottla.core.share.group.effects import NewState
from ottla.core.share.group.group import ShareGroup
from ottla.core.share.group.members import STABLE, Partitions, ShareGroupMember
from ottla.core.share.group.records import (
    current_record,
    epoch_record,
    member_record,
    state_record,
    target_epoch_record,
    target_record,
)
from ottla.core.share.group.state_topics import StateTopic

__all__ = ["TARGET_SOURCE", "ShareStep"]

RESET_OFFSET: Final = -1
"""The start offset of a share partition where share.auto.offset.reset decides."""
FIRST_OFFSET: Final = 0
"""That of a partition that was added to a topic the group reads already: nothing of it may be skipped."""


class ShareStep(HeartbeatStep[ShareGroup]):
    """Soft state changes at once: what the group remembers of its last refresh."""

    def __init__(
        self, group: ShareGroup, topic_sets: TopicSets, target_jobs: TargetJobs[ShareGroup], context: Context
    ) -> None:
        super().__init__(group, context)
        self._topic_sets = topic_sets
        self._target_jobs = target_jobs
        self._names = group.subscribed_topics()
        """Of the topics that members subscribe to, with the member as it will be."""
        self._has_bumped = False
        self._updated: ShareGroupMember | None = None
        self._target_epoch = group.assignment_epoch
        self._targets: Mapping[str, Partitions] | None = None
        """New ones; None if those of the group stay."""

    # --- the member ---------------------------------------------------------------------------------------------------

    def update(self, member: ShareGroupMember, updated: ShareGroupMember) -> None:
        """The member as it was, and as it will be."""
        self._updated = updated
        if updated != member:
            self.records.append(member_record(self.group.group_id, updated))
        if updated.names != member.names:
            self._has_bumped = True
            self._names = self.group.subscribed_topics_with(self.group.members.get(updated.member_id), updated)

    # --- the group ----------------------------------------------------------------------------------------------------

    def raise_epoch(self) -> None:
        group = self.group
        must = self._has_bumped or self._is_assignment_pending()
        if not must and not self.is_refresh_due():
            return
        metadata_hash = self.refresh(self._names, self._topic_sets, must=must)
        if metadata_hash is not None:
            self._has_bumped = True
            self.records.append(epoch_record(group.group_id, self.group_epoch, metadata_hash))

    def _is_assignment_pending(self) -> bool:
        """Whether share partitions have got state, or have lost it, since the last target was computed."""
        group = self.group
        if group.is_empty or group.assignment_epoch < group.group_epoch:
            return False
        return not group.unassigned(self.topics).isdisjoint(group.subscribed_topics())

    # --- the target ---------------------------------------------------------------------------------------------------

    def target_left_ms(self) -> int | None:
        """How long until the target may be computed anew; None if it need not be."""
        return self.assignment_left_ms() if self.group_epoch > self.group.assignment_epoch else None

    def find_target(self, *, at_once: bool = False) -> None:
        """Compute the target anew if that is due; outside the event loop if it is large."""
        left_ms = self.target_left_ms()
        if left_ms is None or (left_ms and not at_once):
            return
        group = self.group
        if group.target_job is not None or self._is_large():
            self.timers += self._target_jobs.timers(group, self.context)
            return
        members = dict(group.members)
        if self._updated is not None:
            members[self._updated.member_id] = self._updated
        self._targets = assign(self._specs(members), group.assignable(self.topics))
        self._target_epoch = self.group_epoch
        self.records += [
            target_record(group.group_id, member_id, target)
            for member_id, target in self._targets.items()
            if target != group.targets.get(member_id)
        ]
        self.records.append(target_epoch_record(group.group_id, self.group_epoch, self.context.wall_ms))

    def _is_large(self) -> bool:
        """Counts no further than needed. If subscriptions differ, each topic is shared out by itself."""
        group, counts = self.group, self.group.subscriptions.counts
        left = self.context.world.inline_target_max - len(group.members) - len(self._names)
        if len(counts) > 1:
            for names, member_count in counts.items():
                left -= len(names) * member_count
                if left < 0:
                    return True
        return left < 0 or sum(map(len, group.assignable(self.topics).values())) > left

    def _specs(self, members: Mapping[str, ShareGroupMember]) -> list[MemberSpec]:
        """Members in the order of their ids."""
        topic_ids: dict[frozenset[str], frozenset[bytes]] = {}
        specs = []
        for member_id in sorted(members):
            names = members[member_id].names
            if names not in topic_ids:
                topic_ids[names] = self._topic_sets.existing(names, self.topics).topic_ids
            specs.append(MemberSpec(member_id, None, topic_ids[names], self.group.target(member_id)))
        return specs

    def reconcile(self, member: ShareGroupMember) -> ShareGroupMember:
        """The member with what its target says, as far as it subscribes to it."""
        if not self._has_bumped and member.member_epoch == self._target_epoch and member.state == STABLE:
            return member
        reconciled = self._advanced(member)
        if reconciled != member:
            self.records.append(current_record(self.group.group_id, reconciled))
        return reconciled

    def _advanced(self, member: ShareGroupMember) -> ShareGroupMember:
        subscribed = self._topic_sets.existing(member.names, self.topics).topic_ids
        member_id = member.member_id
        target = self.group.target(member_id) if self._targets is None else self._targets.get(member_id, {})
        assigned = {topic_id: partitions for topic_id, partitions in target.items() if topic_id in subscribed}
        if member.member_epoch == self._target_epoch:
            return msgspec.structs.replace(member, assigned=assigned)
        return msgspec.structs.replace(
            member,
            state=STABLE,
            assigned=assigned,
            member_epoch=self._target_epoch,
            previous_member_epoch=member.member_epoch,
        )

    # --- state --------------------------------------------------------------------------------------------------------

    def initialize(self, fresh_ids: frozenset[bytes]) -> tuple[NewState, ...]:
        """The share partitions that are to get state now. Those of `fresh_ids` that were asked for already are left in
        peace."""
        wanted = self._without_state(fresh_ids)
        if not wanted:
            return ()
        new = tuple(
            NewState(topic_id, partition, self._start_offset(topic_id, partition))
            for topic_id in sorted(wanted)
            for partition in sorted(wanted[topic_id].partitions)
        )
        self.records.append(state_record(self.group.group_id, self.group.state_topics.initialize(wanted)))
        return new

    def _without_state(self, fresh_ids: frozenset[bytes]) -> dict[bytes, StateTopic]:
        initializing, initialized, _ = self.group.state_topics
        wanted = {}
        for topic_id, count in self._topic_sets.existing(self._names, self.topics).partition_counts.items():
            known = initialized[topic_id].partitions if topic_id in initialized else frozenset()
            if topic_id in fresh_ids and topic_id in initializing:
                known |= initializing[topic_id].partitions
            topic = self.topics.by_id(topic_id) if len(known) < count else None
            if topic is not None:
                wanted[topic_id] = StateTopic(topic.name, frozenset(range(count)) - known)
        return wanted

    def unfinished(self) -> tuple[NewState, ...]:
        """The share partitions that were to get state and may have none yet."""
        initializing, initialized, _ = self.group.state_topics
        return tuple(
            NewState(topic_id, partition, self._start_offset(topic_id, partition))
            for topic_id in sorted(initializing)
            if self.topics.by_id(topic_id) is not None
            for partition in sorted(initializing[topic_id].partitions)
            if topic_id not in initialized or partition not in initialized[topic_id].partitions
        )

    def _start_offset(self, topic_id: bytes, partition: int) -> int:
        """A partition that comes later than others of its topic begins with its first record, as since 4.4: whoever
        reads the topic misses nothing of it, whatever share.auto.offset.reset says."""
        state_topics = self.group.state_topics
        if topic_id in state_topics.initialized:
            return FIRST_OFFSET
        initializing = state_topics.initializing.get(topic_id)
        is_later = initializing is not None and partition not in initializing.partitions
        return FIRST_OFFSET if is_later else RESET_OFFSET


# --- targets that are computed outside the event loop -----------------------------------------------------------------


def _parts(group: ShareGroup, choice: Choice, context: Context) -> Iterator[bytes]:
    topics = context.world.topics
    assignable = group.assignable(topics)

    def describe(topic: Topic) -> TopicInput | None:
        partitions = assignable.get(topic.topic_id)
        return None if partitions is None else (topic.topic_id, tuple(sorted(partitions)), "", ())

    return gather(group.subscribed_topics(), _gathered(group), topics, describe)


def _gathered(group: ShareGroup) -> Iterator[GatheredMember]:
    """Members in the order of their ids, as far as they do not leave meanwhile."""
    for member_id in sorted(group.members):
        member = group.members.get(member_id)
        if member is not None:
            yield GatheredMember(member_id, None, None, member.names, group.targets.get(member_id))


TARGET_SOURCE: Final[TargetSource[ShareGroup]] = TargetSource(
    lambda group, context: Choice("simple"), _parts, target_record, target_epoch_record
)
