"""Quantiles of durations that are counted in buckets."""

from __future__ import annotations

import pytest

from ottla.cli.latencies import Latencies

MS_NS = 1_000_000


def of(*durations_ms: float) -> Latencies:
    latencies = Latencies()
    for each in durations_ms:
        latencies.add(round(each * MS_NS))
    return latencies


def test_quantiles_are_exact_to_half_a_percent():
    latencies = of(*range(1, 1001))
    for share in (0.5, 0.95, 0.99, 0.999):
        assert latencies.quantile_ns(share) == pytest.approx(share * 1000 * MS_NS, rel=0.006)
    assert latencies.max_ns == 1000 * MS_NS
    assert latencies.mean_ns == pytest.approx(500.5 * MS_NS)


def test_without_durations_there_are_no_quantiles():
    assert (of().quantile_ns(0.5), of().mean_ns, of().max_ns) == (None, None, 0)


def test_no_quantile_is_above_the_longest():
    for each_ms in range(1, 200):
        assert 0.99 * each_ms * MS_NS < (of(each_ms).quantile_ns(0.99) or 0) <= each_ms * MS_NS


def test_two_are_added():
    both = of(1, 2)
    both.merge(of(3, 50))
    assert (both.count, both.max_ns, both.mean_ns) == (4, 50 * MS_NS, 14 * MS_NS)


def test_counts_between_bounds():
    assert of(0.5, 1.5, 1.6, 80).counts_below([MS_NS, 2 * MS_NS, 5 * MS_NS]) == [1, 2, 0, 1]
