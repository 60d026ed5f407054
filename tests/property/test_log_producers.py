"""Producers, transactions and snapshots beside a model that forgets nothing and decides by the rules' own words."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.disk import OsDisk
from ottla.log.errors import InvalidProducerEpochError, InvalidTxnStateError, LogError, OutOfOrderSequenceError
from ottla.log.files import Directory, LogStorage
from ottla.log.producer_snapshot import format_snapshot, parse_snapshot
from ottla.log.producer_state import Origin, ProducerState, Verification
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import BatchBuilder, BatchView, build_end_txn_marker, read_header

NOW = 1_700_000_000_000
MODULUS = 2**31


@dataclass
class Known:
    """All that the model knows of one producer."""

    epoch: int = -1
    written: list[tuple[int, int, int]] = field(default_factory=list)
    """First sequence, number of records and base offset of each batch of the epoch."""
    open_since: int | None = None

    def next_sequence(self) -> int | None:
        if not self.written:
            return None
        first, count, _ = self.written[-1]
        return (first + count) % MODULUS

    def expected(self, epoch: int, first: int, count: int, *, transactional: bool) -> int | type[LogError] | None:
        """The old offset, the error, or None: to be written."""
        if epoch == self.epoch:
            for known_first, known_count, offset in self.written[-5:]:
                if (known_first, known_count) == (first, count):
                    return offset
        if epoch < self.epoch:
            return InvalidProducerEpochError
        if self.epoch != -1 and epoch > self.epoch and first != 0:
            return OutOfOrderSequenceError
        wanted = 0 if self.next_sequence() is None else self.next_sequence()
        if epoch == self.epoch and first != wanted:
            return OutOfOrderSequenceError
        if self.open_since is not None and not transactional:
            return InvalidTxnStateError
        return None

    def write(self, epoch: int, first: int, count: int, offset: int, *, transactional: bool) -> None:
        self.enter(epoch)
        self.written.append((first, count, offset))
        if transactional and self.open_since is None:
            self.open_since = offset

    def enter(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.written = epoch, []


produced = st.tuples(
    st.just("produce"),
    st.sampled_from([0, 0, 0, 0, 1, 2]),  # producer
    st.sampled_from([0] * 14 + [1, -1]),  # epoch, relative to the known one
    st.sampled_from(["next"] * 7 + [1, 4, 5, 6, "zero", "wild"]),  # a number: that batch again, from the end
    st.integers(1, 4),  # records
    st.sampled_from([False] * 5 + [True]),  # transactional
)
ended = st.tuples(st.just("end"), st.integers(0, 2), st.booleans(), st.integers(0, 1))
replicated = st.tuples(st.just("replicate"), st.integers(0, 3))
restarted = st.tuples(st.just("restart"))
steps = st.lists(st.one_of(*[produced] * 12, ended, replicated, restarted), min_size=20, max_size=60)


class CheckedProducers:
    def __init__(self, directory: str) -> None:
        self.directory = Directory(LogStorage(OsDisk(durable=False)), directory)
        self.state = ProducerState(self.directory)
        self.model = [Known() for _ in range(3)]
        self.end = 0
        self.watermark = 0
        self.decided: list[tuple[int, int]] = []
        """First offset and marker of each transaction that ended."""

    def choose(self, known: Known, kind: str | int, count: int) -> tuple[int, int]:
        """First sequence and number of records."""
        following = known.next_sequence()
        if isinstance(kind, int) and len(known.written) >= kind:
            return known.written[-kind][:2]
        if kind == "wild":
            return 17, count
        return (0 if kind == "zero" or following is None else following), count

    def produce(self, producer: int, relative: int, kind: str | int, count: int, transactional: bool) -> None:
        known = self.model[producer]
        epoch = max(0, known.epoch + relative)
        first, count = self.choose(known, kind, count)
        batch = batch_of(producer, epoch, first, count, transactional)
        expected = known.expected(epoch, first, count, transactional=transactional)
        outcome = self.attempt(batch)
        assert outcome == expected
        if expected is None:
            known.write(epoch, first, count, self.end, transactional=transactional)
            self.state.add(batch, self.end, NOW)
            self.end += count

    def attempt(self, batch: BatchView) -> int | type[LogError] | None:
        guard = self.state.verification_guard(batch.producer_id)
        try:
            duplicate = self.state.check(batch, Origin.CLIENT, Verification(guard))
        except LogError as error:
            return type(error)
        return None if duplicate is None else duplicate.first_offset

    def end_transaction(self, producer: int, committed: bool, bump: int) -> None:
        known = self.model[producer]
        epoch = max(0, known.epoch) + bump
        data = build_end_txn_marker(
            committed=committed, coordinator_epoch=0, producer_id=producer, producer_epoch=epoch, timestamp=NOW
        )
        batch = read_header(data)
        self.state.check(batch, Origin.COORDINATOR, Verification(transaction_version=0))
        aborted = self.state.add(batch, self.end, NOW)
        known.enter(epoch)
        others = [one.open_since for one in self.model if one is not known and one.open_since is not None]
        if known.open_since is None:
            assert aborted is None
        else:
            stable = min(others, default=self.end + 1)
            expected = AbortedTxn(producer, known.open_since, self.end, stable)
            assert aborted == (None if committed else expected)
            self.decided.append((known.open_since, self.end))
        known.open_since = None
        self.end += 1

    def replicate(self, amount: int) -> None:
        self.watermark = min(self.end, self.watermark + amount)
        self.state.on_high_watermark(self.watermark)

    def restart(self) -> None:
        """Only the newest batch of each producer survives, and only what the log has replicated is waited for."""
        self.state.map_end_offset = self.end
        self.state.take_snapshot(-1, sync=False)
        before = format_snapshot(self.state.entries)
        assert format_snapshot(parse_snapshot(before)) == before
        self.state = ProducerState(self.directory, [self.end])
        assert self.state.load_newest_snapshot(0, NOW, 10**9) == []
        assert format_snapshot(self.state.entries) == before
        for known in self.model:
            known.written = known.written[-1:]
        self.watermark = self.end
        self.state.on_high_watermark(self.watermark)

    def check(self) -> None:
        waiting = [known.open_since for known in self.model if known.open_since is not None]
        waiting += [first for first, last in self.decided if last >= self.watermark]
        assert self.state.first_unstable_offset == min(waiting, default=None)


def batch_of(producer: int, epoch: int, first: int, count: int, transactional: bool) -> BatchView:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(NOW, None, b"")
    header: dict[str, Any] = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": first}
    return read_header(builder.build(is_transactional=transactional, **header))


@settings(max_examples=300)
@given(steps=steps, start=st.sampled_from([0, MODULUS - 3]))
def test_producers_are_judged_by_the_rules(steps: list[tuple[Any, ...]], start: int):
    with tempfile.TemporaryDirectory(prefix="ottla-producers-") as directory:
        checked = CheckedProducers(directory)
        if start:  # near the end of the numbers, so that they wrap
            checked.produce(0, 0, "zero", 1, False)
            checked.model[0] = Known()
            checked.state = ProducerState(checked.directory)
            batch = batch_of(0, 0, start, 2, False)
            checked.state.add(batch, checked.end, NOW)
            checked.model[0].write(0, start, 2, checked.end, transactional=False)
            checked.end += 2
        handlers = {
            "produce": checked.produce,
            "end": checked.end_transaction,
            "replicate": checked.replicate,
            "restart": checked.restart,
        }
        for name, *arguments in steps:
            handlers[name](*arguments)
            checked.check()
