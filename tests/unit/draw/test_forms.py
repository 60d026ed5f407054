"""Numbers, durations, times and ids as all pages write them."""

from __future__ import annotations

import pytest

from ottla.draw.forms import UNKNOWN, ago, identity, moment, number, percent, ratio, shortened, span
from ottla.spark.report.html_table import csv_text
from tests.unit.explain.html_reader import read
from tests.unit.spark.report.story import START_MS, at


def test_numbers_are_exact_to_seven_digits():
    assert number(1_234_567) == "1,234,567"
    assert read(number(12_345_678)).named("span")[0].text == "12.3 M"
    assert read(number(12_345_678)).values("title") == ["12,345,678"]
    assert number(1.5) == "1.5"
    assert number(2.0) == "2"


def test_what_is_not_known_is_a_dash_and_never_zero():
    assert {number(None), ratio(None), percent(None), ago(None), moment(None), identity(None)} == {UNKNOWN}
    assert number(0) == "0"
    assert ago(0) == "0 ms"


def test_parts_of_one_are_percentages():
    assert (ratio(0.98), ratio(0.1534), percent(63)) == ("98 %", "15.3 %", "63 %")


def test_times_carry_their_milliseconds_and_zone():
    [time] = read(moment(START_MS + 7)).named("time")
    assert time.text == "2026-09-21 14:13:20"
    assert time.attributes == {"datetime": "2026-09-21T14:13:20.007Z", "title": "2026-09-21T14:13:20.007Z"}


def test_a_number_that_is_no_time_is_shown_as_it_is():
    assert moment(2**63 - 1) == "9223372036854775807"


def test_from_when_to_when():
    assert read(span(at(60), at(66.3))).text == "from 2026-09-21 14:14:20 to 2026-09-21 14:14:26 (6.3 s)"
    assert read(span(at(60), None)).text == "since 2026-09-21 14:14:20"
    assert read(span(at(60), at(60))).text == "at 2026-09-21 14:14:20"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("billing-2", "billing-2"),
        ("q1Sh-9_2RxaLyDGnb8rWTg", "q1Sh-9_2…"),
        ("4d6d8606-e834-4652-a40a-37f25f426e70", "4d6d8606…"),
        ("audit-b66092b0-7acb-4f3f-bf5f-e66e7a643f99", "audit-b66092b0…"),
        ("a-name-that-someone-chose-and-is-long", "a-name-that-someone-chose-and-is-long"),
    ],
)
def test_ids_are_short_and_names_are_whole(text: str, short: str):
    assert shortened(text) == short
    [code] = read(identity(text)).named("code")
    assert code.text == short
    assert code.attributes.get("data-copy", text) == text


def test_files_of_rows_hold_raw_values_and_no_formulas():
    rows = [{"a": 1_234_567, "b": None, "c": "=1+1", "d": [1, 2]}, {"a": 2, "c": 'x,"y"'}]
    assert csv_text(rows, ["a", "b", "c", "d"]) == 'a,b,c,d\n1234567,,\'=1+1,1 2\n2,,"x,""y""",\n'
