"""Lag: how far groups are behind, in records and in seconds. Share groups are not here: their lag is another thing."""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from ottla.health.wording import duration, plural
from ottla.spark.jobs.params import Params
from ottla.spark.report.material import Key, Material
from ottla.spark.report.part import Part, table
from ottla.spark.report.rows import Row, Rows
from ottla.spark.report.thin import Point

WINDOW_MS: Final = Params().lag_window_ms
"""A row tells how it was at the end of its window."""
LINES: Final = 8
KEYS: Final = ("cluster", "group")
TOPIC: Final = (*KEYS, "topic")


def lag_part(material: Material) -> Part:
    lag = material.rows("consumer_lag").where(pc.field("lag_records").is_valid())
    rows = _rows(lag)
    part = Part(has_rows=bool(rows))
    part.tables["lag"] = table(rows, len(rows), "those that were furthest behind first")
    part.figures = _figures(material, lag, rows) if rows else []
    groups = {(row["cluster"], row["group"]) for row in rows}
    most = max((row["max_lag_records"] for row in rows), default=None)
    slowest = max((row["max_lag_seconds"] for row in rows if row["max_lag_seconds"] is not None), default=None)
    part.numbers = {"groups": len(groups), "max_lag_records": most, "max_lag_seconds": slowest,
                    "stuck": sum(row["stuck"] for row in rows)}  # fmt: skip
    part.sentence = _sentence(part.numbers)
    return part


def _sentence(numbers: dict[str, Any]) -> str:
    if not numbers["groups"]:
        return "No lag was measured"
    most, slowest = numbers["max_lag_records"], numbers["max_lag_seconds"]
    said = f"{plural(numbers['groups'], 'group')}, on one topic at most {plural(most, 'record')} behind"
    return said if slowest is None else f"{said} and {duration(1000 * slowest)} late"


def _rows(lag: Rows) -> list[Row]:
    """For each group and topic the newest lag and the greatest, all partitions together."""
    wanted = {"lag": ("lag_records", "sum"), "seconds": ("lag_seconds", "max")}
    found: dict[tuple[Any, ...], Row] = {}
    types = {(row["cluster"], row["group"]): row["type"] for row in lag.grouped(KEYS, {"type": ("type", "max")})}
    for row in lag.grouped([*TOPIC, "window_start"], wanted):
        key = tuple(row[name] for name in TOPIC)
        mine = found.setdefault(
            key, {**dict(zip(TOPIC, key, strict=True)), "type": types[key[:2]], "max_lag_records": -1}
        )
        mine["lag_records"], mine["lag_seconds"] = row["lag"], row["seconds"]
        mine["max_lag_seconds"] = max(
            (each for each in (mine.get("max_lag_seconds"), row["seconds"]) if each is not None), default=None
        )
        if row["lag"] > mine["max_lag_records"]:
            mine["max_lag_records"], mine["max_at"] = row["lag"], row["window_start"] + WINDOW_MS
    _count_partitions(lag, found)
    return sorted(
        found.values(), key=lambda row: (-row["max_lag_records"], row["cluster"], row["group"], row["topic"] or "")
    )


def _count_partitions(lag: Rows, found: dict[tuple[Any, ...], Row]) -> None:
    newest = lag.newest([*TOPIC, "partition"], "window_start", ["stuck"])
    for row in found.values():
        row["partitions"] = row["stuck"] = 0
    for row in newest:
        mine = found[tuple(row[name] for name in TOPIC)]
        mine["partitions"] += 1
        mine["stuck"] += bool(row["stuck"])


def _figures(material: Material, lag: Rows, rows: list[Row]) -> list[Row]:
    keys = list(dict.fromkeys((row["cluster"], row["group"]) for row in rows))
    chosen = keys[:LINES]
    wanted = {"lag": ("lag_records", "sum"), "seconds": ("lag_seconds", "max")}
    series = lag.among(chosen).grouped([*KEYS, "window_start"], wanted)
    base = {"area": "lag", "kind": "lines", "groups": [key[1] for key in chosen], "spans": [],
            "left_out": max(0, len(keys) - LINES)}  # fmt: skip
    return [
        {**base, "id": f"lag-{name}", "title": title, "unit": unit, "lines": _lines(material, chosen, series, column)}
        for name, column, title, unit in (
            ("records", "lag", "Lag in records", "records"),
            ("seconds", "seconds", "Lag in seconds", "s"),
        )
    ]


def _lines(material: Material, chosen: list[Key], series: list[Row], column: str) -> list[Row]:
    points: dict[Key, list[Point]] = {key: [] for key in chosen}
    for row in series:
        key = (row["cluster"], row["group"])
        if key in points and row[column] is not None:
            points[key].append((row["window_start"] + WINDOW_MS, round(row[column], 3)))
    return [material.line(material.label(key), found) for key, found in points.items() if found]
