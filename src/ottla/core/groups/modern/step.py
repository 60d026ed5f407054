"""One heartbeat under way, from the group as it is to the records that change it."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ottla.core.coordinator.contract import Context, Timer
from ottla.core.groups.modern.group import ModernGroup
from ottla.core.groups.topic_sets import TopicSets
from ottla.wire.keyed import KeyedRecord

__all__ = ["HeartbeatStep"]

GroupType = TypeVar("GroupType", bound=ModernGroup[Any, Any, Any])


class HeartbeatStep(Generic[GroupType]):
    """`records` and `timers` gather what is decided; `group_epoch` is the group's once the records are replayed."""

    def __init__(self, group: GroupType, context: Context) -> None:
        self.group = group
        self.context = context
        self.topics = context.world.topics
        self.group_epoch: int = group.group_epoch
        self.records: list[KeyedRecord] = []
        self.timers: list[Timer] = []

    def assignment_left_ms(self) -> int:
        """How long the assignment interval still holds back a new target. A time that is yet to come was written before
        the clock was set back, and holds back nothing; nor does a target of which it is not known when it was made."""
        interval_ms: int = self.group.settings(self.context.world).assignment_interval_ms
        passed_ms = self.context.wall_ms - self.group.assigned_at_ms
        is_held_back = self.group.assigned_at_ms != 0 and 0 <= passed_ms < interval_ms
        return interval_ms - passed_ms if is_held_back else 0

    def is_refresh_due(self) -> bool:
        """Whether topics may have changed since the group's metadata hash was written."""
        return self.group.refresh_due or self.group.group_epoch < self.group.refreshed_epoch

    def refresh(self, names: frozenset[str], topic_sets: TopicSets, *, must: bool) -> int | None:
        """Raise the group epoch if it must be raised, or if the topics of these names are not those that the group's
        metadata hash tells of. Gives the hash to be written with the new epoch; None if the epoch stays."""
        metadata_hash = topic_sets.metadata_hash(names, self.topics)
        is_raised = must or metadata_hash != self.group.metadata_hash
        self.group_epoch += is_raised
        self.group.refresh_due = False
        self.group.refreshed_epoch = self.group_epoch
        return metadata_hash if is_raised else None

    def watch_revocation(self, key: tuple[str, ...], timeout_ms: int | None) -> None:
        """From now on the member must give up what was taken from it within this time; None: it need not any more."""
        self.timers.append(Timer(key, None if timeout_ms is None else self.context.now_ms + timeout_ms))
