"""What is kept of a share partition, and the records that tell it.

A *snapshot* is all of it; an *update* is what one write changed. A snapshot and its updates bear the same snapshot
epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ottla.core.coordinator.records import record, tombstone
from ottla.core.share.state.batches import Batch, merge
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareSnapshotValueStateBatch,
    ShareUpdateKey,
    ShareUpdateValue,
    ShareUpdateValueStateBatch,
)

__all__ = ["UNCHANGED", "Kept", "Key", "delete_record", "of_snapshot", "snapshot_record", "update_record", "updated"]

UNCHANGED: Final = -1
"""As a start offset or a leader epoch."""
VERSION: Final = 0
"""Of all values."""


class Key(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int


class Kept(msgspec.Struct, frozen=True):
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    """-1: the group has not begun with this partition."""
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    """Of the last snapshot. It is later than `create_timestamp` if that was written for pruning's sake alone."""
    batches: tuple[Batch, ...] = ()


def snapshot_record(key: Key, kept: Kept) -> KeyedRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=kept.snapshot_epoch,
        state_epoch=kept.state_epoch,
        leader_epoch=kept.leader_epoch,
        start_offset=kept.start_offset,
        delivery_complete_count=kept.delivery_complete_count,
        create_timestamp=kept.create_timestamp,
        write_timestamp=kept.write_timestamp,
        state_batches=tuple(ShareSnapshotValueStateBatch(*batch) for batch in kept.batches),
    )
    return record(ShareSnapshotKey(*key), value, VERSION)


def update_record(key: Key, changed: Kept, batches: Iterable[Batch]) -> KeyedRecord:
    """What a write changes. A start of -1 leaves the start as it is."""
    value = ShareUpdateValue(
        snapshot_epoch=changed.snapshot_epoch,
        leader_epoch=changed.leader_epoch,
        start_offset=changed.start_offset,
        delivery_complete_count=changed.delivery_complete_count,
        state_batches=tuple(ShareUpdateValueStateBatch(*batch) for batch in batches),
    )
    return record(ShareUpdateKey(*key), value, VERSION)


def delete_record(key: Key) -> KeyedRecord:
    return tombstone(ShareSnapshotKey(*key))


def of_snapshot(value: ShareSnapshotValue) -> Kept:
    return Kept(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        create_timestamp=value.create_timestamp,
        write_timestamp=value.write_timestamp,
        batches=tuple(map(_batch, value.state_batches)),
    )


def updated(kept: Kept | None, value: ShareUpdateValue) -> Kept:
    """What is kept after an update. One without a snapshot before it stands for itself, as in Kafka."""
    before = kept or Kept(value.snapshot_epoch, 0, 0, UNCHANGED, UNCHANGED, 0, 0)
    start = before.start_offset if value.start_offset == UNCHANGED else value.start_offset
    return msgspec.structs.replace(
        before,
        leader_epoch=before.leader_epoch if value.leader_epoch == UNCHANGED else value.leader_epoch,
        start_offset=start,
        delivery_complete_count=value.delivery_complete_count,
        batches=tuple(merge(before.batches, [_batch(batch) for batch in value.state_batches], start)),
    )


def _batch(batch: ShareSnapshotValueStateBatch | ShareUpdateValueStateBatch) -> Batch:
    return Batch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
