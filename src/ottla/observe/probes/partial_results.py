"""Splits the outcomes of several requests into values and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ottla.client.errors import ClientError
from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import ProbeResult, probe_error

__all__ = ["PartialResults", "by_node", "split_errors"]

V = TypeVar("V")
PartialResults = tuple[dict[str, V], list[ProbeResult]]


def split_errors(ctx: ProbeContext, kind: str, outcomes: Mapping[str, V | ClientError]) -> PartialResults[V]:
    """The values, and a result for each error. Raises the first error if there are no values."""
    failures = {name: each for name, each in outcomes.items() if isinstance(each, ClientError)}
    if failures and len(failures) == len(outcomes):
        raise next(iter(failures.values()))
    values = {name: each for name, each in outcomes.items() if not isinstance(each, ClientError)}
    return values, [probe_error(kind, name, ctx.error_of(each)) for name, each in failures.items()]


def by_node(outcomes: Mapping[int, V | ClientError]) -> dict[str, V | ClientError]:
    """The outcomes, keyed by the names that nodes have in samples."""
    return {f"node:{node_id}": each for node_id, each in outcomes.items()}
