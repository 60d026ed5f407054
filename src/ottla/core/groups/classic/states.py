"""The states of a classic group and the steps between them.

There is no Dead state as in Kafka: a group that is deleted is not in the table any more, and a group whose coordinator
moves away is unloaded together with its shard, which then answers NOT_COORDINATOR itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

__all__ = ["TRANSITIONS", "GroupState", "Transition", "is_step"]


class GroupState(StrEnum):
    """The names that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """Nobody is here. Offsets may be."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Joins are gathered."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation has begun; its leader's assignment is awaited, or is being written."""
    STABLE = "Stable"
    """Everybody has its assignment, or gets it by asking."""


class Transition(NamedTuple):
    source: GroupState
    event: str
    target: GroupState


_EMPTY, _PREPARING, _COMPLETING, _STABLE = GroupState

TRANSITIONS: Final = (
    Transition(_EMPTY, "a member joins: the initial delay begins", _PREPARING),
    Transition(_PREPARING, "all have joined, or time is up and somebody has", _COMPLETING),
    Transition(_PREPARING, "nobody is left", _EMPTY),
    Transition(_COMPLETING, "the leader's assignment is written", _STABLE),
    Transition(_COMPLETING, "the assignment cannot be written", _PREPARING),
    Transition(_COMPLETING, "a member joins, changes, leaves, or does not sync in time", _PREPARING),
    Transition(_STABLE, "a member joins, changes, leaves, or its session ends; the leader joins again", _PREPARING),
)
"""What can happen, in the order of a group's life. A state that is not named under an event stays as it is."""

_STEPS: Final = frozenset((each.source, each.target) for each in TRANSITIONS)


def is_step(source: GroupState, target: GroupState) -> bool:
    return (source, target) in _STEPS
