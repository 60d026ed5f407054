"""How long a group is not asked again for its topology's description."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.groups.streams.back_off import FIRST_MS, LONGEST_MS, BackOff


def middle() -> float:
    return 0.5


def delays_ms(count: int, draw: float) -> list[int]:
    """How long each of so many windows is, one after the other."""
    back_off, now_ms, found = BackOff(), 0, []
    for _ in range(count):
        assert back_off.arm_if_not_active(0, now_ms, lambda: draw)
        began_ms = now_ms
        low_ms, high_ms = now_ms, now_ms + 2 * LONGEST_MS
        while high_ms - low_ms > 1:  # the first moment at which it is not active
            at_ms = (low_ms + high_ms) // 2
            low_ms, high_ms = (at_ms, high_ms) if back_off.is_active(0, at_ms) else (low_ms, at_ms)
        now_ms = high_ms
        found.append(now_ms - began_ms)
    return found


def test_delays_double_up_to_an_hour() -> None:
    assert [each // 1000 for each in delays_ms(10, 0.5)] == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_jitter_is_a_fifth_either_way_and_never_above_an_hour() -> None:
    assert [each // 1000 for each in delays_ms(9, 0.0)] == [24, 48, 96, 192, 384, 768, 1536, 2880, 2880]
    assert [round(each / 1000) for each in delays_ms(9, 1.0)] == [36, 72, 144, 288, 576, 1152, 2304, 3600, 3600]


@given(st.floats(0, 1, exclude_max=True))
def test_first_window_lets_23_seconds_wait_and_37_seconds_ask(draw: float) -> None:
    back_off = BackOff()
    assert back_off.arm_if_not_active(0, 0, lambda: draw)
    assert not back_off.arm_if_not_active(0, 23_000, lambda: draw)
    assert back_off.arm_if_not_active(0, 37_000, lambda: draw)


def test_check_and_arm_is_one_step() -> None:
    back_off = BackOff()
    assert [back_off.arm_if_not_active(0, 5, middle) for _ in range(3)] == [True, False, False]
    assert not back_off.is_active(0, 5 + FIRST_MS)


def test_another_epoch_begins_anew_at_once() -> None:
    back_off = BackOff()
    for _ in range(8):
        back_off.arm_or_extend(0, 0, middle)
    assert back_off.is_active(0, LONGEST_MS - 1)
    assert back_off.arm_if_not_active(1, 1, middle)
    assert back_off.is_active(1, FIRST_MS)
    assert not back_off.is_active(1, 1 + FIRST_MS)


def test_failure_extends_the_wait_from_now_but_not_that_of_a_later_epoch() -> None:
    back_off = BackOff()
    back_off.arm_if_not_active(1, 0, middle)
    back_off.arm_or_extend(1, 10_000, middle)
    assert back_off.is_active(1, 10_000 + 2 * FIRST_MS - 1)
    back_off.arm_or_extend(0, 20_000, middle)
    assert not back_off.is_active(1, 10_000 + 2 * FIRST_MS)
    assert not back_off.is_active(0, 20_001)


def test_clear_is_for_exactly_one_epoch() -> None:
    back_off = BackOff()
    back_off.arm_if_not_active(1, 0, middle)
    back_off.clear(0)
    assert back_off.is_active(1, 1)
    back_off.clear(1)
    assert not back_off.is_active(1, 1)
    back_off.arm_if_not_active(2, 0, middle)
    back_off.clear_all()
    assert not back_off.is_active(2, 1)
    assert back_off.arm_if_not_active(2, 0, middle)
    assert not back_off.is_active(2, FIRST_MS)
