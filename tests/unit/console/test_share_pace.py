"""Redeliveries and expired locks, minute by minute."""

from ottla.console.share_pace import HOUR_MS, pace_of
from ottla.health.facts import ShareMetrics
from ottla.health.share_history import BUCKET_MS, ShareGroupHistory

START_MS = 1_700_000_000_000 // BUCKET_MS * BUCKET_MS


def metrics(delivered: int, redelivered: int, expired: int = 0) -> ShareMetrics:
    return ShareMetrics(group="g", node=1, delivered=delivered, redelivered=redelivered, lock_expiries=expired)


def test_nothing_seen():
    assert pace_of(None, START_MS) == ([], None)
    assert pace_of(ShareGroupHistory(), START_MS) == ([], None)


def test_each_point_counts_the_minute_before_it():
    history = ShareGroupHistory()
    for at in range(10):
        history.take_metrics(START_MS + at * BUCKET_MS, metrics(100 * at, 5 * at, at // 2))
    pace = pace_of(history, START_MS + 10 * BUCKET_MS)
    assert [each.value for each in pace.redelivered] == [0, 5, 10, 15, 20, 25, 30, 30, 30, 30]
    assert pace.redelivered[0].at_ms == START_MS + BUCKET_MS
    assert pace.expired is not None
    assert [each.value for each in pace.expired][-1] == 3


def test_silence_brings_it_back_to_nothing():
    history = ShareGroupHistory()
    history.take_metrics(START_MS, metrics(0, 0))
    history.take_metrics(START_MS + 1_000, metrics(9, 9))
    values = [each.value for each in pace_of(history, START_MS + 90_000).redelivered]
    assert values == [9, 9, 9, 9, 9, 9, 0, 0, 0]


def test_records_do_not_tell_of_locks():
    history = ShareGroupHistory()
    history.from_records.at(START_MS).add(10, 4)
    pace = pace_of(history, START_MS + BUCKET_MS)
    assert ([each.value for each in pace.redelivered], pace.expired) == ([4], None)


def test_what_was_long_ago_makes_no_points():
    history = ShareGroupHistory()
    history.from_records.at(0).add(10, 4)  # a broker whose clock was not set yet
    history.from_records.at(START_MS - HOUR_MS - BUCKET_MS).add(10, 4)
    history.from_records.at(START_MS - BUCKET_MS).add(10, 3)
    points = pace_of(history, START_MS).redelivered
    assert len(points) == HOUR_MS // BUCKET_MS
    assert (points[0].value, points[-1].value) == (4, 3)
