"""A share partition against a model that keeps the state of every single record.

The model decides nothing about which records a fetch gets: it takes what was handed out and checks that nobody else has
it, that the count has grown by one, that the lowest available offset came first. Everything else (acknowledgements,
ends of locks and sessions, writes that succeed or fail in any order, reloads) it predicts.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.core.share.partition import Actions, SharePartition, SharePartitionSettings
from ottla.core.share.partition.events import (
    Acknowledge,
    Acknowledgement,
    Acquire,
    Event,
    Loaded,
    LogStartMoved,
    ReadBatch,
    Release,
    StateBatch,
    Tick,
    Write,
    WriteDone,
    WriteFailed,
)
from ottla.core.share.partition.states import TARGETS, TERMINAL, AcquireMode, RecordState
from ottla.wire.errors import ErrorCode

LOCK_MS = 100
MEMBERS = ("a", "b", "c")
LIMIT = 4


class Record:
    """What the model knows of an offset that is in flight."""

    def __init__(self) -> None:
        self.state = RecordState.AVAILABLE
        self.delivery_count = 0
        self.member_id = ""
        self.lock_at_ms = 0
        self.write_id = -1
        self.target = RecordState.AVAILABLE

    @property
    def is_held(self) -> bool:
        return self.state is RecordState.ACQUIRED and self.write_id < 0

    def become(self, state: RecordState) -> None:
        self.state, self.write_id, self.member_id, self.lock_at_ms = state, -1, "", 0

    def shown(self) -> tuple[RecordState, int, str, int, int]:
        return self.state, self.delivery_count, self.member_id, self.lock_at_ms, self.write_id


class SharePartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.records: dict[int, Record] = {}
        self.start = 0
        self.kept: dict[int, tuple[int, int]] = {}
        """What the coordinator has of an offset: count and state."""
        self.kept_start = 0
        self.writes: list[Write] = []
        self.log: list[ReadBatch] = []

    @initialize(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12), locks=st.integers(10, 60))
    def begin(self, sizes: list[int], locks: int) -> None:
        first = 0
        for size in sizes:
            if size < 12:  # else it is a hole
                self.log.append(ReadBatch(first, first + size - 1))
            first += size
        self.settings = SharePartitionSettings(LOCK_MS, LIMIT, locks)
        self.load()

    # --- what happens -------------------------------------------------------------------------------------------------

    @rule(
        member_id=st.sampled_from(MEMBERS),
        max_records=st.integers(1, 30),
        batch_size=st.integers(1, 15),
        mode=st.sampled_from(AcquireMode),
        batch_count=st.integers(1, 5),
    )
    def fetch(self, member_id: str, max_records: int, batch_size: int, mode: AcquireMode, batch_count: int) -> None:
        if not self.partition.can_acquire:
            return
        offset = self.partition.next_fetch_offset
        read = [batch for batch in self.log if batch.last_offset >= offset][:batch_count]
        actions = self.step(Acquire("f", member_id, offset, read, max_records, batch_size, mode))
        self.compact(offset, read)
        taken = [
            (each, acquired.delivery_count)
            for acquired in actions.replies[0].acquired
            for each in range(acquired.first_offset, acquired.last_offset + 1)
        ]
        if mode is AcquireMode.RECORD_LIMIT:
            assert len(taken) <= max_records
        assert [each for each, _ in taken] == sorted({each for each, _ in taken})
        self.take(member_id, taken)
        self.move_start()

    def compact(self, offset: int, read: Sequence[ReadBatch]) -> None:
        if read:
            for each, record in self.records.items():
                if offset <= each < read[0].base_offset and record.state is RecordState.AVAILABLE:
                    record.become(RecordState.ARCHIVED)

    def take(self, member_id: str, taken: Sequence[tuple[int, int]]) -> None:
        available = [each for each, record in self.records.items() if record.state is RecordState.AVAILABLE]
        if taken and available:
            assert taken[0][0] <= min(available)
        for run in self.partition.window.runs():
            for offset in range(run.first, run.last + 1):
                self.records.setdefault(offset, Record())
        for offset, delivery_count in taken:
            record = self.records[offset]
            assert record.state is RecordState.AVAILABLE, f"{offset} has two holders"
            record.state, record.member_id = RecordState.ACQUIRED, member_id
            record.delivery_count += 1
            record.lock_at_ms = self.now_ms + LOCK_MS
            assert record.delivery_count == delivery_count

    @precondition(lambda self: self.records)
    @rule(member_id=st.sampled_from(MEMBERS), data=st.data())
    def acknowledge(self, member_id: str, data: st.DataObject) -> None:
        offsets = sorted(self.records)
        first = data.draw(st.integers(offsets[0] - 1, offsets[-1]))
        last = data.draw(st.integers(first, min(offsets[-1] + 1, first + 15)))
        # Not one strategy or another: where both are the same, whether hypothesis notices depends on what it remembers.
        count = last - first + 1 if data.draw(st.booleans()) else 1
        types = data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
        self.acknowledge_range(member_id, first, last, types)

    @precondition(lambda self: any(record.is_held for record in self.records.values()))
    @rule(data=st.data(), most=st.integers(1, 12), kind=st.integers(0, 4))
    def acknowledge_held(self, data: st.DataObject, most: int, kind: int) -> None:
        """What clients do."""
        first = data.draw(st.sampled_from(sorted(each for each, record in self.records.items() if record.is_held)))
        member_id = self.records[first].member_id
        last = first
        while last - first < most and (record := self.records.get(last + 1)) is not None:
            if not record.is_held or record.member_id != member_id:
                break
            last += 1
        self.acknowledge_range(member_id, first, last, [kind])

    def acknowledge_range(self, member_id: str, first: int, last: int, types: list[int]) -> None:
        actions = self.step(Acknowledge("k", member_id, [Acknowledgement(first, last, types)]))
        error = actions.replies[0].error if actions.replies else None
        assert error is not ErrorCode.INVALID_REQUEST or last not in self.records
        mine = [each for each in range(max(first, self.start), last + 1) if each in self.records]
        allowed = all(self.records[each].is_held and self.records[each].member_id == member_id for each in mine)
        assert allowed or error in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
        if error in (None, ErrorCode.NONE):
            self.expect_acknowledged(mine, types, first, actions)
        else:
            self.take_over_renewals(first, last, types)

    def take_over_renewals(self, first: int, last: int, types: list[int]) -> None:
        """A refused call may have renewed some locks before it was refused, and only that."""
        for run in self.partition.window.runs(first, last):
            for offset in range(max(first, run.first), min(last, run.last) + 1):
                kind = types[offset - first] if len(types) > 1 else types[0]
                if kind == 4 and run.is_held and run.lock_at_ms == self.now_ms + LOCK_MS:
                    self.records[offset].lock_at_ms = run.lock_at_ms

    def expect_acknowledged(self, mine: list[int], types: list[int], first: int, actions: Actions) -> None:
        for each in mine:
            kind = types[each - first] if len(types) > 1 else types[0]
            record = self.records[each]
            if kind == 4:
                record.lock_at_ms = self.now_ms + LOCK_MS
                continue
            record.write_id = actions.writes[0].write_id
            record.target = self.limited(TARGETS[kind], record)  # type: ignore[index]

    @rule(member_id=st.sampled_from(MEMBERS))
    def release(self, member_id: str) -> None:
        actions = self.step(Release(member_id))
        for offset, record in self.records.items():
            if record.is_held and record.member_id == member_id:
                record.write_id = actions.writes[0].write_id
                below = offset < self.start
                record.target = RecordState.ARCHIVED if below else self.limited(RecordState.AVAILABLE, record)

    @rule(by_ms=st.integers(1, LOCK_MS))
    def pass_time(self, by_ms: int) -> None:
        self.now_ms += by_ms
        self.step(Tick())
        self.end_locks()
        self.move_start()

    @precondition(lambda self: self.writes)
    @rule(data=st.data(), succeeds=st.booleans())
    def write(self, data: st.DataObject, succeeds: bool) -> None:
        """Outcomes come in any order; what is written arrives in the order in which it was asked for."""
        write = self.writes.pop(data.draw(st.integers(0, len(self.writes) - 1)))
        if succeeds:
            self.keep(write)
            self.step(WriteDone(write.write_id))
        else:
            self.step(WriteFailed(write.write_id, ErrorCode.NOT_COORDINATOR))
        for offset, record in self.records.items():
            if record.write_id == write.write_id:
                self.settle(offset, record, succeeds=succeeds)
        if not succeeds:
            self.end_locks()
        self.move_start()

    def settle(self, offset: int, record: Record, *, succeeds: bool) -> None:
        record.write_id = -1
        if succeeds:
            is_lost = record.target is RecordState.AVAILABLE and offset < self.start
            record.become(RecordState.ARCHIVED if is_lost else record.target)

    @precondition(lambda self: self.records)
    @rule(by=st.integers(1, 8))
    def move_log_start(self, by: int) -> None:
        log_start = self.start + by
        if log_start > self.log[-1].last_offset:
            return
        self.log = [batch for batch in self.log if batch.last_offset >= log_start]
        self.step(LogStartMoved(log_start))
        self.start = log_start
        for offset, record in self.records.items():
            if offset < log_start and record.state is RecordState.AVAILABLE:
                record.become(RecordState.ARCHIVED)
        self.move_start()

    @rule()
    def reload(self) -> None:
        """A new leader knows what was written, and no more."""
        accepted = {each for each, record in self.records.items() if record.state is RecordState.ACKNOWLEDGED}
        self.writes.clear()
        self.records.clear()
        self.load()
        for offset in accepted:
            assert offset < self.kept_start or self.kept[offset][1] == RecordState.ACKNOWLEDGED

    def teardown(self) -> None:
        """Whatever has happened, everything in the log is delivered and ends, if somebody accepts it."""
        if not self.log:
            return
        known = set(self.records)
        for _ in range(200):
            while self.writes:
                self.step(WriteDone(self.writes.pop().write_id))
            self.now_ms += LOCK_MS
            self.step(Tick())
            offset = self.partition.next_fetch_offset
            read = [batch for batch in self.log if batch.last_offset >= offset]
            actions = self.step(Acquire("f", "d", offset, read, 500, 500))
            acquired = actions.replies[0].acquired
            for each in acquired:
                known.update(range(each.first_offset, each.last_offset + 1))
                self.step(Acknowledge("k", "d", [Acknowledgement(each.first_offset, each.last_offset, [1])]))
            if not (acquired or self.writes or actions.wakes):
                break
        assert self.partition.window.entries == []
        assert self.partition.window.start > self.log[-1].last_offset
        in_log = {each for batch in self.log for each in range(batch.base_offset, batch.last_offset + 1)}
        assert {each for each in in_log if each >= self.start} <= known

    # --- the model ----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        batches = [
            StateBatch(offset, offset, state, delivery_count)
            for offset, (delivery_count, state) in sorted(self.kept.items())
            if offset >= self.kept_start
        ]
        self.partition = SharePartition(1, self.settings)
        self.step(Loaded(1, self.kept_start, batches))
        self.start = self.partition.window.start
        for run in self.partition.window.runs():
            for offset in range(run.first, run.last + 1):
                record = self.records[offset] = Record()
                record.state, record.delivery_count = run.state, run.delivery_count

    def step(self, event: Event) -> Actions:
        actions = self.partition.step(event, self.now_ms)
        self.writes.extend(actions.writes)
        return actions

    def keep(self, write: Write) -> None:
        self.kept_start = max(self.kept_start, write.start_offset)
        for batch in write.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                entry = (batch.delivery_count, batch.delivery_state)
                self.kept[offset] = max(entry, self.kept.get(offset, entry))

    def is_in_log(self, offset: int) -> bool:
        return any(batch.base_offset <= offset <= batch.last_offset for batch in self.log)

    @staticmethod
    def limited(state: RecordState, record: Record) -> RecordState:
        at_limit = state is RecordState.AVAILABLE and record.delivery_count >= LIMIT
        return RecordState.ARCHIVED if at_limit else state

    def end_locks(self) -> None:
        for offset, record in self.records.items():
            if record.is_held and record.lock_at_ms <= self.now_ms:
                below = offset < self.start
                record.become(RecordState.ARCHIVED if below else self.limited(RecordState.AVAILABLE, record))

    def move_start(self) -> None:
        """The window says how far it has come; nothing unfinished may lie behind, and nothing finished at the start."""
        start = self.partition.window.start
        assert start >= self.start
        for offset in range(self.start, start):
            if offset in self.records:
                assert self.records[offset].state in TERMINAL
            else:
                assert not self.is_in_log(offset), f"nobody ever got {offset}"
        at_start = self.records.get(start)
        assert at_start is None or at_start.state not in TERMINAL
        self.start = start
        in_window = {each for run in self.partition.window.runs() for each in range(run.first, run.last + 1)}
        for offset in [each for each in self.records if each not in in_window]:
            assert offset < start
            assert self.records.pop(offset).state in TERMINAL

    @invariant()
    def agrees(self) -> None:
        window = self.partition.window if hasattr(self, "partition") else None
        if window is None:
            return
        seen: dict[int, tuple[RecordState, int, str, int, int]] = {}
        for run in window.runs():
            for offset in range(run.first, run.last + 1):
                assert offset not in seen
                seen[offset] = (run.state, run.delivery_count, run.member_id, run.lock_at_ms, run.write_id)
        assert seen == {offset: record.shown() for offset, record in self.records.items()}
        finished = (
            record.target if record.write_id >= 0 else record.state
            for offset, record in self.records.items()
            if offset >= self.start
        )
        assert window.complete_count == sum(state in TERMINAL for state in finished)

    @invariant()
    def ranges_are_joined(self) -> None:
        """No two neighbours of an entry are alike, but for a border at the start."""
        for entry in self.partition.window.entries if hasattr(self, "partition") else ():
            assert entry.runs[0].first == entry.first
            assert entry.runs[-1].last == entry.last
            for left, right in zip(entry.runs, entry.runs[1:], strict=False):
                assert left.last + 1 == right.first

    @invariant()
    def due_time_is_known(self) -> None:
        if hasattr(self, "partition"):
            held = [record.lock_at_ms for record in self.records.values() if record.is_held]
            due_at_ms = self.partition._locks.due_at_ms
            assert not held or (due_at_ms is not None and due_at_ms <= min(held))


TestSharePartition = SharePartitionMachine.TestCase
TestSharePartition.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(2, 7))
@settings(max_examples=60, deadline=None)
def test_every_record_ends_when_all_is_released(sizes: list[int], limit: int) -> None:
    """Each gets as many deliveries as the limit allows, and then the window is empty."""
    partition = SharePartition(1, SharePartitionSettings(delivery_count_limit=limit))
    partition.step(Loaded(1, 0), 0)
    log, first = [], 0
    for size in sizes:
        log.append(ReadBatch(first, first + size - 1))
        first += size
    deliveries = [0] * first
    while True:
        offset = partition.next_fetch_offset
        read = [batch for batch in log if batch.last_offset >= offset]
        acquired = partition.step(Acquire("f", "a", offset, read, 500, 500), 0).replies[0].acquired
        if not acquired:
            break
        for each in acquired:
            for delivered in range(each.first_offset, each.last_offset + 1):
                deliveries[delivered] += 1
        (write,) = partition.step(Release("a"), 0).writes
        partition.step(WriteDone(write.write_id), 0)
    assert deliveries == [limit] * first
    assert (partition.window.start, partition.window.entries) == (first, [])
