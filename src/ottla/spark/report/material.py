"""The input of the facts: the tables, their range of time, and the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow.compute as pc

from ottla.spark.jobs.params import Params
from ottla.spark.jobs.tables import TABLES
from ottla.spark.report.rows import Row, Rows
from ottla.spark.report.thin import Point, gap_ms, thinned

__all__ = ["KEYS", "Key", "Material", "material_of"]

WINDOWS_MS: Final = {
    "share_delivery": Params().share_window_ms,
    "quorum_lag": Params().quorum_window_ms,
    "consumer_lag": Params().lag_window_ms,
}
"""Unless the run file has others."""

Key = tuple[str, str]
"""A cluster and a group of it."""
KEYS: Final = ("cluster", "group")
"""The columns of a key."""


@dataclass(frozen=True, slots=True)
class Material:
    tables: Mapping[str, Rows]
    from_ms: int
    to_ms: int
    findings: Sequence[Row]
    clusters: tuple[str, ...]
    windows: Mapping[str, int]
    """The lengths of windows in milliseconds, by table."""

    def rows(self, name: str) -> Rows:
        return self.tables.get(name) or Rows(None)

    def label(self, key: Key) -> str:
        """The group's name; if there are several clusters, with the beginning of its cluster's id."""
        return key[1] if len(self.clusters) < 2 else f"{key[1]} ({key[0][:8]})"

    def line(self, name: str, points: Sequence[Point]) -> Row:
        """A line of a plot with no more points than can be drawn."""
        drawn = thinned(points, self.from_ms, self.to_ms)
        return {"name": name, "role": "series", "step": False, "points": drawn}

    def gaps(self, name: str) -> list[Row]:
        """When nobody sampled what a table is made from, between its first and its last sample."""
        sampled = self.rows(name)
        if "source" not in sampled.columns:
            return []
        rows = sampled.where(pc.field("source") == "samples").grouped(["window_start"], {})
        times = [row["window_start"] for row in rows]
        limit_ms = gap_ms(times)
        return [
            {"from_ms": before + self.windows[name], "to_ms": after}
            for before, after in pairwise(times)
            if after - before > limit_ms
        ]


def material_of(tables: Mapping[str, Any], run: Mapping[str, Any], findings: Sequence[Row]) -> Material:
    rows = {name: Rows(source) for name, source in tables.items() if source is not None}
    from_ms, to_ms = _span(rows, run)
    found = {each["cluster"] for one in rows.values() for each in one.grouped(["cluster"], {}) if each["cluster"]}
    clusters = tuple(sorted(found | set(run.get("clusters") or ())))
    return Material(rows, from_ms, to_ms, findings, clusters, WINDOWS_MS | (run.get("windows") or {}))


def _span(rows: Mapping[str, Rows], run: Mapping[str, Any]) -> tuple[int, int]:
    """The requested range, or else the range from the first to the last event."""
    asked = run.get("range") or {}
    # A window of stability begins up to an hour before its events.
    ends = [end for name, one in rows.items() if name != "stability" for end in _ends(name, one)]
    first, last = asked.get("from_ms"), asked.get("to_ms")
    from_ms = int(min(ends, default=0) if first is None else first)
    return from_ms, max(from_ms, int(max(ends, default=from_ms) if last is None else last))


def _ends(name: str, rows: Rows) -> list[int]:
    if name not in TABLES or not rows.count:
        return []
    column = TABLES[name].event_time
    found = rows.grouped([], {"first": (column, "min"), "last": (column, "max")})
    return [end for each in found for end in (each["first"], each["last"]) if end is not None]
