"""What became of deliveries, from the records of one share partition."""

from typing import Any

import pytest

from ottla.spark.jobs.share_fold import Batch, ShareFold, ShareLimits, StateRecord

MINUTE = 60_000
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def update(*batches: tuple[int, int, int, int], start: int | None = None) -> StateRecord:
    return StateRecord(False, start, tuple(Batch(*each) for each in batches))


def snapshot(*batches: tuple[int, int, int, int], start: int = 0, epoch: int = 0) -> StateRecord:
    return StateRecord(True, start, tuple(Batch(*each) for each in batches), epoch)


def rows(*steps: tuple[int, StateRecord], limit: int = 5, lock_ms: int = 30_000) -> list[dict[str, Any]]:
    fold = ShareFold(MINUTE, ShareLimits(limit, lock_ms))
    fold.is_from_records = True
    for ts, record in steps:
        fold.take_record(ts, record)
    return list(fold.rows())


def test_each_end_of_a_delivery_counts_once_and_by_its_number():
    (row,) = rows(
        (1, update((0, 9, ACKNOWLEDGED, 1), start=0)),
        (2, update((10, 14, AVAILABLE, 1))),
        (3, update((10, 12, ACKNOWLEDGED, 2), (13, 14, AVAILABLE, 2))),
        (4, update((13, 13, ARCHIVED, 3))),
    )
    counts = [row[f"count_{number}"] for number in ("1", "2", "3", "4", "5plus")]
    assert (row["delivered"], row["redelivered"], counts) == (21, 6, [15, 5, 1, 0, 0])
    assert (row["accepted"], row["released"], row["rejected_or_archived"]) == (13, 7, 1)
    assert row["delivered"] == row["accepted"] + row["released"] + row["rejected_or_archived"]
    assert row["max_delivery_count"] == 3


def test_a_snapshot_counts_only_what_differs_from_what_was_written_before():
    (row,) = rows(
        (1, update((0, 1, AVAILABLE, 1), start=0)),
        (2, snapshot((0, 0, AVAILABLE, 1), (1, 1, ACKNOWLEDGED, 2), (2, 2, AVAILABLE, 1))),
    )
    assert (row["delivered"], row["accepted"], row["released"]) == (4, 1, 3)


def test_a_first_snapshot_says_where_things_stood():
    (row,) = rows((1, snapshot((0, 5, AVAILABLE, 2), start=0)))
    assert (row["delivered"], row["start_offset"], row["start_moved"]) == (0, 0, 0)


def test_what_is_archived_without_being_handed_out_again_is_no_delivery():
    (row,) = rows((1, update((0, 0, AVAILABLE, 1), start=0)), (2, update((0, 0, ARCHIVED, 1))))
    assert (row["delivered"], row["rejected_or_archived"]) == (1, 0)


def test_a_reset_makes_what_was_written_void():
    (row,) = rows(
        (1, snapshot((0, 0, AVAILABLE, 1), epoch=1)),
        (2, update((1, 1, ACKNOWLEDGED, 1))),
        (3, snapshot(start=0, epoch=2)),
        (4, update((1, 1, ACKNOWLEDGED, 1))),
    )
    assert row["accepted"] == 2


def test_offsets_at_the_limit_are_poison_in_the_minute_in_which_they_were_given_up():
    first, second = rows(
        (1, update((7, 7, AVAILABLE, 1), start=7)),
        *((count, update((7, 7, AVAILABLE, count))) for count in (2, 3, 4)),
        (MINUTE + 5, update((7, 7, ARCHIVED, 5))),
    )
    assert (first["poison"], second["poison"]) == ([], [7])


@pytest.mark.parametrize(("limit", "count", "is_suspect"), [(5, 2, False), (5, 3, True), (2, 2, True), (10, 4, False)])
def test_what_comes_back_half_as_often_as_allowed_and_still_waits_is_suspect(limit: int, count: int, is_suspect: bool):
    steps = [(at, update((7, 7, AVAILABLE, at), start=7)) for at in range(1, count + 1)]
    assert rows(*steps, limit=limit)[0]["poison"] == [7] * is_suspect


def test_what_went_through_at_last_was_no_poison():
    steps = [(at, update((7, 7, AVAILABLE, at), start=7)) for at in range(1, 5)]
    assert rows(*steps, (9, update((7, 7, ACKNOWLEDGED, 5))))[0]["poison"] == []


def test_at_most_a_hundred_offsets_are_named():
    (row,) = rows((1, update((0, 499, ARCHIVED, 5), start=0)))
    assert row["poison"] == list(range(100))


def test_single_offsets_that_come_back_a_lock_later_have_expired():
    lock = 30_000
    one, two, three = rows(
        (0, update((7, 7, AVAILABLE, 1), start=7)),
        (lock, update((7, 7, AVAILABLE, 2))),
        (2 * lock + 100, update((7, 7, AVAILABLE, 3))),
        (2 * lock + 5_000, update((7, 7, AVAILABLE, 4))),
        (2 * MINUTE + 1, update((7, 7, ACKNOWLEDGED, 5))),
    )
    assert [each["lock_expiries_est"] for each in (one, two, three)] == [2, 1, 0]


def test_estimates_are_null_where_only_samples_are_known():
    fold = ShareFold(MINUTE, ShareLimits())
    fold.take_record(1, update((0, 0, AVAILABLE, 1), start=0))
    assert next(fold.rows())["lock_expiries_est"] is None


def test_nothing_moves_for_two_locks_while_records_wait():
    fold = ShareFold(MINUTE, ShareLimits(5, 30_000))
    for at in range(0, 3 * MINUTE, 10_000):
        fold.take_offsets(at, 4, 10)
    stalled = [row["stalled_s"] for row in fold.rows()]
    assert stalled == [0.0, 110.0, 170.0]


@pytest.mark.parametrize("moves", ["start", "settled", "nothing waits"])
def test_whatever_moves_ends_a_stall(moves: str):
    fold = ShareFold(MINUTE, ShareLimits(5, 30_000))
    fold.take_offsets(0, 4, 10)
    if moves == "start":
        fold.take_offsets(59_000, 5, 9)
    elif moves == "settled":
        fold.take_record(59_000, update((6, 6, ACKNOWLEDGED, 1)))
    else:
        fold.take_offsets(59_000, 4, 0)
    fold.take_offsets(70_000, 5 if moves == "start" else 4, 10)
    assert list(fold.rows())[-1]["stalled_s"] == 0.0


def test_the_start_is_told_with_how_far_it_moved():
    first, second = rows(
        (1, update((0, 9, ACKNOWLEDGED, 1), start=0)), (2, update(start=10)), (MINUTE, update((10, 10, 2, 1), start=11))
    )
    assert [(row["start_offset"], row["start_moved"]) for row in (first, second)] == [(10, 10), (11, 1)]
