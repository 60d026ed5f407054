"""The history of nodes, topics, disks and the quorum."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.health.facts import Cluster, LogDir, Partition, Quorum, Replica, Topic
from ottla.health.quorum import healthy_voters, holding_back, leader_now_ms, leader_of, voters
from ottla.health.series import Series

__all__ = ["ClusterHistory", "DiskHistory", "QuorumHistory", "TopicHistory"]

ELECTIONS: Final = 100
DISK_SPACING_MS: Final = 60_000
NO_LEADER: Final = frozenset({"LEADER_NOT_AVAILABLE", "NOT_CONTROLLER", "NOT_LEADER_OR_FOLLOWER"})


class Moved(NamedTuple):
    """A partition got another leader at this moment."""

    at_ms: int
    old_leader: int


class TopicHistory:
    """A topic as it was last seen, and since when partitions lack a leader or copies."""

    def __init__(self) -> None:
        self.fact = Topic(topic="")
        self.at_ms = 0
        self.offline_since: dict[int, int] = {}
        self.under_replicated_since: dict[int, int] = {}
        self.last_isr: dict[int, tuple[int, ...]] = {}
        self.moved: dict[int, Moved] = {}

    def take(self, at_ms: int, fact: Topic) -> None:
        old_leaders = {each.partition: each.leader for each in self.fact.partitions}
        for each in fact.partitions:
            self._note_leader(at_ms, old_leaders.get(each.partition), each)
        self.offline_since = _kept(
            self.offline_since, at_ms, (each.partition for each in fact.partitions if each.leader < 0)
        )
        self.under_replicated_since = _kept(self.under_replicated_since, at_ms, _under_replicated(fact))
        self.fact, self.at_ms = fact, at_ms

    def _note_leader(self, at_ms: int, old_leader: int | None, new: Partition) -> None:
        if old_leader is not None and old_leader >= 0 and new.leader != old_leader:
            self.moved[new.partition] = Moved(at_ms, old_leader)
        if new.isr:
            self.last_isr[new.partition] = new.isr


def _under_replicated(fact: Topic) -> Iterator[int]:
    for each in fact.partitions:
        if len(each.isr) < len(each.replicas) and not each.adding:
            yield each.partition


def _kept(since: dict[int, int], at_ms: int, partitions: Iterator[int]) -> dict[int, int]:
    return {partition: since.get(partition, at_ms) for partition in partitions}


class ClusterHistory:
    """The nodes as they were last listed, and whether any of them answers."""

    def __init__(self) -> None:
        self.fact: Cluster | None = None
        self.unreachable: str | None = None  # why no node at all answers
        self.unreachable_ms = 0  # when no node last answered

    def take(self, fact: Cluster) -> None:
        self.fact, self.unreachable = fact, None

    def fails(self, at_ms: int, error: str) -> None:
        self.unreachable, self.unreachable_ms = error, at_ms


class DiskHistory:
    def __init__(self) -> None:
        self.fact: LogDir | None = None
        self.at_ms = 0
        self.usable = Series(DISK_SPACING_MS)

    def take(self, at_ms: int, fact: LogDir) -> None:
        self.fact, self.at_ms = fact, at_ms
        if fact.usable is not None:
            self.usable.add(at_ms, fact.usable)


class Election(NamedTuple):
    at_ms: int
    epoch: int
    by: int  # how many epochs later than the election before
    leader: int
    gap_ms: int


class QuorumHistory:
    """The quorum, its elections, and since when its high watermark has been below the leader's log end."""

    def __init__(self) -> None:
        self.fact: Quorum | None = None
        self.leaderless = False
        self.stuck_since: int | None = None
        self.elections: deque[Election] = deque(maxlen=ELECTIONS)
        self._led: tuple[int, int] | None = None  # when a leader was last seen, and its epoch

    def take(self, at_ms: int, fact: Quorum) -> None:
        self._note_watermark(at_ms, fact)
        self.leaderless = fact.leader < 0
        if fact.leader >= 0:
            self._note_leader(at_ms, fact)
        self.fact = fact

    def fails(self, error: str) -> None:
        """Notes that the node that was asked knows no leader. Other errors say nothing about the leader."""
        self.leaderless = self.leaderless or error in NO_LEADER

    def _note_watermark(self, at_ms: int, fact: Quorum) -> None:
        behind = fact.high_watermark is not None and (_log_end(fact) or 0) > fact.high_watermark
        moved = self.fact is None or self.fact.high_watermark != fact.high_watermark
        if not behind:
            self.stuck_since = None
        elif self.stuck_since is None or moved:
            self.stuck_since = at_ms

    def _note_leader(self, at_ms: int, fact: Quorum) -> None:
        if self._led is not None and fact.leader_epoch > self._led[1]:
            led_ms, epoch = self._led
            by = fact.leader_epoch - epoch
            self.elections.append(Election(at_ms, fact.leader_epoch, by, fact.leader, at_ms - led_ms))
        self._led = (at_ms, fact.leader_epoch)

    @property
    def voters(self) -> list[Replica]:
        return voters(self.fact) if self.fact else []

    @property
    def leader(self) -> Replica | None:
        return leader_of(self.fact) if self.fact else None

    @property
    def leader_now_ms(self) -> int | None:
        return leader_now_ms(self.fact) if self.fact else None

    def healthy(self, fetch_ms: int) -> list[int] | None:
        return healthy_voters(self.fact, fetch_ms) if self.fact else None

    def holding_back(self) -> list[int]:
        return holding_back(self.fact) if self.fact else []


def _log_end(fact: Quorum) -> int | None:
    leader = leader_of(fact)
    return leader.log_end if leader else None
