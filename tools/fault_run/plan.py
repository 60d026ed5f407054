"""The faults of a run, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

__all__ = ["QUORUM_FAULTS", "RESTARTS", "Cluster", "Fault", "Hit", "Node", "plan"]

SHORT_S: Final = (0.5, 4.5)
LONG_S: Final = 12.0
"""Longer than a broker's session: its broker is fenced, and comes back."""
_LONG_EVERY: Final = 7

Kind = tuple[str, bool]
"""What is done, and whether it is done to the leader of the quorum."""
QUORUM_FAULTS: Final[tuple[Kind, ...]] = (
    *((kind, is_leader) for kind in ("kill", "pause", "isolate", "mute") for is_leader in (True, False)),
    ("cut", False),
    ("cut followers", False),
)
RESTARTS: Final[tuple[Kind, ...]] = (("stop", True), ("stop", False))


class Node(Protocol):
    """A node as a fault hits it."""

    def kill(self) -> None: ...
    def stop(self) -> None: ...
    def start(self, *, wait: bool = True) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Cluster(Protocol):
    """A cluster whose nodes and links can be hit."""

    def __getitem__(self, node_id: int, /) -> Node: ...
    def cut(self, one: int, other: int, *, one_way: bool = False) -> None: ...
    def isolate(self, node_id: int, /) -> None: ...
    def heal(self) -> None: ...


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
        if self.kind in ("kill", "stop", "pause", "isolate"):
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
    if kind in ("kill", "stop"):
        end = node.kill if kind == "kill" else node.stop
        end()
        undo = lambda: node.start(wait=False)  # noqa: E731
    elif kind == "pause":
        node.pause()
        undo = node.resume
    else:
        cluster.isolate(target)
    return Hit(frozenset((target,)), frozenset((target,)), undo)


def plan(count: int, seed: int, kinds: Sequence[Kind] = QUORUM_FAULTS) -> list[Fault]:
    """Each kind of fault as often as any other, in a random order, of random length."""
    chance = random.Random(seed)
    chosen: list[Kind] = []
    while len(chosen) < count:
        chosen += chance.sample(kinds, len(kinds))
    return [
        Fault(*each, LONG_S if number % _LONG_EVERY == _LONG_EVERY - 1 else chance.uniform(*SHORT_S))
        for number, each in enumerate(chosen[:count])
    ]
