"""The quorum: the lag of its replicas, and changes of its leader. Also the nodes of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow.compute as pc

from ottla.health.phrases import duration, plural
from ottla.spark.report.material import Material
from ottla.spark.report.part import Part, table
from ottla.spark.report.rows import Row, Rows

LINES: Final = 8
KEYS: Final = ("cluster", "replica")


def cluster_part(run: Mapping[str, Any]) -> Part:
    """Nodes and topics, if the run file has them."""
    seen = run.get("seen") or {}
    nodes = list(seen.get("nodes") or ())
    part = Part(has_rows=bool(seen))
    part.tables["nodes"] = table(nodes, len(nodes), "by id")
    part.numbers = {name: seen[name] for name in ("topics", "partitions") if seen.get(name) is not None}
    if nodes:
        part.numbers["nodes"] = len(nodes)
    words = [
        plural(part.numbers[name], name[:-1]) for name in ("nodes", "topics", "partitions") if name in part.numbers
    ]
    part.sentence = ", ".join(words) or "Number of nodes and topics unknown"
    return part


def quorum_part(material: Material) -> Part:
    lag = material.rows("quorum_lag")
    replicas, elections = _replicas(lag), _elections(lag)
    part = Part(has_rows=bool(replicas))
    part.tables["replicas"] = table(replicas, len(replicas), "by role and id")
    part.tables["elections"] = table(elections, len(elections), "in order of time")
    part.figures = _figures(material, lag, replicas, elections) if replicas else []
    newest = max(replicas, key=lambda row: row["window_start"], default=None)
    part.numbers = {
        "replicas": len(replicas),
        "leader": newest["leader"] if newest else None,
        "leader_epoch": newest["leader_epoch"] if newest else None,
        "elections": sum(row["elections"] for row in elections),
        "leaderless_ms": sum(row["leaderless_ms"] or 0 for row in elections),
        "max_lag_offsets": max((row["max_lag_offsets"] or 0 for row in replicas), default=None),
    }
    part.sentence = _sentence(part.numbers)
    return part


def _sentence(numbers: dict[str, Any]) -> str:
    if not numbers["replicas"]:
        return "No quorum data"
    said = (
        f"Node {numbers['leader']} leads (epoch {numbers['leader_epoch']}), {plural(numbers['elections'], 'election')}"
    )
    if numbers["leaderless_ms"]:
        said += f", at most {duration(numbers['leaderless_ms'])} without a leader"
    most = numbers["max_lag_offsets"]
    return said + (f", no replica more than {plural(most, 'record')} behind" if most else ", no replica behind")


def _replicas(lag: Rows) -> list[Row]:
    newest = lag.newest(KEYS, "window_start", ["role", "leader", "leader_epoch", "lag_offsets_max", "lag_ms_max"])
    wanted = {"max_lag_offsets": ("lag_offsets_max", "max"), "max_lag_ms": ("lag_ms_max", "max"),
              "max_fetch_age_ms": ("fetch_age_ms_max", "max")}  # fmt: skip
    worst = {(row["cluster"], row["replica"]): row for row in lag.grouped(KEYS, wanted)}
    rows = [row | worst[row["cluster"], row["replica"]] for row in newest]
    order = ["leader", "voter", "observer"]
    return sorted(rows, key=lambda row: (order.index(row["role"]) if row["role"] in order else 9, row["replica"]))


def _elections(lag: Rows) -> list[Row]:
    """Windows in which the leader changed. The numbers are about the cluster and are in the row of every replica."""
    rows = lag.where((pc.field("elections") > 0) | (pc.field("leaderless_ms") > 0))
    wanted = {name: (name, "max") for name in ("leader", "leader_epoch", "elections", "leaderless_ms")}
    bounds = {
        (row["cluster"], row["window_start"])
        for row in rows.where(pc.field("leaderless_is_bound")).each(("cluster", "window_start"))
    }
    found = rows.grouped(["window_start", "cluster"], wanted)
    return [row | {"leaderless_is_bound": (row["cluster"], row["window_start"]) in bounds} for row in found]


def _figures(material: Material, lag: Rows, replicas: list[Row], elections: list[Row]) -> list[Row]:
    followers = [row for row in replicas if row["role"] != "leader"] or replicas
    marks = [
        {"ms": row["window_start"], "name": f"epoch {row['leader_epoch']}: node {row['leader']} leads"}
        for row in elections
        if row["elections"]
    ]
    lines = [_line(material, lag, row) for row in followers[:LINES]]
    if not any(line["points"] for line in lines):
        return []
    return [
        {
            "id": "quorum-lag",
            "area": "quorum",
            "kind": "lines",
            "title": "Replica lag in records",
            "groups": [],
            "unit": "records",
            "spans": [],
            "gaps": material.gaps("quorum_lag"),
            "marks": marks,
            "lines": lines,
            "left_out": max(0, len(followers) - LINES),
        }
    ]


def _line(material: Material, lag: Rows, row: Row) -> Row:
    mine = lag.where((pc.field("cluster") == row["cluster"]) & (pc.field("replica") == row["replica"]))
    points = sorted(
        (each["window_start"], each["lag_offsets_max"])
        for each in mine.each(("window_start", "lag_offsets_max"))
        if each["lag_offsets_max"] is not None
    )
    of = f" of {row['cluster'][:8]}" if len(material.clusters) > 1 else ""
    return material.line(f"node {row['replica']} ({row['role']}){of}", points)
