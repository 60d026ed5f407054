"""Parses times and durations that users write; what is none is a Failure."""

from __future__ import annotations

from collections.abc import Callable
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
