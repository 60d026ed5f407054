"""What went well and what did not, where several were asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ottla.client.errors import ClientError
from ottla.observe.memory import Moment
from ottla.observe.sighting import Sighting, no_sight

__all__ = ["Parted", "by_node", "parted"]

V = TypeVar("V")
Parted = tuple[dict[str, V], list[Sighting]]


def parted(at: Moment, kind: str, outcomes: Mapping[str, V | ClientError]) -> Parted[V]:
    """The values, and a sighting for each error. If there is nothing but errors, the first is raised."""
    failures = {name: each for name, each in outcomes.items() if isinstance(each, ClientError)}
    if failures and len(failures) == len(outcomes):
        raise next(iter(failures.values()))
    values = {name: each for name, each in outcomes.items() if not isinstance(each, ClientError)}
    return values, [no_sight(kind, name, at.error_of(each)) for name, each in failures.items()]


def by_node(outcomes: Mapping[int, V | ClientError]) -> dict[str, V | ClientError]:
    """The same under the names that nodes have in samples."""
    return {f"node:{node_id}": each for node_id, each in outcomes.items()}
