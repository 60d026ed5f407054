"""Replay: the records of consumer groups, taken over into the table of groups.

A record of a group that is not there makes it, in place of one that only held offsets; one that removes something makes
none. A log that was compacted has any of a group's records first, so none of them relies on another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.records import resolved_regex_of, with_current, with_metadata
from ottla.core.groups.epochs import EpochReplay
from ottla.core.groups.table import GroupTable
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_consumer import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

__all__ = ["GroupReplay"]


class GroupReplay(EpochReplay[ConsumerGroup]):
    def __init__(self, table: GroupTable) -> None:
        super().__init__(table, ConsumerGroup, with_metadata, with_current)
        self.by_key: Mapping[type, Callable[[KeyedRecord, int, int, int], None]] = {
            ConsumerGroupMetadataKey: self._epoch,
            ConsumerGroupPartitionMetadataKey: self._old_metadata,
            ConsumerGroupMemberMetadataKey: self._member,
            ConsumerGroupTargetAssignmentMetadataKey: self._target_epoch,
            ConsumerGroupTargetAssignmentMemberKey: self._target,
            ConsumerGroupCurrentMemberAssignmentKey: self._current,
            ConsumerGroupRegularExpressionKey: self._regex,
        }

    def _old_metadata(self, record: KeyedRecord, *_: int) -> None:
        group = self._group(record)
        if group is not None:
            group.has_old_metadata = record.value is not None

    def _regex(self, record: KeyedRecord, *_: int) -> None:
        group = self._group(record)
        if group is not None:
            resolved = None if record.value is None else resolved_regex_of(record.value)
            group.set_resolved(record.key.regular_expression, resolved)
