"""What acquired offsets turn out to be, and reading only what is ours."""

from __future__ import annotations

import pytest

from ottla.client import TopicPartition
from ottla.client.share.records import Acquired, AcquiredRange, settle
from ottla.wire import WireError
from ottla.wire.batch import Compression, Record, build_batch, build_end_txn_marker

AT = TopicPartition("jobs", 3)


def batch(*offsets: int, **options: object) -> bytes:
    records = [Record(offset, 1_000 + offset, b"k%d" % offset, b"v%d" % offset, (("h", b"x"),)) for offset in offsets]
    return build_batch(records, partition_leader_epoch=7, **options)  # type: ignore[arg-type]


def ranges(*triples: tuple[int, int, int]) -> tuple[AcquiredRange, ...]:
    return tuple(AcquiredRange(*each) for each in triples)


def acquired(data: bytes, *triples: tuple[int, int, int]) -> Acquired:
    return Acquired(AT, b"t" * 16, 1, ranges(*triples), data, 30_000)


# --- settling ---------------------------------------------------------------------------------------------------------


def test_everything_is_there():
    settled = settle(ranges((0, 4, 1), (5, 9, 2)), batch(*range(5)) + batch(*range(5, 10)))
    assert settled == (ranges((0, 4, 1), (5, 9, 2)), (), (), ())


def test_others_in_the_batches_are_not_ours():
    settled = settle(ranges((2, 3, 1), (7, 7, 2)), batch(*range(5)) + batch(*range(5, 10)))
    assert settled.records == ranges((2, 3, 1), (7, 7, 2))
    assert not any(settled[1:])


def test_compacted_offsets_are_gaps():
    settled = settle(ranges((0, 9, 1)), batch(0, 1, 4) + batch(8, 9))
    assert settled.records == ranges((0, 1, 1), (4, 4, 1), (8, 9, 1))
    assert settled.gaps == ranges((2, 3, 1), (5, 7, 1))


def test_markers_of_transactions_are_gaps():
    marker = build_end_txn_marker(
        committed=True, coordinator_epoch=0, base_offset=2, producer_id=1, producer_epoch=0, timestamp=5
    )
    settled = settle(ranges((0, 3, 1)), batch(0, 1) + marker + batch(3))
    assert settled.records == ranges((0, 1, 1), (3, 3, 1))
    assert settled.gaps == ranges((2, 2, 1))


def test_a_batch_with_a_wrong_checksum_is_damaged():
    broken = bytearray(batch(2, 3))
    broken[-1] ^= 1
    settled = settle(ranges((0, 5, 1)), batch(0, 1) + bytes(broken) + batch(4, 5))
    assert settled.records == ranges((0, 1, 1), (4, 5, 1))
    assert settled.damaged == ranges((2, 3, 1))
    assert not settled.gaps


def test_behind_a_cut_nothing_is_known():
    """It must not be called a gap: a record that is archived is lost."""
    data = batch(0, 1) + batch(2, 3)
    settled = settle(ranges((0, 3, 1)), data[:-5])
    assert settled.records == ranges((0, 1, 1))
    assert settled.unknown == ranges((2, 3, 1))
    assert not settled.gaps


def test_behind_nonsense_nothing_is_known():
    nonsense = b"\0" * 16 + b"\x09" + b"\0" * 60  # of magic 9
    settled = settle(ranges((0, 3, 1)), batch(0, 1) + nonsense)
    assert settled.records == ranges((0, 1, 1))
    assert settled.unknown == ranges((2, 3, 1))


def test_no_data_at_all_is_a_gap():
    assert settle(ranges((4, 6, 1)), b"").gaps == ranges((4, 6, 1))


# --- reading ----------------------------------------------------------------------------------------------------------


def test_records_have_all_that_users_ask_for():
    (record,) = acquired(batch(0, 1, 2), (1, 1, 4)).records()
    assert record[:6] == ("jobs", 3, 1, 1_001, 0, b"k1")
    assert record.value == b"v1"
    assert record.headers == (("h", b"x"),)
    assert (record.leader_epoch, record.delivery_count) == (7, 4)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_only_ours_with_their_counts(compression: Compression):
    data = batch(*range(5), compression=compression) + batch(*range(5, 10), compression=compression)
    mine = acquired(data, (1, 2, 1), (4, 6, 3), (9, 9, 2))
    counts = {record.offset: record.delivery_count for record in mine.records()}
    assert counts == {1: 1, 2: 1, 4: 3, 5: 3, 6: 3, 9: 2}
    assert len(mine) == 6


def test_columns_say_the_same():
    marker = build_end_txn_marker(
        committed=False, coordinator_epoch=0, base_offset=10, producer_id=1, producer_epoch=0, timestamp=5
    )
    data = batch(*range(5)) + batch(*range(5, 10)) + marker + batch(11, 12)
    mine = acquired(data, (1, 2, 1), (9, 9, 2), (12, 12, 5))
    columns, counts = mine.columns()
    found = {int(offset): int(count) for offset, count in zip(columns.offset, counts, strict=True) if count}
    assert found == {record.offset: record.delivery_count for record in mine.records()}
    values = columns.values().to_pylist()
    assert [values[row] for row in range(len(columns)) if counts[row]] == [record.value for record in mine.records()]


def test_columns_of_one_batch_leave_others_unread():
    columns, counts = acquired(batch(0, 1) + batch(2, 3) + batch(4, 5), (2, 3, 1)).columns()
    assert columns.offset.tolist() == [2, 3]
    assert counts.tolist() == [1, 1]


def test_unreadable_records_are_told():
    """The checksum is right, and yet the records are not."""
    data = bytearray(batch(0))
    data[57:61] = (2).to_bytes(4, "big")  # it claims two records
    from ottla.wire.batch import read_header

    data[17:21] = read_header(bytes(data)).compute_crc().to_bytes(4, "big")
    mine = acquired(bytes(data), (0, 0, 1))
    with pytest.raises(WireError):
        list(mine.records())


@pytest.mark.parametrize(("offset", "before", "since"), [(0, 0, 6), (2, 1, 5), (5, 4, 2), (7, 5, 1), (99, 6, 0)])
def test_cutting(offset: int, before: int, since: int):
    mine = acquired(b"", (1, 4, 1), (6, 7, 2))
    assert (len(mine.before(offset)), len(mine.since(offset))) == (before, since)
