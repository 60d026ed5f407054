"""Replay: the records of share groups, taken over into the table of groups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import msgspec

from ottla.groups.epochs import EpochReplay
from ottla.groups.table import GroupTable
from ottla.share.group.group import ShareGroup
from ottla.share.group.members import LEFT_EPOCH, NO_PARTITIONS, Member
from ottla.share.group.records import partitions_of, state_topics_of, with_current, with_metadata
from ottla.share.group.state_topics import NO_STATE
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
        super().__init__(table, ShareGroup, lambda value: partitions_of(value.topic_partitions))
        self.by_key: Mapping[type, Callable[[KeyedRecord, int, int, int], None]] = {
            ShareGroupMemberMetadataKey: self._member,
            ShareGroupMetadataKey: self._epoch,
            ShareGroupTargetAssignmentMetadataKey: self._target_epoch,
            ShareGroupTargetAssignmentMemberKey: self._target,
            ShareGroupCurrentMemberAssignmentKey: self._current,
            ShareGroupStatePartitionMetadataKey: self._state_topics,
        }

    def _member(self, record: KeyedRecord, *_: int) -> None:
        group = self._group(record)
        value = record.value
        if group is None:
            return
        if value is None:
            group.remove_member(record.key.member_id)
        else:
            group.change_member(record.key.member_id, lambda member: with_metadata(member, value))

    def _epoch(self, record: KeyedRecord, *_: int) -> None:
        group = self._group(record)
        if group is not None and record.value is None and (group.members or group.targets):
            log.warning("share group %s is removed while it has members", group.group_id)
        super()._epoch(record)

    def _current(self, record: KeyedRecord, *_: int) -> None:
        group = self._group(record)
        member_id, value = record.key.member_id, record.value
        if group is None:
            return
        if value is not None:
            group.change_member(member_id, lambda member: with_current(member, value))
        elif member_id in group.members:
            group.change_member(member_id, _released)

    def _state_topics(self, record: KeyedRecord, *_: int) -> None:
        group, value = self._group(record), record.value
        if group is not None:
            group.set_state_topics(NO_STATE if value is None else state_topics_of(value))


def _released(member: Member) -> Member:
    """What a member has is taken from it: the first step of its removal."""
    return msgspec.structs.replace(
        member, member_epoch=LEFT_EPOCH, previous_member_epoch=LEFT_EPOCH, assigned=NO_PARTITIONS
    )
