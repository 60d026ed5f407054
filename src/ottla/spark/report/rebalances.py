"""Rebalances: their durations by group, their triggers, and what they moved.

Those of a group that starts or stops as a whole are told apart from those of a running one.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.health.phrases import duration, plural
from ottla.spark.report.material import Key, Material
from ottla.spark.report.names import clients_of
from ottla.spark.report.part import KEPT_ROWS, Part, table
from ottla.spark.report.phases import PHASES, RUNNING, STARTING, STOPPING, Phases
from ottla.spark.report.rows import Derived, Row, Rows

STRIPS: Final = 20
BINS_PER_DECADE: Final = 25
"""Dots in the same bin of the duration axis are drawn as one."""
COLUMNS: Final = (
    "cluster", "group", "group_epoch", "type", "started", "duration_ms", "computing_ms", "revoking_ms", "ended_by",
    "trigger", "trigger_members", "members_before", "members_after", "partitions_moved", "tasks_moved",
    "members_touched", "source", "phase",
)  # fmt: skip


def rebalances_part(material: Material) -> Part:
    rebalances = _with_phases(material.rows("rebalances"))
    total = rebalances.count
    order = [("phase", "ascending"), ("duration_ms", "descending"), ("started", "ascending")]
    longest = rebalances.top(COLUMNS, KEPT_ROWS, order)
    part = Part(has_rows=total > 0)
    _tell_members(material, longest)
    part.tables["rebalances"] = table(longest, total, "running groups first, longest first")
    triggers = _triggers(rebalances)
    part.tables["triggers"] = table(triggers, len(triggers), "running groups first, most frequent first")
    part.figures = _strips(material, rebalances)
    part.numbers = {
        "by_phase": {phase: sum(row["count"] for row in triggers if row["phase"] == phase) for phase in PHASES},
        "longest_of_running_ms": max(
            (row["longest_ms"] or 0 for row in triggers if row["phase"] == RUNNING), default=0
        ),
    }
    part.sentence = _sentence(part.numbers)
    return part


def _sentence(numbers: dict[str, Any]) -> str:
    counts, longest_ms = numbers["by_phase"], numbers["longest_of_running_ms"]
    said = plural(sum(counts.values()), "rebalance")
    if counts[STARTING] + counts[STOPPING]:
        said += f", {counts[RUNNING]:,} of them in running groups" if counts[RUNNING] else ", none in a running group"
    return said + (f", the longest took {duration(longest_ms)}" if longest_ms else "")


def _with_phases(rebalances: Rows) -> Rows:
    phases = Phases(rebalances)

    def of_each(piece: Any) -> Any:
        rows = piece.to_pylist()
        found = [phases.of((row["cluster"], row["group"]), row["started"], row["group_epoch"]) for row in rows]
        return pa.array(found, pa.string())

    return rebalances.deriving(Derived("phase", ("cluster", "group", "started", "group_epoch"), of_each))


def _tell_members(material: Material, rows: list[Row]) -> None:
    clients = clients_of(material, (member for row in rows for member in row["trigger_members"] or ()))
    for row in rows:
        row["who"] = [clients.get(member, member) for member in row["trigger_members"] or ()]
        before, after = ("?" if row[name] is None else row[name] for name in ("members_before", "members_after"))
        row["members"] = f"{before} → {after}"


def _triggers(rebalances: Rows) -> list[Row]:
    """The triggers of rebalances by phase, how many of these converged, and what they moved."""
    wanted = {"count": ("started", "count"), "longest_ms": ("duration_ms", "max"),
              "partitions_moved": ("partitions_moved", "sum"), "tasks_moved": ("tasks_moved", "sum")}  # fmt: skip
    found: dict[tuple[str, str], Row] = {}
    for row in rebalances.grouped(["phase", "trigger", "ended_by"], wanted):
        phase, trigger = row["phase"], row["trigger"] or "unknown"
        mine = found.setdefault((phase, trigger), _no_moves() | {"phase": phase, "trigger": trigger})
        mine["count"] += row["count"]
        if row["ended_by"] in mine:
            mine[row["ended_by"]] += row["count"]
        mine["longest_ms"] = max(
            (each for each in (mine["longest_ms"], row["longest_ms"]) if each is not None), default=None
        )
        for name in ("partitions_moved", "tasks_moved"):
            if row[name] is not None:
                mine[name] = (mine[name] or 0) + row[name]
    return sorted(found.values(), key=lambda row: (PHASES.index(row["phase"]), -row["count"], row["trigger"]))


def _no_moves() -> Row:
    counts = dict.fromkeys(("count", "converged", "superseded", "emptied", "open"), 0)
    return {**counts, "longest_ms": None, "partitions_moved": None, "tasks_moved": None}


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
    found: dict[tuple[Key, str, bool, int], list[int]] = {}
    names = ("cluster", "group", "ended_by", "phase", "duration_ms")
    for piece in rebalances.where(pc.field("duration_ms").is_valid()).among(chosen).pieces(names):
        for row in _binned(piece).to_pylist():
            is_running = row["phase"] == RUNNING
            slot = found.setdefault(((row["cluster"], row["group"]), row["ended_by"], is_running, row["bin"]), [0, 0])
            slot[0] += row["duration_ms_count"]
            slot[1] = max(slot[1], row["duration_ms_max"])
    dots: dict[Key, list[Row]] = {}
    # Dots of running groups come last, because they are drawn above the others.
    for (key, ended_by, is_running, _), (count, longest) in sorted(
        found.items(), key=lambda each: (each[0][0], each[0][2], each[0][3], each[0][1])
    ):
        dots.setdefault(key, []).append(
            {"duration_ms": longest, "ended_by": ended_by, "is_running": is_running, "count": count}
        )
    return dots


def _binned(piece: Any) -> Any:
    logs = pc.log10(pc.max_element_wise(pc.cast(piece["duration_ms"], pa.float64()), 1.0))
    bins = pc.cast(pc.floor(pc.multiply(logs, BINS_PER_DECADE)), pa.int64())
    keyed = piece.append_column("bin", bins).group_by(["cluster", "group", "ended_by", "phase", "bin"])
    return keyed.aggregate([("duration_ms", "count"), ("duration_ms", "max")])
