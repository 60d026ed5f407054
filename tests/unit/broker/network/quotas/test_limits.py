"""Whose limit holds, and with whom it is shared."""

from __future__ import annotations

import pytest

from ottla.broker.network.quotas import limits as limits_module
from ottla.broker.network.quotas.limits import Limit
from tests.unit.broker.network.quotas.entities import entity, made

ORDER = [
    (entity(user="ann", client_id="c"), ("ann", "c")),
    (entity(user="ann", client_id=None), ("ann", "c")),
    (entity(user="ann"), ("ann", "")),
    (entity(user=None, client_id="c"), ("ann", "c")),
    (entity(user=None, client_id=None), ("ann", "c")),
    (entity(user=None), ("ann", "")),
    (entity(client_id="c"), ("", "c")),
    (entity(client_id=None), ("", "c")),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_special_limit_holds(first: int) -> None:
    limits = made(*(each for each, _ in ORDER[first:]))
    assert limits.of("ann", "c") == Limit(ORDER[first][1], 1.0)


def test_others_limits_do_not_hold() -> None:
    limits = made(entity(user="bob"), entity(client_id="d"), entity(user="ann", client_id="d"))
    assert limits.of("ann", "c") is None


def test_without_a_client_id_only_limits_of_users_hold() -> None:
    assert made(entity(client_id=None), entity(user=None, client_id=None)).of("ann", "") is None
    assert made(entity(user="ann", client_id=None), entity(user=None)).of("ann", "") == Limit(("ann", ""), 2.0)


def test_a_default_gives_everybody_a_rate_of_his_own() -> None:
    limits = made(entity(client_id=None))
    assert limits.of("ann", "c") != limits.of("ann", "d")
    assert limits.of("ann", "c") == limits.of("bob", "c")


@pytest.mark.parametrize("bound", [float("inf"), float("nan")])
def test_a_bound_without_an_end_is_none_even_where_a_default_limits(bound: float) -> None:
    limits = made(entity(client_id=None))
    limits.replace({entity(client_id="c"): bound, entity(client_id=None): 1.0})
    assert limits.of("ann", "c") is None
    assert limits.of("ann", "d") == Limit(("", "d"), 1.0)


def test_changes_hold_at_once() -> None:
    limits = made(entity(user="ann"))
    assert limits.of("ann", "c") == Limit(("ann", ""), 1.0)
    limits.replace({entity(user="ann"): 7.0})
    assert limits.of("ann", "c") == Limit(("ann", ""), 7.0)
    limits.replace({})
    assert not limits
    assert limits.of("ann", "c") is None


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "FOUND_MAX", 10)
    limits = made(entity(client_id=None))
    for number in range(25):
        assert limits.of("ann", f"c{number}") == Limit(("", f"c{number}"), 1.0)
        assert len(limits._found) <= 10
