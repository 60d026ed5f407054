"""Rebalances: their durations by group, their triggers, and what they moved."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.report.material import Key, Material
from ottla.spark.report.names import clients_of
from ottla.spark.report.part import KEPT_ROWS, Part, table
from ottla.spark.report.rows import Row, Rows

STRIPS: Final = 20
BINS_PER_DECADE: Final = 25
"""Dots in the same bin of the duration axis are drawn as one."""
COLUMNS: Final = (
    "cluster", "group", "group_epoch", "type", "started", "duration_ms", "computing_ms", "revoking_ms", "ended_by",
    "trigger", "trigger_members", "members_before", "members_after", "partitions_moved", "tasks_moved",
    "members_touched", "source",
)  # fmt: skip


def rebalances_part(material: Material) -> Part:
    rebalances = material.rows("rebalances")
    total = rebalances.count
    longest = rebalances.top(COLUMNS, KEPT_ROWS, [("duration_ms", "descending"), ("started", "ascending")])
    part = Part(has_rows=total > 0)
    _name_members(material, longest)
    part.tables["rebalances"] = table(longest, total, "longest first")
    triggers = _triggers(rebalances)
    part.tables["triggers"] = table(triggers, len(triggers), "most frequent first")
    part.figures = _strips(material, rebalances)
    part.numbers = {"rebalances": total}
    return part


def _name_members(material: Material, rows: list[Row]) -> None:
    clients = clients_of(material, (member for row in rows for member in row["trigger_members"] or ()))
    for row in rows:
        row["who"] = [clients.get(member, member) for member in row["trigger_members"] or ()]


def _triggers(rebalances: Rows) -> list[Row]:
    """The triggers of rebalances, how many of these converged, and what they moved."""
    wanted = {"count": ("started", "count"), "longest_ms": ("duration_ms", "max"),
              "partitions_moved": ("partitions_moved", "sum"), "tasks_moved": ("tasks_moved", "sum")}  # fmt: skip
    found: dict[str, Row] = {}
    for row in rebalances.grouped(["trigger", "ended_by"], wanted):
        mine = found.setdefault(row["trigger"] or "unknown", {"trigger": row["trigger"] or "unknown", "count": 0,
                                "converged": 0, "superseded": 0, "emptied": 0, "open": 0, "longest_ms": None,
                                "partitions_moved": None, "tasks_moved": None})  # fmt: skip
        mine["count"] += row["count"]
        if row["ended_by"] in mine:
            mine[row["ended_by"]] += row["count"]
        mine["longest_ms"] = max(
            (each for each in (mine["longest_ms"], row["longest_ms"]) if each is not None), default=None
        )
        for name in ("partitions_moved", "tasks_moved"):
            if row[name] is not None:
                mine[name] = (mine[name] or 0) + row[name]
    return sorted(found.values(), key=lambda row: (-row["count"], row["trigger"]))


def _strips(material: Material, rebalances: Rows) -> list[Row]:
    chosen = _chosen(rebalances)
    if not chosen:
        return []
    dots = _dots(rebalances, chosen)
    unknown = rebalances.where(pc.field("duration_ms").is_null()).count
    return [
        {
            "id": "strip",
            "area": "groups",
            "kind": "strip",
            "title": "Rebalance durations",
            "groups": [],
            "rows": [{"name": material.label(key), "dots": dots.get(key, [])} for key in chosen],
            "unknown": unknown,
        }
    ]


def _chosen(rebalances: Rows) -> list[Key]:
    """The groups whose rebalances took longest."""
    found = rebalances.grouped(["cluster", "group"], {"longest": ("duration_ms", "max")})
    known = sorted((row for row in found if row["longest"] is not None), key=lambda row: -row["longest"])
    return [(row["cluster"], row["group"]) for row in known[:STRIPS]]


def _dots(rebalances: Rows, chosen: list[Key]) -> dict[Key, list[Row]]:
    found: dict[tuple[Key, str, int], list[int]] = {}
    names = ("cluster", "group", "ended_by", "duration_ms")
    for piece in rebalances.where(pc.field("duration_ms").is_valid()).among(chosen).pieces(names):
        for row in _binned(piece).to_pylist():
            slot = found.setdefault(((row["cluster"], row["group"]), row["ended_by"], row["bin"]), [0, 0])
            slot[0] += row["duration_ms_count"]
            slot[1] = max(slot[1], row["duration_ms_max"])
    dots: dict[Key, list[Row]] = {}
    for (key, ended_by, _), (count, longest) in sorted(
        found.items(), key=lambda each: (each[0][0], each[0][2], each[0][1])
    ):
        dots.setdefault(key, []).append({"duration_ms": longest, "ended_by": ended_by, "count": count})
    return dots


def _binned(piece: Any) -> Any:
    logs = pc.log10(pc.max_element_wise(pc.cast(piece["duration_ms"], pa.float64()), 1.0))
    bins = pc.cast(pc.floor(pc.multiply(logs, BINS_PER_DECADE)), pa.int64())
    keyed = piece.append_column("bin", bins).group_by(["cluster", "group", "ended_by", "bin"])
    return keyed.aggregate([("duration_ms", "count"), ("duration_ms", "max")])
