"""What `ottla quorum status` says of a quorum in one line, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ottla.client.cluster import QuorumDescription, Replica

SECOND_MS = 1000
HEALTHY_MS = 5_000
"""A voter that has not fetched for longer is not healthy."""


class Seen(NamedTuple):
    """Elections since the first look: how many, and who led before the last one."""

    elections: int = 0
    former_leader: int | None = None
    former_epoch: int = -1


class Elections:
    """Counts the elections between one look and the next. Each raises the epoch by one."""

    def __init__(self) -> None:
        self._last: QuorumDescription | None = None
        self._seen = Seen()

    def seen(self, found: QuorumDescription) -> Seen:
        """Take another look."""
        last, self._last = self._last, found
        if last is not None and found.leader_epoch > last.leader_epoch:
            count = self._seen.elections + found.leader_epoch - last.leader_epoch
            self._seen = Seen(count, last.leader_id, last.leader_epoch)
        return self._seen


def status_line(found: QuorumDescription, seen: Seen | None) -> str:
    """`seen` is None for a single look, which sees no elections."""
    voters, majority = healthy(found), found.majority
    leader = f"leader {found.leader_id}" if found.leader_id >= 0 else "no leader"
    parts = [
        f"{leader}  epoch {found.leader_epoch}  high watermark {found.high_watermark:,}",
        f"voters {len(voters)}/{len(found.voters)} healthy (majority {majority}, margin {len(voters) - majority})",
        *(_behind(found, each) for each in found.voters if each not in voters or lag(found, each)),
        *_held_back(found),
    ]
    if seen is not None:
        before = "" if seen.former_leader is None else f" (node {seen.former_leader} led in epoch {seen.former_epoch})"
        parts.append(f"elections seen: {seen.elections}{before}")
    return "   ".join(parts)


def status_json(found: QuorumDescription) -> dict[str, Any]:
    voters = healthy(found)
    return {
        "healthy_voters": [each.node_id for each in voters],
        "majority": found.majority,
        "margin": len(voters) - found.majority,
        "high_watermark_held_back_by": list(found.holding_back),
    }


def healthy(found: QuorumDescription) -> list[Replica]:
    """The leader, and the voters that have fetched from it recently."""
    now_ms = _now_ms(found)
    return [
        each
        for each in found.voters
        if each.node_id == found.leader_id
        or (each.last_fetch_ms is not None and now_ms - each.last_fetch_ms <= HEALTHY_MS)
    ]


def lag(found: QuorumDescription, each: Replica) -> int | None:
    return None if each.log_end_offset < 0 or found.leader_end_offset < 0 else found.lag(each)


def _behind(found: QuorumDescription, each: Replica) -> str:
    records = lag(found, each)
    behind = "behind" if records is None else f"behind {records:,} record{'' if records == 1 else 's'}"
    if each.last_caught_up_ms is None:
        return f"node {each.node_id} {behind}"
    return f"node {each.node_id} {behind}, {max(_now_ms(found) - each.last_caught_up_ms, 0) // SECOND_MS} s"


def _held_back(found: QuorumDescription) -> list[str]:
    nodes = found.holding_back
    if not nodes:
        return []
    names = ", ".join(map(str, nodes))
    return [f"high watermark held back by node{'' if len(nodes) == 1 else 's'} {names}"]


def _now_ms(found: QuorumDescription) -> int:
    """The leader's own time: the leader is always caught up with itself, and no fetch is later."""
    times = [each for one in found.voters for each in (one.last_fetch_ms, one.last_caught_up_ms) if each is not None]
    return max(times, default=0)
