from __future__ import annotations

import shlex

import pytest

from ottla.health.phrases import clock, consume_since, duration, href, join, nodes, number, offsets, plural, size, word
from ottla.health.series import Series


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (850, "850 ms"),
        (12_460, "12.4 s"),
        (59_999, "59.9 s"),
        (185_000, "3 min 05 s"),
        (8_040_000, "2 h 14 min"),
        (443_000_000, "5 d 3 h"),
        (-5, "0 ms"),
    ],
)
def test_durations(ms: int, text: str) -> None:
    assert duration(ms) == text


def test_numbers_and_sizes() -> None:
    assert (number(1234567), plural(1, "record"), plural(2000, "record")) == ("1,234,567", "1 record", "2,000 records")
    assert [size(each) for each in (12, 2048, 5 * 1024**3, 3 * 1024**4)] == ["12 B", "2.0 KiB", "5.0 GiB", "3.0 TiB"]


def test_lists() -> None:
    assert (join([]), join("abc"), join("abcdefgh")) == ("none", "a, b, c", "a, b, c, d, e, f and 2 more")
    assert (nodes([3, 1, 3]), nodes([2]), nodes([])) == ("nodes 1, 3", "node 2", "no node")
    assert offsets([4122, 4120, 4121, 4130]) == "4120–4122, 4130"


def test_times_are_utc() -> None:
    assert clock(1_790_000_000_123) == "2026-09-21 14:13:20 UTC"


def test_a_number_that_is_no_time_is_shown_as_it_is() -> None:
    assert clock(1_790_000_000_123_000) == "1790000000123000", "in microseconds"
    assert clock(2**63 - 1) == "9223372036854775807"


def test_names_in_addresses_mislead_nobody() -> None:
    assert href("groups", "x/y ü.json") == "/groups/x~2Fy~20~C3~BC~2Ejson"


def test_series_keep_the_newest_and_thin_out_the_old() -> None:
    series = Series(spacing_ms=10)
    for at_ms in range(0, 35):
        series.add(at_ms, at_ms * 2)

    assert [at_ms for at_ms, _ in series.points] == [0, 10, 20, 30, 34]
    assert (series.at(-1), series.at(15), series.at(99)) == (None, 30, 68)
    assert (series.when(30), series.when(-1), series.when(99)) == (15, None, 34)
    assert series.per_ms(34, 20) == 2
    assert series.per_ms(34, 100) is None


def test_a_series_that_stays_as_it_is_takes_two_points() -> None:
    series = Series(spacing_ms=10)
    for at_ms in range(0, 1_000, 10):
        series.add(at_ms, 5)
    series.add(1_000, 15)

    assert list(series.points) == [(0, 5), (990, 5), (1_000, 15)]
    assert (series.at(400), series.at(995), series.when(5), series.span_ms) == (5, 10, 990, 1_000)


def test_a_name_in_a_command_is_one_word_of_the_shell() -> None:
    names = ["orders", "night shift", "it's", "$HOME", "a;b", "ünïcode"]

    assert [shlex.split(f"ottla {word(name)}") for name in names] == [["ottla", name] for name in names]
    assert word("orders.v1-eu_7") == "orders.v1-eu_7"


def test_a_command_that_looks_for_records_of_somebody_since_a_moment() -> None:
    command = consume_since("__consumer_offsets", 1_790_000_000_000, "key.groupId", 'the "night" shift', 3)

    assert command.startswith(
        "ottla topics consume __consumer_offsets --partition 3 --from 2026-09-21T14:13:20 --filter "
    )
    assert shlex.split(command)[-1] == r'key.groupId == "the \"night\" shift"'
