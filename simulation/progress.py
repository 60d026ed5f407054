"""What is said while many seeds run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import click

__all__ = ["Progress"]

_EVERY_S = 10


class _Failure(Protocol):
    @property
    def seed(self) -> int: ...
    @property
    def violation(self) -> str: ...


class _Tally(Protocol):
    @property
    def seeds(self) -> int: ...
    @property
    def failures(self) -> Sequence[_Failure]: ...


class Progress:
    """Prints a line once in a while, and one for each failure."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _EVERY_S
        self._failed = 0

    def __call__(self, tally: _Tally) -> None:
        for failure in tally.failures[self._failed :]:
            click.echo(f"seed {failure.seed} failed: {failure.violation[:200]}", err=True)
        self._failed = len(tally.failures)
        if time.monotonic() > self._next:
            self._next = time.monotonic() + _EVERY_S
            click.echo(f"{tally.seeds} seeds, {len(tally.failures)} failed", err=True)
