"""The offset, time and transaction indexes, alone."""

from pathlib import Path

import pytest

from ottla.log.files import Directory
from ottla.log.offset_index import OffsetIndex
from ottla.log.time_index import TimeIndex
from ottla.log.txn_index import AbortedTxn, TxnIndex
from tests.unit.log.logs import new_storage


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(new_storage(), str(tmp_path))


def offset_index(directory: Directory, count: int, *, written: int = 0) -> OffsetIndex:
    """Entries (10, 100), (20, 200) and so on, some of them on disk."""
    index = OffsetIndex(directory, 0, is_new=True)
    for number in range(1, count + 1):
        index.append(number * 10, number * 100)
        if number == written:
            index.write()
    return index


def test_the_golden_entries_of_an_offset_index(directory: Directory, tmp_path: Path):
    # Taken from a running Apache Kafka 4.3.1.
    index = OffsetIndex(directory, 0, is_new=True)
    index.append(706, 16374)
    index.append(1054, 32749)
    index.write()
    assert (tmp_path / "00000000000000000000.index").read_bytes().hex() == "000002c200003ff60000041e00007fed"


def test_the_golden_entry_of_a_time_index(directory: Directory, tmp_path: Path):
    index = TimeIndex(directory, 0, is_new=True)
    index.maybe_append(0x1A1DCE188EA, 706)
    index.write()
    assert (tmp_path / "00000000000000000000.timeindex").read_bytes().hex() == "000001a1dce188ea000002c2"


def test_the_golden_entry_of_a_transaction_index(directory: Directory, tmp_path: Path):
    index = TxnIndex(directory, 0, is_new=True)
    index.append(AbortedTxn(6, 2151, 2153, 2154))
    index.write()
    data = (tmp_path / "00000000000000000000.txnindex").read_bytes()
    assert data.hex() == "0000000000000000000600000000000008670000000000000869000000000000086a"


@pytest.mark.parametrize("written", [0, 1, 3, 7, 1499, 1500])
def test_lookup_finds_the_greatest_entry_that_is_not_past_the_target(directory: Directory, written: int):
    index = offset_index(directory, 1500, written=written)
    assert index.lookup(9) == (0, 0)
    for target in (10, 11, 19, 20, 7499, 7500, 7501, 14990, 14999, 15000, 99999):
        number = min(target // 10, 1500)
        assert index.lookup(target) == (number * 10, number * 100)
    assert index.last_entry() == (15000, 150000)


@pytest.mark.parametrize("written", [0, 2, 5])
def test_the_first_entry_past_a_position(directory: Directory, written: int):
    index = offset_index(directory, 5, written=written)
    assert index.first_past(0) == 10
    assert index.first_past(100) == 20
    assert index.first_past(499) == 50
    assert index.first_past(500) is None


def test_an_empty_index(directory: Directory):
    index = OffsetIndex(directory, 0)
    assert len(index) == 0
    assert index.lookup(5) == (0, 0)
    assert index.first_past(0) is None
    assert index.last_entry() == (0, 0)
    index.truncate_to(3)
    assert TimeIndex(directory, 0).last_entry() == (-1, 0)
    assert TimeIndex(directory, 0).lookup(3) == (-1, 0)
    assert TxnIndex(directory, 0).collect(0, 100) == ([], False)


@pytest.mark.parametrize("written", [0, 3, 6])
@pytest.mark.parametrize("target", [0, 10, 15, 20, 35, 60, 61])
def test_truncation_drops_what_is_at_or_past_the_target(directory: Directory, written: int, target: int):
    index = offset_index(directory, 6, written=written)
    index.truncate_to(target)
    assert index.entries() == [(number * 10, number * 100) for number in range(1, 7) if number * 10 < target]
    index.append(1000, 5000)
    assert index.last_entry() == (1000, 5000)


def test_entries_reach_the_file_in_portions(directory: Directory, tmp_path: Path):
    index = offset_index(directory, 255)
    assert not (tmp_path / "00000000000000000000.index").exists()
    index.append(2560, 25600)
    assert (tmp_path / "00000000000000000000.index").stat().st_size == 256 * 8
    assert len(index) == 256
    index.append(2570, 25700)
    assert len(OffsetIndex(directory, 0)) == 256
    index.write()
    assert OffsetIndex(directory, 0).entries() == index.entries()


def test_a_file_is_made_even_without_entries_if_asked(directory: Directory, tmp_path: Path):
    OffsetIndex(directory, 7, is_new=True).write()
    assert not (tmp_path / "00000000000000000007.index").exists()
    OffsetIndex(directory, 7, is_new=True).write(create=True)
    assert (tmp_path / "00000000000000000007.index").stat().st_size == 0


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
@pytest.mark.parametrize("padding", [8, 4, 80, 10_000 * 8])
def test_zeros_and_a_torn_entry_at_the_end_are_cut_off(directory: Directory, tmp_path: Path, count: int, padding: int):
    offset_index(directory, count).write(create=True)
    path = tmp_path / "00000000000000000000.index"
    sound = path.read_bytes()
    path.write_bytes(sound + bytes(padding))
    index = OffsetIndex(directory, 0)
    assert len(index) == count
    assert index.lookup(10**6) == (count * 10, count * 100)
    assert path.read_bytes() == sound


def test_time_entries_only_rise(directory: Directory):
    index = TimeIndex(directory, 0, is_new=True)
    for timestamp, offset in ((100, 1), (100, 2), (90, 3), (101, 4), (-1, 5)):
        index.maybe_append(timestamp, offset)
    assert index.entries() == [(100, 1), (101, 4)]
    assert [index.lookup(timestamp) for timestamp in (99, 100, 101, 500)] == [(-1, 0), (100, 1), (101, 4), (101, 4)]
    index.truncate_to(4)
    assert index.entries() == [(100, 1)]


def transactions(directory: Directory) -> TxnIndex:
    index = TxnIndex(directory, 0, is_new=True)
    for txn in (
        AbortedTxn(1, 0, 10, 11),
        AbortedTxn(2, 5, 20, 15),
        AbortedTxn(3, 15, 30, 31),
        AbortedTxn(4, 40, 50, 51),
    ):
        index.append(txn)
    return index


@pytest.mark.parametrize(
    ("first_offset", "end_offset", "producers", "is_complete"),
    [
        (0, 100, [1, 2, 3, 4], False),
        (0, 1, [1], True),
        (0, 12, [1, 2], True),
        (11, 16, [2, 3], True),
        (21, 32, [3], True),
        (31, 40, [], True),
        (50, 52, [4], False),
        (51, 60, [], False),
    ],
)
def test_the_transactions_that_overlap_a_range(
    directory: Directory, first_offset: int, end_offset: int, producers: list[int], is_complete: bool
):
    found, complete = transactions(directory).collect(first_offset, end_offset)
    assert [txn.producer_id for txn in found] == producers
    assert complete is is_complete


def test_truncation_forgets_transactions_by_their_marker(directory: Directory):
    index = transactions(directory)
    index.truncate_to(20)
    assert [txn.producer_id for txn in index.transactions()] == [1]


def test_a_transaction_index_knows_whether_it_can_be_of_a_segment(directory: Directory, tmp_path: Path):
    index = transactions(directory)
    assert index.is_sound(10)
    assert not index.is_sound(11)
    index.write()
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(b"\x00\x07" + path.read_bytes()[2:])
    assert not TxnIndex(directory, 0).is_sound(0)
