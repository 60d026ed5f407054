"""Performs `ComputeTarget`: runs assignors outside the event loop, in child processes.

Kafka's own assignors run in one child, those of users in another, so that one that hangs holds up only its like. Each
child computes one target at a time; a thread waits for it. A group has one target under way at most, so fewer targets
wait than there are groups. A child that has nothing to do for `IDLE_SECONDS` is ended.

A large group has so many objects that a garbage collection which looks at them takes 30 ms. They stay for long, so the
collector is told to spare them, once more each time that a group has become twice as large.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ottla.broker.loop.child_process import ChildFailure, Worker
from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.assignors.computation import PROCESS_ENTRY, request_of
from ottla.core.groups.modern.target_jobs import ComputeTarget
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.config.settings import Settings
    from ottla.broker.coordinators.edge import Perform
    from ottla.broker.loop.offload import Offload

__all__ = ["MakeWorker", "TargetComputations"]

IDLE_SECONDS: Final = 60.0
SPARED_BYTES_MIN: Final = 100_000
"""What a group tells its assignor of some thousand topics, or of some hundred members with different subscriptions."""
SPARED_GROUPS_MAX: Final = 1_000
"""Groups whose sizes are remembered. When there are more, all are forgotten: deleted groups are among them."""

MakeWorker = Callable[[str], Worker]
"""Of the function that it runs, as `module:name`: `ChildProcess`, or what stands in for it in a simulation."""
Done = Callable[[Outcome], None]


class ComputationPorts(Protocol):
    loop: asyncio.AbstractEventLoop
    offload: Offload
    settings: Settings

    def spare_objects(self) -> None:
        """Exclude all objects that there are from garbage collection."""


class TargetComputations:
    def __init__(self, node: ComputationPorts, make_worker: MakeWorker) -> None:
        self._node = node
        self._queues = {is_own: _Queue(node, make_worker(PROCESS_ENTRY)) for is_own in (False, True)}
        self._spared_bytes: dict[str, int] = {}
        """By group: how much it had to tell when its objects were last spared."""

    def performers(self) -> dict[type, Perform]:
        return {ComputeTarget: self.compute}

    def compute(self, effect: ComputeTarget, done: Done) -> None:
        told_bytes = sum(map(len, effect.parts))
        if told_bytes >= max(2 * self._spared_bytes.get(effect.group_id, 0), SPARED_BYTES_MIN):
            if len(self._spared_bytes) >= SPARED_GROUPS_MAX:
                self._spared_bytes.clear()
            self._spared_bytes[effect.group_id] = told_bytes
            self._node.spare_objects()
        self._queues[effect.choice.is_own].add(effect, done)

    def close(self) -> None:
        for queue in self._queues.values():
            queue.close()


class _Queue:
    """The targets that one child computes."""

    def __init__(self, node: ComputationPorts, worker: Worker) -> None:
        self._node = node
        self._worker = worker
        self._waiting: deque[tuple[ComputeTarget, Done]] = deque()
        self._is_busy = False
        self._idle_timer: asyncio.TimerHandle | None = None

    def add(self, effect: ComputeTarget, done: Done) -> None:
        self._waiting.append((effect, done))
        if not self._is_busy:
            self._begin()

    def _begin(self) -> None:
        effect, done = self._waiting.popleft()
        self._is_busy = True
        self._stop_idle_timer()
        limit_ms = self._node.settings["ottla.group.assignor.timeout.ms"]
        outcomes: list[Outcome] = []

        def work() -> None:
            outcomes.append(self._outcome(effect, limit_ms))

        def then() -> None:
            done(outcomes[0] if outcomes else Outcome(ErrorCode.UNKNOWN_SERVER_ERROR))
            self._go_on()
            if not self._is_busy:
                self._idle_timer = self._node.loop.call_later(IDLE_SECONDS, self._end_idle)

        self._node.offload(work, then)

    def _go_on(self) -> None:
        self._is_busy = False
        if self._waiting:
            self._begin()

    def _outcome(self, effect: ComputeTarget, limit_ms: int) -> Outcome:
        try:
            return Outcome(value=self._worker.call(request_of(effect.choice, effect.parts), limit_ms))
        except ChildFailure as error:
            return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, message=f"the assignor {effect.choice.name}: {error}")

    def _end_idle(self) -> None:
        self._idle_timer = None
        self._is_busy = True
        self._node.offload(self._worker.close, self._go_on)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def close(self) -> None:
        """The node stops. A computation under way ends without an answer, which nobody waits for any more."""
        self._waiting.clear()
        self._stop_idle_timer()
        self._worker.close()
