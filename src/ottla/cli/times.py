"""Parses times and durations that users write; what is none is a Failure. Prints times of records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec

from ottla.cli.failure import Failure
from ottla.client import times

P = ParamSpec("P")


def _refusing(parse: Callable[P, int]) -> Callable[P, int]:
    @wraps(parse)
    def refusing(*args: P.args, **more: P.kwargs) -> int:
        try:
            return parse(*args, **more)
        except times.TimeTextError as error:
            raise Failure(error.problem, error.advice) from None

    return refusing


parse_time_ms = _refusing(times.parse_time_ms)
time_ago_ms = _refusing(times.time_ago_ms)
parse_duration_ms = _refusing(times.parse_duration_ms)


def time_text(at_ms: int, timespec: str = "seconds") -> str:
    """A time in UTC; the bare number if it is after the year 9999, since producers may write any."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).replace(tzinfo=None).isoformat(" ", timespec)
    except (ValueError, OverflowError):
        return str(at_ms)
