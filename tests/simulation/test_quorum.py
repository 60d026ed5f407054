"""Quorums in simulated worlds: random faults from seeds, kept seeds, and planted bugs.

`python -m simulation quorum` runs as many seeds as you like. Every planted bug must be found within 2,000 of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ottla.core.quorum import fetch, follower, leader, vote, voter_changes
from ottla.core.quorum.events import Actions
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.replica_progress import ReplicaProgress
from ottla.core.quorum.states import Leader, QuorumState, Resigned
from ottla.testing.trace import Violation
from simulation.quorum.runner import make_world, run_quorum, run_quorums, shorten
from simulation.quorum.world import QuorumWorld

SEEDS_FOR_A_BUG = 2_000
KEPT = Path(__file__).parent / "quorum_seeds.txt"


@pytest.mark.parametrize("first_seed", range(0, 180, 10))
def test_invariants_hold(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 10):
        run_quorum(seed)


@pytest.mark.parametrize("seed", [int(line.split()[0]) for line in KEPT.read_text().splitlines() if line[:1].isdigit()])
def test_seeds_that_failed_once(seed: int) -> None:
    run_quorum(seed)


def test_a_seed_gives_the_same_world_twice() -> None:
    first, second = (run_quorum(8) for _ in range(2))
    assert first.trace.digest == second.trace.digest
    assert first.trace.digest != run_quorum(9).trace.digest


def test_seeds_have_what_they_are_about() -> None:
    tally = run_quorums(range(180, 192))
    assert tally.failures == []
    assert all(tally.counts[each] for each in ("elections", "truncations", "snapshot fetches", "voter changes"))


def test_an_asymmetric_link_does_not_raise_the_epoch_for_ever() -> None:
    """Pre-votes keep a node that hears nothing, and is heard, from disturbing the others."""
    world = QuorumWorld(1)
    for node in world.nodes.values():
        node.start()
    world.run_until(5_000)
    first = world.leader()
    assert first is not None
    assert first.quorum is not None
    deaf = next(each for each in world.nodes.values() if each is not first)
    epoch = first.quorum.epoch
    world.links.cut.add((first.node_id, deaf.node_id))
    world.run_until(65_000)
    assert world.leader() is first
    assert first.quorum.epoch == epoch


# --- planted bugs -----------------------------------------------------------------------------------------------------


def first_violation(make_quorum: Callable[..., Quorum] = Quorum, first_seed: int = 0) -> Violation:
    for seed in range(first_seed, SEEDS_FOR_A_BUG):
        try:
            run_quorum(seed, make_quorum)
        except Violation as violation:
            return violation
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")


def violated(make_quorum: Callable[..., Quorum] = Quorum, first_seed: int = 0) -> str:
    """The invariant that the first failing seed violates. Rare ones are looked for where they are known to be."""
    return first_violation(make_quorum, first_seed).name


def test_a_vote_is_forgotten_at_restart() -> None:
    def forgetful(*arguments: Any, stored: Any, **options: Any) -> Quorum:
        forgotten = (
            None if stored is None else msgspec.structs.replace(stored, voted_id=-1, voted_directory_id=bytes(16))
        )
        return Quorum(*arguments, stored=forgotten, **options)

    assert violated(forgetful) == "one vote"


def test_a_vote_is_answered_before_it_is_stored() -> None:
    class Hasty(Quorum):
        def _settle(self) -> None:
            self._release()
            super()._settle()

    assert violated(Hasty) == "stored first"


def test_a_follower_fetches_before_it_has_synced() -> None:
    class Hasty(Quorum):
        @property
        def is_log_settled(self) -> bool:
            return not self._writes

    assert violated(Hasty) in ("stored first", "majority", "leader has all")


def test_a_leader_counts_what_it_has_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    high_watermark = ReplicaProgress.high_watermark

    def hasty(self: ReplicaProgress, voters: Any, key: Any, end_offset: int) -> int:
        return high_watermark(self, voters, key, 1 << 40)

    monkeypatch.setattr(ReplicaProgress, "high_watermark", hasty)
    assert violated() in ("majority", "committed stays", "leader has all")


def test_the_high_watermark_does_not_wait_for_the_epochs_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(quorum: Quorum, state: Leader) -> None:
        reached = state.progress.high_watermark(quorum.control.voters, quorum.key, quorum.synced_end_offset)
        if reached > (state.high_watermark or -1):
            state.high_watermark = reached
            quorum.raise_high_watermark(reached)

    monkeypatch.setattr(leader, "_advance", advance)
    assert violated() == "own epoch"


def test_divergence_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_diverges", lambda quorum, partition: None)
    assert violated() in ("committed stays", "majority", "converges", "works")


def test_an_old_leader_writes_on_in_its_epoch() -> None:
    class Stubborn(Quorum):
        def _first_state(self) -> QuorumState:
            state = super()._first_state()
            if isinstance(state, Resigned):
                progress = ReplicaProgress(self.now_ms + self.settings.check_quorum_ms)
                return Leader(state.epoch, self.log.end_offset, (), progress)
            return state

    assert violated(Stubborn, 175) in (
        "committed stays",
        "leader has all",
        "majority",
        "works",
        "one leader",
        "converges",
    )


def test_a_leader_writes_until_its_vote_for_another_is_stored() -> None:
    class Late(Quorum):
        def _actions(self) -> Actions:
            told = self._told_leader
            actions = super()._actions()
            if self._storing is None:
                return actions
            self._told_leader = told
            return msgspec.structs.replace(actions, leader=None)

    assert violated(Late, 36) in ("committed stays", "leader has all", "majority", "works", "converges")


def test_uncommitted_records_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    append = follower._append

    def hasty(quorum: Quorum, state: Any, answer: Any) -> bool:
        return append(quorum, state, msgspec.structs.replace(answer, high_watermark=1 << 40))

    monkeypatch.setattr(follower, "_append", hasty)
    assert violated(first_seed=14) in ("committed stays", "leader has all", "works")


def test_a_snapshot_is_made_above_the_high_watermark() -> None:
    class Eager(Quorum):
        def check_snapshot(self, snapshot_id: Any) -> None:
            pass

    assert violated(Eager) == "snapshot committed"


def test_the_log_is_cut_at_the_high_watermark_instead_of_by_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def truncate(quorum: Quorum, diverging: Any) -> None:
        offset = max(quorum.high_watermark, 0)
        quorum.control.truncate(offset)
        quorum.write_log(follower.TruncateLog(offset), offset)

    monkeypatch.setattr(follower, "_truncate", truncate)
    assert violated(first_seed=440) in ("majority", "leader has all", "committed stays", "converges", "works")


def test_votes_go_to_logs_that_lack_something(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = vote._grants_vote

    def generous(quorum: Quorum, candidate: Any, *, is_up_to_date: bool) -> bool:
        return grants(quorum, candidate, is_up_to_date=True)

    monkeypatch.setattr(vote, "_grants_vote", generous)
    assert violated(first_seed=227) in ("leader has all", "committed stays")


def test_voters_change_while_a_change_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voter_changes, "_check_committed", lambda quorum: None)

    def check(quorum: Quorum, what: str) -> None:
        if quorum.control.kraft_version < 1:
            raise voter_changes.Reject(voter_changes.ErrorCode.UNSUPPORTED_VERSION)

    monkeypatch.setattr(voter_changes, "_check_dynamic", check)
    assert violated(first_seed=36) in ("one change", "one leader", "leader has all", "committed stays")


def test_a_removed_leader_counts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    high_watermark = ReplicaProgress.high_watermark

    def counting(self: ReplicaProgress, voters: Any, key: Any, end_offset: int) -> int:
        if voters.find(*key) is not None:
            return high_watermark(self, voters, key, end_offset)
        ends = sorted([end_offset, *(self._end_offset(voter.key) for voter in voters.voters)])
        return ends[-voters.majority]

    monkeypatch.setattr(ReplicaProgress, "high_watermark", counting)
    assert violated(first_seed=28) in ("majority", "leader has all", "committed stays")


def test_a_failing_seed_is_shortened() -> None:
    class Eager(Quorum):
        def check_snapshot(self, snapshot_id: Any) -> None:
            pass

    world = first_violation(Eager).world
    failure = shorten(world.seed, Eager)
    assert "snapshot committed" in failure.violation
    assert failure.skipped
    before, after = ([line for line in lines if " !! " in line] for lines in (world.trace.lines, failure.trace))
    assert len(after) < len(before)


def test_worlds_differ_in_size_and_in_kraft_version() -> None:
    worlds = [make_world(seed) for seed in range(63)]
    assert {len(world.nodes) for world in worlds} >= {1, 3, 5, 7}
    assert {world.nodes[1].formatted is None for world in worlds} == {True, False}
