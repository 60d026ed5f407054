"""Work in small steps is a generator that stops every so often and ends with its result."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

__all__ = ["finish"]

T = TypeVar("T")


def finish(steps: Generator[Any, None, T]) -> T:
    """Take all steps at once; gives the result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
