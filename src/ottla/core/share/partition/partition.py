"""A share partition: all its parts together, and what is under way.

==============  ========================================================================================================
LOADING         made by the first fetch; the edge reads the state and tells Loaded or LoadFailed
RESOLVING       the group begins here: the edge finds the offset of its reset strategy and tells StartResolved
STARTING        that offset is being written. Nothing is handed out before it is: a `latest` that is resolved anew after
                a crash would skip what was handed out before it (Apache Kafka 4.3.1 does that)
ACTIVE          serves
DROPPED         fenced, failed or no longer led here; a fetch makes a new one
==============  ========================================================================================================

Acknowledgements and releases at the end of a session are pending until they are written. The end of a lock is not: it
counts at once, whether or not its write succeeds. A failed acknowledgement gives the records back to their holder; if
the lock has ended meanwhile, they are released in the same step.

In a group with a dead-letter queue a record that is given up is first written down as ARCHIVING; then the edge puts it
into the queue and tells so, whether or not that worked, and it is finished. It holds up the window meanwhile.

A fetch reads at `next_fetch_offset` and acquires in one go: nothing may come between. No input or output here; time
comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import count
from typing import Any, Final

from ottla.core.share.partition import acknowledgement, acquisition
from ottla.core.share.partition.acknowledgement import Transition
from ottla.core.share.partition.events import (
    Acknowledge,
    Acquire,
    Actions,
    DeadLetters,
    DeadLettersSent,
    Drop,
    Event,
    Loaded,
    LoadFailed,
    LogStartMoved,
    Release,
    Reply,
    SharePartitionSettings,
    StartResolved,
    StateBatch,
    Tick,
    Token,
    Write,
    WriteDone,
    WriteFailed,
)
from ottla.core.share.partition.locks import Locks
from ottla.core.share.partition.states import AcknowledgeType, Cause, RecordState
from ottla.core.share.partition.tally import Tally
from ottla.core.share.partition.window import Run, Window
from ottla.core.share.state.batches import Batch, combine
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["Phase", "SharePartition"]

NO_START: Final = -1
_FENCED: Final = frozenset((ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH))
_AS_ACKNOWLEDGEMENT: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What a member hears when its acknowledgement could not be written; everything else is UNKNOWN_SERVER_ERROR."""


_NOT_PENDING: Final = (None, None)


class Phase(Enum):
    LOADING = "loading"
    RESOLVING = "resolving"
    STARTING = "starting"
    ACTIVE = "active"
    DROPPED = "dropped"


class SharePartition:
    """`settings` may be replaced at any time: they are those of the group as they are now. `tally` may be shared."""

    def __init__(self, leader_epoch: int, settings: SharePartitionSettings, tally: Tally | None = None) -> None:
        self.leader_epoch = leader_epoch
        self.settings = settings
        self.tally = tally or Tally()
        self.phase = Phase.LOADING
        self.state_epoch = 0
        self.window = Window(0)
        self._locks = Locks()
        self._pending: dict[int, tuple[Transition, Token]] = {}
        """What is being written, and who waits for it."""
        self._owed: list[StateBatch] = []
        """What holds though its write has failed."""
        self._write_ids = count()
        self._steps: dict[type, Callable[[Any, int], Actions]] = {
            Loaded: self._loaded,
            LoadFailed: self._load_failed,
            StartResolved: self._start_resolved,
            Acquire: self._acquire,
            Acknowledge: self._acknowledge,
            Release: self._release,
            Tick: self._tick,
            WriteDone: self._write_done,
            WriteFailed: self._write_failed,
            LogStartMoved: self._log_start_moved,
            DeadLettersSent: self._dead_letters_sent,
            Drop: self._drop,
        }

    def step(self, event: Event, now_ms: int) -> Actions:
        if self.phase is Phase.DROPPED:
            return self._refuse(event)
        actions = self._steps[type(event)](event, now_ms)
        if self._locks.is_crowded:
            self._locks.replace((run.lock_at_ms, run.first, run.last) for run in self.window.runs() if run.is_held)
        return actions._replace(due_at_ms=self._locks.due_at_ms)

    # --- what a fetch asks before it reads ----------------------------------------------------------------------------

    @property
    def next_fetch_offset(self) -> int:
        return self.window.next_fetch_offset

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch has a chance: something to deliver again, or room for more."""
        if self.phase is not Phase.ACTIVE:
            return False
        window = self.window
        if window.in_flight_count < self.settings.max_record_locks:
            return True
        return window.next_fetch_offset != window.end + 1

    def reach(self, max_records: int) -> int:
        """The last offset that a fetch of so many records can have use for: what is read beyond changes nothing."""
        window = self.window
        room = min(max_records, self.settings.max_record_locks - window.in_flight_count)
        return window.reach(max_records, max(0, room))

    # --- loading ------------------------------------------------------------------------------------------------------

    def _loaded(self, event: Loaded, now_ms: int) -> Actions:
        self.state_epoch = event.state_epoch
        if event.start_offset == NO_START:
            self.phase = Phase.RESOLVING
            return Actions(needs_start=True)
        try:
            self.window = Window.load(event.start_offset, event.batches)
        except ValueError:
            return self._end(ErrorCode.UNKNOWN_SERVER_ERROR)
        self.phase = Phase.ACTIVE
        return Actions(wakes=True, dead_letters=[self._unsent(run) for run in self.window.runs() if run.is_archiving])

    def _unsent(self, run: Run) -> DeadLetters:
        """What another leader has left on its way to the dead-letter queue. Why it was is not written down."""
        is_at_limit = run.delivery_count >= self.settings.delivery_count_limit
        cause = Cause.DELIVERY_LIMIT if is_at_limit else Cause.REJECTED
        return DeadLetters(run.first, run.last, run.delivery_count, cause)

    def _load_failed(self, event: LoadFailed, now_ms: int) -> Actions:
        fenced = event.error in _FENCED
        return self._end(ErrorCode.NOT_LEADER_OR_FOLLOWER if fenced else event.error)

    def _start_resolved(self, event: StartResolved, now_ms: int) -> Actions:
        self.window = Window(event.start_offset)
        self.phase = Phase.STARTING
        return Actions(writes=[self._begin(Transition(next(self._write_ids)))])

    # --- fetches ------------------------------------------------------------------------------------------------------

    def _acquire(self, event: Acquire, now_ms: int) -> Actions:
        if self.phase is not Phase.ACTIVE:
            return Actions(replies=[Reply(event.token)])
        start = self.window.start
        acquired = acquisition.acquire(self.window, event, self.settings, now_ms)
        self._lock(now_ms + self.settings.lock_duration_ms, [each[:2] for each in acquired])
        for first, last, delivery_count in acquired:
            self.tally.deliver(last - first + 1, delivery_count)
        # What is gone from the log has made room, though there was nothing to hand out.
        wakes = not acquired and self.window.start != start
        return Actions(replies=[Reply(event.token, acquired=acquired)], wakes=wakes)

    def _lock(self, at_ms: int, ranges: Sequence[tuple[int, int]]) -> None:
        """File the locks that ranges have got, in the order of offsets; neighbours are filed as one."""
        if not ranges:
            return
        filed_first, filed_last = ranges[0]
        for first, last in ranges[1:]:
            if filed_last + 1 >= first:
                filed_last = max(filed_last, last)
            else:
                self._locks.add(at_ms, filed_first, filed_last)
                filed_first, filed_last = first, last
        self._locks.add(at_ms, filed_first, filed_last)

    def _log_start_moved(self, event: LogStartMoved, now_ms: int) -> Actions:
        if self.phase is not Phase.ACTIVE or event.log_start_offset <= self.window.start:
            return Actions()
        self.window.move_start(event.log_start_offset)
        self.window.advance()
        return Actions(wakes=True)

    # --- acknowledgements and releases --------------------------------------------------------------------------------

    def _acknowledge(self, event: Acknowledge, now_ms: int) -> Actions:
        if self.phase is not Phase.ACTIVE:
            return Actions(replies=[Reply(event.token, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)])
        lock_at_ms = now_ms + self.settings.lock_duration_ms
        transition = Transition(next(self._write_ids))
        try:
            acknowledgement.acknowledge(self.window, event, self.settings, lock_at_ms, transition)
        except Reject as reject:
            return Actions(replies=[Reply(event.token, reject.code, reject.message)])
        finally:
            self._lock(lock_at_ms, transition.renewed)
        if transition.kinds[AcknowledgeType.RENEW]:
            self.tally.acknowledged[AcknowledgeType.RENEW] += transition.kinds[AcknowledgeType.RENEW]
            transition.kinds[AcknowledgeType.RENEW] = 0
        if not transition.ranges and not self._is_ahead(event):
            return Actions(replies=[Reply(event.token)])
        return Actions(writes=[self._begin(transition, event.token)])

    def _is_ahead(self, event: Acknowledge) -> bool:
        """Whether what an acknowledgement passes over, since it is below the start, may be finished in memory alone.

        Such a start must be written before the member hears that all is well: otherwise a crash brings it back.
        """
        if all(batch.first_offset >= self.window.start for batch in event.batches):
            return False
        pending = (each for each, _ in self._pending.values())
        return bool(self._owed) or any(each.owed or (each.batches and not each.ranges) for each in pending)

    def _release(self, event: Release, now_ms: int) -> Actions:
        transition = Transition(next(self._write_ids))
        for run in self.window.held_by(event.member_id):
            transition.begin(self.window, run, acknowledgement.state_after_release(run, self.settings))
        transition.released = sum(transition.held.values())
        if not transition.ranges:
            return Actions(replies=[] if event.token is None else [Reply(event.token)])
        return Actions(writes=[self._begin(transition, event.token)])

    def _tick(self, event: Tick, now_ms: int) -> Actions:
        """End all locks that are due, with one write. Nothing waits for it."""
        transition = Transition(next(self._write_ids))
        due = sorted(self._locks.take_due(now_ms))
        ended = [self._end_locks(first, last, now_ms, transition) for first, last in due]
        if not any(ended):
            return Actions()
        writes = [self._begin(transition)] if transition.batches else []
        self.window.advance()
        return Actions(writes=writes, wakes=True)

    def _end_locks(self, first: int, last: int, now_ms: int, transition: Transition) -> bool:
        """Release what of a range is held no longer than now; whether there was anything."""
        window = self.window
        found = False
        for entry in window.overlapping(first, last):
            for run in window.carve(entry, first, last):
                if not run.is_held or run.lock_at_ms > now_ms:
                    continue
                found = True
                self.tally.expired += run.size
                self.tally.hold(now_ms - run.acquired_at_ms, run.size)
                window.put(run, acknowledgement.state_after_release(run, self.settings))
                if run.last >= window.start:
                    transition.add_batch(run, run.state)
                if run.is_archiving:
                    transition.add_dead_letters(run, Cause.DELIVERY_LIMIT)
            entry.join(first, last)
        return found

    # --- writes -------------------------------------------------------------------------------------------------------

    def _begin(self, transition: Transition, token: Token = None) -> Write:
        """Ask for the write that a transition is waiting for."""
        self._pending[transition.write_id] = (transition, token)
        return self._write(transition)

    def _write(self, transition: Transition) -> Write:
        start = self.window.start
        transition.owed, self._owed = self._owed, []
        batches: Iterable[StateBatch] = transition.batches
        if transition.owed:
            together = combine((Batch(*each) for each in (*transition.owed, *transition.batches)), start)
            batches = (StateBatch(*each) for each in together)
        return Write(
            write_id=transition.write_id,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=start,
            delivery_complete_count=self.window.complete_count,
            batches=[batch for batch in batches if batch.last_offset >= start],
        )

    def _write_done(self, event: WriteDone, now_ms: int) -> Actions:
        transition, token = self._pending.pop(event.write_id, _NOT_PENDING)
        if transition is None:
            return Actions()
        if self.phase is Phase.STARTING:
            self.phase = Phase.ACTIVE
            return Actions(wakes=True)
        before = self.can_acquire, self.window.next_fetch_offset
        for first, last in transition.ranges:
            self.window.complete(first, last, event.write_id)
        self.window.advance()
        self._count(transition, now_ms)
        replies = [] if token is None else [Reply(token)]
        # What was accepted gives nobody anything to fetch, unless the window was full.
        wakes = before != (self.can_acquire, self.window.next_fetch_offset)
        return Actions(replies=replies, wakes=wakes, dead_letters=transition.dead_letters)

    def _count(self, transition: Transition, now_ms: int) -> None:
        tally = self.tally
        for acquired_at_ms, size in transition.held.items():
            tally.hold(now_ms - acquired_at_ms, size)
        for kind, size in enumerate(transition.kinds):
            tally.acknowledged[kind] += size
        tally.released += transition.released

    def _write_failed(self, event: WriteFailed, now_ms: int) -> Actions:
        transition, token = self._pending.pop(event.write_id, _NOT_PENDING)
        if transition is None:
            return Actions()
        error = _AS_ACKNOWLEDGEMENT.get(event.error, ErrorCode.UNKNOWN_SERVER_ERROR)
        replies = [] if token is None else [Reply(token, error, event.message)]
        if event.error in _FENCED or self.phase is Phase.STARTING:
            ended = self._end(error)
            return ended._replace(replies=[*replies, *ended.replies])
        for first, last in transition.ranges:
            for at_ms, held_first, held_last in self.window.undo(first, last, event.write_id):
                self._locks.add(at_ms, held_first, held_last)
        # What has become of records at the end of their locks stays so; the next write tells of it.
        self._owed += transition.owed if transition.ranges else (*transition.owed, *transition.batches)
        dead_letters = [] if transition.ranges else transition.dead_letters
        return self._tick(Tick(), now_ms)._replace(replies=replies, dead_letters=dead_letters)

    # --- dead letters -------------------------------------------------------------------------------------------------

    def _dead_letters_sent(self, event: DeadLettersSent, now_ms: int) -> Actions:
        """Records that were given up are finished. As at the end of a lock, nothing waits for the write."""
        window = self.window
        first, last = event
        transition = Transition(next(self._write_ids))
        for entry in window.overlapping(first, last):
            for run in window.carve(entry, first, last):
                if run.is_archiving:
                    window.put(run, RecordState.ARCHIVED)
                    if run.last >= window.start:
                        transition.add_batch(run, run.state)
            entry.join(first, last)
        writes = [self._begin(transition)] if transition.batches else []
        window.advance()
        return Actions(writes=writes, wakes=True)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _drop(self, event: Drop, now_ms: int) -> Actions:
        return self._end(event.error)

    def _end(self, error: ErrorCode) -> Actions:
        """Nothing more is served from here; who waits for a write is told."""
        self.phase = Phase.DROPPED
        replies = [Reply(token, error) for _, token in self._pending.values() if token is not None]
        self._pending.clear()
        self._locks = Locks()
        return Actions(replies=replies, wakes=True, dropped=error)

    def _refuse(self, event: Event) -> Actions:
        """Somebody has not heard yet that this share partition is gone."""
        if isinstance(event, Acknowledge):
            return Actions(replies=[Reply(event.token, ErrorCode.NOT_LEADER_OR_FOLLOWER)])
        if isinstance(event, Acquire) or (isinstance(event, Release) and event.token is not None):
            return Actions(replies=[Reply(event.token)])
        return Actions()
