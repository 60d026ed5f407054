"""Parses times and durations that users write; what is none is a Failure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from ottla.cli.failure import Failure
from ottla.client import moments

P = ParamSpec("P")


def _refusing(parse: Callable[P, int]) -> Callable[P, int]:
    @wraps(parse)
    def refusing(*args: P.args, **more: P.kwargs) -> int:
        try:
            return parse(*args, **more)
        except moments.MomentError as error:
            raise Failure(error.problem, error.advice) from None

    return refusing


moment_ms = _refusing(moments.moment_ms)
moment_of_duration_ms = _refusing(moments.moment_of_duration_ms)
duration_ms = _refusing(moments.duration_ms)
