"""Replaying what a log holds, whatever it holds."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ottla.broker.coordinators.replay import Replay
from ottla.core.coordinator.records import encode_record
from ottla.wire.batch import BatchBuilder, build_control_batch, build_end_txn_marker, split_batches
from ottla.wire.batch import ControlRecordType as Type
from ottla.wire.types import LeaderChangeMessage
from tests.unit.broker.coordinators.bench import TOPIC
from tests.unit.broker.coordinators.ledger import Ledger, put


def replay(*batches: bytes) -> tuple[Ledger, Replay]:
    core = Ledger()
    taken = Replay(core, TOPIC)
    for batch in split_batches(b"".join(batches)):
        taken.take(batch)
    return core, taken


def batch(*records: tuple[bytes | None, bytes | None], offset: int = 0, **header: int | bool) -> bytes:
    builder = BatchBuilder(offset)
    for key, value in records:
        builder.append(0, key, value)
    return builder.build(**header)  # type: ignore[arg-type]


def marker(producer_id: int, *, committed: bool) -> bytes:
    return build_end_txn_marker(
        committed=committed, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0, timestamp=0
    )


GOOD = encode_record(put("a", 5))
OTHER = encode_record(put("b", 6))


def test_records_come_with_their_offsets() -> None:
    core, taken = replay(batch(GOOD, OTHER, offset=10))
    assert core.numbers == {"a": 5, "b": 6}
    assert core.offsets == [10, 11]
    assert taken.record_count == 2


def test_a_compressed_batch() -> None:
    core, _ = replay(batch(*[GOOD] * 20, compression=4))
    assert len(core.offsets) == 20


@pytest.mark.parametrize(("committed", "numbers"), [(True, {"a": 5}), (False, {})])
def test_a_transaction(committed: bool, numbers: dict[str, int]) -> None:
    data = batch(GOOD, producer_id=9, producer_epoch=0, is_transactional=True)
    core, _ = replay(data, marker(9, committed=committed))
    assert core.numbers == numbers
    assert core.open == {}


def test_a_producer_without_a_transaction_is_none() -> None:
    core, _ = replay(batch(GOOD, producer_id=9, producer_epoch=0, base_sequence=0))
    assert core.numbers == {"a": 5}


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ((None, b"value"), "a record without a key"),
        ((b"\x00", b"value"), "type 00"),
        ((b"\x7f\xff" + b"later", b"value"), "type 7fff"),
        ((GOOD[0], b"\x00\x63nonsense"), "type 0001"),
        ((GOOD[0], b""), "type 0001"),
        ((GOOD[0][:5], GOOD[1]), "type 0001"),
    ],
)
def test_what_cannot_be_read_is_passed_over_and_told_once(
    bad: tuple[bytes | None, bytes | None], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    core, taken = replay(batch(bad, GOOD, bad, OTHER))
    assert core.numbers == {"a": 5, "b": 6}
    assert [(kind in name, count) for name, count in taken.faults.items()] == [(True, 2)]
    assert len(caplog.records) == 1
    assert "offset 0" in caplog.text


def test_a_batch_that_cannot_be_read_is_passed_over() -> None:
    whole = bytearray(batch(GOOD, GOOD, compression=4))
    whole[-1] ^= 0xFF
    whole[-5] ^= 0xFF
    core, taken = replay(bytes(whole), batch(OTHER, offset=2))
    assert core.numbers == {"b": 6}
    assert list(taken.faults) == ["a batch that cannot be read"]


def test_a_record_that_the_core_cannot_take_is_passed_over() -> None:
    core = Ledger()
    taken = Replay(core, TOPIC)
    core.is_frail = True
    taken.take(next(split_batches(batch(GOOD))))
    core.is_frail = False
    taken.take(next(split_batches(batch(OTHER))))
    assert core.numbers == {"b": 6}
    assert list(taken.faults) == ["OffsetCommitKey that does not fit"]


def test_other_control_records_say_nothing_here() -> None:
    control = build_control_batch(
        [(Type.LEADER_CHANGE, LeaderChangeMessage(leader_id=1))], base_offset=0, timestamp=0, partition_leader_epoch=0
    )
    core, taken = replay(control, batch(GOOD))
    assert core.numbers == {"a": 5}
    assert not taken.faults


def test_a_large_batch_is_replayed_in_small_steps() -> None:
    core = Ledger()
    taken = Replay(core, TOPIC)
    (large,) = split_batches(batch(*[GOOD] * 1000))
    seen = [len(core.offsets) for _ in taken.steps(large)]
    assert max(after - before for before, after in pairwise([0, *seen])) <= 32
    assert len(core.offsets) == 1000
