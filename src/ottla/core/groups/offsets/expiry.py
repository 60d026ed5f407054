"""Expiry: offsets that nobody has renewed for long go, and groups that have neither offsets nor members.

Every offsets.retention.check.interval.ms each group is asked for its rule (`Group.expiry`). An offset goes when it is
offsets.retention.minutes old, counted from where the group's rule says, or when its own time has come if the client
gave it one; never while a transaction is about to write it, nor if the group reads its topic. A group without a rule
stays as it is. A shard can hold very many offsets, so a check goes through them in pieces of some milliseconds, between
which others have their turn.

A group of which something outside holds a part does not go with its last offset: the next check has that cleared away
(`ottla.core.groups.preparation`), and the one after it removes the group. If it cannot be cleared away, the group
stays, and every check tries again.

Soft: `_left`, the groups that the present check has still to look at; `check_count`; what is being cleared away.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Result, Timer
from ottla.core.groups.offsets.records import NO_EXPIRY, offset_tombstone
from ottla.core.groups.offsets.store import NOTHING_STORED, OffsetStore, StoredOffset
from ottla.core.groups.preparation import Preparations
from ottla.core.groups.table import ExpiryRule, Group, GroupTable
from ottla.wire.keyed import KeyedRecord

__all__ = ["EXPIRE", "Expiring"]

log = logging.getLogger(__name__)

_FAMILY: Final = "offsets"
EXPIRE: Final = (_FAMILY, "expire")
"""The key of the timer."""
_MS_PER_MINUTE: Final = 60_000
_PIECE: Final = 1_000
"""Offsets and groups that one turn looks at, about; a larger group is not divided."""


class Expiring:
    def __init__(self, table: GroupTable, store: OffsetStore) -> None:
        self._table = table
        self._store = store
        self._left: list[str] = []
        self.check_count = 0
        self._preparations: Preparations[None] = Preparations(_FAMILY, table, _prepared)

    def schedule(self, context: Context) -> Result:
        interval_ms = context.world.settings["offsets.retention.check.interval.ms"]
        return Result(timers=(Timer(EXPIRE, context.now_ms + interval_ms),))

    def check(self, context: Context) -> Result:
        """Look at the next piece, and say when to go on."""
        if not self._left:
            self._left = list(self._table.all())[::-1]
        records: list[KeyedRecord] = []
        timers: list[Timer] = []
        looked_at = 0
        while self._left and looked_at < _PIECE:
            group_id = self._left.pop()
            looked_at += 1 + sum(map(len, self._store.committed(group_id).values()))
            records += self._expired(group_id, context)
            if self._must_be_prepared(group_id, context):
                timers.append(Timer((_FAMILY, "prepare", group_id), context.now_ms))
        self.check_count += not self._left
        timers += (Timer(EXPIRE, context.now_ms + 1),) if self._left else self.schedule(context).timers
        return Result(records, timers=timers, is_atomic=False)

    def _expired(self, group_id: str, context: Context) -> list[KeyedRecord]:
        """What removes a group's expired offsets, and the group if nothing is left of it."""
        group = self._table.get(group_id)
        rule = group.expiry(context) if group is not None else None
        if group is None or rule is None:
            return []
        due = list(self._due(group_id, rule, context))
        records = [offset_tombstone(group_id, *each) for each in due]
        stored_count = sum(map(len, self._store.committed(group_id).values()))
        is_last = group.is_empty and len(due) == stored_count and not self._store.unstable(group_id)
        if is_last and group.before_removal(_FAMILY, context) is None:
            records += group.tombstones()
        return records

    def _must_be_prepared(self, group_id: str, context: Context) -> bool:
        group = self._removable(group_id, context)
        return group is not None and group.before_removal(_FAMILY, context) is not None

    def _removable(self, group_id: str, context: Context) -> Group | None:
        """A group that nothing keeps here any more."""
        group = self._table.get(group_id)
        if group is None or not group.is_empty or group.expiry(context) is None:
            return None
        is_held = self._store.committed(group_id) or self._store.unstable(group_id)
        return None if is_held or self._preparations.is_under_way(group_id) else group

    def prepare(self, group_id: str, context: Context) -> Result:
        """Have cleared away what something outside holds of a group that is about to go."""
        group = self._removable(group_id, context)
        return (self._preparations.begin(group, None, context) if group is not None else None) or NOTHING

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return self._preparations.settled(subject, outcome, context)

    def _due(self, group_id: str, rule: ExpiryRule, context: Context) -> Iterator[tuple[str, int]]:
        retention_ms = context.world.settings["offsets.retention.minutes"] * _MS_PER_MINUTE
        unstable = self._store.unstable(group_id)
        for topic, by_partition in self._store.committed(group_id).items():
            if rule.is_subscribed(topic):
                continue
            writers = unstable.get(topic, NOTHING_STORED)
            for partition, stored in by_partition.items():
                if partition not in writers and _is_due(stored, rule, context.wall_ms, retention_ms):
                    yield topic, partition


def _prepared(group_id: str, waiting: list[None], outcome: Outcome, context: Context) -> Result:
    if not outcome.is_ok:
        text = outcome.message or outcome.error.name
        log.warning("group %s has expired, but cannot be deleted: %s", group_id, text)
    return NOTHING


def _is_due(stored: StoredOffset, rule: ExpiryRule, wall_ms: int, retention_ms: int) -> bool:
    value = stored.value
    if value.expire_timestamp != NO_EXPIRY:
        return wall_ms >= value.expire_timestamp
    return wall_ms - rule.base_ms(value.commit_timestamp) >= retention_ms
