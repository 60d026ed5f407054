"""Lag as time."""

import pytest

from ottla.wire.lag import lag_ms, passed_at_ms


@pytest.mark.parametrize(
    ("records", "since_ms", "expected"),
    [
        (5, 1_000, 3_000),
        (0, 1_000, 0),  # all are processed, however old the last one is
        (0, None, 0),
        (5, None, None),
        (None, 1_000, 3_000),
        (5, 9_000, 0),  # the producer's clock is ahead
    ],
)
def test_lag_is_how_long_the_next_record_waits(records: int | None, since_ms: int | None, expected: int | None):
    assert lag_ms(records, since_ms, 4_000) == expected


@pytest.mark.parametrize(("offset", "expected"), [(100, 1_000), (150, 2_000), (199, 2_980)])
def test_the_end_moves_evenly_between_two_looks(offset: int, expected: int):
    assert passed_at_ms(offset, (1_000, 100), (3_000, 200)) == expected
