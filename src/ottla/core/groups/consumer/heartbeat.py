"""One step of one member: what a heartbeat, or a JoinGroup of a member of the classic protocol, leads to.

In order: the member is updated and written if it changed; a changed subscription or changed topics raise the group
epoch; a group epoch beyond the assignment epoch leads to a new target; the member is reconciled with its target. Each
part looks at what those before it decided, for nothing of it is replayed yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from ottla.core.coordinator.contract import Context, Timer
from ottla.core.groups.assignors import Target
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.members import ConsumerGroupMember, MemberState
from ottla.core.groups.consumer.patterns import Resolution, check_regex, refresh_at_ms
from ottla.core.groups.consumer.reconciliation import OwnedTopic, Surroundings, reconcile
from ottla.core.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    old_metadata_tombstone,
    regex_tombstone,
    target_record,
)
from ottla.core.groups.consumer.targets import compute_target, is_computed_outside
from ottla.core.groups.modern.group import FIRST_EPOCH
from ottla.core.groups.modern.step import HeartbeatStep
from ottla.core.groups.modern.target_jobs import TargetJobs
from ottla.core.groups.topic_sets import TopicSets

__all__ = ["FAMILY", "ConsumerStep", "Memory", "timer_key"]

FAMILY: Final = "consumer"


def timer_key(what: str, group_id: str, member_id: str = "") -> tuple[str, ...]:
    """session, rebalance, join, sync: of a member; regex, target: of a group."""
    return (FAMILY, what, group_id, member_id)


class Memory:
    """Soft state of all consumer groups of a shard."""

    def __init__(self, topic_sets: TopicSets, target_jobs: TargetJobs[ConsumerGroup]) -> None:
        self.topic_sets = topic_sets
        self.target_jobs = target_jobs
        self.resolutions: dict[str, Resolution] = {}
        """Patterns that are being resolved, by group id."""
        self.created_version = -1
        """The version of the topics when one was last created."""


class ConsumerStep(HeartbeatStep[ConsumerGroup]):
    """Soft state changes at once: a resolution that begins, and what the group remembers of its last refresh."""

    def __init__(self, memory: Memory, group: ConsumerGroup, member: ConsumerGroupMember, context: Context) -> None:
        super().__init__(group, context)
        self.member = member
        """Before the step."""
        self.updated = member
        """After what has been decided so far."""
        self.replaced_id: str | None = None
        """The static member whose place this one takes."""
        self._memory = memory

    # --- the member ---------------------------------------------------------------------------------------------------

    def replace(self, existing: ConsumerGroupMember) -> None:
        """The member takes the place of a static one, with all that it owns, under its own id."""
        group_id = self.group.group_id
        self.member = self.updated = msgspec.structs.replace(
            existing, member_id=self.member.member_id, member_epoch=0, previous_member_epoch=0
        )
        self.replaced_id = None if existing.member_id == self.member.member_id else existing.member_id
        self.records += member_tombstones(group_id, existing.member_id)
        self.records.append(member_record(group_id, self.member))
        self.records.append(target_record(group_id, self.member.member_id, self.group.target(existing.member_id)))
        self.records.append(current_record(group_id, self.member))

    def update(self, updated: ConsumerGroupMember) -> None:
        self.updated = updated
        if updated != self.member:
            self.records.append(member_record(self.group.group_id, updated))

    @property
    def has_names_changed(self) -> bool:
        return self.updated.subscription.names != self.member.subscription.names

    @property
    def has_regex_changed(self) -> bool:
        return self.updated.subscription.regex != self.member.subscription.regex

    @property
    def is_regex_known(self) -> bool:
        """Whether it is known what the pattern stands for; if not, its resolution will raise the group epoch."""
        regex = self.updated.subscription.regex
        return not regex or regex in self.group.resolved

    # --- patterns -----------------------------------------------------------------------------------------------------

    def update_regex(self) -> None:
        """Forget a pattern that nobody uses any more, refuse one that cannot be, and resolve them when it is time."""
        old, new = self.member.subscription.regex, self.updated.subscription.regex
        if old != new:
            if old and self.group.regex_count(old) == 1:
                self.records.append(regex_tombstone(self.group.group_id, old))
            if new and not self.group.regex_count(new):
                check_regex(new)
        if new or self.group.resolved or any(each.regex for each in self.group.subscriptions.counts):
            self._resolve_if_due(old, new)

    def _resolve_if_due(self, old: str, new: str) -> None:
        group_id, context = self.group.group_id, self.context
        if group_id in self._memory.resolutions:
            # Once more: the timer went with the records, if those could not be written.
            self.timers.append(Timer(timer_key("regex", group_id), context.now_ms))
            return
        wanted = self.group.regexes()
        if old != new and old and self.group.regex_count(old) == 1:
            wanted.discard(old)
        if new:
            wanted.add(new)
        interval_ms = self.group.settings(context.world).regex_refresh_interval_ms
        if context.wall_ms >= refresh_at_ms(
            self.group, wanted, self._memory.created_version, interval_ms, context.wall_ms
        ):
            self._memory.resolutions[group_id] = Resolution(
                wanted,
                self.topics.names(),
                self.topics.version,
                context.wall_ms,
                context.authorize,
                look_at=partial(self._memory.topic_sets.topic_hash, topics=self.topics),
            )
            self.timers.append(Timer(timer_key("regex", group_id), context.now_ms))

    # --- the group ----------------------------------------------------------------------------------------------------

    def raise_epoch(self, must: bool) -> None:
        """Raise the group epoch if it must be, or if the topics that are subscribed to have changed.

        Who replaces a static member needs no new target, with one exception: a target on its way that will be finished
        although the group has changed knows the old member alone.
        """
        group, job = self.group, self.group.target_job
        must = must or (self.replaced_id is not None and job is not None and job.is_last_chance)
        if not must and not self.is_refresh_due():
            return
        gone = [group.members[self.replaced_id]] if self.replaced_id is not None else []
        if self.member.member_id in group.members:
            gone.append(group.members[self.member.member_id])
        topics = group.subscribed_topics_with(gone, self.updated)
        metadata_hash = self.refresh(topics, self._memory.topic_sets, must=must)
        if metadata_hash is not None:
            self.records.append(epoch_record(group.group_id, self.group_epoch, metadata_hash))
        if group.has_old_metadata:
            self.records.append(old_metadata_tombstone(group.group_id))

    # --- the member's partitions --------------------------------------------------------------------------------------

    def advance(self, owned: Sequence[OwnedTopic] | None) -> None:
        """Compute a new target if one is due, and bring the member nearer to it."""
        target_epoch, target = self._find_target()
        has_changed = self.has_names_changed or self.has_regex_changed
        if not has_changed and self.updated.is_reconciled_to(target_epoch):
            return
        self._reconcile(
            Surroundings(
                target_epoch=target_epoch,
                target=target,
                owned=owned,
                has_subscription_changed=has_changed,
                is_subscribed=self._is_subscribed,
                is_free=self._is_free,
            )
        )

    def _find_target(self) -> tuple[int, Target]:
        """Its epoch, and what it gives to the member."""
        group, topic_sets = self.group, self._memory.topic_sets
        is_due = self.group_epoch > group.assignment_epoch and not self.assignment_left_ms()
        if is_due and is_computed_outside(group, self.updated, self.replaced_id, topic_sets, self.context):
            self.timers += self._memory.target_jobs.timers(group, self.context)
        elif is_due:
            new = compute_target(group, self.group_epoch, self.updated, self.replaced_id, topic_sets, self.context)
            self.records += new.records
            return self.group_epoch, new.targets[self.updated.member_id]
        return max(group.assignment_epoch, FIRST_EPOCH), group.target(self.replaced_id or self.updated.member_id)

    def _reconcile(self, around: Surroundings) -> None:
        reconciled = reconcile(self.updated, around)
        if reconciled == self.updated:
            return
        self.updated = reconciled
        self.records.append(current_record(self.group.group_id, reconciled))
        if not reconciled.uses_classic_protocol:
            is_due = reconciled.state is MemberState.UNREVOKED_PARTITIONS
            key = timer_key("rebalance", self.group.group_id, reconciled.member_id)
            self.watch_revocation(key, reconciled.rebalance_timeout_ms if is_due else None)

    def _is_subscribed(self, topic_id: bytes) -> bool:
        topic = self.topics.by_id(topic_id)
        if topic is None:
            return False
        names, regex = self.updated.subscription
        return topic.name in names or (regex in self.group.resolved and topic.name in self.group.resolved[regex].topics)

    def _is_free(self, topic_id: bytes, partition: int) -> bool:
        return self.group.owner(topic_id, partition) in (None, self.updated.member_id, self.replaced_id)
