"""Bugs that are planted in coordinators: the simulation must find each within 500 seeds and name what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.coordinators.shard import Shard
from ottla.core.coordinator.contract import NOTHING, Context, Result
from ottla.core.groups.admin import AdminFamily
from ottla.core.groups.classic.family import ClassicFamily
from ottla.core.groups.consumer import reconciliation
from ottla.core.groups.consumer.family import ConsumerFamily
from ottla.core.groups.consumer.heartbeat import ConsumerStep
from ottla.core.groups.offsets.family import OffsetsFamily
from ottla.core.groups.streams import assignment, heartbeat, highly_available
from ottla.core.groups.streams import reconciliation as streams_reconciliation
from ottla.core.groups.streams.family import StreamsFamily
from ottla.core.groups.streams.heartbeat import StreamsStep
from ottla.core.groups.streams.highly_available import Limits
from ottla.core.groups.streams.reconciliation import Holders
from ottla.core.groups.streams.tasks import Tasks
from ottla.testing.trace import Violation
from ottla.wire.keyed import KeyedRecord
from simulation.runner import run_seed

SEEDS_FOR_A_BUG = 500

pytestmark = pytest.mark.usefixtures("quiet")


def violated(family: str) -> str:
    """The invariant that the first failing seed violates."""
    for seed in range(SEEDS_FOR_A_BUG):
        try:
            run_seed(seed, [family])
        except Violation as violation:
            return violation.name
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")


def forget(timer: str, family: type[Any]) -> Callable[..., Result]:
    """An `expire` that does nothing for one kind of timer."""
    expire = family.expire

    def forgetful(self: Any, key: tuple[str, ...], context: Context) -> Result:
        return NOTHING if key[1] == timer else expire(self, key, context)

    return forgetful


@pytest.mark.parametrize("family", ["classic", "consumer", "streams"])
def test_answers_before_the_append(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def release(self: Shard, result: Result) -> None:
        self._release(result.replies, result.effects, result.after)

    monkeypatch.setattr(Shard, "_file", release)
    assert violated(family) in ("kept", "owned once")


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_tombstones_of_offsets_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group is deleted, and its offsets stay."""
    init = AdminFamily.__init__
    monkeypatch.setattr(AdminFamily, "__init__", lambda self, table, _: init(self, table, lambda group_id: ()))
    assert violated("classic") == "kept"


def test_replay_skips_tombstones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gone from the log stays in memory: compaction shows it."""
    replay = OffsetsFamily._replay

    def forgetful(self: OffsetsFamily, record: KeyedRecord, *where: int) -> None:
        if record.value is not None:
            replay(self, record, *where)

    monkeypatch.setattr(OffsetsFamily, "_replay", forgetful)
    assert violated("classic") in ("replay", "kept")


# --- classic groups ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timer", ["session", "join"])
def test_classic_time_out_is_forgotten(timer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClassicFamily, "expire", forget(timer, ClassicFamily))
    assert violated("classic") == "converges"


# --- consumer groups --------------------------------------------------------------------------------------------------


def test_revocation_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation, "_still_owns", lambda owned, pending: False)
    assert violated("consumer") == "owned once"


def test_release_by_the_old_owner_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerStep, "_is_free", lambda self, topic_id, partition: True)
    assert violated("consumer") == "owned once"


def test_epoch_is_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerStep, "raise_epoch", lambda self, must: None)
    assert violated("consumer") == "converges"


@pytest.mark.parametrize("timer", ["session", "rebalance"])
def test_consumer_time_out_is_forgotten(timer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerFamily, "expire", forget(timer, ConsumerFamily))
    assert violated("consumer") == "converges"


# --- streams groups ---------------------------------------------------------------------------------------------------


def test_closing_of_tasks_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tasks, "meets", lambda self, held: False)
    assert violated("streams") == "owned once"


def test_release_of_a_task_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_reconciliation, "_released", lambda wanted, goal: wanted)
    assert violated("streams") == "owned once"


def test_streams_epoch_is_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamsStep, "raise_epoch", lambda self: None)
    assert violated("streams") == "converges"


@pytest.mark.parametrize("timer", ["session", "rebalance"])
def test_streams_time_out_is_forgotten(timer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamsFamily, "expire", forget(timer, StreamsFamily))
    assert violated("streams") == "converges"


# --- warm-ups ---------------------------------------------------------------------------------------------------------


def test_tasks_move_to_cold_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highly_available._Group, "is_near", lambda self, task, process_id: True)
    assert violated("streams-warmups") == "warm-ups"


def test_warmups_are_not_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "Limits", lambda count, lag: Limits(count + 1, lag))
    assert violated("streams-warmups") == "warm-ups"


def test_warmups_that_are_still_held_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = highly_available.plan

    def forgetful(*arguments: Any) -> Any:
        *others, holders = arguments
        return plan(*others, Holders(holders.active, holders.standby, {}))

    monkeypatch.setattr(highly_available, "plan", forgetful)
    assert violated("streams-warmups") == "warm-ups"


def test_reports_lead_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamsStep, "_has_step", lambda self: False)
    assert violated("streams-warmups") == "converges"


def test_who_has_caught_up_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "_has_caught_up", lambda waiting, candidates, lag: False)
    assert violated("streams-warmups") == "converges"


def test_no_warmup_follows_another(monkeypatch: pytest.MonkeyPatch) -> None:
    progress_of = assignment.progress_of
    monkeypatch.setattr(heartbeat, "progress_of", lambda *given: progress_of(*given)._replace(lacks_warmups=False))
    assert violated("streams-warmups") == "converges"
