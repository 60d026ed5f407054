"""All groups in a few characters each, so that a page can draw any of ten thousand: how often each rebalanced, and how
far it was behind, over the time of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from ottla.spark.report.material import KEYS, Key, Material
from ottla.spark.report.rows import Derived, Row

__all__ = ["BUCKETS", "all_groups"]

BUCKETS: Final = 48
LEVELS: Final = 9
"""A strip has a digit for each bucket: 0 for nothing, 9 for the highest value of the group."""
CELLS: Final = ("type", "state", "rebalances", "longest_rebalance_ms", "findings")


def all_groups(material: Material, groups: Sequence[Row]) -> Row:
    """A table of all groups, in the order of `groups`, with their strips."""
    rebalances, _ = _strips(material, "rebalances", "started", ("started", "count"))
    lag, furthest = _strips(material, "consumer_lag", "window_start", ("lag_records", "max"))
    rows = []
    for row in groups:
        key = (row["cluster"], row["group"])
        strips = {"rebalances_strip": rebalances.get(key), "lag_strip": lag.get(key), "max_lag": furthest.get(key)}
        rows.append({"label": material.label(key), **{name: row[name] for name in CELLS}, **strips})
    return {"total": len(rows), "order": "as in the table of groups", "rows": rows}


def _strips(material: Material, table: str, time: str, value: tuple[str, str]) -> tuple[dict[Key, str], dict[Key, int]]:
    """A strip for each group with values above 0, and its highest value."""
    width_ms = max(1, -(-(material.to_ms - material.from_ms + 1) // BUCKETS))
    bucket = Derived("bucket", (time,), lambda piece: pc.divide(pc.subtract(piece[time], material.from_ms), width_ms))
    found = material.rows(table).deriving(bucket).aggregated([*KEYS, "bucket"], {"value": value})
    values: dict[Key, list[int]] = {}
    for row in [] if found is None else found.to_pylist():
        if row["value"] and row["bucket"] is not None and 0 <= row["bucket"] < BUCKETS:
            values.setdefault((row["cluster"], row["group"]), [0] * BUCKETS)[row["bucket"]] = row["value"]
    highest = {key: max(each) for key, each in values.items()}
    return {key: "".join(str(-(-LEVELS * each // highest[key])) for each in values[key]) for key in values}, highest
