"""A coordinator of groups without a log of its own: what it writes is committed at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.core.coordinator.contract import Context, Result
from ottla.core.coordinator.deadlines import Deadlines
from ottla.core.groups.coordinator import GroupCoordinator
from ottla.wire.keyed import KeyedRecord
from simulation.environment import Environment


class Coordinator:
    """`heard` is told every result, once its records are replayed and its deadlines set."""

    def __init__(self, new_core: Callable[[], GroupCoordinator], heard: Callable[[Result], None]) -> None:
        self.environment = Environment()
        self.log: list[KeyedRecord] = []
        self.now_ms = 0
        self._new_core = new_core
        self._heard = heard
        self.start()

    def start(self) -> None:
        """Load anew what was written; all else is forgotten."""
        self.core = self._loaded(self.log)
        self.deadlines = Deadlines()
        self.apply(self.core.loaded(self.context()))

    def _loaded(self, log: Sequence[KeyedRecord]) -> GroupCoordinator:
        core = self._new_core()
        for record in log:
            core.replay(record, 0, -1, -1)
        return core

    def context(self, token: int | None = None) -> Context:
        return Context(
            now_ms=self.now_ms,
            wall_ms=1_000_000_000_000 + self.now_ms,
            world=self.environment.world,
            token=token,
            api_version=1,
            client_id="c",
            client_host="/127.0.0.1",
        )

    def handle(self, request: Any, token: int | None = None) -> None:
        self.apply(self.core.handle(request, self.context(token)))

    def apply(self, result: Result) -> None:
        for record in result.records:
            self.log.append(record)
            self.core.replay(record, 0, -1, -1)
        for key, at_ms in result.timers:
            if at_ms is None:
                self.deadlines.cancel(key)
            else:
                self.deadlines.set(key, at_ms)
        self._heard(result)

    def pass_time(self, by_ms: int) -> None:
        end_ms = self.now_ms + by_ms
        while (at_ms := self.deadlines.next_at_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            key = self.deadlines.take_due(self.now_ms)
            if key is not None:
                self.apply(self.core.expire(key, self.context()))
        self.now_ms = end_ms

    def grow(self, topic: str, by: int, count_max: int) -> None:
        """A topic gets more partitions; or is made with so many."""
        topics = self.environment.topics
        known = topics.by_name(topic)
        count = by + (known.partition_count if known is not None else 0)
        change = topics.put(topic, min(count, count_max), ())
        self.apply(self.core.topics_changed(change, self.context()))

    def delete_topic(self, topic: str) -> None:
        change = self.environment.topics.delete(topic)
        self.apply(self.core.topics_changed(change, self.context()))

    def partitions_of(self, topics: frozenset[str]) -> set[tuple[bytes, int]]:
        """Those of the topics that exist."""
        found = [topic for name in topics if (topic := self.environment.topics.by_name(name)) is not None]
        return {(topic.topic_id, each) for topic in found for each in range(topic.partition_count)}

    def check_replay(self) -> None:
        """The log, compacted or not, tells what the coordinator knows."""
        live = self.core.hard_state()
        assert self._replayed(self.log) == live
        assert self._replayed(_compacted(self.log)) == live

    def _replayed(self, log: Sequence[KeyedRecord]) -> Mapping[Any, Any]:
        return self._loaded(log).hard_state()


def _compacted(log: Sequence[KeyedRecord]) -> list[KeyedRecord]:
    """The last record of each key, without tombstones."""
    last = {(type(record.key), record.key): index for index, record in enumerate(log)}
    return [log[index] for index in sorted(last.values()) if log[index].value is not None]
