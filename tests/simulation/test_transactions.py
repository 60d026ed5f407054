"""Transactions in simulated worlds: a crash at every write, random faults from seeds, and planted bugs."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.coordinator.contract import Context, Reply, Result
from ottla.core.txn import add_partitions
from ottla.core.txn.messages import WriteMarkers
from ottla.core.txn.transaction import Transaction, to_record
from ottla.core.txn.workflow import Workflow
from ottla.log.producer_state import ProducerState
from ottla.testing.trace import Violation
from simulation.crash_points import Plan, all_plans, count_points, run_plan
from simulation.runner import run_seed
from simulation.transaction_node import GROUPS_PART

SEEDS_FOR_A_BUG = 500
PLANS = list(all_plans())

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("plan", PLANS, ids=[plan.name for plan in PLANS])
def test_a_crash_at_every_write(plan: Plan) -> None:
    ran = run_plan(plan)
    # Two transactions: the producer's id; each Ongoing or with further partitions, prepared, completed; offsets, data,
    # and a marker in each partition.
    assert ran.points >= 18
    assert ran.runs == ran.points


def test_crash_points_are_writes_of_the_transaction() -> None:
    plan = Plan(2, commits=True)
    first, _ = count_points(plan)
    assert first > 1, "formatting the disk and opening logs come before"
    assert count_points(plan) == count_points(plan)


@pytest.mark.parametrize("first_seed", range(0, 28, 14))
def test_invariants_hold(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 14):
        run_seed(seed, ["transactions"])


def test_a_seed_gives_the_same_world_twice() -> None:
    first, second = (run_seed(8, ["transactions"]) for _ in range(2))
    assert first.trace.digest == second.trace.digest
    assert first.trace.digest != run_seed(9, ["transactions"]).trace.digest


def violated() -> str:
    """The invariant that the first failing seed violates."""
    for seed in range(SEEDS_FOR_A_BUG):
        try:
            run_seed(seed, ["transactions"])
        except Violation as violation:
            return violation.name
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")


def test_complete_is_written_before_the_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_unasked = Workflow.begin_unasked

    def hasty(self: Workflow, prepared: Transaction, context: Context) -> Result:
        result = begin_unasked(self, prepared, context)
        return result._replace(records=[*result.records, to_record(prepared.completed(context.wall_ms), 2)])

    monkeypatch.setattr(Workflow, "begin_unasked", hasty)
    assert violated() in ("exactly once", "converges", "nothing open")


def test_the_marker_of_the_offsets_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    markers = Workflow._markers

    def forgetful(self: Workflow, prepared: Transaction, partitions: Any) -> WriteMarkers:
        kept = [each for each in partitions if each != GROUPS_PART]
        return markers(self, prepared, kept or list(partitions))

    monkeypatch.setattr(Workflow, "_markers", forgetful)
    assert violated() in ("exactly once", "converges", "nothing open")


def test_the_end_is_not_resumed_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers of transactions that were prepared before the crash are never written."""
    monkeypatch.setattr(Workflow, "resume", lambda self, prepared: self._markers(prepared, ()))
    assert violated() in ("exactly once", "converges", "nothing open")


def test_a_late_batch_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether the epoch is the present one."""
    monkeypatch.setattr(add_partitions, "_check_producer", lambda request, known: None)
    monkeypatch.setattr(ProducerState, "check", lambda self, *judged: None)
    assert violated() in ("exactly once", "converges", "nothing open", "never taken back")


def test_an_end_is_answered_before_it_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer leaves in a result of its own, which waits for nothing."""
    begin = Workflow.begin

    def hasty(self: Workflow, prepared: Transaction, reply: Reply, context: Context, *, is_local: bool) -> Result:
        reply.token(reply.message)
        silent = Reply(lambda message: None, reply.message)
        return begin(self, prepared, silent, context, is_local=is_local)

    monkeypatch.setattr(Workflow, "begin", hasty)
    assert violated() == "exactly once"
