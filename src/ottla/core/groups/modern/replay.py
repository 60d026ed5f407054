"""Replay: the records of one kind of modern group, taken over into the table of groups.

A record of a group that is not there makes it, in place of one of another kind; a tombstone makes none. A log that was
compacted has any of a group's records first, so none of them relies on another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from ottla.core.groups.modern.group import ModernGroup
from ottla.core.groups.table import Group, GroupTable
from ottla.wire.keyed import KeyedRecord

__all__ = ["Change", "ModernReplay"]

log = logging.getLogger(__name__)

GroupType = TypeVar("GroupType", bound=ModernGroup[Any, Any, Any])
Change = Callable[[GroupType, Any, Any], None]
"""A group, the key of a record, and its value, None for a tombstone."""


class ModernReplay(Generic[GroupType]):
    def __init__(
        self,
        table: GroupTable,
        group_type: type[GroupType],
        group_key: type,
        changes: Mapping[type, Change[GroupType]],
    ) -> None:
        """`changes`: what a record does to its group, by class of key. A tombstone of `group_key` removes the group."""
        self._table = table
        self._group_type = group_type
        self._group_key = group_key
        self._changes = changes
        self.by_key: Mapping[type, Callable[[KeyedRecord, int, int, int], None]] = dict.fromkeys(changes, self.replay)

    def replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        group = self._group(record)
        if group is None:
            return
        group.changed()
        if record.value is None and type(record.key) is self._group_key:
            if group.members or group.targets:
                log.warning("%s group %s is removed while it has members", group.kind, group.group_id)
            self._table.remove(group.group_id)
        else:
            self._changes[type(record.key)](group, record.key, record.value)

    def _group(self, record: KeyedRecord) -> GroupType | None:
        """The group that a record speaks of; None for what removes something that is not there."""
        group_id = record.key.group_id
        group: Any = self._table.get(group_id)
        if isinstance(group, self._group_type):
            return group
        if record.value is None:
            return None
        made = cast("Callable[[str], GroupType]", self._group_type)(group_id)
        if group is not None and not getattr(group, "is_simple", False):  # one that holds offsets alone may be replaced
            log.warning("records of a %s group follow a %s group %s in the log", made.kind, group.kind, group_id)
        self._table.put(cast("Group", made))  # what is said here is not all of a group
        return made
