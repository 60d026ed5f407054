"""Runs worlds of quorum nodes from seeds, and makes a failing run shorter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from ottla.core.quorum.messages import METADATA_TOPIC
from ottla.core.quorum.quorum import Quorum
from ottla.testing.trace import Violation
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from simulation.quorum.faults import Faults, is_steady
from simulation.quorum.world import QuorumWorld

__all__ = ["QuorumFailure", "QuorumTally", "run_quorum", "run_quorums", "shorten"]

_CHAOS_MS: Final = (5_000, 40_000)
_CALM_MS: Final = 60_000
_STEADY_MS: Final = 8_000
"""How long nothing may change once all nodes agree: longer than every timeout."""


class QuorumFailure(msgspec.Struct, frozen=True):
    """A seed in which an invariant did not hold, and the events that need not happen for that."""

    seed: int
    violation: str
    skipped: frozenset[int]
    trace: tuple[str, ...]


class QuorumTally(msgspec.Struct):
    """The results of many runs."""

    seeds: int = 0
    simulated_ms: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    failures: list[QuorumFailure] = []
    settled_ms_max: int = 0


def make_world(seed: int, make_quorum: Callable[..., Quorum] = Quorum) -> QuorumWorld:
    """The number of nodes and kraft.version follow from the seed."""
    voters = (3, 3, 5, 3, 1, 2, 4)[seed % 7]
    return QuorumWorld(
        seed,
        voters=voters,
        observers=(seed // 7) % 3,
        kraft_version=1 if (seed // 21) % 3 else 0,
        make_quorum=make_quorum,
    )


def run_quorum(
    seed: int,
    make_quorum: Callable[..., Quorum] = Quorum,
    skip: frozenset[int] = frozenset(),
    settled: Callable[[int], None] = lambda _: None,
) -> QuorumWorld:
    """One world from its start to its last check. Raises Violation, whose world is in `world`."""
    world = make_world(seed, make_quorum)
    try:
        faults = Faults(world, skip)
        faults.begin()
        world.run_until(world.random.randint(*_CHAOS_MS))
        faults.end()
        settled(_calm_down(world))
    except Violation as violation:
        violation.world = world
        world.note(f"VIOLATION {violation}")
        raise
    return world


def _calm_down(world: QuorumWorld) -> int:
    """Wait until all nodes agree, and see that it stays so. Returns how long it took."""
    begin_ms = world.now_ms()
    if not world.run_until(begin_ms + _CALM_MS, lambda: is_steady(world)):
        raise Violation("converges", "; ".join(world.unconverged()) or "a node stands for election")
    settled_ms = world.now_ms() - begin_ms
    while True:
        elections = world.counts["elections"]
        leader = world.leader()
        if leader is not None:
            world.propose(leader)
        world.run_until(world.now_ms() + _STEADY_MS)
        if world.counts["elections"] == elections and is_steady(world):
            check_described(world)
            return settled_ms
        if world.now_ms() > begin_ms + _CALM_MS:
            raise Violation("converges", "; ".join(world.unconverged()) or "leaders change without a reason")


def check_described(world: QuorumWorld) -> None:
    """What the leader answers to DescribeQuorum is so, when nothing changes any more."""
    leader = world.leader()
    assert leader is not None
    assert leader.quorum is not None
    kind, now_ms = DescribeQuorumRequest, world.now_ms()
    request = kind((kind.TopicData(METADATA_TOPIC, (kind.PartitionData(0),)),))
    (partition,) = leader.quorum.describe(request, 2, now_ms, now_ms).topics[0].partitions
    rows = {each.replica_id: each for each in (*partition.observers, *partition.current_voters)}
    for node in world.nodes.values():
        row = rows.get(node.node_id)
        if row is None or (row.replica_directory_id not in (node.directory_id, bytes(16))):
            continue
        is_recent = now_ms - row.last_fetch_timestamp <= leader.quorum.settings.fetch_timeout_ms
        if not is_recent or row.last_caught_up_timestamp < 0 or row.log_end_offset != node.log.end_offset:
            raise Violation("described", f"{node.name} ends at {node.log.end_offset} and is told as {row}")
    if partition.high_watermark != leader.log.end_offset or leader.node_id not in rows:
        raise Violation("described", f"{partition} is not {leader.name}, which ends at {leader.log.end_offset}")


def run_quorums(seeds: Iterable[int], progress: Callable[[QuorumTally], None] = lambda _: None) -> QuorumTally:
    """Many worlds, one after another. A failing one is shortened."""
    tally = QuorumTally()
    for seed in seeds:
        settled: list[int] = [0]
        try:
            world = run_quorum(seed, settled=settled.append)
        except Violation as violation:
            world = violation.world
            tally.failures.append(shorten(seed))
        tally.seeds += 1
        tally.simulated_ms += world.now_ms()
        tally.settled_ms_max = max(tally.settled_ms_max, *settled)
        tally.counts.update(world.counts)
        tally.faults.update(world.trace.faults)
        progress(tally)
    return tally


def shorten(seed: int, make_quorum: Callable[..., Quorum] = Quorum) -> QuorumFailure:
    """The failing run of a seed without the events that it does not need.

    A run without an event goes another way from there on, and may have more faults than the one with it.
    """
    skipped: frozenset[int] = frozenset()
    found, faults = _fails(seed, make_quorum, skipped)
    assert found is not None
    for number in range(faults, 0, -1):
        other, count = _fails(seed, make_quorum, skipped | {number})
        if other is not None and other.name == found.name and count <= faults:
            skipped, found, faults = skipped | {number}, other, count
    return QuorumFailure(seed, str(found), skipped, tuple(found.world.trace.lines))


def _fails(seed: int, make_quorum: Callable[..., Quorum], skip: frozenset[int]) -> tuple[Violation | None, int]:
    try:
        run_quorum(seed, make_quorum, skip)
    except Violation as violation:
        return violation, sum(violation.world.trace.faults.values())
    return None, 0
