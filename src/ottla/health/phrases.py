"""Numbers, durations, times and lists as text for sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from json import dumps
from shlex import quote
from typing import Final

__all__ = [
    "clock",
    "consume_since",
    "duration",
    "href",
    "join",
    "nodes",
    "number",
    "offsets",
    "percent",
    "plural",
    "precision",
    "runs",
    "size",
    "word",
]

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_LIST_LONGEST: Final = 6
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def number(value: float) -> str:
    """`1,234,567`; exact, because users compare it with the output of other tools."""
    return f"{round(value):,}"


def percent(part: float, whole: float) -> int:
    return round(100 * part / whole) if whole else 0


def duration(ms: float) -> str:
    """`850 ms`, `12.4 s`, `3 min 05 s`, `2 h 14 min`, `5 d 3 h`."""
    ms = max(0, round(ms))
    if ms < _SECOND_MS:
        return f"{ms} ms"
    if ms < _MINUTE_MS:
        return f"{ms // 100 / 10:g} s"
    if ms < _HOUR_MS:
        return f"{ms // _MINUTE_MS} min {ms % _MINUTE_MS // _SECOND_MS:02} s"
    if ms < _DAY_MS:
        return f"{ms // _HOUR_MS} h {ms % _HOUR_MS // _MINUTE_MS:02} min"
    return f"{ms // _DAY_MS} d {ms % _DAY_MS // _HOUR_MS} h"


def precision(ms: object) -> str:
    """` ± 2 s` after a time that is not exact; nothing if it is, or if it is not known how exact it is."""
    return f" ± {duration(ms)}" if isinstance(ms, int) and ms else ""


@lru_cache(maxsize=1_000)
def clock(ms: int) -> str:
    """A time in UTC, the same for every reader; the bare number if it is after the year 9999, since producers may write
    any."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError):
        return str(ms)


def word(text: str) -> str:
    """A name in a command, quoted for the shell if necessary."""
    return quote(text)


def consume_since(topic: str, from_ms: int, key: str, wanted: str, partition: int | None = None) -> str:
    """The command that shows the records since a time whose field has the wanted value."""
    place = "" if partition is None else f" --partition {partition}"
    start = datetime.fromtimestamp(from_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    matches = word(f"{key} == {dumps(wanted, ensure_ascii=False)}")
    return f"ottla topics consume {word(topic)}{place} --from {start} --filter {matches}"


def size(count_bytes: float) -> str:
    value = float(count_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def join(parts: Iterable[object], nothing: str = "none") -> str:
    """`a, b, c`; of a long list the first, and how many more there are."""
    texts = [str(part) for part in parts]
    shown = ", ".join(texts[:_LIST_LONGEST])
    rest = len(texts) - _LIST_LONGEST
    return (f"{shown} and {rest} more" if rest > 0 else shown) or nothing


def nodes(ids: Iterable[int]) -> str:
    """`node 2`, `nodes 1, 3`."""
    wanted = sorted(set(ids))
    return f"node{'' if len(wanted) == 1 else 's'} {join(wanted)}" if wanted else "no node"


def offsets(values: Sequence[int]) -> str:
    """Offsets with neighbours joined: `4120–4122, 4130`. Commas separate them, and nothing else."""
    return join(str(a) if a == b else f"{a}–{b}" for a, b in runs(values))


def runs(values: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of neighbouring numbers."""
    runs: list[tuple[int, int]] = []
    for value in sorted(set(values)):
        if runs and runs[-1][1] + 1 == value:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs


def href(*parts: object) -> str:
    """The path of a page of the console; bytes that have a meaning in URLs are written as ~XX."""
    return "".join("/" + _tilde(str(part)) for part in parts)


def _tilde(name: str) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"~{byte:02X}" for byte in name.encode())
