"""All groups in a few characters each, so that a page can draw any of ten thousand: how often each rebalanced, and how
far it was behind, over the time of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ottla.spark.report.material import KEYS, Key, Material
from ottla.spark.report.rows import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BUCKETS", "all_groups"]

BUCKETS: Final = 48
LEVELS: Final = 9
"""A strip has a digit for each bucket: 0 for nothing, 9 for the highest value of the group."""
CELLS: Final = ("type", "state", "rebalances", "longest_rebalance_ms", "findings")


def all_groups(material: Material, groups: Sequence[Row]) -> Row:
    """A table of all groups, in the order of `groups`, with their strips."""
    rebalances, _ = _strips(material, "rebalances", "started")
    lag, furthest = _strips(material, "consumer_lag", "window_start", "lag_records")
    rows = []
    for row in groups:
        key = (row["cluster"], row["group"])
        strips = {"rebalances_strip": rebalances.get(key), "lag_strip": lag.get(key), "max_lag": furthest.get(key)}
        rows.append({"label": material.label(key), **{name: row[name] for name in CELLS}, **strips})
    return {"total": len(rows), "order": "as in the table of groups", "rows": rows}


def _strips(material: Material, table: str, time: str, lag: str | None = None) -> tuple[dict[Key, str], dict[Key, int]]:
    """A strip for each group with values above 0, and its highest value: of the rows, how many there are, or the
    greatest lag. In arrays, because ten thousand groups have half a million buckets."""
    width_ms = max(1, -(-(material.to_ms - material.from_ms + 1) // BUCKETS))
    places: dict[Key, int] = {}
    values = np.zeros((0, BUCKETS), np.int64)
    for piece in material.rows(table).pieces([*KEYS, time, *([lag] if lag else [])]):
        place = _placed(piece, places)
        bucket = (piece[time].to_numpy() - material.from_ms) // width_ms
        is_in = (bucket >= 0) & (bucket < BUCKETS)
        values = np.concatenate([values, np.zeros((len(places) - len(values), BUCKETS), np.int64)])
        into = values.reshape(-1), (place * BUCKETS + bucket)[is_in]
        if lag:
            np.maximum.at(*into, piece[lag].fill_null(0).to_numpy()[is_in])
        else:
            np.add.at(*into, 1)
    highest = values.max(axis=1, initial=0)
    levels = -(-LEVELS * values // np.maximum(highest, 1)[:, None])
    shown = {key: place for key, place in places.items() if highest[place]}
    strips = {key: "".join(map(str, levels[place].tolist())) for key, place in shown.items()}
    return strips, {key: int(highest[place]) for key, place in shown.items()}


def _placed(piece: Any, places: dict[Key, int]) -> NDArray[np.int64]:
    """The place of the group of each row. New groups get the next places."""
    cluster, group = (piece[name].combine_chunks().dictionary_encode() for name in KEYS)
    codes = cluster.indices.to_numpy().astype(np.int64) * len(group.dictionary) + group.indices.to_numpy()
    known, place = np.unique(codes, return_inverse=True)
    clusters, groups = cluster.dictionary.to_pylist(), group.dictionary.to_pylist()
    keys = [(clusters[code // len(groups)], groups[code % len(groups)]) for code in known.tolist()]
    found: NDArray[np.int64] = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)[place]
    return found
