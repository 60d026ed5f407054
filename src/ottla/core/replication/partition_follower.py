"""What a follower does with a partition: where it fetches from, and what it does with the leader's answer.

A log that has diverged from the leader's is cut where they part, by leader epochs and not by the high watermark: the
leader names its largest epoch not above the follower's last one, and where it ends.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from ottla.wire.errors import ErrorCode

__all__ = [
    "Action",
    "Append",
    "AskOffsets",
    "Delay",
    "EpochEnd",
    "FollowerLog",
    "StartAt",
    "Stop",
    "Truncate",
    "after_fetch",
    "after_offsets",
    "truncation_offset",
]

UNKNOWN: Final = -1


class FollowerLog(Protocol):
    """The follower's own log, as far as a decision needs it."""

    log_end_offset: int

    def epoch_end(self, epoch: int) -> EpochEnd | None:
        """The largest epoch of the log that is not above this one, and where it ends; None if there is none."""


class EpochEnd(msgspec.Struct, frozen=True):
    """An epoch, and the offset behind its last record."""

    epoch: int
    end_offset: int


class Append(msgspec.Struct, frozen=True):
    """Write the records; then the high watermark and the log's start follow the leader's."""

    high_watermark: int
    log_start_offset: int


class Truncate(msgspec.Struct, frozen=True):
    """Cut the log here, and fetch on. If it begins only behind this, nothing is left of it, and it begins here."""

    offset: int


class StartAt(msgspec.Struct, frozen=True):
    """Drop the whole log, and begin a new one here: the leader has nothing before it any more."""

    offset: int


class AskOffsets(msgspec.Struct, frozen=True):
    """Ask the leader where its log begins and ends."""


class Delay(msgspec.Struct, frozen=True):
    """Fetch again after a pause."""

    error_code: int


class Stop(msgspec.Struct, frozen=True):
    """Fetch no more until the metadata log names another leader epoch."""


Action = Append | Truncate | StartAt | AskOffsets | Delay | Stop


def after_fetch(
    log: FollowerLog, error_code: int, diverging: EpochEnd | None, high_watermark: int, log_start_offset: int
) -> Action:
    """What follows from the leader's answer to a fetch."""
    if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return AskOffsets()
    if error_code == ErrorCode.FENCED_LEADER_EPOCH:
        return Stop()
    if error_code:
        return Delay(error_code)
    if diverging is not None and diverging.epoch != UNKNOWN:
        return Truncate(truncation_offset(log, diverging))
    return Append(high_watermark, log_start_offset)


def truncation_offset(log: FollowerLog, diverging: EpochEnd) -> int:
    """Where to cut, if the leader's largest epoch not above ours is `diverging`.

    If our log has that epoch, both logs are equal up to where the shorter of them leaves it. If it has only earlier
    ones, it is cut at the end of those, and the next fetch asks again.
    """
    own = log.epoch_end(diverging.epoch)
    if own is None:
        offset = diverging.end_offset
    elif own.epoch == diverging.epoch:
        offset = min(own.end_offset, diverging.end_offset)
    else:
        offset = own.end_offset
    return min(offset, log.log_end_offset)


def after_offsets(log: FollowerLog, leader_start_offset: int, leader_end_offset: int) -> Truncate | StartAt:
    """What follows from the begin and the end of the leader's log, for a follower whose end lies outside of them."""
    if leader_end_offset < log.log_end_offset:
        return Truncate(leader_end_offset)
    if leader_start_offset > log.log_end_offset:
        return StartAt(leader_start_offset)
    return Truncate(log.log_end_offset)
