"""The lag of the replicas of the metadata log and changes of its leader, from samples of the quorum.

Plain Python, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ottla.spark.jobs.ordered_fold import Order, SampleFold, TimedSample

__all__ = ["QuorumFold", "election_rows"]

_NOBODY: Final = -1
VOTER: Final = "voter"
"""The default role of a replica."""


class _Replica(msgspec.Struct):
    id: int
    role: str | None = None
    log_end: int | None = None
    last_fetch_ts: int | None = None
    last_caught_up_ts: int | None = None


class _Quorum(msgspec.Struct):
    leader: int = _NOBODY
    leader_epoch: int = 0
    replicas: list[_Replica] = []


class _ReplicaWindow(msgspec.Struct):
    """What was seen of a replica in a window."""

    role: str = VOTER
    leader: int = _NOBODY
    leader_epoch: int = 0
    lag_offsets: list[int] = []
    lag_ms: int | None = None
    fetch_age_ms: int | None = None


class _Window(msgspec.Struct):
    elections: int = 0
    leaderless_ms: int = 0
    is_bound: bool = False
    replicas: dict[int, _ReplicaWindow] = {}


_read: Final = msgspec.json.Decoder(_Quorum).decode


class QuorumFold(SampleFold[_Window]):
    """A `WindowFold`: its rows are those of quorum_lag, by replica and start of the window."""

    def __init__(self, window_ms: int) -> None:
        super().__init__(window_ms)
        self._before_ms: int | None = None
        self._leader = _NOBODY
        self._epoch = 0
        """The highest leader epoch so far."""

    def take(self, order: Order, row: TimedSample) -> None:
        self.last = order
        try:
            now = _read(row.body)
        except msgspec.MsgspecError:
            return
        window = self._window(row.ts, _Window)
        if self._before_ms is not None:
            self._count_election(window, row.ts - self._before_ms, now)
        self._before_ms, self._leader = row.ts, now.leader
        self._epoch = max(self._epoch, now.leader_epoch)
        leader = next((each for each in now.replicas if each.id == now.leader), None)
        for each in now.replicas:
            _measure(window.replicas.setdefault(each.id, _ReplicaWindow()), each, leader, row.ts, now)

    def _count_election(self, window: _Window, passed_ms: int, now: _Quorum) -> None:
        """Without a leader, the time up to the next sample counts; if the leader changed, at most the time between."""
        rise = max(0, now.leader_epoch - self._epoch)
        window.elections += rise
        is_new = rise > 0 and now.leader > _NOBODY
        if self._leader <= _NOBODY or is_new:
            window.leaderless_ms += passed_ms
        window.is_bound |= self._leader > _NOBODY and is_new

    def rows(self, *, is_all: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {key: row for start, window in self._wanted(is_all=is_all) for key, row in _rows(start, window)}

    def keys(self) -> Iterable[tuple[Any, ...]]:
        return [(replica, start) for start, window in self._windows.items() for replica in window.replicas]


def election_rows(
    elections: Iterable[tuple[str, int, int, int]], window_ms: int
) -> dict[tuple[str, int, int], dict[str, Any]]:
    """The rows of clusters without samples, from elections in the metadata log: cluster, time, leader and its epoch."""
    rows: dict[tuple[str, int, int], dict[str, Any]] = {}
    for cluster, ts, leader, epoch in elections:
        start = ts // window_ms * window_ms
        key = {"cluster": cluster, "replica": leader, "window_start": start, "role": "leader", "leader": leader}
        row = rows.setdefault((cluster, leader, start), {**key, "leader_epoch": epoch, "elections": 0})
        row |= {"leader_epoch": max(epoch, row["leader_epoch"]), "elections": row["elections"] + 1, "source": "records"}
    return rows


def _measure(seen: _ReplicaWindow, replica: _Replica, leader: _Replica | None, ts: int, now: _Quorum) -> None:
    role = "leader" if replica.id == now.leader else replica.role or VOTER
    seen.role, seen.leader, seen.leader_epoch = role, now.leader, now.leader_epoch
    if leader is not None and leader.log_end is not None and replica.log_end is not None:
        seen.lag_offsets.append(max(0, leader.log_end - replica.log_end))
    caught_up = None if leader is None else leader.last_caught_up_ts
    now_ms = ts if caught_up is None or caught_up < 0 else caught_up
    seen.lag_ms = _larger(seen.lag_ms, _since(now_ms, replica.last_caught_up_ts))
    seen.fetch_age_ms = _larger(seen.fetch_age_ms, _since(now_ms, replica.last_fetch_ts))


def _since(now_ms: int, then_ms: int | None) -> int | None:
    """The time since then; None for a replica that has not fetched from this leader."""
    return None if then_ms is None or then_ms < 0 else max(0, now_ms - then_ms)


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _rows(start: int, window: _Window) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    for replica, seen in window.replicas.items():
        lags = seen.lag_offsets
        yield (
            (replica, start),
            {
                "replica": replica,
                "window_start": start,
                "role": seen.role,
                "leader": seen.leader,
                "leader_epoch": seen.leader_epoch,
                "lag_offsets_max": max(lags, default=None),
                "lag_offsets_avg": sum(lags) / len(lags) if lags else None,
                "lag_ms_max": seen.lag_ms,
                "fetch_age_ms_max": seen.fetch_age_ms,
                "elections": window.elections,
                "leaderless_ms": window.leaderless_ms,
                "leaderless_is_bound": window.is_bound,
                "source": "samples",
            },
        )
