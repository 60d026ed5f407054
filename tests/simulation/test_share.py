"""Share groups in simulated worlds: random faults from seeds, and planted bugs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.core.share.partition.events import Acknowledge, Actions, Reply, StartResolved, Tick
from ottla.core.share.partition.partition import Phase, SharePartition
from ottla.core.share.partition.window import Window
from ottla.core.share.state import ShareStateCoordinator
from ottla.testing.trace import Violation
from simulation.runner import run_seed

SEEDS_FOR_A_BUG = 500

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("first_seed", range(0, 40, 20))
def test_invariants_hold(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 20):
        run_seed(seed, ["share"])


def test_a_seed_gives_the_same_world_twice() -> None:
    first, second = (run_seed(8, ["share"]) for _ in range(2))
    assert first.trace.digest == second.trace.digest
    assert first.trace.digest != run_seed(9, ["share"]).trace.digest


def violated() -> str:
    """The invariant that the first failing seed violates."""
    for seed in range(SEEDS_FOR_A_BUG):
        try:
            run_seed(seed, ["share"])
        except Violation as violation:
            return violation.name
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")


def test_the_end_of_locks_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharePartition, "_tick", lambda self, event, now_ms: Actions())
    assert violated() == "converges"


def test_locks_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = SharePartition._tick

    def early(self: SharePartition, event: Tick, now_ms: int) -> Actions:
        return tick(self, event, now_ms + 500)

    monkeypatch.setattr(SharePartition, "_tick", early)
    assert violated() == "one holder"


def test_acceptance_is_answered_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledge = SharePartition._acknowledge

    def hasty(self: SharePartition, event: Acknowledge, now_ms: int) -> Actions:
        actions = acknowledge(self, event._replace(token=None), now_ms)
        return actions._replace(replies=[each._replace(token=event.token) for each in actions.replies or [Reply(None)]])

    monkeypatch.setattr(SharePartition, "_acknowledge", hasty)
    assert violated() == "done once"


def test_a_batch_is_dropped_on_reload(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Window.load

    def forgetful(start_offset: int, batches: Sequence[Any]) -> Any:
        return load(start_offset, batches[:-1])

    monkeypatch.setattr(Window, "load", forgetful)
    assert violated() in ("done once", "counted", "ends")


def test_a_resolved_start_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apache Kafka 4.3.1 keeps it in memory only: a `latest` group that is killed before it acknowledges begins
    at the new end."""

    def forgetful(self: SharePartition, event: StartResolved, now_ms: int) -> Actions:
        self.window = Window(event.start_offset)
        self.phase = Phase.ACTIVE
        return Actions(wakes=True)

    monkeypatch.setattr(SharePartition, "_start_resolved", forgetful)
    assert violated() == "ends"


def test_an_old_leader_is_not_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShareStateCoordinator, "_check_leader", lambda self, key, leader_epoch: None)
    assert violated() in ("done once", "counted", "ends")
