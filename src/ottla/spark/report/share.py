"""Share groups: deliveries, stalled partitions, and records that were given up."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pyarrow.compute as pc

from ottla.health.phrases import plural
from ottla.spark.report.material import KEYS, Key, Material
from ottla.spark.report.part import KEPT_ROWS, Part, table
from ottla.spark.report.rows import Row, Rows
from ottla.spark.report.thin import POINTS_MAX, Point

LINES: Final = 8
BARS: Final = 12
ORDINALS: Final = {
    "count_1": "first",
    "count_2": "second",
    "count_3": "third",
    "count_4": "fourth",
    "count_5plus": "fifth or later",
}
COUNTS: Final = tuple(ORDINALS)
SUMMED: Final = (
    "delivered", "redelivered", "accepted", "released", "rejected_or_archived", "rejected", "lock_expiries",
    "lock_expiries_est", "time_in_lock_ms", *COUNTS,
)  # fmt: skip
_STALLED: Final = (
    "cluster",
    "group",
    "topic",
    "topic_id",
    "partition",
    "window_start",
    "stalled_s",
    "lag",
    "start_offset",
)


def share_part(material: Material) -> Part:
    delivery = material.rows("share_delivery")
    groups = _groups(delivery)
    poison = _poison(delivery)
    stalled = _stalled(delivery)
    part = Part(has_rows=bool(groups))
    part.tables["share_groups"] = table(groups, len(groups), "most redeliveries first")
    part.tables["stalled"] = table(stalled, len(stalled), "longest first")
    part.tables["poison"] = table(poison, len(poison), "by group, topic and offset")
    part.figures = _figures(material, groups) if groups else []
    part.numbers = _numbers(groups) | {"poison": len(poison), "stalled": len(stalled)}
    part.sentence = _sentence(part.numbers)
    return part


def _numbers(groups: list[Row]) -> dict[str, Any]:
    totals = Counter[str]()
    for row in groups:
        totals.update({name: row[name] or 0 for name in ("delivered", "redelivered")})
    return {"groups": len(groups), "delivered": totals["delivered"], "redelivered": totals["redelivered"]}


def _sentence(numbers: dict[str, Any]) -> str:
    if not numbers["groups"]:
        return "No share groups"
    share = 100 * numbers["redelivered"] / numbers["delivered"] if numbers["delivered"] else 0
    deliveries = plural(numbers["delivered"], "delivery", "deliveries")
    said = f"{plural(numbers['groups'], 'share group')}, {deliveries}, {share:.1f} % redelivered"
    return said + (f", {plural(numbers['poison'], 'record')} at the delivery limit" if numbers["poison"] else "")


def _groups(delivery: Rows) -> list[Row]:
    wanted = {name: (name, "sum") for name in SUMMED}
    worst = {"max_delivery_count": ("max_delivery_count", "max"), "longest_stall_s": ("stalled_s", "max")}
    rows = delivery.grouped(KEYS, wanted | worst)
    lags = _lags(delivery)
    for row in rows:
        row["redelivered_share"] = _share(row, "redelivered")
        row["mean_lock_ms"] = None if row["time_in_lock_ms"] is None else _share(row, "time_in_lock_ms")
        row["lag"] = lags.get((row["cluster"], row["group"]))
    return sorted(rows, key=lambda row: (-(row["redelivered"] or 0), row["cluster"], row["group"]))


def _share(row: Row, name: str) -> float | None:
    """A value for each delivery."""
    return round((row[name] or 0) / row["delivered"], 4) if row["delivered"] else None


def _lags(delivery: Rows) -> dict[Key, int]:
    """The sum of the newest lags of all partitions."""
    found: Counter[Key] = Counter()
    known = delivery.where(pc.field("lag").is_valid())
    for row in known.newest([*KEYS, "topic_id", "partition"], "window_start", ["lag"]):
        found[row["cluster"], row["group"]] += row["lag"]
    return dict(found)


def _stalled(delivery: Rows) -> list[Row]:
    """The longest stall of each partition."""
    rows = delivery.where(pc.field("stalled_s") > 0).top(
        _STALLED, 10 * KEPT_ROWS, [("stalled_s", "descending"), ("window_start", "ascending")]
    )
    worst: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        worst.setdefault((row["cluster"], row["group"], row["topic_id"], row["partition"]), row)
    return list(worst.values())[:KEPT_ROWS]


def _poison(delivery: Rows) -> list[Row]:
    names = ("cluster", "group", "topic", "topic_id", "partition", "window_start", "poison")
    found: dict[tuple[Any, ...], Row] = {}
    for row in (
        delivery.where(pc.list_value_length(pc.field("poison")) > 0).each(names) if "poison" in delivery.columns else ()
    ):
        for offset in row["poison"]:
            key = (row["cluster"], row["group"], row["topic"] or row["topic_id"], row["partition"], offset)
            older = found.get(key)
            if older is None or older["window_start"] < row["window_start"]:
                found[key] = {**row, "offset": offset}
                del found[key]["poison"]
    return [found[key] for key in sorted(found, key=lambda key: tuple(map(str, key[:3])) + key[3:])]


# --- figures ----------------------------------------------------------------------------------------------------------


def _figures(material: Material, groups: list[Row]) -> list[Row]:
    keys = [(row["cluster"], row["group"]) for row in groups]
    bars = [
        {"name": material.label(key), "bars": [{"name": ORDINALS[name], "value": row[name] or 0} for name in COUNTS]}
        for key, row in zip(keys[:BARS], groups, strict=False)
    ]
    figures: list[Row] = [
        {
            "area": "share",
            "groups": [key[1] for key in keys[:LINES]],
            "id": "deliveries",
            "kind": "bars",
            "title": "Deliveries by attempt",
            "unit": "deliveries",
            "rows": bars,
            "left_out": max(0, len(groups) - BARS),
        },
        _per_delivery(material, "redelivery", "Redeliveries", "%", keys, "redelivered") | {"spans": _storms(material)},
    ]
    timed = [key for key, row in zip(keys, groups, strict=True) if row["time_in_lock_ms"]]
    if timed:
        figures.append(_per_delivery(material, "lock-time", "Time in lock", "ms", timed, "time_in_lock_ms"))
    return figures


def _per_delivery(material: Material, name: str, title: str, unit: str, keys: list[Key], column: str) -> Row:
    """A plot of a value for each delivery, with a line for each of the first groups."""
    return {
        "id": name,
        "area": "share",
        "kind": "lines",
        "title": title,
        "groups": [group for _, group in keys[:LINES]],
        "window_ms": material.windows["share_delivery"],
        "unit": unit,
        "lines": _rates(material, keys[:LINES], column, 100 if unit == "%" else 1),
        "spans": [],
        "left_out": max(0, len(keys) - LINES),
    }


def _rates(material: Material, chosen: list[Key], name: str, factor: int) -> list[Row]:
    """A value for each delivery, window by window."""
    wanted = {"delivered": ("delivered", "sum"), name: (name, "sum")}
    lines: dict[Key, list[Point]] = {key: [] for key in chosen}
    rows = material.rows("share_delivery").among(chosen).grouped([*KEYS, "window_start"], wanted)
    for row in rows:
        if row["delivered"] and row[name] is not None and (row["cluster"], row["group"]) in lines:
            value = round(factor * row[name] / row["delivered"], 2)
            lines[row["cluster"], row["group"]].append((row["window_start"], value))
    return [_rate(material, key, points) for key, points in lines.items()]


def _rate(material: Material, key: Key, points: list[Point]) -> Row:
    """A rate is drawn as steps, one for each window. After the last window before a gap it is unknown."""
    line = material.line(material.label(key), points)
    if len(points) > POINTS_MAX // 2:
        return line
    drawn: list[list[float | None]] = []
    for at, (ms, value) in enumerate(points):
        drawn.append([ms, value])
        end_ms = ms + material.windows["share_delivery"]
        if at + 1 == len(points) or points[at + 1][0] > end_ms:
            drawn += [[min(end_ms, max(material.to_ms, ms)), value], [end_ms, None]]
    return line | {"step": True, "points": drawn[:-1]}


def _storms(material: Material) -> list[Row]:
    storms = [each for each in material.findings if each["rule"] == "redelivery-storm"]
    return [{"from_ms": each["since_ms"], "to_ms": each["until_ms"] or material.to_ms,
             "name": f"redelivery storm of {each['subject']['name']}"} for each in storms]  # fmt: skip
