"""The rows of consumer_lag that come from records, row by row: what the job computes with Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from ottla.spark.jobs.params import HOUR_MS

WINDOW_MS = 10_000
Row = dict[str, Any]
Points = list[tuple[int, int]]
State = tuple[int, int, int]
"""Time, sequence number and committed offset."""


def lag_rows(commits: Iterable[Mapping[str, Any]], ends: Iterable[Mapping[str, Any]], from_ms: int = 0) -> list[Row]:
    """Commits and end offsets have the columns of the jobs' inputs. Rows before a time are left out."""
    seconds: dict[tuple[Any, ...], dict[int, tuple[int, int]]] = defaultdict(dict)
    for each in ends:
        of_log = seconds[each["cluster"], each["topic"], each["partition"]]
        second = each["ts"] // 1_000
        of_log[second] = max(of_log.get(second, (0, 0)), (each["ts"], each["end"]))
    told: dict[tuple[Any, ...], list[tuple[int, int, int | None]]] = defaultdict(list)
    for each in commits:
        key = (each["cluster"], each["group"], each["commit_topic"], each["commit_partition"])
        told[key].append((each["ts"], each["offset"], each["committed"]))
    found = [
        {"cluster": cluster, "group": group, "topic": topic, "partition": partition, **row}
        for (cluster, group, topic, partition), states in told.items()
        for row in _rows(states, sorted(seconds[cluster, topic, partition].values()), from_ms)
    ]
    return sorted((each for each in found if each["window_start"] >= from_ms), key=key_of)


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["window_start"], row["cluster"], row["group"], row["topic"], row["partition"]


def _rows(told: list[tuple[int, int, int | None]], points: Points, from_ms: int) -> list[Row]:
    states = [(ts, seq, committed) for ts, seq, committed in told if committed is not None]
    for hour in {ts // HOUR_MS for ts, _ in points}:
        last = max(ts for ts, _ in points if ts // HOUR_MS == hour)
        so_far = [each for each in told if each[0] // HOUR_MS <= hour]
        if so_far and max(ts for ts, _, _ in so_far) < last:
            newest = max(so_far, key=lambda each: each[1])[2]
            states += [] if newest is None else [(last, -1, newest)]
    windows: dict[int, State] = {}
    for state in sorted(each for each in states if each[0] >= from_ms - HOUR_MS):
        windows[state[0] // WINDOW_MS * WINDOW_MS] = state
    rows = [_row(start, state, points) for start, state in windows.items()]
    for before, row in pairwise(rows):
        _compare(before, row)
    for index, row in enumerate(rows):
        run = rows[max(0, index - 4) : index + 1]
        row["stuck"] = None if row["high_watermark"] is None else len([each for each in run if each["grows"]]) == 5
    return [{name: cell for name, cell in row.items() if name not in ("ts", "grows")} for row in rows]


def _row(start: int, state: State, points: Points) -> Row:
    ts, _, committed = state
    end = max((end for at, end in points if at <= ts), default=None)
    lag = None if end is None else max(0, end - committed)
    return {
        "window_start": start, "ts": ts, "committed": committed, "high_watermark": end, "lag_records": lag,
        "lag_seconds": None if end is None else _seconds(ts, committed, end, points), "rate_in": None,
        "rate_out": None, "eta_s": 0.0 if lag == 0 else None, "grows": False,
    }  # fmt: skip


def _seconds(ts: int, committed: int, end: int, points: Points) -> float | None:
    if end <= committed:
        return 0.0
    before = max(((end, at) for at, end in points if end <= committed), default=None)
    after = min((end, at) for at, end in points if end > committed)
    if before is None or before[1] < ts - HOUR_MS:
        return None
    passed = before[1] + (committed - before[0]) / (after[0] - before[0]) * (after[1] - before[1])
    return max(0.0, ts - passed) / 1_000


def _compare(before: Row, row: Row) -> None:
    passed_s = (row["ts"] - before["ts"]) / 1_000
    if 0 < passed_s <= HOUR_MS / 1_000:
        row["rate_out"] = (row["committed"] - before["committed"]) / passed_s
        if before["high_watermark"] is not None:
            row["rate_in"] = (row["high_watermark"] - before["high_watermark"]) / passed_s
            gain = row["rate_out"] - row["rate_in"]
            if row["lag_records"] and gain > 0:
                row["eta_s"] = row["lag_records"] / gain
    is_next = row["window_start"] - before["window_start"] == WINDOW_MS and before["lag_records"] is not None
    is_same = row["committed"] == before["committed"]
    row["grows"] = is_next and is_same and row["lag_records"] > before["lag_records"]
