"""Parses times and durations that users write."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

__all__ = ["TimeTextError", "parse_duration_ms", "parse_time_ms", "time_ago_ms"]

UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_SHORT = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ms|[dhms])")
_ISO = re.compile(r"P(?:(\d{1,15})D)?(?:T(?:(\d{1,15})H)?(?:(\d{1,15})M)?(?:(\d{1,15}(?:\.\d{1,15})?)S)?)?", re.I)
_MS_DIGITS_MAX = 18


class TimeTextError(ValueError):
    """A text that is no time or duration, and how one is written."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}")
        self.problem = problem
        self.advice = advice


def parse_time_ms(text: str) -> int:
    """A date and time of ISO 8601, in UTC if it has no zone, or milliseconds since 1970.

    An earlier time becomes 0: to brokers, negative times mean something else, such as the end of a partition.
    """
    if text.isascii() and text.isdigit() and len(text) <= _MS_DIGITS_MAX:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TimeTextError(
            f"{text!r} is not a time", "write 2026-11-15T07:00:00, or milliseconds since 1970"
        ) from None
    return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))


def time_ago_ms(text: str, now_ms: int | None = None) -> int:
    """The time that was so long ago."""
    ago_ms = parse_duration_ms(text)
    return max(0, (time.time_ns() // 1_000_000 if now_ms is None else now_ms) - ago_ms)


def parse_duration_ms(text: str) -> int:
    """`90s`, `1d12h`, or a duration of ISO 8601: `P1DT12H`."""
    iso = _ISO.fullmatch(text)
    if iso and any(iso.groups()):
        return round(sum(float(n) * u for n, u in zip(iso.groups(), UNITS_MS.values(), strict=False) if n))
    pieces = _SHORT.findall(text)
    if pieces and "".join(number + unit for number, unit in pieces) == text:
        return round(sum(float(number) * UNITS_MS[unit] for number, unit in pieces))
    raise TimeTextError(f"{text!r} is not a duration", "write for example 90s, 2h, 1d12h or PT2H")
