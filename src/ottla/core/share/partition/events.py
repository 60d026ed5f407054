"""What a share partition is told, and what it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.core.share.partition.states import AcquireMode, Cause
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.errors import ErrorCode

__all__ = [
    "NOTHING",
    "Acknowledge",
    "Acknowledgement",
    "Acquire",
    "AcquiredRange",
    "Actions",
    "DeadLetters",
    "DeadLettersSent",
    "Drop",
    "LoadFailed",
    "Loaded",
    "LogStartMoved",
    "ReadBatch",
    "Release",
    "Reply",
    "SharePartitionSettings",
    "StartResolved",
    "StateBatch",
    "Tick",
    "Write",
    "WriteDone",
    "WriteFailed",
]

Token = Any
"""Whom an answer is for. Kept and given back, never looked at."""


class SharePartitionSettings(NamedTuple):
    """Of a group, as they are now. Each is looked at when it matters: a lock that is held keeps its time."""

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    max_record_locks: int = 2_000
    is_renew_enabled: bool = True
    has_dead_letters: bool = False
    """Whether records that are rejected, or delivered too often, go to a dead-letter queue first."""


class StateBatch(NamedTuple):
    """A range as the coordinator keeps it; both ends belong to it."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


# --- events -----------------------------------------------------------------------------------------------------------


class Loaded(NamedTuple):
    """What the coordinator has kept. A start of -1 says that the group has not begun with this partition."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()


class LoadFailed(NamedTuple):
    error: ErrorCode


class StartResolved(NamedTuple):
    """Where the group's reset strategy begins."""

    start_offset: int


class ReadBatch(NamedTuple):
    """The head of a record batch in the log; both offsets belong to it."""

    base_offset: int
    last_offset: int
    producer_id: int = -1
    is_transactional: bool = False
    is_control: bool = False


class Acquire(NamedTuple):
    """Records have been read at `fetch_offset`, which was `next_fetch_offset`, for a member that wants them.

    `aborted` is None if the group reads uncommitted data.
    """

    token: Token
    member_id: str
    fetch_offset: int
    batches: Sequence[ReadBatch]
    max_records: int
    batch_size: int
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED
    aborted: Sequence[AbortedTransaction] | None = None


class Acknowledgement(NamedTuple):
    """One type stands for the whole range; otherwise there is one for each offset."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class Acknowledge(NamedTuple):
    token: Token
    member_id: str
    batches: Sequence[Acknowledgement]


class Release(NamedTuple):
    """The session of a member is over: what it holds is free. The token, if any, is answered when that is written."""

    member_id: str
    token: Token = None


class Tick(NamedTuple):
    """The time of `Actions.due_at_ms` has come."""


class WriteDone(NamedTuple):
    write_id: int


class WriteFailed(NamedTuple):
    write_id: int
    error: ErrorCode
    message: str | None = None


class LogStartMoved(NamedTuple):
    """The log begins here now; noticed by a read out of range."""

    log_start_offset: int


class DeadLettersSent(NamedTuple):
    """Records are in the dead-letter queue, or nobody tries any more to put them there."""

    first_offset: int
    last_offset: int


class Drop(NamedTuple):
    """The partition is no longer served from here: leadership has moved, the topic is gone, offsets were altered."""

    error: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER


Event = (
    Loaded
    | LoadFailed
    | StartResolved
    | Acquire
    | Acknowledge
    | Release
    | Tick
    | WriteDone
    | WriteFailed
    | LogStartMoved
    | DeadLettersSent
    | Drop
)

# --- actions ----------------------------------------------------------------------------------------------------------


class AcquiredRange(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class Reply(NamedTuple):
    """To an Acquire: `acquired`. To an Acknowledge or a Release: `error` and `message`."""

    token: Token
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    acquired: Sequence[AcquiredRange] = ()


class Write(NamedTuple):
    """State for the coordinator; answered by WriteDone or WriteFailed.

    Writes of a share partition must arrive in the order in which they are asked for: a start must not go back.
    """

    write_id: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class DeadLetters(NamedTuple):
    """Records for the dead-letter queue; answered by DeadLettersSent. It is written down that they are on their way."""

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: Cause


class Actions(NamedTuple):
    replies: Sequence[Reply] = ()
    writes: Sequence[Write] = ()
    due_at_ms: int | None = None
    """When the next Tick has something to do; None if nothing is due. Given with every step, it replaces the last."""
    wakes: bool = False
    """Fetches that wait for this share partition should be tried again."""
    needs_start: bool = False
    """Find the offset of the group's reset strategy and tell it with StartResolved."""
    dead_letters: Sequence[DeadLetters] = ()
    dropped: ErrorCode | None = None
    """The share partition is of no more use. Fetches that wait for it get this; the next one makes a new one."""


NOTHING: Final = Actions()
