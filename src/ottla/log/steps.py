"""Long work in small steps: a generator that yields often and returns its result."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

__all__ = ["finish"]

T = TypeVar("T")


def finish(steps: Generator[Any, None, T]) -> T:
    """Run all steps; returns the result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
