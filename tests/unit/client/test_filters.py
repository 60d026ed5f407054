"""Filters: what they mean, compared with what Python says of the same record, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.filters import STEPS_MAX, FilterError, compile_filter

ROW: dict[str, Any] = {
    "topic": "orders",
    "partition": 2,
    "offset": 4133,
    "timestamp": 1_700_000_000_000,
    "size": 212,
    "key": "eu-7731",
    "value": {"amount": 120.5, "currency": "EUR", "tags": ["a", "b"], "paid": True, "note": None, "no": "17"},
    "headers": {"trace-id": "7f"},
}
V = ROW["value"]

CASES: list[tuple[str, Callable[[], bool]]] = [
    ("value.amount > 100", lambda: V["amount"] > 100),
    ("value.amount > 120.5", lambda: V["amount"] > 120.5),
    ("value.amount >= 120.5", lambda: V["amount"] >= 120.5),
    ("value.amount < 1e3", lambda: V["amount"] < 1e3),
    ("value.amount <= -1", lambda: V["amount"] <= -1),
    ('value.currency == "EUR"', lambda: V["currency"] == "EUR"),
    ("value.currency = 'EUR'", lambda: V["currency"] == "EUR"),
    ("value.currency != 'USD'", lambda: V["currency"] != "USD"),
    ('key ~ "^eu-"', lambda: re.search("^eu-", ROW["key"]) is not None),
    (r'key ~ "\d{4}$"', lambda: re.search(r"\d{4}$", ROW["key"]) is not None),
    ('key ~ "^us-"', lambda: re.search("^us-", ROW["key"]) is not None),
    ('value.amount > 100 and key ~ "^eu-"', lambda: V["amount"] > 100 and ROW["key"].startswith("eu-")),
    ("value.amount > 200 or partition == 2", lambda: V["amount"] > 200 or ROW["partition"] == 2),
    ("not value.paid", lambda: not V["paid"]),
    ("not not value.paid", lambda: bool(V["paid"])),
    ("value.paid", lambda: bool(V["paid"])),
    ("value.paid == true", lambda: V["paid"] is True),
    ("value.paid == 1", lambda: False),
    ("value.note == null", lambda: V["note"] is None),
    ("value.missing == null", lambda: V.get("missing") is None),
    ("value.missing.deeper > 1", lambda: False),
    ("value.missing != 1", lambda: True),
    ("partition in [0, 2]", lambda: ROW["partition"] in [0, 2]),
    ("partition in [0, 1]", lambda: ROW["partition"] in [0, 1]),
    ('value.currency in ["USD", "EUR"]', lambda: V["currency"] in ["USD", "EUR"]),
    ('value.tags[1] == "b"', lambda: V["tags"][1] == "b"),
    ("value.tags[9] == null", lambda: True),
    ('headers["trace-id"] == "7f"', lambda: ROW["headers"]["trace-id"] == "7f"),
    ("headers.trace-id == '7f'", lambda: ROW["headers"]["trace-id"] == "7f"),
    ("(offset > 4000 or size < 10) and not (partition == 1)", lambda: ROW["offset"] > 4000 and ROW["partition"] != 1),
    ("offset > 5000 or offset > 4000 and size > 300", lambda: False),
    ("timestamp >= 1700000000000 and topic == 'orders'", lambda: True),
    ("value.no > 16", lambda: int(V["no"]) > 16),
    ("value.no == 17.0", lambda: float(V["no"]) == 17.0),
    ("value.currency > 5", lambda: False),
    ("key < 'f'", lambda: ROW["key"] < "f"),
    ("value ~ 'x'", lambda: False),
    ("offset ~ '^41'", lambda: str(ROW["offset"]).startswith("41")),
    ("value['amount'] == value.amount", lambda: True),
]


@pytest.mark.parametrize(("text", "oracle"), CASES, ids=[text for text, _ in CASES])
def test_a_filter_means_what_python_says(text: str, oracle: Callable[[], bool]):
    assert compile_filter(text)(ROW) is oracle()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the filter ends after character 0, where a text, a number or one of key, value"),
        ("value.amount >", "the filter ends after character 14"),
        ("value.amount > > 1", "character 16, '>'"),
        ("__import__('os')", "character 1, '__import__'"),
        ("value.__class__.x()", "character 18, '('"),
        ("lambda: 1", "character 7, ':'"),
        ("key.upper() == 'A'", "character 10, '('"),
        ("amount > 1", "character 1, 'amount'"),
        ("(key == 'a'", "')' was expected"),
        ("key ~ 5", "character 7, '5': a regular expression in quotes"),
        ('key ~ "("', "is not a regular expression"),
        (f'key ~ "{"(a{1000}){1000}" * 3}"', "is not a regular expression"),
        ('key ~ "\\ud800"', "is not a regular expression"),
        ("key == 'a' b", "character 12"),
        ("key; drop", "character 4, ';'"),
        ("partition in []", "character 15"),
        ("value[-1] == 1", "a name in quotes or a number"),
        ("key == 007", "character 8, '007', is not a valid number"),
        ("key == -00", "character 8, '-00', is not a valid number"),
        ("offset < " + "9" * 5000, "character 10, '99999"),
        ("value[" + "9" * 5000 + "]", "character 7, '99999"),
        ("(" * 500 + "key" + ")" * 500, "levels deep"),
        ("key ~ '" + "a" * 200_000 + "'", "at most 100000 characters"),
        (" and ".join(["key"] * (STEPS_MAX // 2 + 2)), f"at most {STEPS_MAX} steps"),
    ],
)
def test_what_is_no_filter_is_refused_with_the_place(text: str, complaint: str):
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert complaint in str(caught.value)


def test_names_of_python_are_names_of_fields():
    assert compile_filter("value.__class__ == null")({"value": {"a": 1}})
    assert compile_filter("value.__class__ == 7")({"value": {"__class__": 7}})


def test_a_filter_can_have_thousands_of_terms():
    matches = compile_filter(" or ".join(f"offset == {number}" for number in range(1500)))
    assert matches({"offset": 1499})
    assert not matches({"offset": 1500})
    assert compile_filter(" and ".join(f"offset != {number}" for number in range(1500)))({"offset": 1500})


def test_half_a_surrogate_pair_in_a_record_is_searched():
    row = {"value": {"name": "a\ud800b"}}
    assert compile_filter('value.name ~ "^a.b$"')(row)
    assert not compile_filter('value.name ~ "c"')(row)


def test_a_pattern_takes_linear_time():
    matches = compile_filter('value ~ "(a+)+$"')
    assert not matches({"value": "a" * 50_000 + "b"})
