"""Replay: the records of share groups, taken over into the table of groups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ottla.core.groups.epochs import EpochReplay
from ottla.core.groups.table import GroupTable
from ottla.core.share.group.group import ShareGroup
from ottla.core.share.group.records import state_topics_of, with_current, with_metadata
from ottla.core.share.group.state_topics import NO_STATE
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_share import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)

__all__ = ["GroupReplay"]

log = logging.getLogger(__name__)


class GroupReplay(EpochReplay[ShareGroup]):
    def __init__(self, table: GroupTable) -> None:
        super().__init__(table, ShareGroup, with_metadata, with_current)
        self.by_key: Mapping[type, Callable[[KeyedRecord, int, int, int], None]] = {
            ShareGroupMemberMetadataKey: self._member,
            ShareGroupMetadataKey: self._epoch,
            ShareGroupTargetAssignmentMetadataKey: self._target_epoch,
            ShareGroupTargetAssignmentMemberKey: self._target,
            ShareGroupCurrentMemberAssignmentKey: self._current,
            ShareGroupStatePartitionMetadataKey: self._state_topics,
        }

    def _epoch(self, record: KeyedRecord, *_: int) -> None:
        group = self._group(record)
        if group is not None and record.value is None and (group.members or group.targets):
            log.warning("share group %s is removed while it has members", group.group_id)
        super()._epoch(record)

    def _state_topics(self, record: KeyedRecord, *_: int) -> None:
        group, value = self._group(record), record.value
        if group is not None:
            group.set_state_topics(NO_STATE if value is None else state_topics_of(value))
