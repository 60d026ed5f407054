"""The partitions that moved from one converged assignment to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.spark.jobs.folds.state import Assignments, Held, TrackedMember

__all__ = ["Move", "Moves", "is_same_holder", "missing", "moves", "placed"]

_active: Final = attrgetter("active")


class Move(NamedTuple):
    what: str
    giver: str
    taker: str


class Moves(NamedTuple):
    moved: list[Move]
    exchanged: int
    """How many partitions members gained or lost, in sum."""
    touched: int
    """How many of the remaining members have another assignment than before."""


def placed(members: Mapping[str, TrackedMember], before: Mapping[str, Assignments] | None) -> dict[str, Assignments]:
    """The assignment of each member; an unchanged one is the same object as before."""
    found, known = {}, before or {}
    for name, member in members.items():
        old = known.get(name)
        new = Assignments(member.instance, member.process, member.active, member.standby, member.warmup)
        found[name] = old if old is not None and old == new else new
    return found


def is_same_holder(before: Mapping[str, Assignments], after: Mapping[str, Assignments], giver: str, taker: str) -> bool:
    """Whether the two are one member that came back with a new id: the same static instance, or the same process."""
    if giver in after or taker in before:
        return False
    old, new = before[giver], after[taker]
    if old.instance is not None:
        return old.instance == new.instance
    return bool(old.process) and old.process == new.process


def moves(before: Mapping[str, Assignments], after: Mapping[str, Assignments]) -> Moves:
    gained, lost = missing(before, after, _active), missing(after, before, _active)
    givers = {what: member for member, lost_ones in lost.items() for what in lost_ones}
    moved: list[Move] = []
    kept: set[str] = set()
    touched = {member for member in lost if member in after}
    for member, gained_ones in gained.items():
        for what in gained_ones:
            giver = givers.get(what)
            if giver is not None and is_same_holder(before, after, giver, member):
                kept.add(what)
                continue
            touched.add(member)
            if giver is not None:
                moved.append(Move(what, giver, member))
    exchanged = sum(map(len, gained.values())) + sum(map(len, lost.values())) - 2 * len(kept)
    return Moves(moved, exchanged, len(touched))


def missing(
    first: Mapping[str, Assignments], second: Mapping[str, Assignments], held: Callable[[Assignments], Held]
) -> dict[str, Held]:
    """What members hold in the second placement but not in the first."""
    found = {}
    for member, new in second.items():
        old = first.get(member)
        if new is not old and (more := held(new) - held(old) if old is not None else held(new)):
            found[member] = more
    return found
