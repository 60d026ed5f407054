"""Rates over moving windows and buckets of tokens, in numbers that Apache Kafka 4.3.1 gives, too."""

from __future__ import annotations

import pytest

from ottla.broker.network.quotas.rates import Rate, TokenBucket, Windows, rounded

WINDOWS = Windows()
START_MS = 50_000


def rate(*recorded: tuple[float, int], windows: Windows = WINDOWS) -> Rate:
    made = Rate(windows, START_MS)
    for value, at_ms in recorded:
        made.record(value, START_MS + at_ms)
    return made


class TestRate:
    def test_a_first_burst_is_spread_over_all_windows_but_the_running_one(self) -> None:
        assert rate((100_000, 0)).per_second(START_MS) == 10_000

    def test_time_that_went_by_counts_within_the_running_window(self) -> None:
        assert rate((100_000, 0)).span_ms(START_MS + 500) == 10_500
        assert rate((100_000, 0)).per_second(START_MS + 500) == pytest.approx(100_000 / 10.5)

    def test_whole_windows_that_went_by_stand_for_missing_ones(self) -> None:
        assert rate((1, 0)).span_ms(START_MS + 3_000) == 10_000
        assert rate((1, 0)).span_ms(START_MS + 10_000) == 10_000
        assert rate((1, 0)).span_ms(START_MS + 10_999) == 10_999

    def test_what_is_older_than_all_windows_is_forgotten(self) -> None:
        counted = rate((100_000, 0))
        assert counted.per_second(START_MS + 10_999) > 0
        assert counted.per_second(START_MS + 11_000) == 0

    def test_a_window_is_as_old_as_its_last_record(self) -> None:
        counted = rate((100_000, 0), (100_000, 900))
        assert counted.per_second(START_MS + 11_000) > 0
        assert counted.per_second(START_MS + 11_900) == 0

    def test_a_steady_flow_has_its_rate(self) -> None:
        counted = rate(*((500, at) for at in range(0, 60_000, 500)))
        assert counted.per_second(START_MS + 60_000) == pytest.approx(1000, rel=0.1)

    def test_windows_are_used_again_and_never_more_than_one_beyond_their_number(self) -> None:
        counted = rate(*((1, at) for at in range(0, 100_000, 1000)))
        assert len(counted._samples) == WINDOWS.num + 1

    def test_the_pause_is_until_the_rate_is_at_its_bound(self) -> None:
        # 120 144 bytes in 10.03 s at a bound of 10 000 B/s
        counted = rate(*((30_036, at) for at in (0, 10, 20, 30)))
        assert counted.excess_ms(10_000, START_MS + 20) > 0
        assert counted.excess_ms(10_000, START_MS + 30) == rounded(12_014.4 - 10_030)

    def test_at_its_bound_there_is_no_pause(self) -> None:
        assert rate((100_000, 0)).excess_ms(10_000, START_MS) == 0
        assert rate((100_001, 0)).excess_ms(10_000, START_MS) == 0  # a tenth of a millisecond
        assert rate((100_005, 0)).excess_ms(10_000, START_MS) == 1

    def test_a_pause_is_as_long_as_it_must_be(self) -> None:
        """1 MB at 10 kB/s: nobody is let off after the windows are over."""
        assert rate((1_000_000, 0)).excess_ms(10_000, START_MS) == 90_000

    def test_no_pause_is_longer_than_a_client_can_be_told(self) -> None:
        assert rate((1e12, 0)).excess_ms(1, START_MS) == 2**31 - 1

    def test_what_is_taken_back_was_never_there(self) -> None:
        assert rate((70_000, 0), (-70_000, 0)).per_second(START_MS) == 0

    def test_other_windows(self) -> None:
        counted = rate((100, 0), windows=Windows(2, 5_000))
        assert counted.per_second(START_MS) == 20
        assert counted.per_second(START_MS + 10_000) == 0


class TestTokenBucket:
    def test_it_is_full_at_first(self) -> None:
        assert TokenBucket(WINDOWS, 2, START_MS).tokens(2, START_MS) == 22

    def test_it_may_be_overdrawn_and_fills_again(self) -> None:
        bucket = TokenBucket(WINDOWS, 2, START_MS)
        bucket.take(30, 2, START_MS)
        assert bucket.excess_ms(2, START_MS) == 4_000
        assert bucket.excess_ms(2, START_MS + 3_000) == 1_000
        assert bucket.excess_ms(2, START_MS + 4_000) == 0

    def test_it_never_holds_more_than_all_windows_give(self) -> None:
        bucket = TokenBucket(WINDOWS, 2, START_MS)
        assert bucket.tokens(2, START_MS + 1_000_000) == 22

    def test_another_bound_holds_at_once(self) -> None:
        bucket = TokenBucket(WINDOWS, 2, START_MS)
        assert bucket.tokens(1, START_MS) == 11
        bucket.take(21, 1, START_MS)
        assert bucket.excess_ms(1, START_MS) == 10_000
        assert bucket.excess_ms(10, START_MS) == 1_000


@pytest.mark.parametrize(("value", "whole"), [(0.4, 0), (0.5, 1), (1.5, 2), (2.5, 3)])
def test_halves_are_rounded_up(value: float, whole: int) -> None:
    assert rounded(value) == whole
