"""What a scan takes of the batches that a broker sends, and when it stops."""

from __future__ import annotations

from ottla.client import TopicPartition
from ottla.client.fetcher import Fetched
from ottla.client.filters import compile_filter
from ottla.console.scan import BOUNDS, Bounds, Scan, Scanner
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import Record, build_batch, build_end_txn_marker

NOW_MS = 1_700_000_000_000
FIRST, SECOND = TopicPartition("rows", 0), TopicPartition("rows", 1)


def data(*offsets: int, at_ms: int = NOW_MS, **options: object) -> bytes:
    records = [Record(each, at_ms + each, b"k%d" % each, b'{"n": %d}' % each) for each in offsets]
    return build_batch(records, **options)  # type: ignore[arg-type]


def marker(offset: int, *, committed: bool) -> bytes:
    return build_end_txn_marker(
        committed=committed, coordinator_epoch=0, producer_id=7, producer_epoch=0, timestamp=NOW_MS, base_offset=offset
    )


def fetched(
    at: TopicPartition, *batches: bytes, position: int = 0, next_position: int, aborted: tuple[int, ...] = ()
) -> Fetched:
    transactions = tuple(AbortedTransaction(each, 7) for each in aborted)
    whole = b"".join(batches)
    return Fetched(at, position, next_position, whole, transactions, next_position, next_position, 0)


def scanned(
    *answers: list[Fetched],
    ends: dict[TopicPartition, int],
    starts: dict[TopicPartition, int] | None = None,
    text: str = "",
    bounds: Bounds = BOUNDS,
    is_committed: bool = False,
) -> Scan:
    begin = dict.fromkeys(ends, 0) | (starts or {})
    matches = compile_filter(text) if text else None
    scanner = Scanner(begin, ends, matches, bounds, is_committed=is_committed)
    for each in answers:
        if scanner.may_go_on():
            assert len(list(scanner.take(each))) <= 1
    return scanner.result()


def places(scan: Scan) -> list[tuple[int, int]]:
    return [(each.record.partition, each.record.offset) for each in scan.found]


def test_partitions_are_merged_by_time():
    early = fetched(FIRST, data(0, 1, at_ms=NOW_MS), next_position=2)
    late = fetched(SECOND, data(0, 1, at_ms=NOW_MS - 1), next_position=2)
    scan = scanned([early, late], ends={FIRST: 2, SECOND: 2})
    assert places(scan) == [(1, 0), (0, 0), (1, 1), (0, 1)]
    assert (scan.scanned, scan.stopped, scan.rest) == (4, "end", {})


def test_a_limit_stops_in_the_middle_of_a_batch_and_says_where_to_go_on():
    answer = [fetched(FIRST, data(0, 1, 2), next_position=3), fetched(SECOND, data(5, 6, at_ms=0), next_position=7)]
    scan = scanned(answer, ends={FIRST: 3, SECOND: 7}, starts={SECOND: 5}, bounds=Bounds(matches=3))
    assert places(scan) == [(1, 5), (1, 6), (0, 0)]
    assert (scan.stopped, scan.rest) == ("limit", {0: 1})


def test_each_bound_is_named():
    answer = [fetched(FIRST, data(0, 1, 2), next_position=3)]
    for bounds, stopped in (
        (Bounds(records=2), "records"),
        (Bounds(bytes=10), "bytes"),
        (Bounds(seconds=0), "time"),
    ):
        scan = scanned(answer, ends={FIRST: 9}, bounds=bounds)
        assert (scan.stopped, bool(scan.rest)) == (stopped, True)


def test_what_does_not_match_is_counted_only():
    scan = scanned([fetched(FIRST, data(0, 1, 2), next_position=3)], ends={FIRST: 3}, text="value.n == 1")
    assert (places(scan), scan.scanned) == ([(0, 1)], 3)


def test_nothing_before_the_start_and_behind_the_end_is_seen():
    answer = fetched(FIRST, data(0, 1, 2, 3), position=1, next_position=4)
    scan = scanned([answer], ends={FIRST: 3}, starts={FIRST: 1})
    assert (places(scan), scan.stopped) == ([(0, 1), (0, 2)], "end")


def test_markers_and_aborted_records_are_seen_unless_only_what_is_committed_is_wanted():
    batches = (data(0, producer_id=7, is_transactional=True), marker(1, committed=False), data(2))
    everything = scanned([fetched(FIRST, *batches, next_position=3)], ends={FIRST: 3})
    assert [each.control for each in everything.found] == [None, "ABORT", None]
    assert [each.is_transactional for each in everything.found] == [True, True, False]
    assert [each.producer_id for each in everything.found] == [7, 7, None]
    answer = fetched(FIRST, *batches, next_position=3, aborted=(0,))
    assert places(scanned([answer], ends={FIRST: 3}, is_committed=True)) == [(0, 2)]


def test_a_damaged_batch_is_named_and_passed_over():
    damaged = bytearray(data(0, 1))
    damaged[-1] ^= 1
    scan = scanned([fetched(FIRST, bytes(damaged), data(2), next_position=3)], ends={FIRST: 3})
    assert (places(scan), scan.stopped) == ([(0, 2)], "end")
    (told,) = scan.damaged
    assert told.startswith("rows-0, batch up to offset 1: ")
