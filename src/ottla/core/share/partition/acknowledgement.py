"""What a member may say about its records, and what that changes.

`check_batches` judges a request by its form, before any share partition is asked. `acknowledge` judges it by the
window: all batches of a partition or none. The transitions are pending until they are written; a renewal is done at
once, and stays done even if a later batch of the partition is refused, as in Apache Kafka.

A batch that is wholly below the start is over and done with, and so accepted. Natural holes are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.core.share.partition.events import (
    Acknowledge,
    Acknowledgement,
    DeadLetters,
    SharePartitionSettings,
    StateBatch,
)
from ottla.core.share.partition.states import TARGETS, AcknowledgeType, Cause, RecordState
from ottla.core.share.partition.window import Entry, Run, Window
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["Transition", "acknowledge", "check_batches", "state_after_release"]

RENEW_VERSION_MIN: Final = 2
"""Of ShareFetch and ShareAcknowledge, for the type RENEW (KIP-1222)."""


def check_batches(batches: Sequence[Acknowledgement], api_version: int, *, is_renew_ack: bool) -> None:
    """Refuse batches of a partition that are malformed. An equal border of two batches is for `acknowledge` to see."""
    previous_last = -1
    highest = AcknowledgeType.RENEW if api_version >= RENEW_VERSION_MIN else AcknowledgeType.REJECT
    for batch in batches:
        if batch.first_offset > batch.last_offset:
            raise _malformed(f"The batch {batch.first_offset} to {batch.last_offset} ends before it begins.")
        if batch.first_offset < previous_last:
            raise _malformed(f"The batch at {batch.first_offset} begins before the one in front of it ends.")
        _check_types(batch, highest, is_renew_ack=is_renew_ack)
        previous_last = batch.last_offset


def _check_types(batch: Acknowledgement, highest: int, *, is_renew_ack: bool) -> None:
    size = batch.last_offset - batch.first_offset + 1
    if not batch.types:
        raise _malformed(f"The batch at {batch.first_offset} says nothing about its records.")
    if len(batch.types) > 1 and len(batch.types) != size:
        raise _malformed(f"The batch at {batch.first_offset} has {len(batch.types)} types for {size} offsets.")
    if min(batch.types) < 0 or max(batch.types) > highest:
        raise _malformed(f"The batch at {batch.first_offset} has a type that does not exist in this version.")
    if AcknowledgeType.RENEW in batch.types and not is_renew_ack:
        raise _malformed("Only a request that announces renewals may have them.")


def _malformed(message: str) -> Reject:
    return Reject(ErrorCode.INVALID_REQUEST, message)


def _not_acquired(message: str) -> Reject:
    return Reject(ErrorCode.INVALID_RECORD_STATE, message)


class Transition:
    """What a call changes: ranges that are pending under one write, and locks that were renewed."""

    def __init__(self, write_id: int) -> None:
        self.write_id = write_id
        self.ranges: list[tuple[int, int]] = []
        self.batches: list[StateBatch] = []
        """As they are to be written; neighbours that are alike are one."""
        self.owed: list[StateBatch] = []
        """What an earlier write that has failed was about; it goes along."""
        self.renewed: list[tuple[int, int]] = []
        self.kinds = [0] * len(AcknowledgeType)
        """How many offsets were acknowledged in which way."""
        self.released = 0
        """How many offsets the end of a session has set free."""
        self.held: dict[int, int] = {}
        """Since when how many offsets were held."""
        self.dead_letters: list[DeadLetters] = []
        """What is to be done about once it is written down."""

    def begin(self, window: Window, run: Run, target: RecordState, cause: Cause = Cause.DELIVERY_LIMIT) -> None:
        since_ms = run.acquired_at_ms
        self.held[since_ms] = self.held.get(since_ms, 0) + run.last - run.first + 1
        window.begin(run, target, self.write_id)
        if target is RecordState.ARCHIVING:
            self.add_dead_letters(run, cause)
        self.add_range(run.first, run.last)
        self.add_batch(run, target)

    def add_range(self, first: int, last: int) -> None:
        if self.ranges and self.ranges[-1][1] + 1 == first:
            first = self.ranges.pop()[0]
        self.ranges.append((first, last))

    def add_dead_letters(self, run: Run, cause: Cause) -> None:
        self.dead_letters.append(DeadLetters(run.first, run.last, run.delivery_count, cause))

    def add_batch(self, run: Run, state: RecordState) -> None:
        first = run.first
        if self.batches:
            before = self.batches[-1]
            is_alike = before.delivery_count == run.delivery_count and before.delivery_state == state
            if is_alike and before.last_offset + 1 == first:
                first = self.batches.pop().first_offset
        self.batches.append(StateBatch(first, run.last, int(state), run.delivery_count))


def acknowledge(
    window: Window, request: Acknowledge, settings: SharePartitionSettings, lock_at_ms: int, transition: Transition
) -> None:
    """Begin the transitions that a member asks for. If one is refused, all are undone and Reject is raised."""
    try:
        for batch in request.batches:
            if batch.last_offset >= window.start:
                _apply(window, request.member_id, batch, settings, lock_at_ms, transition)
    except Reject:
        for first, last in transition.ranges:
            window.undo(first, last, transition.write_id)
        raise


def _apply(
    window: Window,
    member_id: str,
    batch: Acknowledgement,
    settings: SharePartitionSettings,
    lock_at_ms: int,
    transition: Transition,
) -> None:
    if AcknowledgeType.RENEW in batch.types and not settings.is_renew_enabled:
        raise _not_acquired("This group does not renew acquisition locks.")
    for entry in _entries(window, batch):
        first, last = max(batch.first_offset, window.start, entry.first), min(batch.last_offset, entry.last)
        if first > last:
            continue
        _check_held(entry, first, last, member_id)
        for part_first, part_last, kind in _parts(batch, first, last):
            transition.kinds[kind] += part_last - part_first + 1
            for run in window.carve(entry, part_first, part_last):
                if kind == AcknowledgeType.RENEW:
                    run.lock_at_ms = lock_at_ms
                    transition.renewed.append((run.first, run.last))
                else:
                    transition.begin(window, run, *_target(kind, run, settings))
        entry.join(first, last)


def _entries(window: Window, batch: Acknowledgement) -> list[Entry]:
    """The entries that a batch is about."""
    straddles = batch.first_offset < window.start <= batch.last_offset
    floor = window.floor(window.start if straddles else batch.first_offset)
    if floor is None and not (straddles and window.overlapping(window.start, batch.last_offset)):
        raise _not_acquired("The offsets of the batch are not in flight.")
    entries = window.overlapping(max(batch.first_offset, window.start), batch.last_offset)
    if not entries:
        raise _malformed("The first offset of the batch is beyond the records that are in flight.")
    if batch.last_offset > entries[-1].last:
        raise _malformed("The last offset of the batch is beyond the records that are in flight.")
    return entries


def _check_held(entry: Entry, first: int, last: int, member_id: str) -> None:
    for run in entry.overlapping(first, last):
        if run.state is not RecordState.ACQUIRED:
            raise _not_acquired(f"The record at {max(first, run.first)} is not acquired.")
        if not run.is_held:
            raise _not_acquired(f"An acknowledgement of the record at {max(first, run.first)} is under way.")
        if run.member_id != member_id:
            raise _not_acquired(f"The record at {max(first, run.first)} is held by another member.")


def _parts(batch: Acknowledgement, first: int, last: int) -> list[tuple[int, int, int]]:
    """First offset, last offset and type of each stretch of one type."""
    if len(batch.types) == 1:
        return [(first, last, batch.types[0])]
    parts: list[tuple[int, int, int]] = []
    for offset in range(first, last + 1):
        kind = batch.types[offset - batch.first_offset]
        if parts and parts[-1][2] == kind:
            parts[-1] = (parts[-1][0], offset, kind)
        else:
            parts.append((offset, offset, kind))
    return parts


def _target(kind: int, run: Run, settings: SharePartitionSettings) -> tuple[RecordState, Cause]:
    """What an acquired run becomes by an acknowledgement, and why it might be a dead letter."""
    if kind == AcknowledgeType.RELEASE:
        return state_after_release(run, settings), Cause.DELIVERY_LIMIT
    if kind == AcknowledgeType.REJECT:
        return _given_up(settings), Cause.REJECTED
    return TARGETS[kind], Cause.REJECTED


def state_after_release(run: Run, settings: SharePartitionSettings) -> RecordState:
    """What an acquired run becomes when nobody holds it any more."""
    if run.delivery_count >= settings.delivery_count_limit:
        return _given_up(settings)
    return RecordState.AVAILABLE


def _given_up(settings: SharePartitionSettings) -> RecordState:
    return RecordState.ARCHIVING if settings.has_dead_letters else RecordState.ARCHIVED
