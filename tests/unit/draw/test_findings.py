"""The evidence of findings in words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ottla.draw.findings import evidence
from ottla.health import RULES


def told(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Labels and values, without markup."""
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", str(evidence(found)))
    return [(label, re.sub(r"<[^>]+>", "", value)) for label, value in pairs]


def test_names_are_words_that_readers_know():
    found = {"stood_still_ms": 6300, "isr": [1, 2], "count": 1200, "start": 12_345, "committed": 9_876_543}
    assert told(found) == [
        ("no progress for", "6.3 s"),
        ("in sync", "1, 2"),
        ("count", "1,200"),
        ("start offset", "12345"),
        ("committed", "9876543"),
    ]


def test_thresholds_have_units():
    found = {"thresholds": {"redeliveries": 20, "percent": 30, "within_s": 60, "hold_h": 24}}
    assert told(found) == [("thresholds", "redeliveries 20, 30 %, within 1 min, for 24 h")]


@pytest.mark.parametrize("rule", [each.name for each in RULES.values() if each.limits])
def test_no_threshold_shows_an_internal_name(rule: str):
    [(_, value)] = told({"thresholds": dict(RULES[rule].limits)})
    assert "_" not in value
    assert not re.search(r"\b(hold|grace|window|interval s) ", value)
