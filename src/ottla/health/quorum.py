"""What follows from a description of the quorum: who votes, who keeps up, and whom the high watermark waits for."""

from __future__ import annotations

from typing import Final

from ottla.health.facts import Quorum, Replica

__all__ = ["HEALTHY_MS", "healthy_voters", "holding_back", "leader_now_ms", "leader_of", "majority", "voters"]

HEALTHY_MS: Final = 5_000
"""A voter that has not fetched for longer is not healthy."""


def voters(fact: Quorum) -> list[Replica]:
    return [each for each in fact.replicas if each.role == "voter"]


def majority(fact: Quorum) -> int:
    return len(voters(fact)) // 2 + 1


def leader_of(fact: Quorum) -> Replica | None:
    return next((each for each in fact.replicas if each.id == fact.leader), None)


def leader_now_ms(fact: Quorum) -> int | None:
    """The time on the leader's clock, which is the time of the leader's own last fetch."""
    leader = leader_of(fact)
    if leader is None or leader.last_fetch_ts is None or leader.last_fetch_ts < 0:
        return None
    return leader.last_fetch_ts


def healthy_voters(fact: Quorum, fetch_ms: int = HEALTHY_MS) -> list[int] | None:
    """The leader and the voters that fetched lately; None if the cluster does not report fetch times."""
    now_ms = leader_now_ms(fact)
    if now_ms is None:
        return None
    return [
        each.id for each in voters(fact) if each.id == fact.leader or now_ms - (each.last_fetch_ts or 0) <= fetch_ms
    ]


def holding_back(fact: Quorum) -> list[int]:
    """The voters whose next fetch moves the high watermark."""
    ends = sorted(((each.log_end or 0) for each in voters(fact)), reverse=True)
    if not ends:
        return []
    candidate = ends[len(ends) // 2]
    return [each.id for each in voters(fact) if (each.log_end or 0) == candidate]
