"""A crash at every write of a transaction, one world for each.

First a program runs without faults, and the operations of the disk are counted from its InitProducerId to the complete
record of its last transaction: each is a crash point. Then, for each point, the same world runs again and the process
is killed in the middle of that operation, which is on the disk up to some byte. The program continues after the
restart, and at the end the invariants of `TransactionWorld` must hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ottla.testing.disk import VirtualDisk
from ottla.testing.trace import Violation
from simulation.clients.producer import TransactionalProducer
from simulation.transaction_world import OUTPUTS, TransactionWorld

__all__ = ["CrashPoints", "Plan", "all_plans", "count_points", "run_plan"]

_TRANSACTIONS: Final = 2
_END_MS: Final = 120_000
_QUIET_MS: Final = 40_000
"""After this time an abandoned transaction is aborted."""


class Plan(msgspec.Struct, frozen=True):
    """The transactions that are interrupted, and how."""

    transaction_version: int
    commits: bool
    is_killed_twice: bool = False
    """Whether the process is killed again, during the restart or what it resumes."""

    @property
    def name(self) -> str:
        end = "commit" if self.commits else "abort"
        return f"version {self.transaction_version}, {end}{', killed twice' if self.is_killed_twice else ''}"


class CrashPoints(msgspec.Struct, frozen=True):
    """The number of crash points, and of runs."""

    points: int
    runs: int


def run_plan(plan: Plan, *, tears: int = 1) -> CrashPoints:
    """Crash at every point, `tears` times with other remaining bytes. Raises Violation, whose world is in `world`."""
    first, last = count_points(plan)
    for point in range(first, last + 1):
        for tear in range(tears):
            world = _world(plan)
            world.node.machine.disk.random.seed(tear)
            world.node.machine.disk.crash_at = point
            try:
                _run(world, plan)
            except Violation as violation:
                violation.world = world
                raise
    return CrashPoints(last - first + 1, (last - first + 1) * tears)


def count_points(plan: Plan) -> tuple[int, int]:
    """The first and the last disk operation of the transactions."""
    world = _world(plan)
    first = world.disk_operations() + 1
    program = world.programs[0]
    program.start()
    world.run_until(_END_MS, lambda: _has_ended(program))
    world.run_until(world.now_ms() + 100)
    return first, world.disk_operations()


def _world(plan: Plan) -> TransactionWorld:
    world = TransactionWorld(0, feature_level=2 if plan.transaction_version >= 2 else 1)
    program = TransactionalProducer(world, "program", "s", OUTPUTS, plan.transaction_version)
    program.commit_chance = 1.0 if plan.commits else 0.0
    world.programs.append(program)
    return world


def _has_ended(program: TransactionalProducer) -> bool:
    return program.ended_count >= _TRANSACTIONS


def _run(world: TransactionWorld, plan: Plan) -> None:
    program = world.programs[0]
    program.start()
    if plan.is_killed_twice:
        _kill_again(world)
    world.run_until(_END_MS, lambda: _has_ended(program) and world.is_up)
    world.hold("converges", _has_ended(program), "the program never got its transactions through")
    program.commit_chance = 1.0
    _has_one_more(world, program)
    program.is_finishing = True
    world.run_until(world.now_ms() + _QUIET_MS)
    world.hold("converges", program.is_idle, "the program never came to its end")
    world.check_exactly_once()
    world.check_law()
    world.check()


def _has_one_more(world: TransactionWorld, program: TransactionalProducer) -> None:
    """One more transaction is committed, which fails if the crash has left something behind."""
    wanted = program.committed_count + 1
    world.run_until(world.now_ms() + _END_MS, lambda: program.committed_count >= wanted)
    world.hold("converges", program.committed_count >= wanted, "no further transaction got through")


def _kill_again(world: TransactionWorld) -> None:
    """Interrupt the restart, too: it crashes at one of its first writes."""

    def crash_soon(disk: VirtualDisk) -> None:
        world.node.machine.crashed = lambda _: None
        disk.crash_at = disk.operations + world.random.randint(1, 4)

    world.node.machine.crashed = crash_soon


def all_plans() -> Iterator[Plan]:
    for version in (1, 2):
        for commits in (True, False):
            for twice in (False, True):
                yield Plan(version, commits, twice)
