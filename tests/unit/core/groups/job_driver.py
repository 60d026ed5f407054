"""A family of consumer groups without a log, whose jobs go on only when a test lets them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ottla.core.coordinator.contract import COMMITTED, Context, Outcome, Result
from ottla.core.groups.assignors.computation import answer, request_of
from ottla.core.groups.consumer.family import ConsumerFamily
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.modern.target_jobs import ComputeTarget
from ottla.core.groups.table import GroupTable
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from simulation.environment import Environment
from simulation.topics import VirtualTopics

GROUP = "g"


class JobDriver:
    def __init__(self, topics: VirtualTopics | None = None) -> None:
        self.environment = Environment()
        self.environment.settings.set("group.consumer.assignment.interval.ms", "0")
        if topics is not None:
            self.environment.world.topics = topics
        self.topics = self.environment.world.topics
        self.family = ConsumerFamily(GroupTable())
        self.now_ms = 0
        self.records: list[KeyedRecord] = []
        """All that were written."""
        self.steps: deque[Callable[[], Result]] = deque()
        """What a job waits for."""
        self.effects: list[ComputeTarget] = []
        """All that there were."""

    def context(self) -> Context:
        return Context(now_ms=self.now_ms, wall_ms=10**12 + self.now_ms, world=self.environment.world, api_version=1)

    @property
    def group(self) -> ConsumerGroup:
        group = self.family._table.get(GROUP)
        assert isinstance(group, ConsumerGroup)
        return group

    # --- members ------------------------------------------------------------------------------------------------------

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)
        return self.apply(self.family.heartbeat(request, self.context()))

    def join(self, member_id: str, *names: str, **fields: Any) -> Any:
        given = {"rebalance_timeout_ms": 60_000, "topic_partitions": (), "subscribed_topic_names": names} | fields
        return self.beat(member_id, 0, **given)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def apply(self, result: Result) -> Any:
        for record in result.records:
            self.records.append(record)
            self.family.replays[type(record.key)](record, 0, -1, -1)
        for key, at_ms in result.timers:
            if key[1] == "target" and at_ms is not None and self._expire not in self.steps:  # type: ignore[index]
                self.steps.append(self._expire)
        self.effects += result.effects
        for effect in result.effects:
            self.steps.append(lambda effect=effect: self.settled(effect, computed(effect)))  # type: ignore[misc]
        if result.after is not None:
            self.steps.append(lambda: self.settled(result.after, COMMITTED))
        return result.replies[-1].message if result.replies else None

    def _expire(self) -> Result:
        return self.family.expire(self.family.target_jobs.key(GROUP), self.context())

    def settled(self, subject: Any, outcome: Outcome) -> Result:
        return self.family.settled(subject, outcome, self.context())

    def step(self) -> None:
        self.apply(self.steps.popleft()())

    def step_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self.step()

    def finish(self) -> int:
        """Let jobs go on to their end. How many steps that took."""
        count = 0
        while self.steps:
            self.step()
            count += 1
        return count


def computed(effect: ComputeTarget) -> Outcome:
    return Outcome(value=answer(request_of(effect.choice, effect.parts)))
