"""Streams groups: the process of each task over time, and the tasks that moved."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import pyarrow.compute as pc

from ottla.health.phrases import duration, plural
from ottla.spark.report.material import Key, Material
from ottla.spark.report.names import clients_of, process_name
from ottla.spark.report.part import KEPT_ROWS, Part, table
from ottla.spark.report.rows import Row

HEAT_MAPS: Final = 4
TASKS: Final = 60
CELLS: Final = 500
COLUMNS: Final = (
    "cluster", "group", "group_epoch", "task", "role", "kind", "from_member", "to_member", "from_process",
    "to_process", "started", "ended", "warmup_ms", "revoke_ms",
)  # fmt: skip
_HELD: Final = ("partition_gained", "partition_revoked", "member_left", "member_fenced", "deleted")


def streams_part(material: Material) -> Part:
    movement = material.rows("task_movement")
    rows = movement.top(COLUMNS, KEPT_ROWS, [("started", "ascending"), ("group", "ascending"), ("task", "ascending")])
    _name_members(material, rows)
    part = Part()
    part.tables["task_movement"] = table(rows, movement.count, "in order of time")
    kinds = {row["kind"]: row["count"] for row in movement.grouped(["kind"], {"count": ("started", "count")})}
    keys = _keys(material)
    part.figures = [figure for at, key in enumerate(keys[:HEAT_MAPS], 1) if (figure := _heat_map(material, key, at))]
    warmups = movement.grouped([], {"longest": ("warmup_ms", "max")})
    longest = warmups[0]["longest"] if warmups else None
    part.numbers = {"groups": len(keys), "moved": kinds.get("moved", 0), "warmups": kinds.get("warmup_done", 0),
                    "longest_warmup_ms": longest}  # fmt: skip
    part.has_rows = bool(keys)
    part.sentence = _sentence(part.numbers)
    return part


def _name_members(material: Material, rows: list[Row]) -> None:
    clients = clients_of(material, (row[end] for row in rows for end in ("from_member", "to_member")))
    for row in rows:
        row["from_client"], row["to_client"] = (clients.get(row[end], row[end]) for end in ("from_member", "to_member"))


def _sentence(numbers: dict[str, Any]) -> str:
    if not numbers["groups"]:
        return "No streams groups"
    said = f"{plural(numbers['groups'], 'streams group')}, {plural(numbers['moved'], 'task')} moved"
    if not numbers["warmups"]:
        return said
    longest = duration(numbers["longest_warmup_ms"] or 0)
    return f"{said}, {plural(numbers['warmups'], 'warm-up')} (longest: {longest})"


def _keys(material: Material) -> list[Key]:
    """Streams groups, those with the most movements first."""
    named = material.rows("group_timeline").where(pc.field("type") == "streams").grouped(["cluster", "group"], {})
    moved = material.rows("task_movement").grouped(["cluster", "group"], {"count": ("started", "count")})
    counts = dict.fromkeys(((row["cluster"], row["group"]) for row in named), 0)
    counts |= {(row["cluster"], row["group"]): row["count"] for row in moved}
    return sorted(counts, key=lambda key: (-counts[key], key))


def _heat_map(material: Material, key: Key, at: int) -> Row | None:
    """The processes of each task over time, from the tasks that members gained and revoked."""
    rows = material.rows("group_timeline").among([key]).where(pc.field("event").isin(_HELD))
    events = sorted(
        rows.each(("ts", "seq", "event", "member", "old", "new", "detail")), key=lambda row: (row["ts"], row["seq"])
    )
    cells = _cells(events, material.to_ms)
    if not cells:
        return None
    names = sorted({cell["task"] for cell in cells}, key=_task_order)
    shown = [cell for cell in cells if cell["task"] in set(names[:TASKS])]
    drawn = sorted(shown, key=lambda cell: cell["from_ms"] - cell["to_ms"])[:CELLS]
    processes = list(dict.fromkeys(cell["process"] for cell in cells))
    clients = clients_of(material, (cell["member"] for cell in cells))
    named = {cell["process"]: process_name(clients[cell["member"]]) for cell in cells if cell["member"] in clients}
    return {
        "id": f"tasks-{at}",
        "area": "streams",
        "kind": "heat",
        "title": f"Tasks of {material.label(key)}",
        "groups": [key[1]],
        "processes": processes,
        "names": {process: named[process] for process in processes if process in named},
        "rows": [{"name": task, "cells": _in_time(drawn, task)} for task in names[:TASKS]],
        "left_out": max(0, len(names) - TASKS),
        "cells_left_out": len(shown) - len(drawn),
    }


def _in_time(cells: list[Row], task: str) -> list[Row]:
    return sorted((cell for cell in cells if cell["task"] == task), key=lambda cell: (cell["from_ms"], cell["role"]))


def _task_order(task: str) -> tuple[Any, ...]:
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in task.rsplit("_", 1))


def _cells(events: Iterable[Row], to_ms: int) -> list[Row]:
    held: dict[tuple[str, str, str], Row] = {}
    cells: list[Row] = []
    for row in events:
        if row["event"] in ("partition_gained", "partition_revoked"):
            _moved(row, held, cells)
        else:
            _ended([key for key in held if row["member"] in (key[0], None)], row["ts"], held)
    _ended(list(held), to_ms, held)
    return [cell for cell in cells if cell["to_ms"] > cell["from_ms"] or cell["to_ms"] == to_ms]


def _moved(row: Row, held: dict[tuple[str, str, str], Row], cells: list[Row]) -> None:
    detail = json.loads(row["detail"] or "{}")
    role = detail.get("role", "active")
    is_gained = row["event"] == "partition_gained"
    for task in _listed(row["new"] if is_gained else row["old"]):
        key = (row["member"], role, task)
        _ended([key] if key in held else [], row["ts"], held)
        if is_gained:
            process = detail.get("process") or row["member"] or "unknown"
            held[key] = {"task": task, "role": role, "process": process, "member": row["member"], "from_ms": row["ts"]}
            cells.append(held[key])


def _ended(keys: Iterable[tuple[str, str, str]], ms: int, held: dict[tuple[str, str, str], Row]) -> None:
    for key in keys:
        held.pop(key)["to_ms"] = ms


def _listed(text: str | None) -> list[str]:
    """One task, or a JSON list of them."""
    if not text:
        return []
    return [str(each) for each in json.loads(text)] if text.startswith("[") else [text]
