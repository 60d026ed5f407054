"""Which groups read a topic: those of which the observer has seen how far they are in it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ottla.health.lag_history import lag_of
from ottla.observe.cluster_state import ClusterState

__all__ = ["Reader", "readers_by_topic"]


class Reader(msgspec.Struct, frozen=True):
    group: str
    kind: str
    lag: int | None
    """Summed over the partitions of which it is known; None if it is known of none."""


def readers_by_topic(state: ClusterState) -> dict[str, list[Reader]]:
    found: dict[str, list[Reader]] = {}
    for name, seen in sorted(state.groups.items()):
        lags: dict[str, list[int | None]] = {}
        for topic, lag in _lags(state, name):
            lags.setdefault(topic, []).append(lag)
        for topic, each in lags.items():
            known = [lag for lag in each if lag is not None]
            found.setdefault(topic, []).append(Reader(name, seen.fact.type, sum(known) if known else None))
    return found


def _lags(state: ClusterState, group: str) -> Iterator[tuple[str, int | None]]:
    for (topic, _), lag in state.lags(group).items():
        yield topic, lag_of(lag.fact)
    for (topic, _), offsets in state.share_offsets(group).items():
        yield topic, offsets.fact.lag
