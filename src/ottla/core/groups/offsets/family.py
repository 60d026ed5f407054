"""The family of offsets: the part of the group coordinator that keeps where groups go on reading.

Hard state: `store.OffsetStore`. Soft: how far a check for expired offsets has come (`expiry`).

A group that nobody has joined comes into being with its first offset. Kafka calls it simple; it is an empty classic
group without a protocol type and without a record of its own, so whoever makes this family says how such a group is
made. It stays when its last offset goes, until it is deleted or the next check for expired offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.core.coordinator.contract import Context, Outcome, Result, Timer, TopicsChange
from ottla.core.groups.coordinator import Handler, Replay
from ottla.core.groups.offsets.commit import Committing
from ottla.core.groups.offsets.deletion import Deleting
from ottla.core.groups.offsets.expiry import EXPIRE, Expiring
from ottla.core.groups.offsets.fetch import Fetching
from ottla.core.groups.offsets.requests import FetchOffsets, TransactionalCommit
from ottla.core.groups.offsets.store import OffsetStore, StoredOffset
from ottla.core.groups.table import Group, GroupTable
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_classic import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.types.offset_commit import OffsetCommitRequest
from ottla.wire.types.offset_delete import OffsetDeleteRequest

__all__ = ["OffsetsFamily"]

_NO_PRODUCER: Final = -1
_SWEEP: Final = ("offsets", "sweep")
"""The key of the timer that removes offsets whose topics were deleted before the shard was loaded."""


class OffsetsFamily:
    name: Final = "offsets"

    def __init__(self, table: GroupTable, new_group: Callable[[str], Group]) -> None:
        self._table = table
        self._new_group = new_group
        self._store = OffsetStore()
        self._deleting = Deleting(table, self._store)
        self._expiring = Expiring(table, self._store)
        committing = Committing(table)
        self.handlers: Mapping[type, Handler] = {
            OffsetCommitRequest: committing.offset_commit,
            TransactionalCommit: committing.txn_offset_commit,
            OffsetDeleteRequest: self._deleting.offset_delete,
            FetchOffsets: Fetching(table, self._store).fetch,
        }
        self.replays: Mapping[type, Replay] = {
            OffsetCommitKey: self._replay,
            LegacyOffsetCommitKey: self._replay_legacy,
        }

    @property
    def check_count(self) -> int:
        """Checks for expired offsets that were made."""
        return self._expiring.check_count

    def tombstones_of(self, group_id: str) -> list[KeyedRecord]:
        """What removes all offsets of a group, for those who remove the group."""
        return self._deleting.all_of_group(group_id)

    # --- replay -------------------------------------------------------------------------------------------------------

    def _replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        key, value = record.key, record.value
        if value is None:
            self._store.remove(key.group, key.topic, key.partition)
            return
        if self._table.get(key.group) is None:
            self._table.put(self._new_group(key.group))
        stored = StoredOffset(value, offset)
        if producer_id == _NO_PRODUCER:
            self._store.put(key.group, key.topic, key.partition, stored)
        else:
            self._store.put_pending(producer_id, key.group, key.topic, key.partition, stored)

    def _replay_legacy(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        value: LegacyOffsetCommitValue | None = record.value
        if value is not None:
            newer = OffsetCommitValue(value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp)
            record = record._replace(value=newer)
        self._replay(record, offset, producer_id, producer_epoch)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self._store.end_transaction(producer_id, committed=committed)

    def hard_state(self) -> Mapping[Any, Any]:
        return self._store.hard_state()

    # --- time and surroundings ----------------------------------------------------------------------------------------

    def loaded(self, context: Context) -> Result:
        """Offsets whose topics are gone have a deadline of their own, at once: what is decided here stands or falls
        with the deadlines of all groups of the shard, and must not fall because the log takes no records yet."""
        (check,) = self._expiring.schedule(context).timers
        is_sweep_due = self._deleting.of_missing_topics(context.world.topics).records
        return Result(timers=(check, Timer(_SWEEP, context.now_ms)) if is_sweep_due else (check,))

    def unloaded(self) -> Iterable[Any]:
        return ()

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        if key == _SWEEP:
            return self._deleting.of_missing_topics(context.world.topics)
        return self._expiring.check(context) if key == EXPIRE else self._expiring.prepare(key[2], context)

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return self._expiring.settled(subject, outcome, context)

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        return self._deleting.of_topics(change)
