"""Results of several families as one."""

from __future__ import annotations

import pytest

from ottla.core.coordinator.contract import NOTHING, Reply, Result, Timer
from ottla.core.groups.coordinator import join_results


def test_nothing_and_nothing_is_nothing() -> None:
    assert join_results([]) is NOTHING
    assert join_results([NOTHING, NOTHING]) is NOTHING


def test_what_is_decided_is_kept_in_order() -> None:
    first = Result(replies=[Reply(1, "a")], timers=[Timer("x", 1)])
    second = Result(replies=[Reply(2, "b")], effects=["e"])
    joined = join_results([first, NOTHING, second])
    assert joined.replies == [Reply(1, "a"), Reply(2, "b")]
    assert joined.timers == [Timer("x", 1)]
    assert joined.effects == ["e"]


def test_records_may_be_spread_over_batches_even_if_only_one_family_has_some() -> None:
    assert not join_results([Result(records=["r"]), NOTHING]).is_atomic  # type: ignore[list-item]


def test_what_would_be_lost_is_refused() -> None:
    with pytest.raises(AssertionError):
        join_results([Result(after=("x",)), Result()])
