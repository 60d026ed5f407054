"""Quotas over any traffic: nobody is faster than his limit for long, nobody pays for others, pauses are no longer than
they must be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.network.quotas.rates import Rate, TokenBucket, Windows
from ottla.broker.network.quotas.sensors import RateQuotas, TokenQuotas
from ottla.core.metadata.client_quotas import CLIENT_ID

ANYONE = ((CLIENT_ID, None),)
windows = st.builds(Windows, st.integers(2, 15), st.sampled_from([1000, 2000, 5000]))
bounds = st.sampled_from([1.0, 10.0, 1_000.0, 10_000.0, 1e6])
steps = st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3000)), min_size=1, max_size=60)
"""What is sent, as a share of what one second allows, and how long nothing happens before."""


def made(bound: float, over: Windows) -> RateQuotas:
    quotas = RateQuotas(over)
    quotas.limits.replace({ANYONE: bound})
    return quotas


@given(windows, bounds, steps)
def test_who_keeps_his_pauses_is_never_faster_than_his_limit_for_long(
    over: Windows, bound: float, sent: list[tuple[float, int]]
) -> None:
    """All that was ever sent fits into the time that went by, but for what the windows forgive at the start of each
    span, and the last request."""
    quotas, now_ms, total = made(bound, over), 0, 0.0
    largest = 0.0
    for share, idle_ms in sent:
        now_ms += idle_ms
        size = share * bound
        total += size
        largest = max(largest, size)
        now_ms += quotas.record("u", "c", size, now_ms)
    allowed = bound * (now_ms / 1000 + over.all_seconds) + largest
    assert total <= allowed * 1.01


@given(windows, bounds, st.floats(0.2, 3.0))
def test_a_steady_sender_gets_his_limit_and_no_less(over: Windows, bound: float, share: float) -> None:
    """Pauses are no longer than needed: who always has something to send uses his whole limit."""
    quotas, now_ms, total = made(bound, over), 0, 0.0
    for _ in range(150):
        total += share * bound
        now_ms += 1 + quotas.record("u", "c", share * bound, now_ms)
    average = total / (now_ms / 1000)
    assert average >= bound * 0.8


@given(bounds, steps)
def test_clients_are_judged_by_themselves(bound: float, sent: list[tuple[float, int]]) -> None:
    """Another client beside him changes nothing for anybody."""
    alone, together = made(bound, Windows()), made(bound, Windows())
    now_ms = 0
    for share, idle_ms in sent:
        now_ms += idle_ms
        together.record("u", "greedy", 50 * bound, now_ms)
        size = share * bound
        assert together.record("u", "c", size, now_ms) == alone.record("u", "c", size, now_ms)


@given(windows, bounds, steps)
def test_what_is_taken_back_leaves_no_trace(over: Windows, bound: float, sent: list[tuple[float, int]]) -> None:
    one, other = Rate(over, 0), Rate(over, 0)
    now_ms = 0
    for share, idle_ms in sent:
        now_ms += idle_ms
        size = round(share * 1000)
        one.record(size, now_ms)
        other.record(size, now_ms)
        other.record(7, now_ms)
        other.record(-7, now_ms)
        assert one.per_second(now_ms) == other.per_second(now_ms)


@given(windows, st.floats(0.1, 100), st.lists(st.tuples(st.integers(1, 500), st.integers(0, 10_000)), max_size=80))
def test_mutations_never_exceed_what_was_filled_in(over: Windows, bound: float, asked: list[tuple[int, int]]) -> None:
    """What is given is at most a full bucket, what came in meanwhile, and one request that overdraws."""
    quotas = TokenQuotas(over)
    quotas.limits.replace({ANYONE: bound})
    now_ms, given_, last = 0, 0, 0
    for count, idle_ms in asked:
        now_ms += idle_ms
        request = quotas.begin("u", "c", now_ms, is_strict=True)
        assert request is not None
        if request.take(count, now_ms):
            given_, last = given_ + count, max(last, count)
        else:
            assert request.pause_ms(now_ms) > 0
    assert given_ <= bound * (over.all_seconds + now_ms / 1000) + last + 1e-6


@given(windows, st.floats(0.1, 100), st.integers(1, 10_000))
def test_after_the_pause_tokens_are_there(over: Windows, bound: float, count: int) -> None:
    bucket = TokenBucket(over, bound, 0)
    bucket.take(count, bound, 0)
    pause_ms = bucket.excess_ms(bound, 0)
    assert bucket.tokens(bound, pause_ms) >= -bound / 1000
