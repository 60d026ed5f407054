"""A share group as its records tell it. Only replay changes it, but for the soft fields, which are marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.core.coordinator.contract import Context, Topics
from ottla.core.groups.modern.group import ModernGroup, Readers, target_of
from ottla.core.groups.subscriptions import Subscriptions
from ottla.core.groups.table import Claim, CommitCheck, ExpiryRule, Group, GroupKind, Preparation, not_of_kind
from ottla.core.share.group.effects import DeleteState
from ottla.core.share.group.members import NO_PARTITIONS, Partitions, ShareGroupMember
from ottla.core.share.group.records import (
    group_tombstones,
    state_record,
    state_topics_of,
    with_current,
    with_metadata,
)
from ottla.core.share.group.settings import ShareGroupSettings, read_settings
from ottla.core.share.group.state_topics import NO_STATE, StateTopics
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject

__all__ = ["ShareGroup", "share_group"]


READERS: Final[Readers[ShareGroupMember, ShareGroupSettings, Partitions]] = Readers(
    settings=read_settings,
    new_member=lambda member_id: ShareGroupMember(member_id=member_id),
    with_metadata=with_metadata,
    with_current=with_current,
    target=lambda value: target_of(value.topic_partitions),
    no_target=NO_PARTITIONS,
)


class ShareGroup(ModernGroup[ShareGroupMember, ShareGroupSettings, Partitions]):
    """Soft fields: `refresh_due`, `refreshed_epoch`, `steady`, `session_at_ms`, `is_cleared`, and all that is derived
    from others."""

    kind = GroupKind.SHARE
    protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, READERS)
        self.state_topics: StateTopics = NO_STATE

        self.subscriptions = Subscriptions(_union)
        self._assignable: Mapping[bytes, frozenset[int]] | None = None
        self._assignable_version = -1
        """Of the topics, when it was found out."""
        self._unassigned: frozenset[str] | None = None
        self._target_counts: dict[bytes, dict[int, int]] = {}
        """Topic id -> partition -> how many members' targets it is in."""

        self.is_cleared = False
        """Share coordinators have forgotten all that stands in `state_topics`."""

    # --- what every kind of group can be asked ------------------------------------------------------------------------

    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def check_commit(self, claim: Claim, context: Context) -> CommitCheck | None:
        raise self._no_offsets()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whoever asks is told that there are no offsets."""

    def check_offset_delete(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> Reject:
        return Reject(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is a share group: it commits no offsets.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def expiry(self, context: Context) -> ExpiryRule | None:
        """A share group stays until somebody deletes it."""
        return None

    def before_removal(self, family: str, context: Context) -> Preparation | None:
        """The state of its share partitions goes first. Topics that do not exist any more have none."""
        topics = context.world.topics
        partitions = [
            (topic_id, partition)
            for topic_id, numbers in self._state_partitions(topics).items()
            for partition in sorted(numbers)
        ]
        if not partitions or self.is_cleared:
            return None
        topic_ids = {topic_id for topic_id, _ in partitions}
        deleting = self.state_topics.delete(topic_ids, with_initializing=True)
        record = state_record(self.group_id, deleting)
        return Preparation((record,), DeleteState(family, 0, self.group_id, tuple(partitions)))

    def _state_partitions(self, topics: Topics) -> dict[bytes, set[int]]:
        """All that share coordinators may hold. Of a topic whose deletion was not ended, that is any partition."""
        found: dict[bytes, set[int]] = {}
        for known in (self.state_topics.initialized, self.state_topics.initializing):
            for topic_id, topic in known.items():
                found.setdefault(topic_id, set()).update(topic.partitions)
        existing = {topic_id: topics.by_id(topic_id) for topic_id in (*found, *self.state_topics.deleting)}
        for topic_id in self.state_topics.deleting:
            if (topic_or_none := existing[topic_id]) is not None:
                found.setdefault(topic_id, set()).update(range(topic_or_none.partition_count))
        return {topic_id: numbers for topic_id, numbers in sorted(found.items()) if existing[topic_id] is not None}

    def prepared(self, effect: Any, context: Context) -> Sequence[KeyedRecord]:  # noqa: ANN401
        self.is_cleared = True
        return ()

    def not_prepared(self, family: str, effect: Any, context: Context) -> None:  # noqa: ANN401
        """Its topics stay under `deleting`: whoever deletes the group again tries again."""

    def tombstones(self) -> Sequence[KeyedRecord]:
        return group_tombstones(self.group_id, sorted(self.members))

    def hard_state(self) -> Any:  # noqa: ANN401
        return {
            **self.epoch_state(),
            "state_topics": self.state_topics._asdict(),
        }

    # --- questions of this family -------------------------------------------------------------------------------------

    def subscribed_topics(self) -> frozenset[str]:
        return self.subscriptions.topics()

    def subscribed_topics_with(
        self, gone: ShareGroupMember | None, come: ShareGroupMember | None = None
    ) -> frozenset[str]:
        """The topics subscribed to once one member is gone and one has come."""
        return self.subscriptions.topics_with(
            () if gone is None else (gone.names,), None if come is None else come.names
        )

    def assignable(self, topics: Topics) -> Mapping[bytes, frozenset[int]]:
        """The share partitions that have state and whose topics exist."""
        if self._assignable is None or self._assignable_version != topics.version:
            found = {}
            for topic_id, known in self.state_topics.initialized.items():
                topic = topics.by_id(topic_id)
                if topic is not None:
                    found[topic_id] = frozenset(each for each in known.partitions if each < topic.partition_count)
            self._assignable, self._assignable_version, self._unassigned = found, topics.version, None
        return self._assignable

    def unassigned(self, topics: Topics) -> frozenset[str]:
        """The names of topics with share partitions that are assignable and nobody's."""
        assignable = self.assignable(topics)
        if self._unassigned is None:
            self._unassigned = frozenset(
                self.state_topics.initialized[topic_id].name
                for topic_id, partitions in assignable.items()
                if partitions != self._target_counts.get(topic_id, {}).keys()
            )
        return self._unassigned

    # --- replay -------------------------------------------------------------------------------------------------------

    def replay_target(self, key: Any, value: Any) -> None:  # noqa: ANN401
        self._count_targets(self.targets.get(key.member_id, NO_PARTITIONS), -1)
        super().replay_target(key, value)
        self._count_targets(self.targets.get(key.member_id, NO_PARTITIONS), 1)
        self._unassigned = None

    def _count_targets(self, target: Partitions, change: int) -> None:
        """A target comes or goes."""
        for topic_id, partitions in target.items():
            counts = self._target_counts.setdefault(topic_id, {})
            for partition in partitions:
                left = counts.get(partition, 0) + change
                if left:
                    counts[partition] = left
                else:
                    del counts[partition]
            if not counts:
                del self._target_counts[topic_id]

    def replay_state_topics(self, key: Any, value: Any) -> None:  # noqa: ANN401
        self.state_topics = NO_STATE if value is None else state_topics_of(value)
        self._assignable = None
        self.is_cleared = False

    def _member_changed(self, old: ShareGroupMember | None, new: ShareGroupMember | None) -> None:
        before, after = (None if member is None else member.names for member in (old, new))
        if before != after:
            self.subscriptions.move(before, after)


def _union(subscriptions: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*subscriptions)


def share_group(group_id: str, group: Group | None) -> ShareGroup:
    """The group of a name, if it is a share group."""
    if not isinstance(group, ShareGroup):
        raise not_of_kind(group_id, group, GroupKind.SHARE)
    return group
