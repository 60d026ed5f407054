"""Sequence numbers, epochs, transactions and snapshots of producers, without a log."""

from pathlib import Path
from typing import Any

import pytest

from ottla.log.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    LogError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from ottla.log.files import Directory
from ottla.log.producer_entry import BatchMetadata
from ottla.log.producer_snapshot import SnapshotError, format_snapshot, parse_snapshot
from ottla.log.producer_state import Origin, ProducerState, Verification
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import BatchView, build_control_batch, read_header
from ottla.wire.batch_control import ControlRecordType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.control_records import LeaderChangeMessage
from tests.unit.log.logs import NOW, marker, producer_batch

SEQUENCE_MAX = 2**31 - 1
DAY = 86_400_000


@pytest.fixture
def state(tmp_path: Path) -> ProducerState:
    return ProducerState(Directory(new_storage(), str(tmp_path)))


def new_storage():
    from tests.unit.log import logs

    return logs.new_storage()


def view(data: bytearray) -> BatchView:
    return read_header(data)


class Log:
    """Appends to a state as a leader would, and counts offsets."""

    def __init__(self, state: ProducerState) -> None:
        self.state = state
        self.end = 0

    def produce(self, producer_id: int, first_sequence: int, **rest: Any) -> int:
        """The base offset, old or new."""
        verification = rest.pop("verification", Verification(guard=self.state.verification_guard(producer_id)))
        batch = view(producer_batch(producer_id, first_sequence, **rest))
        duplicate = self.state.check(batch, Origin.CLIENT, verification)
        return self.note(batch) if duplicate is None else duplicate.first_offset

    def end_transaction(self, producer_id: int, *, version: int = 0, **rest: Any) -> AbortedTxn | None:
        batch = view(marker(producer_id, **rest))
        self.state.check(batch, Origin.COORDINATOR, Verification(transaction_version=version))
        aborted = self.state.add(batch, self.end, NOW)
        self.end += 1
        return aborted

    def note(self, batch: BatchView) -> int:
        offset = self.end
        self.state.add(batch, offset, batch.max_timestamp)
        self.end += batch.last_offset_delta + 1
        return offset


@pytest.fixture
def log(state: ProducerState) -> Log:
    return Log(state)


def test_sequence_numbers_go_on_where_they_ended(log: Log):
    assert log.produce(7, 0, count=3) == 0
    assert log.produce(7, 3, count=2) == 3
    for wrong in (4, 6, 0, 100):
        with pytest.raises(OutOfOrderSequenceError) as caught:
            log.produce(7, wrong)
        assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.produce(7, 5) == 5


def test_sequence_numbers_wrap(log: Log):
    assert log.produce(7, SEQUENCE_MAX - 1, count=2) == 0
    assert log.produce(7, 0) == 2
    assert log.produce(8, SEQUENCE_MAX, count=3) == 3  # the batch itself wraps: max, 0, 1
    assert log.produce(8, 2) == 6
    assert log.produce(8, SEQUENCE_MAX, count=3) == 3  # and is recognised


def test_the_last_five_batches_are_recognised(log: Log):
    for number in range(6):
        assert log.produce(7, number * 2, count=2) == number * 2
    for number in range(1, 6):
        assert log.produce(7, number * 2, count=2) == number * 2
    assert log.end == 12
    with pytest.raises(OutOfOrderSequenceError):
        log.produce(7, 0, count=2)


def test_a_batch_that_overlaps_a_known_one_is_no_duplicate(log: Log):
    log.produce(7, 0, count=3)
    for first, count in ((0, 2), (1, 2), (0, 4)):
        with pytest.raises(OutOfOrderSequenceError):
            log.produce(7, first, count=count)


def test_an_unknown_producer_may_begin_anywhere(log: Log):
    assert log.produce(7, 7) == 0
    with pytest.raises(OutOfOrderSequenceError):
        log.produce(7, 9)
    assert log.produce(7, 8) == 1


def test_a_new_epoch_begins_at_zero_and_shuts_out_the_old_one(log: Log):
    log.produce(7, 0, count=3)
    with pytest.raises(OutOfOrderSequenceError):
        log.produce(7, 3, epoch=1)
    assert log.produce(7, 0, epoch=1) == 3
    with pytest.raises(InvalidProducerEpochError) as caught:
        log.produce(7, 3, epoch=0)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(InvalidProducerEpochError):
        log.produce(7, 0, count=3, epoch=0)  # not even as a duplicate


def test_what_a_leader_has_accepted_is_not_judged_again(log: Log):
    log.produce(7, 0, epoch=5)
    log.note(view(producer_batch(7, 77, epoch=3)))
    entry = log.state.entry(7)
    assert entry is not None
    assert (entry.producer_epoch, entry.last_sequence) == (3, 77)


def test_a_coordinators_batches_have_no_sequence_to_check(log: Log):
    log.produce(7, 0)
    batch = view(producer_batch(7, -1))
    assert log.state.check(batch, Origin.COORDINATOR, Verification()) is None


# --- transactions -----------------------------------------------------------------------------------------------------


def test_a_transaction_holds_the_stable_offset_until_its_marker_is_replicated(log: Log):
    log.produce(1, 0)
    log.produce(7, 0, transactional=True)
    log.produce(7, 1, transactional=True)
    assert log.state.first_unstable_offset == 1
    assert log.state.has_ongoing_transaction(7, 0)
    assert log.end_transaction(7, committed=True) is None
    assert not log.state.has_ongoing_transaction(7, 0)
    assert log.state.first_unstable_offset == 1
    log.state.on_high_watermark(3)
    assert log.state.first_unstable_offset == 1
    log.state.on_high_watermark(4)
    assert log.state.first_unstable_offset is None


def test_the_oldest_of_several_transactions_counts(log: Log):
    for producer in (1, 2, 3):
        log.produce(producer, 0, transactional=True)
    assert log.end_transaction(1, committed=False) == AbortedTxn(1, 0, 3, 1)
    log.state.on_high_watermark(log.end)
    assert log.state.first_unstable_offset == 1
    assert log.end_transaction(3, committed=False) == AbortedTxn(3, 2, 4, 1)
    assert log.end_transaction(2, committed=False) == AbortedTxn(2, 1, 5, 6)
    assert log.state.first_unstable_offset == 1  # markers 4 and 5 are not replicated yet
    log.state.on_high_watermark(log.end)
    assert log.state.first_unstable_offset is None


def test_a_marker_without_data_changes_no_offsets(log: Log):
    assert log.end_transaction(7, committed=False, epoch=3, coordinator_epoch=9) is None
    assert log.state.first_unstable_offset is None
    entry = log.state.entry(7)
    assert entry is not None
    assert (entry.producer_epoch, entry.coordinator_epoch, entry.last_sequence) == (3, 9, -1)
    assert log.produce(7, 0, epoch=3) == 1


def test_within_an_epoch_sequence_numbers_go_on_after_a_marker(log: Log):
    log.produce(7, 0, transactional=True)
    log.end_transaction(7, committed=True)
    with pytest.raises(OutOfOrderSequenceError):
        log.produce(7, 0, transactional=True, count=2)
    log.produce(7, 1, transactional=True)


def test_other_batches_may_not_be_mixed_in(log: Log):
    log.produce(7, 0, transactional=True)
    with pytest.raises(InvalidTxnStateError) as caught:
        log.produce(7, 1)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE


def test_a_transaction_must_be_known_to_its_coordinator(log: Log):
    with pytest.raises(InvalidTxnStateError):
        log.produce(7, 0, transactional=True, verification=Verification())
    assert log.state.entry(7) is None
    log.produce(7, 0, transactional=True)
    log.produce(7, 1, transactional=True, verification=Verification())  # it is open: no need to ask again


def test_a_marker_makes_an_earlier_verification_void(log: Log):
    guard = log.state.verification_guard(7)
    log.end_transaction(7, committed=False)
    with pytest.raises(InvalidTxnStateError):
        log.produce(7, 0, transactional=True, verification=Verification(guard=guard))
    log.produce(7, 0, transactional=True)


def test_with_version_2_the_marker_of_the_last_transaction_may_come_in_between(log: Log):
    log.produce(7, 0, transactional=True, verification=Verification(0, 2))
    guard = log.state.verification_guard(7)
    log.end_transaction(7, committed=False, epoch=1, version=2)
    log.produce(7, 0, epoch=1, transactional=True, verification=Verification(guard, 2))


def test_a_stale_epoch_is_named_before_a_missing_verification(log: Log):
    log.end_transaction(7, committed=True, epoch=5)
    with pytest.raises(InvalidProducerEpochError):
        log.produce(7, 0, epoch=4, transactional=True, verification=Verification())


def test_a_transaction_of_version_2_begins_at_sequence_zero(log: Log):
    with pytest.raises(OutOfOrderSequenceError):
        log.produce(7, 4, transactional=True, verification=Verification(0, 2))
    log.produce(7, 4, transactional=True, verification=Verification(0, 1))


@pytest.mark.parametrize(
    ("version", "epoch", "is_open", "error"),
    [
        (0, 4, True, InvalidProducerEpochError),
        (0, 5, True, None),
        (1, 6, True, None),
        (2, 4, True, InvalidProducerEpochError),
        (2, 4, False, InvalidProducerEpochError),
        (2, 5, True, InvalidProducerEpochError),
        (2, 5, False, None),
        (2, 6, True, None),
    ],
)
def test_the_epoch_of_a_marker(log: Log, version: int, epoch: int, is_open: bool, error: type[LogError] | None):
    log.produce(7, 0, epoch=5, transactional=is_open)
    if error is None:
        log.end_transaction(7, committed=True, epoch=epoch, version=version)
    else:
        with pytest.raises(error):
            log.end_transaction(7, committed=True, epoch=epoch, version=version)


def test_an_epoch_at_its_limit_can_still_be_ended(log: Log):
    log.produce(7, 0, epoch=2**15 - 1, transactional=True)
    log.end_transaction(7, committed=False, epoch=2**15 - 1, version=2)
    assert not log.state.has_ongoing_transaction(7, 2**15 - 1)


def test_an_old_coordinator_is_fenced(log: Log):
    log.end_transaction(7, committed=True, coordinator_epoch=3)
    with pytest.raises(TransactionCoordinatorFencedError) as caught:
        log.end_transaction(7, committed=True, coordinator_epoch=2)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    log.end_transaction(7, committed=True, coordinator_epoch=3)


def test_control_batches_that_are_no_markers_say_nothing(state: ProducerState):
    message = LeaderChangeMessage(leader_id=1)
    kinds = [(ControlRecordType.LEADER_CHANGE, message)]
    data = bytearray(build_control_batch(kinds, base_offset=0, timestamp=NOW, partition_leader_epoch=1))
    assert state.add(read_header(data), 0, NOW) is None
    assert len(state) == 0


# --- forgetting and remembering ---------------------------------------------------------------------------------------


def test_idle_producers_are_forgotten_unless_a_transaction_is_open(log: Log):
    log.produce(1, 0, timestamp=NOW)
    log.produce(2, 0, timestamp=NOW + 5)
    log.produce(3, 0, timestamp=NOW, transactional=True)
    log.state.remove_expired(NOW + DAY, DAY)
    assert [entry.producer_id for entry in log.state.entries] == [2, 3]
    log.state.remove_expired(NOW + 100 * DAY, DAY)
    assert [entry.producer_id for entry in log.state.entries] == [3]


def test_the_golden_snapshot_entries(state: ProducerState):
    # Taken from a running Apache Kafka 4.3.1.
    data = bytes.fromhex(
        "0000000000000000 0000 0000085d 000000000000085d 0000002a 000001a1dce188fa ffffffff ffffffffffffffff"
        "0000000000000006 0003 ffffffff ffffffffffffffff 00000000 000001a1dce1fa79 00000000 ffffffffffffffff"
    )
    (first, second) = parse_snapshot(snapshot_of(data, 2))
    assert first.batches == [BatchMetadata(2141, 2141, 42, 0x1A1DCE188FA)]
    assert (first.producer_id, first.producer_epoch, first.coordinator_epoch) == (0, 0, -1)
    assert second.batches == []
    assert (second.producer_id, second.producer_epoch, second.coordinator_epoch) == (6, 3, 0)
    assert second.last_timestamp == 0x1A1DCE1FA79
    assert format_snapshot([second, first]) == snapshot_of(data, 2)


def snapshot_of(entries: bytes, count: int) -> bytes:
    from ottla.wire.batch import crc32c

    body = count.to_bytes(4, "big") + entries
    return b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body


def test_the_golden_empty_snapshot():
    assert format_snapshot([]).hex() == "000148674bc700000000"
    assert parse_snapshot(bytes.fromhex("000148674bc700000000")) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:5],
        lambda data: b"",
        lambda data: b"\x00\x02" + data[2:],
        lambda data: data[:20] + b"\xff" + data[21:],
        lambda data: snapshot_of(data[10:], 7),
    ],
)
def test_a_damaged_snapshot_is_refused(damage: Any):
    sound = snapshot_of(bytes(46), 1)
    assert len(parse_snapshot(sound)) == 1
    with pytest.raises(SnapshotError):
        parse_snapshot(damage(sound))


def taken(log: Log) -> None:
    log.state.map_end_offset = log.end
    log.state.take_snapshot(0, sync=False)


def test_a_snapshot_brings_back_what_matters(log: Log, tmp_path: Path):
    log.produce(1, 0, count=3)
    log.produce(1, 3, count=2)
    log.produce(2, 0, transactional=True)
    log.end_transaction(3, committed=True, epoch=4, coordinator_epoch=5)
    taken(log)
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000007.snapshot"]
    again = ProducerState(Directory(new_storage(), str(tmp_path)), [7])
    assert again.load_newest_snapshot(0, NOW, DAY) == []
    assert again.map_end_offset == 7
    assert again.first_unstable_offset == 5
    reader = Log(again)
    reader.end = 7
    assert reader.produce(1, 3, count=2) == 3  # the newest batch is still recognised
    with pytest.raises(OutOfOrderSequenceError):
        reader.produce(1, 0, count=3)  # the ones before it are not
    assert reader.end_transaction(2, committed=False) == AbortedTxn(2, 5, 7, 8)
    with pytest.raises(TransactionCoordinatorFencedError):
        reader.end_transaction(3, committed=True, epoch=4, coordinator_epoch=4)


def test_producers_that_expired_meanwhile_are_left_out(log: Log, tmp_path: Path):
    log.produce(1, 0, timestamp=NOW)
    taken(log)
    again = ProducerState(Directory(new_storage(), str(tmp_path)), [1])
    again.load_newest_snapshot(0, NOW + DAY, DAY)
    assert len(again) == 0
    assert again.map_end_offset == 1


def test_no_snapshot_is_taken_twice_or_of_nothing(log: Log, tmp_path: Path):
    assert log.state.take_snapshot(0, sync=False) is None
    log.produce(1, 0)
    log.state.map_end_offset = 1
    assert log.state.take_snapshot(1, sync=False) is None  # the log starts there
    assert log.state.take_snapshot(0, sync=True) == str(tmp_path / "00000000000000000001.snapshot")
    assert log.state.take_snapshot(0, sync=True) is None


def test_an_older_snapshot_serves_if_the_newest_is_damaged(log: Log, tmp_path: Path):
    log.produce(1, 0)
    taken(log)
    log.produce(1, 1)
    taken(log)
    newest = tmp_path / "00000000000000000002.snapshot"
    newest.write_bytes(newest.read_bytes()[:-3])
    again = ProducerState(Directory(new_storage(), str(tmp_path)), [2, 1])
    (fault,) = again.load_newest_snapshot(0, NOW, DAY)
    assert "snapshot 2" in fault
    assert again.map_end_offset == 1
    assert not newest.exists()


def with_snapshots(state: ProducerState, *offsets: int) -> None:
    for offset in offsets:
        state.map_end_offset = offset
        state.take_snapshot(0, sync=False)


def test_snapshots_outside_of_the_log_go(state: ProducerState, tmp_path: Path):
    with_snapshots(state, 5, 10, 15, 20)
    state.delete_snapshots_outside(5, 15)
    assert state.snapshot_offsets == [10, 15]
    assert len(list(tmp_path.iterdir())) == 2
    state.delete_snapshots_outside(99, 3)
    assert state.snapshot_offsets == []


@pytest.mark.parametrize(
    ("bases", "kept"),
    [([0, 10, 20], [10, 20, 25]), ([0, 10], [10, 25]), ([0, 30], []), ([0, 15, 25], [15, 25])],
)
def test_snapshots_of_no_segment_go(state: ProducerState, bases: list[int], kept: list[int]):
    with_snapshots(state, 5, 10, 15, 20, 25)
    state.delete_stray_snapshots(bases)
    assert state.snapshot_offsets == kept
