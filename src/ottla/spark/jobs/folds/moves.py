"""The partitions that moved from one converged assignment to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.spark.jobs.folds.state import NOTHING, Assignments, TrackedMember

__all__ = ["Move", "Moves", "is_same_holder", "moves", "placed"]


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
    found = {}
    for member in members.values():
        old = before.get(member.id) if before else None
        new = Assignments(member.instance, member.process, member.active, member.standby, member.warmup)
        found[member.id] = old if old is not None and old == new else new
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
    gained, lost = _differences(before, after)
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


def _differences(
    before: Mapping[str, Assignments], after: Mapping[str, Assignments]
) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    gained, lost = {}, {}
    for member in before.keys() | after.keys():
        old, new = before.get(member), after.get(member)
        if old is new:
            continue
        had = old.active if old else NOTHING
        has = new.active if new else NOTHING
        if more := has - had:
            gained[member] = more
        if less := had - has:
            lost[member] = less
    return gained, lost
