"""Runs simulated clusters from seeds, and makes a failing run shorter."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from random import Random
from typing import Final

import msgspec

from ottla.broker.loop.preload import modules
from ottla.testing.trace import Violation
from simulation.cluster.aimed_faults import CoordinatorFaults, FollowerFaults
from simulation.cluster.checks import final_checks, unconverged
from simulation.cluster.clients.admin import Admin
from simulation.cluster.clients.client import SimulatedClient
from simulation.cluster.clients.groups import (
    ClassicMember,
    ConsumerMember,
    OffsetCommitter,
    OffsetReader,
    StreamsMember,
)
from simulation.cluster.clients.movers import CoordinatorMover, LeaderMover, ReplicaMover, TransactionMover
from simulation.cluster.clients.producers import HastyProducer, IdempotentProducer, TransactionalProducer
from simulation.cluster.clients.share import ShareMember, ShareWatcher
from simulation.cluster.clients.voters import REMOVE_VOTER, VoterAdmin
from simulation.cluster.data_checks import data_checks
from simulation.cluster.faults import Faults
from simulation.cluster.readings import Reader
from simulation.cluster.replica_invariants import replicas_equal
from simulation.cluster.world import ClusterWorld

__all__ = ["ClusterFailure", "ClusterTally", "Plan", "run_cluster", "run_clusters", "shorten"]

CHAOS_S: Final = 10.0
_CALM_S: Final = 60.0
_STEADY_S: Final = 2.0
_LAST_S: Final = 30.0
"""How long clients may take to end what they have begun, and to read everything."""
_HAS_VOTER_CHANGES: Final = 0.3
_KINDS: Final[tuple[type[SimulatedClient], ...]] = (
    Admin,
    IdempotentProducer,
    TransactionalProducer,
    OffsetCommitter,
    ConsumerMember,
    StreamsMember,
    ClassicMember,
    ShareMember,
    ShareWatcher,
)
_WRITERS: Final[tuple[type[SimulatedClient], ...]] = (
    Admin,
    OffsetCommitter,
    ReplicaMover,
    HastyProducer,
    HastyProducer,
    IdempotentProducer,
    IdempotentProducer,
    IdempotentProducer,
)
"""In worlds that are about replication."""
_COORDINATED: Final[tuple[type[SimulatedClient], ...]] = (Admin, OffsetCommitter, CoordinatorMover)
"""In worlds that are about coordinators, with one of the next two."""
_IN_TRANSACTIONS: Final[tuple[type[SimulatedClient], ...]] = (TransactionalProducer,) * 4
_IN_SHARE_GROUPS: Final[tuple[type[SimulatedClient], ...]] = (
    IdempotentProducer,
    IdempotentProducer,
    ShareMember,
    ShareMember,
    ShareMember,
    ShareWatcher,
)
_READERS: Final[tuple[type[SimulatedClient], ...]] = (OffsetCommitter, OffsetReader)
"""In addition, in worlds that aim at coordinators, with some who move what they need."""


class Plan(msgspec.Struct, frozen=True):
    """How to run a seed: for how long, and what to leave out of it."""

    chaos_s: float = CHAOS_S
    skipped_faults: frozenset[int] = frozenset()
    skipped_clients: frozenset[str] = frozenset()


_WHOLE: Final = Plan()
"""Nothing is left out."""


class ClusterFailure(msgspec.Struct, frozen=True):
    """A seed in which an invariant did not hold, and what need not happen for that."""

    seed: int
    violation: str
    plan: Plan
    trace: tuple[str, ...]


class ClusterTally(msgspec.Struct):
    """The results of many runs."""

    seeds: int = 0
    simulated_ms: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    operations: Counter[str] = msgspec.field(default_factory=Counter)
    failures: list[ClusterFailure] = []
    settled_ms_max: int = 0

    def add(self, other: ClusterTally) -> None:
        self.seeds += other.seeds
        self.simulated_ms += other.simulated_ms
        self.faults.update(other.faults)
        self.operations.update(other.operations)
        self.failures += other.failures
        self.settled_ms_max = max(self.settled_ms_max, other.settled_ms_max)


def make_clients(world: ClusterWorld) -> list[SimulatedClient]:
    """Some of every kind, or many of a few."""
    if world.shape.is_about_replication:
        return [kind(world) for kind in _WRITERS]
    chance = Random(f"clients of {world.seed}")
    if world.shape.is_about_coordinators:
        is_about_transactions, is_aimed = world.shape.is_about_transactions, world.shape.aims_at_coordinators
        users = _IN_TRANSACTIONS if is_about_transactions else _IN_SHARE_GROUPS
        movers = (TransactionMover,) if is_about_transactions else (LeaderMover, LeaderMover)
        others = (*movers, *_READERS) if is_aimed else ()
        return [kind(world) for kind in (*_COORDINATED, *users, *others)]
    kinds = _KINDS
    if chance.random() < 0.5:
        kinds = (Admin, *chance.sample(kinds, 3))
    clients = [kind(world) for kind in kinds for _ in range(chance.randint(1, 2))]
    if len(world.controllers) > 2 and Random(f"voters of {world.seed}").random() < _HAS_VOTER_CHANGES:
        clients.append(VoterAdmin(world))
    return clients


def make_faults(world: ClusterWorld, skip: frozenset[int]) -> Faults:
    if world.shape.aims_at_followers:
        return FollowerFaults(world, skip)
    return CoordinatorFaults(world, skip) if world.shape.aims_at_coordinators else Faults(world, skip)


@cache
def _load_everything() -> None:
    """Import what nodes load late: a module that is imported in a world must not draw from its random numbers."""
    for name in modules():
        import_module(name)


def run_cluster(seed: int, plan: Plan = _WHOLE) -> ClusterWorld:
    """One world from its start to its last check. Raises Violation, whose world is in `world`."""
    _load_everything()
    world = ClusterWorld(seed)
    world.clients = [each for each in make_clients(world) if each.name not in plan.skipped_clients]
    faults = make_faults(world, plan.skipped_faults)

    async def script() -> None:
        faults.begin()
        await asyncio.sleep(plan.chaos_s)
        faults.end()
        await _calm_down(world)

    world.run(script)
    return world


async def _calm_down(world: ClusterWorld) -> None:
    began_s = world.loop.time()
    while missing := list(unconverged(world)):
        if world.loop.time() - began_s > _CALM_S:
            raise Violation("converges", "; ".join(missing))
        await asyncio.sleep(0.1)
    world.settled_ms = int((world.loop.time() - began_s) * 1000)
    epoch = world.raft.epoch
    await asyncio.sleep(_STEADY_S)
    for client in world.clients:
        client.is_over = True
    await _end(world, world.clients, "clients end")
    world.history.close()
    await asyncio.sleep(_STEADY_S)
    for name, detail in final_checks(world):
        raise Violation(name, detail)
    await _wait_for_equal_replicas(world)
    group_ids = dict.fromkeys(each.subject[0] for each in world.history.of("commit"))
    group_ids |= dict.fromkeys(f"group of {each.client}" for each in world.history.of("transaction"))
    reader = Reader(world, list(group_ids))
    reader.start()
    await _end(world, [reader], "all is readable")
    if reader.readings is None:
        raise Violation("all is readable", reader.failure)
    for name, detail in data_checks(world.history, reader.readings):
        raise Violation(name, detail)
    if world.raft.epoch != epoch and not world.history.of(REMOVE_VOTER):
        raise Violation("steady epoch", f"it rises from {epoch} to {world.raft.epoch}, although nothing fails any more")
    for machine in world.machines.values():
        world.note(f"the disk of {machine.name} has {machine.disk.digest}")
    for name, error in world.lost_errors():
        raise Violation("works", f"{name}: {error!r}") from error


async def _wait_for_equal_replicas(world: ClusterWorld) -> None:
    """Members of groups leave for some time after the end, and a coordinator writes that."""
    until_s = world.loop.time() + _LAST_S
    while different := list(replicas_equal(world)):
        if world.loop.time() > until_s:
            raise Violation("replicas equal", "; ".join(different))
        await asyncio.sleep(0.1)


async def _end(world: ClusterWorld, clients: list[SimulatedClient], name: str) -> None:
    """Wait until clients have ended what they have begun."""
    until_s = world.loop.time() + _LAST_S
    while alive := [each.name for each in clients if each.main and each.process.is_running and not each.main.done()]:
        if world.loop.time() > until_s:
            raise Violation(name, f"{', '.join(alive)} still at it after {_LAST_S:g} s")
        await asyncio.sleep(0.1)
    for client in clients:
        if client.main is not None and client.main.done() and (error := client.main.exception()) is not None:
            raise Violation("works", f"{client.name}: {error!r}") from error


def run_clusters(seeds: Iterable[int], plan: Plan = _WHOLE) -> ClusterTally:
    """Many worlds, one after another. A failing one is shortened."""
    tally = ClusterTally()
    for seed in seeds:
        try:
            world = run_cluster(seed, plan)
        except Violation as violation:
            world = violation.world
            tally.failures.append(shorten(seed, plan))
        tally.seeds += 1
        tally.simulated_ms += world.now_ms()
        tally.settled_ms_max = max(tally.settled_ms_max, world.settled_ms)
        tally.faults.update(world.trace.faults)
        tally.operations.update(each.kind for each in world.history.operations if each.is_done)
        del world
        gc.collect()
    return tally


def shorten(seed: int, plan: Plan = _WHOLE) -> ClusterFailure:
    """The failing run of a seed without the clients and faults that it does not need.

    A run without one of them goes another way from there on, and may have more faults than the one with it.
    """
    found = _violation(seed, plan)
    assert found is not None
    for name in dict.fromkeys(each.client for each in found.world.history.operations):
        shorter = msgspec.structs.replace(plan, skipped_clients=plan.skipped_clients | {name})
        plan, found = _try(seed, shorter, plan, found)
    for number in range(_fault_count(found) * 2, 0, -1):
        shorter = msgspec.structs.replace(plan, skipped_faults=plan.skipped_faults | {number})
        plan, found = _try(seed, shorter, plan, found)
    return ClusterFailure(seed, str(found), plan, tuple(found.world.trace.lines))


def _try(seed: int, shorter: Plan, plan: Plan, found: Violation) -> tuple[Plan, Violation]:
    other = _violation(seed, shorter)
    if other is None or other.name != found.name or _fault_count(other) > _fault_count(found):
        return plan, found
    return shorter, other


def _fault_count(violation: Violation) -> int:
    return sum(violation.world.trace.faults.values())


def _violation(seed: int, plan: Plan) -> Violation | None:
    try:
        run_cluster(seed, plan)
    except Violation as violation:
        return violation
    return None
