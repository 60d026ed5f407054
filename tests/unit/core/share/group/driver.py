"""The family of share groups without a log: what it decides is replayed at once, and effects are kept for the test."""

from __future__ import annotations

from typing import Any

from ottla.core.coordinator.contract import COMMITTED, Context, Outcome, Result
from ottla.core.groups.assignors.computation import answer, request_of
from ottla.core.groups.modern.target_jobs import ComputeTarget
from ottla.core.groups.table import GroupTable
from ottla.core.share.group.family import ShareFamily
from ottla.core.share.group.group import ShareGroup
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatRequest
from simulation.environment import Environment
from simulation.topics import VirtualTopics

GROUP = "g"


class Driver:
    def __init__(self, topics: VirtualTopics | None = None) -> None:
        self.environment = Environment()
        if topics is not None:
            self.environment.world.topics = topics
        self.topics = self.environment.world.topics
        self.table = GroupTable()
        self.family = ShareFamily(self.table)
        self.now_ms = 0
        self.effects: list[Any] = []
        self.answers: list[Any] = []
        self.due: list[Any] = []
        """Deadlines of targets that are computed outside the event loop."""

    @property
    def group(self) -> ShareGroup:
        group = self.table.get(GROUP)
        assert isinstance(group, ShareGroup)
        return group

    def context(self) -> Context:
        return Context(now_ms=self.now_ms, wall_ms=10**12 + self.now_ms, world=self.environment.world, api_version=1)

    def replay(self, *records: KeyedRecord) -> None:
        for record in records:
            self.family.replays[type(record.key)](record, 0, -1, -1)

    def apply(self, result: Result) -> None:
        self.replay(*result.records)
        self.answers += [reply.message for reply in result.replies]
        self.effects += result.effects
        self.due += [timer.key for timer in result.timers if timer.key[1] == "target"]  # type: ignore[index]
        if result.after is not None:
            self.apply(self.family.settled(result.after, COMMITTED, self.context()))

    def settle(self, outcome: Outcome = COMMITTED) -> None:
        """The oldest effect has ended."""
        effect = self.effects.pop(0)
        if isinstance(effect, ComputeTarget):
            outcome = Outcome(value=answer(request_of(effect.choice, effect.parts)))
        self.apply(self.family.settled(effect, outcome, self.context()))

    def beat(self, member_id: str, epoch: int, *names: str) -> Any:
        """The answer, once everything is settled that it waits for."""
        request = ShareGroupHeartbeatRequest(GROUP, member_id, epoch, None, names or None)
        self.apply(self.family.heartbeat(request, self.context()))
        while self.effects:
            self.settle()
        return self.answers[-1]

    def finish_target(self) -> None:
        """A target that is computed outside the event loop comes to its end."""
        while self.due or self.effects:
            if self.due:
                self.apply(self.family.expire(self.due.pop(0), self.context()))
            else:
                self.settle()
