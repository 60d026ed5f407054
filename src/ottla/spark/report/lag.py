"""The lag of groups in records and in seconds, except share groups, whose lag is counted differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow.compute as pc

from ottla.health.phrases import duration, plural
from ottla.spark.jobs.params import Params
from ottla.spark.report.material import KEYS, Key, Material
from ottla.spark.report.part import Part, table
from ottla.spark.report.rows import Row, Rows, last_of_each
from ottla.spark.report.thin import Point, thinned

WINDOW_MS: Final = Params().lag_window_ms
"""A row has the lag at the end of its window."""
LINES: Final = 8
SLICE_ROWS: Final = 4_000_000
SUMS: Final = {"lag": ("lag_records", "sum"), "seconds": ("lag_seconds", "max")}
"""Over all partitions: the sum of the records, and the seconds of the slowest one."""
TOPIC: Final = (*KEYS, "topic")


def lag_part(material: Material) -> Part:
    lag = material.rows("consumer_lag").where(pc.field("lag_records").is_valid())
    rows = _rows(lag)
    part = Part(has_rows=bool(rows))
    part.tables["lag"] = table(rows, len(rows), "furthest behind first")
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
        return "No lag data"
    most, slowest = numbers["max_lag_records"], numbers["max_lag_seconds"]
    said = f"{plural(numbers['groups'], 'group')}, at most {plural(most, 'record')} behind on one topic"
    return said if slowest is None else f"{said} and {duration(1000 * slowest)} late"


def _parts(lag: Rows) -> Iterator[Rows]:
    """All rows, in parts of limited size that hold whole groups for whole days."""
    for day in lag.days():
        chosen: list[Key] = []
        count = 0
        for row in day.grouped(KEYS, {"rows": ("window_start", "count")}):
            if chosen and count + row["rows"] > SLICE_ROWS:
                yield day.among(chosen)
                chosen, count = [], 0
            chosen.append((row["cluster"], row["group"]))
            count += row["rows"]
        yield day.among(chosen)


def _rows(lag: Rows) -> list[Row]:
    """For each group and topic the newest and the greatest lag over all partitions."""
    types = {(row["cluster"], row["group"]): row["type"] for row in lag.grouped(KEYS, {"type": ("type", "max")})}
    found: dict[tuple[Any, ...], Row] = {}
    for part in _parts(lag):
        sums = part.aggregated([*TOPIC, "window_start"], SUMS)
        for row in _ends(sums) if sums is not None else ():
            key = tuple(row[name] for name in TOPIC)
            start = {**dict(zip(TOPIC, key, strict=True)), "type": types.get(key[:2]), "max_lag_records": -1}
            _take(found.setdefault(key, start), row)
    _count_partitions(lag, found)
    order = ("cluster", "group", "topic")
    return sorted(found.values(), key=lambda row: (-row["max_lag_records"], *(row[name] or "" for name in order)))


def _ends(sums: Any) -> list[Row]:
    """For each group and topic the windows with the greatest lag, with the greatest delay, and the newest."""
    orders = (
        [("lag", "ascending"), ("window_start", "descending")],
        [("seconds", "ascending"), ("window_start", "descending")],
        [("window_start", "ascending")],
    )
    known = sums.filter(pc.field("seconds").is_valid())
    tables = (sums, known, sums)
    return [
        row for one, by in zip(tables, orders, strict=True) for row in last_of_each(one.sort_by(by), TOPIC).to_pylist()
    ]


def _take(mine: Row, row: Row) -> None:
    if row["window_start"] >= mine.get("newest", row["window_start"]):
        mine["newest"], mine["lag_records"], mine["lag_seconds"] = row["window_start"], row["lag"], row["seconds"]
    known = [each for each in (mine.get("max_lag_seconds"), row["seconds"]) if each is not None]
    mine["max_lag_seconds"] = max(known, default=None)
    if row["lag"] > mine["max_lag_records"]:
        mine["max_lag_records"], mine["max_at"] = row["lag"], row["window_start"] + WINDOW_MS


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
    points = _points(material, lag.among(chosen), chosen)
    base = {"area": "lag", "kind": "lines", "groups": [key[1] for key in chosen], "spans": [],
            "gaps": material.gaps("consumer_lag"),
            "left_out": max(0, len(keys) - LINES)}  # fmt: skip
    return [
        {**base, "id": f"lag-{name}", "title": title, "unit": unit, "lines": _lines(material, points, column)}
        for name, column, title, unit in (
            ("records", "lag", "Lag in records", "records"),
            ("seconds", "seconds", "Lag in seconds", "s"),
        )
    ]


def _points(material: Material, lag: Rows, chosen: list[Key]) -> dict[tuple[Key, str], list[Point]]:
    """Group and column -> its line, read day by day and limited to the points that can be drawn."""
    points: dict[tuple[Key, str], list[Point]] = {(key, column): [] for key in chosen for column in SUMS}
    for day in lag.days():
        for row in day.grouped([*KEYS, "window_start"], SUMS):
            for column in SUMS:
                line = points.get(((row["cluster"], row["group"]), column))
                if line is not None and row[column] is not None:
                    line.append((row["window_start"] + WINDOW_MS, round(row[column], 3)))
        points = {key: thinned(line, material.from_ms, material.to_ms) for key, line in points.items()}
    return points


def _lines(material: Material, points: dict[tuple[Key, str], list[Point]], column: str) -> list[Row]:
    return [material.line(material.label(key), line) for (key, name), line in points.items() if name == column and line]
