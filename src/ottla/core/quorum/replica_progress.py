"""How far the replicas have come, as their leader sees it: the high watermark, check-quorum, rows of DescribeQuorum.

A fetch at time t with offset f, while the leader's log ends at L, makes a replica caught up at t if f >= L; and at the
time of its previous fetch if f has reached the end that the log had then. Times are on the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ottla.core.quorum.voters import ReplicaKey, VoterSet

UNKNOWN = -1


class Progress(msgspec.Struct):
    """One replica. Times and offsets are -1 before it has fetched from this leader."""

    end_offset: int = UNKNOWN
    last_fetch_ms: int = UNKNOWN
    last_caught_up_ms: int = UNKNOWN
    leader_end_offset: int = UNKNOWN
    """The end of the leader's log at the last fetch."""
    begin_at_ms: int = 0
    """When to tell it who leads, unless it fetches or acknowledges that before."""

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.leader_end_offset <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.leader_end_offset = leader_end_offset
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = max(self.end_offset, offset)


class ReplicaProgress:
    """All replicas but the leader itself."""

    __slots__ = ("_by_key", "_heard", "majority_by_ms")

    def __init__(self, majority_by_ms: int) -> None:
        self._by_key: dict[ReplicaKey, Progress] = {}
        self._heard: set[int] = set()
        self.majority_by_ms = majority_by_ms
        """By when a majority must have been heard."""

    def of(self, key: ReplicaKey) -> Progress:
        return self._by_key.setdefault(key, Progress())

    def items(self) -> Iterable[tuple[ReplicaKey, Progress]]:
        return self._by_key.items()

    def rename(self, old: ReplicaKey, new: ReplicaKey) -> None:
        """A voter of the configuration has become one with a directory."""
        if old in self._by_key:
            self._by_key[new] = self._by_key.pop(old)

    def drop_silent(self, voters: VoterSet, before_ms: int) -> None:
        """Forget observers that have not fetched since a time."""
        for key, progress in list(self._by_key.items()):
            if progress.last_fetch_ms <= before_ms and voters.find(*key) is None:
                del self._by_key[key]

    def heard(self, voter_id: int, voters: VoterSet, leader_id: int, deadline_ms: int) -> None:
        """A voter is alive. When a majority is, the leader has until `deadline_ms` to hear the next one."""
        self._heard.add(voter_id)
        alive = (self._heard | {leader_id}).intersection(voters.ids)
        if len(alive) >= voters.majority:
            self._heard.clear()
            self.majority_by_ms = deadline_ms

    def high_watermark(self, voters: VoterSet, leader: ReplicaKey, leader_end_offset: int) -> int:
        """The offset that a majority of the voters has reached. A leader that is no voter does not count itself."""
        ends = sorted(
            leader_end_offset if voter.is_node(*leader) else self._end_offset(voter.key) for voter in voters.voters
        )
        return ends[-voters.majority] if ends else UNKNOWN

    def _end_offset(self, key: ReplicaKey) -> int:
        progress = self._by_key.get(key)
        return UNKNOWN if progress is None else progress.end_offset
