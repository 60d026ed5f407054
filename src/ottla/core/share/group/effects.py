"""What share groups ask of the edge. By itself, so that a node that starts need not load the rest.

An outcome with an error has, as its value, a mapping of the share partitions that it did not work for to the reason;
without one, it stands for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.core.coordinator.contract import Outcome
from ottla.wire.errors import ErrorCode

__all__ = ["DeleteState", "InitializeState", "NewState", "Refusal", "Refusals", "refusals_of"]


class NewState(NamedTuple):
    """The state that a share partition begins with. An offset of -1: its group's share.auto.offset.reset decides."""

    topic_id: bytes
    partition: int
    start_offset: int


class InitializeState(NamedTuple):
    """Give share partitions their first state, or another one in place of what they have."""

    family: str
    number: int
    group_id: str
    state_epoch: int
    partitions: tuple[NewState, ...]
    is_replacing: bool
    """Whether an administrator wants it so: then what leaders hold of the share partitions is out of date."""


class DeleteState(NamedTuple):
    """Forget the state of share partitions."""

    family: str
    number: int
    group_id: str
    partitions: tuple[tuple[bytes, int], ...]


class Refusal(NamedTuple):
    code: ErrorCode
    message: str | None = None


Refusals = Mapping[tuple[bytes, int], Refusal]


def refusals_of(effect: InitializeState | DeleteState, outcome: Outcome) -> Refusals:
    """Why it did not work, for the share partitions for which it did not."""
    if outcome.is_ok:
        return {}
    if outcome.value is not None:
        refusals: Refusals = outcome.value
        return refusals
    refusal = Refusal(outcome.error, outcome.message)
    return {(each[0], each[1]): refusal for each in effect.partitions}
