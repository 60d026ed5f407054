"""The topics that groups read, and how much was written to them.

Samples of lag have the end offsets of partitions; nobody samples topics without a group.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from ottla.spark.report.material import Material
from ottla.spark.report.part import table
from ottla.spark.report.rows import Row, Rows

TOPIC: Final = ("cluster", "topic")
PARTITION: Final = (*TOPIC, "topic_id", "partition")


def topics_table(material: Material) -> Row:
    """Topics of the same name that were deleted and created again count as one."""
    lag = material.rows("consumer_lag").where(pc.field("high_watermark").is_valid())
    found = _written(lag)
    _count_groups(lag, found)
    _take_peaks(lag, found)
    rows = sorted(found.values(), key=lambda row: (-row["records"], row["cluster"] or "", row["topic"] or ""))
    return table(rows, len(rows), "most records first")


def _written(lag: Rows) -> dict[tuple[Any, ...], Row]:
    wanted = {
        "low": ("high_watermark", "min"),
        "high": ("high_watermark", "max"),
        "first": ("window_start", "min"),
        "last": ("window_start", "max"),
    }
    found: dict[tuple[Any, ...], Row] = {}
    for row in lag.grouped(PARTITION, wanted):
        nothing = {**{name: row[name] for name in TOPIC}, "partitions": set(), "records": 0, "per_second": 0.0,
                   "peak_per_second": None, "groups": 0}  # fmt: skip
        mine = found.setdefault(_key(row), nothing)
        written, passed_s = row["high"] - row["low"], (row["last"] - row["first"]) / 1000
        mine["partitions"].add(row["partition"])
        mine["records"] += written
        mine["per_second"] += written / passed_s if passed_s else 0.0
    for row in found.values():
        row["partitions"] = len(row["partitions"])
        row["per_second"] = round(row["per_second"], 1)
    return found


def _count_groups(lag: Rows, found: dict[tuple[Any, ...], Row]) -> None:
    for row in lag.grouped([*TOPIC, "group"], {}):
        found[_key(row)]["groups"] += 1


def _take_peaks(lag: Rows, found: dict[tuple[Any, ...], Row]) -> None:
    """The window in which most was written. Each group has a rate for the same partition; the greatest counts."""
    for day in lag.where(pc.field("rate_in").is_valid()).days() if "rate_in" in lag.columns else ():
        rates = day.aggregated([*PARTITION, "window_start"], {"rate": ("rate_in", "max")})
        if rates is None:
            continue
        sums = rates.group_by([*TOPIC, "window_start"]).aggregate([("rate", "sum")])
        for row in sums.group_by(list(TOPIC)).aggregate([("rate_sum", "max")]).to_pylist():
            mine = found[_key(row)]
            mine["peak_per_second"] = max(mine["peak_per_second"] or 0.0, round(row["rate_sum_max"], 1))


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in TOPIC)
