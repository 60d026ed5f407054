"""Rates of topics, from the ends that pages have asked for."""

from __future__ import annotations

from ottla.client import TopicPartition
from ottla.console.end_offsets import POINTS_MAX, WINDOW_MS, EndOffsets, Rate

NOON_MS = 1_700_049_600_000


def ends(*totals: int, topic: str = "orders") -> dict[TopicPartition, int]:
    return {TopicPartition(topic, partition): end for partition, end in enumerate(totals)}


def taken(*samples: tuple[int, dict[TopicPartition, int]], partitions: int = 2) -> EndOffsets:
    found = EndOffsets()
    for after_ms, each in samples:
        found.take(NOON_MS + after_ms, each, {"orders": partitions})
    return found


def test_one_look_is_no_rate():
    assert taken().rate("orders") is None
    assert taken((0, ends(10, 10))).rate("orders") is None
    assert taken((0, ends(10, 10)), (0, ends(10, 10))).rate("orders") is None, "the same answer again"


def test_two_looks_are_a_rate():
    assert taken((0, ends(10, 10)), (4_000, ends(14, 18))).rate("orders") == Rate(3.0, 4_000, NOON_MS + 4_000)
    assert taken((0, ends(10, 10)), (4_000, ends(10, 10))).rate("orders") == Rate(0.0, 4_000, NOON_MS + 4_000)


def test_only_the_last_minute_counts():
    samples = [(5_000 * at, ends(100 * at, 0)) for at in range(10)] + [
        (5_000 * at, ends(900, 0)) for at in range(10, 30)
    ]
    rate = taken(*samples).rate("orders")
    assert rate is not None
    assert (rate.per_s, rate.over_ms) == (0.0, WINDOW_MS)


def test_a_topic_that_is_not_known_whole_has_no_rate():
    assert taken((0, ends(10)), (4_000, ends(20))).rate("orders") is None


def test_another_topic_of_the_same_name_begins_anew():
    found = taken((0, ends(10, 10)), (4_000, ends(1, 0)))
    assert found.rate("orders") is None
    found.take(NOON_MS + 8_000, ends(5, 0), {"orders": 2})
    assert found.rate("orders") == Rate(1.0, 4_000, NOON_MS + 8_000)


def test_an_older_look_that_another_page_shares_changes_nothing():
    found = taken((0, ends(10, 10)), (4_000, ends(14, 18)), (2_500, ends(11, 12)))
    assert found.rate("orders") == Rate(3.0, 4_000, NOON_MS + 4_000)


def test_a_clock_that_was_set_back_begins_anew():
    found = taken((0, ends(10, 10)), (4_000, ends(14, 18)), (-3_600_000, ends(20, 20)), (-3_596_000, ends(24, 20)))
    assert found.rate("orders") == Rate(1.0, 4_000, NOON_MS - 3_596_000)


def test_new_partitions_begin_anew():
    found = taken((0, ends(10, 10)))
    found.take(NOON_MS + 4_000, ends(10, 10, 500), {"orders": 3})
    assert found.rate("orders") is None


def test_it_is_bounded():
    found = EndOffsets(room=2)
    for name in ("a", "b", "c"):
        for at in range(2 * POINTS_MAX):
            found.take(NOON_MS + 2_000 * at, ends(at, topic=name), {name: 1})
    assert found.rate("a") is None
    assert found.rate("c") == Rate(0.5, 60_000, NOON_MS + 2_000 * (2 * POINTS_MAX - 1))
