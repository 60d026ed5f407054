"""The faults of a run, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ottla.testing import Cluster

__all__ = ["Fault", "Hit", "plan"]

SHORT_S: Final = (0.5, 4.5)
LONG_S: Final = 12.0
"""Longer than a broker's session: its broker is fenced, and comes back."""
_LONG_EVERY: Final = 7


class Hit(NamedTuple):
    """A fault that has been done to a cluster."""

    out_of_reach: frozenset[int]
    """Nodes that some others do not hear."""
    silent: frozenset[int]
    """Those of them that nobody hears."""
    undo: Callable[[], None]


class Fault(NamedTuple):
    kind: str
    does_hit_leader: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind} {'leader' if self.does_hit_leader else 'follower'} for {self.seconds:.1f} s"

    def do(self, cluster: Cluster, leader: int, followers: Sequence[int]) -> Hit:
        """Hit the leader, or the first of its followers."""
        target, other = (leader, followers[0]) if self.does_hit_leader else (followers[0], leader)
        if self.kind in ("kill", "pause", "isolate"):
            return _hit_node(self.kind, cluster, target)
        if self.kind == "cut":
            cluster.cut(target, other)
        elif self.kind == "cut followers":
            target, other = followers[0], followers[1]
            cluster.cut(target, other)
        else:
            cluster.cut(target, other, one_way=True)
        return Hit(frozenset((target, other)), frozenset(), cluster.heal)


def _hit_node(kind: str, cluster: Cluster, target: int) -> Hit:
    node, undo = cluster[target], cluster.heal
    if kind == "kill":
        node.kill()
        undo = lambda: node.start(wait=False)  # noqa: E731
    elif kind == "pause":
        node.pause()
        undo = node.resume
    else:
        cluster.isolate(target)
    return Hit(frozenset((target,)), frozenset((target,)), undo)


def plan(count: int, seed: int) -> list[Fault]:
    """Each kind of fault as often as any other, in a random order, of random length."""
    kinds = [(kind, is_leader) for kind in ("kill", "pause", "isolate", "mute") for is_leader in (True, False)]
    kinds += [("cut", False), ("cut followers", False)]
    chance = random.Random(seed)
    chosen: list[tuple[str, bool]] = []
    while len(chosen) < count:
        chosen += chance.sample(kinds, len(kinds))
    return [
        Fault(*each, LONG_S if number % _LONG_EVERY == _LONG_EVERY - 1 else chance.uniform(*SHORT_S))
        for number, each in enumerate(chosen[:count])
    ]
