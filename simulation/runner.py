"""Runs worlds from seeds: one from its first member to its last check, or many."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Final

import msgspec

from ottla.testing.trace import Violation
from simulation.coordinator_kinds import KINDS
from simulation.faults import Faults
from simulation.share.faults import run_share
from simulation.share.world import ShareWorld
from simulation.transaction_faults import run_transactions
from simulation.transaction_world import TransactionWorld
from simulation.workloads import FAMILIES, OtherClients
from simulation.world import World

__all__ = ["FAMILY_NAMES", "Failure", "Tally", "run_seed", "run_seeds", "seed_numbers"]

TRANSACTIONS: Final = "transactions"
SHARE: Final = "share"
FAMILY_NAMES: Final = (*FAMILIES, TRANSACTIONS, SHARE)

_CHAOS_MS: Final = (40_000, 180_000)
_CALM_MS: Final = 180_000
"""Within this time every group must settle: several session and rebalance timeouts in sequence."""
_STEADY_MS: Final = 50_000
"""How long it must stay converged: longer than any session, so that no crashed member is left in a group."""


AnyWorld = World | TransactionWorld | ShareWorld


class Failure(msgspec.Struct, frozen=True):
    """A seed in which an invariant did not hold."""

    seed: int
    families: tuple[str, ...]
    violation: str
    trace: tuple[str, ...]


class Tally(msgspec.Struct):
    """The results of many runs."""

    seeds: int = 0
    simulated_ms: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    failures: list[Failure] = []
    settled_ms_max: int = 0
    """The longest time that a world took to settle."""


def run_seed(seed: int, families: Sequence[str]) -> AnyWorld:
    """One world: of transactions, of a share group, or of one or two other groups. Raises Violation, whose world is in
    `world`."""
    world = _world(seed, families[seed % len(families)])
    try:
        if isinstance(world, World):
            _run_groups(world, [each for each in families if each in FAMILIES])
        elif isinstance(world, ShareWorld):
            run_share(world)
        else:
            run_transactions(world, world.environment.features["transaction.version"])
    except Violation as violation:
        violation.world = world
        raise
    return world


def _world(seed: int, family: str) -> AnyWorld:
    if family == SHARE:
        return ShareWorld(seed)
    return _transactions(seed) if family == TRANSACTIONS else World(seed, KINDS["groups"])


def _transactions(seed: int) -> TransactionWorld:
    """A world of transactions; half of them use each transaction version."""
    return TransactionWorld(seed, feature_level=1 + (seed // 7) % 2)


def _run_groups(world: World, families: Sequence[str]) -> None:
    chance = world.random
    for number in range(chance.randint(1, 2)):
        world.put_topic(f"t{number}", chance.randint(1, 6))
    chosen = [families[(world.seed + number) % len(families)] for number in range(chance.randint(1, 2))]
    for number, family in enumerate(chosen):
        world.workloads.append(FAMILIES[family](world, f"{family}-{number}"))
    if chance.random() < 0.6:
        world.workloads.append(OtherClients(world, [f"{chosen[0]}-0"]))
    if chance.random() < 0.25:
        _let_offsets_expire(world)
    world.has_late_requests = chance.random() < 0.3
    faults = Faults(world)
    faults.begin()
    for client in [client for each in world.workloads for client in each.clients]:
        world.after(chance.randint(0, 10_000), client.start_unless_alive)
    world.run_until(chance.randint(*_CHAOS_MS))
    faults.end()
    _calm_down(world)


def _let_offsets_expire(world: World) -> None:
    world.offsets_expire = True
    world.environment.settings.set("offsets.retention.minutes", "1")
    world.environment.settings.set("offsets.retention.check.interval.ms", "9000")


def _calm_down(world: World) -> None:
    begin_ms = world.now_ms()
    settled = _Convergence(world)
    world.run_until(begin_ms + _CALM_MS + _STEADY_MS, settled.long_enough)
    world.hold("converges", settled.long_enough(), "; ".join(world.unconverged()) or "it does not stay settled")
    world.check()
    world.settled_ms = settled.since_ms - begin_ms
    world.read_commits()
    world.host.turn()
    world.check_law()


class _Convergence:
    """Measures for how long all workloads have been converged without a break."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._has_converged = False
        self.since_ms = 0

    def long_enough(self) -> bool:
        was_settled, self._has_converged = self._has_converged, self._world.is_up and not self._world.unconverged()
        if self._has_converged and not was_settled:
            self.since_ms = self._world.now_ms()
        return self._has_converged and self._world.now_ms() - self.since_ms >= _STEADY_MS


def seed_numbers(first: int, number: int | None, minutes: float | None) -> Iterator[int]:
    """A number of seeds, or as many as a time has room for."""
    if number is not None:
        yield from range(first, first + number)
        return
    end = time.monotonic() + 60 * (minutes or 0)
    for seed in count(first):
        if time.monotonic() > end:
            return
        yield seed


def run_seeds(
    seeds: Iterable[int], families: Sequence[str], progress: Callable[[Tally], None] = lambda _: None
) -> Tally:
    """Many worlds, one after another."""
    tally = Tally()
    for seed in seeds:
        try:
            world = run_seed(seed, families)
        except Violation as violation:
            world = violation.world
            tally.failures.append(Failure(seed, tuple(families), str(violation), tuple(world.trace.lines)))
        tally.seeds += 1
        tally.simulated_ms += world.now_ms()
        tally.settled_ms_max = max(tally.settled_ms_max, world.settled_ms)
        tally.faults.update(world.trace.faults)
        progress(tally)
    return tally
