"""The offsets of a share partition that are in flight.

Theory of operation. The window is a list of *entries* in the order of offsets, each a list of *runs*: neighbouring
offsets with the same state, delivery count, owner and lock. An entry is what was once acquired together; it leaves the
window as a whole, and the delivery throttle goes by its size. A run is cut where something happens to a part of it and
joined with its neighbours when they have become equal, so that cost follows the number of ranges, not of records.

    start             the first offset that is not known to be finished
    end               the last offset that was ever acquired; of an empty window the next one to fetch
    complete_count    finished offsets at or above the start, with those whose writing is under way
    gap_start         after a load: holes from here to the loaded end may hold records that were never handed out.
                      Other holes are natural: the log has nothing there

A transition that must be written first is *pending*: the run stays ACQUIRED, with a `target` and the id of the write,
until `complete` or `undo`. Meanwhile nobody can fetch or acknowledge it.

Everything that changes a run's state is here, so that the counts cannot go wrong elsewhere.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Final

from ottla.core.share.partition.events import StateBatch
from ottla.core.share.partition.states import TERMINAL, RecordState

__all__ = ["NO_WRITE", "Entry", "Run", "Window"]

NO_WRITE: Final = -1
NOBODY: Final = ""


class Run:
    """Offsets from `first` to `last`, both included, that are alike in everything."""

    __slots__ = (
        "acquired_at_ms",
        "delivery_count",
        "first",
        "last",
        "lock_at_ms",
        "member_id",
        "state",
        "target",
        "write_id",
    )

    def __init__(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = NOBODY
        self.acquired_at_ms = 0
        self.lock_at_ms = 0
        self.target = state
        """What it will be when the write `write_id` is done."""
        self.write_id = NO_WRITE

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_acquirable(self) -> bool:
        return self.state is RecordState.AVAILABLE

    @property
    def is_held(self) -> bool:
        """Acquired, and nothing is being done about it."""
        return self.state is RecordState.ACQUIRED and self.write_id == NO_WRITE

    @property
    def is_finished(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_archiving(self) -> bool:
        """On its way to a dead-letter queue."""
        return self.state is RecordState.ARCHIVING

    def cut(self, first: int) -> Run:
        """Take the part from an offset on out of this run."""
        rest = Run(first, self.last, self.state, self.delivery_count)
        rest.member_id, rest.acquired_at_ms, rest.lock_at_ms = self.member_id, self.acquired_at_ms, self.lock_at_ms
        rest.target, rest.write_id = self.target, self.write_id
        self.last = first - 1
        return rest

    def is_like(self, other: Run) -> bool:
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.lock_at_ms == other.lock_at_ms
            and self.acquired_at_ms == other.acquired_at_ms
            and self.target is other.target
            and self.write_id == other.write_id
        )


_first: Final[Callable[[Run | Entry], int]] = attrgetter("first")
"""For searching."""


class Entry:
    """What was acquired, or loaded, together."""

    __slots__ = ("first", "last", "runs")

    def __init__(self, first: int, last: int, runs: list[Run]) -> None:
        self.first = first
        self.last = last
        self.runs = runs

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def overlapping(self, first: int, last: int) -> list[Run]:
        """The runs that have a part between two offsets."""
        if first <= self.first and self.last <= last:
            return self.runs[:]
        if len(self.runs) == 1:
            return [run for run in self.runs if first <= run.last and run.first <= last]
        low = max(0, bisect_right(self.runs, first, key=_first) - 1)
        high = bisect_right(self.runs, last, key=_first)
        return [run for run in self.runs[low:high] if run.last >= first]

    def carve(self, first: int, last: int) -> list[Run]:
        """The runs between two offsets, cut so that they reach no further."""
        if first > self.first:
            self.cut_at(first)
        if last < self.last:
            self.cut_at(last + 1)
        return self.overlapping(first, last)

    def cut_at(self, offset: int) -> None:
        if not self.first < offset <= self.last:
            return
        index = bisect_right(self.runs, offset, key=_first) - 1
        if self.runs[index].first < offset:
            self.runs.insert(index + 1, self.runs[index].cut(offset))

    def join(self, first: int, last: int) -> None:
        """Make one run of neighbours that are alike, from just before an offset to just after another."""
        if len(self.runs) == 1:
            return
        low = max(0, bisect_left(self.runs, first, key=_first) - 1)
        high = min(len(self.runs), bisect_right(self.runs, last, key=_first) + 1)
        joined = [self.runs[low]]
        for run in self.runs[low + 1 : high]:
            if joined[-1].is_like(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self.runs[low:high] = joined


class Window:
    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.entries: list[Entry] = []
        self.complete_count = 0
        self.gap_start: int | None = None
        self._available_from: int | None = None
        """No offset below is acquirable; None if none is at all."""

    @classmethod
    def load(cls, start_offset: int, batches: Iterable[StateBatch]) -> Window:
        """The window that the coordinator has kept. Raises ValueError for batches that no leader would have written."""
        window = cls(start_offset)
        next_offset = start_offset
        gap_start = None
        for batch in sorted(batches):
            state = RecordState(batch.delivery_state)
            if state is RecordState.ACQUIRED or not next_offset <= batch.first_offset <= batch.last_offset:
                raise ValueError(f"{batch} does not belong behind {next_offset - 1}")
            if gap_start is None and batch.first_offset > next_offset:
                gap_start = next_offset
            run = Run(batch.first_offset, batch.last_offset, state, batch.delivery_count)
            window.insert(Entry(batch.first_offset, batch.last_offset, [run]))
            next_offset = batch.last_offset + 1
        window.start = start_offset  # there may be a gap in front of the first entry
        window.gap_start = gap_start
        window.advance()
        return window

    # --- questions ----------------------------------------------------------------------------------------------------

    @property
    def in_flight_count(self) -> int:
        """Finished offsets and holes count, too."""
        entries = self.entries
        return self.end - self.start + 1 if entries and entries[-1].last >= self.start else 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing at or above the start is in flight."""
        entries = self.entries
        return not entries or entries[-1].last < self.start

    @property
    def next_fetch_offset(self) -> int:
        """Where to read: the lowest offset to deliver again, or a hole after a load, or what comes after the window."""
        if self.is_idle:
            return self.end
        if self.gap_start is None:
            offset = self._first_available()
        else:
            offset = self._first_available_or_gap(max(self.gap_start, self.start))
        return self.end + 1 if offset is None else offset

    def reach(self, max_records: int, room: int) -> int:
        """Where a fetch ends that may get so many records, and of new ones as many as there is room for."""
        end = self.end - 1 if self.is_idle else self.end
        available = None if self.gap_start is not None else self._first_available()
        if available is not None:
            for entry in self.entries[max(0, self._floor(available)) :]:
                max_records -= sum(run.size for run in entry.runs if run.is_acquirable)
                if max_records <= 0:
                    return entry.last
        return end + min(max_records, room)

    def _first_available(self) -> int | None:
        if self._available_from is None:
            return None
        for index in range(max(0, self._floor(self._available_from)), len(self.entries)):
            for run in self.entries[index].runs:
                if run.is_acquirable:
                    self._available_from = run.first
                    return run.first
        self._available_from = None
        return None

    def _first_available_or_gap(self, gap: int) -> int | None:
        for entry in self.entries:
            if entry.first > gap:
                return gap
            gap = max(gap, entry.last + 1)
            for run in entry.runs:
                if run.is_acquirable:
                    return run.first
        return None

    def _floor(self, offset: int) -> int:
        """The index of the last entry that begins at or before an offset; -1 if there is none."""
        return bisect_right(self.entries, offset, key=_first) - 1

    def floor(self, offset: int) -> Entry | None:
        index = self._floor(offset)
        return None if index < 0 else self.entries[index]

    def overlapping(self, first: int, last: int) -> list[Entry]:
        """The entries that have a part between two offsets."""
        if len(self.entries) == 1:
            return [entry for entry in self.entries if first <= entry.last and entry.first <= last]
        low = max(0, self._floor(first))
        high = bisect_right(self.entries, last, key=_first)
        return [entry for entry in self.entries[low:high] if entry.last >= first]

    def runs(self, first: int | None = None, last: int | None = None) -> Iterator[Run]:
        """All runs, or those that have a part between two offsets."""
        if first is None or last is None:
            for entry in self.entries:
                yield from entry.runs
            return
        for entry in self.overlapping(first, last):
            yield from entry.overlapping(first, last)

    def held_by(self, member_id: str) -> list[Run]:
        """What a member holds; cut at the start, as by `carve`."""
        runs = [run for entry in self.entries for run in entry.runs if run.member_id == member_id and run.is_held]
        for index, run in enumerate(runs):
            if run.first < self.start <= run.last:
                entry = self.entries[self._floor(run.first)]
                runs[index : index + 1] = self.carve(entry, run.first, run.last)
                break
        return runs

    def carve(self, entry: Entry, first: int, last: int) -> list[Run]:
        """The runs of an entry between two offsets, cut there and at the start: below it other rules hold."""
        if entry.first < self.start:
            entry.cut_at(self.start)
        return entry.carve(first, last)

    # --- what changes a run -------------------------------------------------------------------------------------------

    def insert(self, entry: Entry) -> None:
        """Take in an entry; the offsets must not be in the window yet."""
        index = self._floor(entry.first) + 1
        if index == 0 or self.is_idle:
            self.start = max(self.start, entry.first)
        self.entries.insert(index, entry)
        self.end = max(self.end, entry.last)
        for run in entry.runs:
            if run.is_acquirable:
                self._offer(run.first)
            elif run.is_finished:
                self.complete_count += self._counted(run)

    def acquire(self, run: Run, member_id: str, now_ms: int, lock_at_ms: int) -> None:
        run.state = run.target = RecordState.ACQUIRED
        run.delivery_count += 1
        run.member_id = member_id
        run.acquired_at_ms = now_ms
        run.lock_at_ms = lock_at_ms

    def begin(self, run: Run, target: RecordState, write_id: int) -> None:
        """Start a transition that is done when it is written."""
        run.target = target
        run.write_id = write_id
        if target in TERMINAL:
            self.complete_count += self._counted(run)

    def complete(self, first: int, last: int, write_id: int) -> None:
        for entry in self.overlapping(first, last):
            for run in self.carve(entry, first, last):
                if run.write_id == write_id:
                    run.write_id = NO_WRITE
                    self._become(run, run.target)
            entry.join(first, last)

    def undo(self, first: int, last: int, write_id: int) -> list[tuple[int, int, int]]:
        """Take back transitions; gives the locks that are held again, as `Locks` wants them."""
        held = []
        for entry in self.overlapping(first, last):
            for run in entry.overlapping(first, last):
                if run.write_id == write_id:
                    if run.target in TERMINAL:
                        self.complete_count -= self._counted(run)
                    run.target = run.state
                    run.write_id = NO_WRITE
                    held.append((run.lock_at_ms, run.first, run.last))
            entry.join(first, last)
        return held

    def put(self, run: Run, state: RecordState) -> None:
        """Give a run a new state at once, without waiting for a write."""
        if state in TERMINAL:
            self.complete_count += self._counted(run)
        self._become(run, state)

    def _become(self, run: Run, state: RecordState) -> None:
        run.state = run.target = state
        run.member_id = NOBODY
        run.acquired_at_ms = run.lock_at_ms = 0
        if state in TERMINAL:
            return
        if run.last < self.start:  # the log has lost it while somebody held it
            run.state = run.target = RecordState.ARCHIVED
        elif state is RecordState.AVAILABLE:
            self._offer(run.first)

    def archive_available(self, first: int, last: int) -> bool:
        """Finish what can never be delivered again, in memory alone; whether there was anything."""
        found = False
        for entry in self.overlapping(first, last):
            if not any(run.is_acquirable for run in entry.overlapping(first, last)):
                continue
            for run in self.carve(entry, first, last):
                if run.is_acquirable:
                    self.put(run, RecordState.ARCHIVED)
                    found = True
            entry.join(first, last)
        return found

    def _offer(self, offset: int) -> None:
        if self._available_from is None or offset < self._available_from:
            self._available_from = offset

    def _counted(self, run: Run) -> int:
        """How many offsets of a run are at or above the start."""
        return max(0, run.last - max(run.first, self.start) + 1)

    # --- the start ----------------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Move the start past what is finished, and let entries go; whether it moved."""
        before = self.start
        behind = self._pass_entries()
        if behind:  # entries of which somebody holds a part stay
            held = [entry for entry in self.entries[:behind] if not all(run.is_finished for run in entry.runs)]
            self.entries[:behind] = held
        if self.is_idle:
            self.end = self.start
            self.gap_start = self._available_from = None
        return self.start != before

    def _pass_entries(self) -> int:
        """Move the start over entries while they are finished; how many entries are below it then."""
        for index, entry in enumerate(self.entries):
            if entry.last >= self.start and not self._pass(entry):
                return index
        return len(self.entries)

    def _pass(self, entry: Entry) -> bool:
        """Move the start to the first unfinished offset of an entry, or past it; whether the entry is behind now."""
        if entry.first > self.start and self.gap_start is not None and self.gap_start < entry.first:
            return False
        for run in entry.runs:
            if run.last < self.start:
                continue
            if not run.is_finished:
                self.start = max(self.start, run.first)
                return False
            self.complete_count -= self._counted(run)
            self.start = run.last + 1
        return True

    def move_start(self, offset: int) -> None:
        """The log begins at an offset now: what was available below is gone. What is held stays until its lock ends."""
        self.archive_available(self.start, offset - 1)
        self.start = offset
        self.end = max(self.end, offset)
        self.complete_count = sum(self._counted(run) for run in self.runs() if run.target in TERMINAL)

    def close_gap(self, up_to: int) -> None:
        """Holes up to an offset have been read: those that are left are natural."""
        if self.gap_start is not None:
            self.gap_start = max(self.gap_start, up_to + 1)
            if self.gap_start > self.end:
                self.gap_start = None
