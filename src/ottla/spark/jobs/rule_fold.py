"""The health rules of one cluster as a fold: its rows are those of the table of findings.

Plain Python, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ottla.health.facts import Group, TopicPartitions
from ottla.spark.jobs.rule_evaluation import RuleEvaluator, finding_row

__all__ = ["RECORD_RANK", "SAMPLE_RANK", "FactRow", "RuleFold", "with_names"]

RECORD_RANK, SAMPLE_RANK = 0, 1
"""At the same time, records come before samples."""


class FactRow(NamedTuple):
    """A fact with its place in the order: that of its first four fields."""

    ts: int
    rank: int
    order_text: str
    order_number: int
    kind: str
    error: str | None
    body: bytes | None
    key: bytes | None = None
    topic: str | None = None
    """The name of the topic of a share partition, if its record has only an id."""


class RuleFold:
    """A `WindowFold`, whose rows have as keys when a finding began, and its id."""

    def __init__(self, cluster: str, thresholds: Mapping[str, float], connection: str) -> None:
        self._cluster = cluster
        self._evaluator = RuleEvaluator(dict(thresholds), {}, connection)
        self.last: tuple[Any, ...] = ()

    def is_sampled(self, group: str, ts: int) -> bool:
        """Whether samples of a group are used instead of its records at this time."""
        return self._evaluator.is_sampled(group, ts)

    def arranged(self, rows: Iterable[FactRow]) -> list[tuple[tuple[Any, ...], FactRow]]:
        return sorted(((each[:4], each) for each in rows), key=lambda each: each[0])

    def take(self, order: tuple[Any, ...], row: FactRow) -> None:
        self.last = order
        is_sample = row.rank == SAMPLE_RANK
        self._evaluator.take(
            row.ts, row.kind, row.error, row.body, row.key, row.order_number, is_sample=is_sample, topic=row.topic
        )

    def rows(self, *, is_all: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
        changed = self._evaluator.changed()
        wanted = self._evaluator.known() if is_all else changed
        return {(each.since_ms, each.id): finding_row(self._cluster, each) for each in wanted}

    def keys(self) -> Iterable[tuple[Any, ...]]:
        return [(each.since_ms, each.id) for each in self._evaluator.known()]

    def forget(self, before_ms: int) -> None:
        self._evaluator.forget(before_ms)

    def unseen(self) -> list[dict[str, Any]]:
        """The rules that cannot be checked, as the run file has them."""
        return [{"rule": each.rule, "missing": each.needs, "why": each.why} for each in self._evaluator.unseen()]


_read_group: Final = msgspec.json.Decoder(Group).decode


def with_names(body: bytes, names: Mapping[str, str]) -> bytes:
    """A fact about a group from its records, with the names of topics that have only an id."""
    fact = _read_group(body)
    members = tuple(
        msgspec.structs.replace(each, assigned=_named(each.assigned, names), target=_named(each.target, names))
        for each in fact.members
    )
    return msgspec.json.encode(msgspec.structs.replace(fact, members=members))


def _named(partitions: tuple[TopicPartitions, ...], names: Mapping[str, str]) -> tuple[TopicPartitions, ...]:
    return tuple(msgspec.structs.replace(each, topic=names.get(each.topic_id or "", each.topic)) for each in partitions)
