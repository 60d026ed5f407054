"""Which commits of a batch can have influence on a table: the last ones of each window of time.

Groups commit again and again, and `consumer_lag` has one row for each window. What a worker leaves out need not be
written, sorted and read by others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["last_of_windows"]


def last_of_windows(keys: pa.Array, times_ms: Any, has_offset: Any, window_ms: int) -> tuple[Any, Any]:
    """The places of the commits that count, and after each how many others of its key are left out.

    Of each key and window, the last commit in the order of the log counts, and the last one in the order of time;
    likewise of those that have an offset, for some delete one. Hours consist of whole windows, so their last ones are
    among these. The first time of all stays, too.
    """
    encoded = keys.dictionary_encode()
    who = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    windows = times_ms // window_ms
    first_window = windows.min()
    code = who * (windows.max() - first_window + 1) + windows - first_window
    orders = [np.arange(len(who))]
    if (np.diff(times_ms) < 0).any():
        orders.append(np.argsort(times_ms, kind="stable"))
    keep = np.zeros(len(who), np.bool_)
    for order in orders:
        keep[_last(order, code)] = True
        if not has_offset.all():
            keep[_last(order[has_offset[order]], code)] = True
    keep[times_ms.argmin()] = True
    places = np.flatnonzero(keep)
    return places, _left_out(who, places)


def _last(order: Any, code: Any) -> Any:
    """The last place of each code in this order."""
    backwards = order[::-1]
    _, first = np.unique(code[backwards], return_index=True)
    return backwards[first]


def _left_out(who: Any, places: Any) -> Any:
    """How many of its key are not among the places, told at the last of these places."""
    keys = int(who.max()) + 1
    missing = np.bincount(who, minlength=keys) - np.bincount(who[places], minlength=keys)
    found = np.zeros(len(places), np.int64)
    last = _last(np.arange(len(places)), who[places])
    found[last] = missing[who[places][last]]
    return found
