"""The outputs of a shard: responses, errors and effects, on their way to connections and performers.

A response that is ready while the handler still runs is returned by it. A response that comes later would make the
connection go on with its next request in the middle of the shard's work, so it is kept until the end of the turn
(`UnitOfWork`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.coordinators.shard import Shard
from ottla.broker.network.request import DelayedResponse, Request
from ottla.core.coordinator.contract import Outcome
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.replicas.unit_of_work import UnitOfWork

__all__ = ["CoordinatorRequest", "RuntimeEdge"]

log = logging.getLogger(__name__)

Refuse = Callable[[Any, ErrorCode, str | None], Any]
"""Request, code, message -> the answer that says so."""
Perform = Callable[[Any, Callable[[Outcome], None]], None]


class CoordinatorRequest(DelayedResponse):
    """A request to a coordinator, and its response. Shards know it as a token."""

    __slots__ = ("_refuse", "request")

    def __init__(self, request: Request | None, refuse: Refuse) -> None:
        self.deliver = self.message = self.on_cancel = None
        self.is_complete = False
        self.request = request
        """On whose behalf; None for the node itself. For those who perform effects."""
        self._refuse = refuse

    def refusal(self, code: ErrorCode, message: str | None) -> Any:  # noqa: ANN401
        """The response with an error."""
        return self._refuse(self.request, code, message)


class RuntimeEdge:
    """Takes the outputs of all shards of a runtime."""

    def __init__(self, runtime: Runtime, unit_of_work: UnitOfWork) -> None:
        self._runtime = runtime
        self._unit_of_work = unit_of_work
        self.monotonic_ms = unit_of_work.clock.monotonic_ms
        self.wall_ms = unit_of_work.clock.wall_ms
        self.performers: dict[type, Perform] = {}

    def reply(self, token: CoordinatorRequest | None, message: object) -> None:
        if token is None:
            return  # nobody has asked: the core itself wanted something
        if token.deliver is None:
            token.message, token.is_complete = message, True
        else:
            self._unit_of_work.deliver(token, message)

    def refuse(self, token: CoordinatorRequest | None, code: ErrorCode, message: str | None) -> None:
        if token is not None:
            self.reply(token, token.refusal(code, message))

    def perform(self, effect: object, done: Callable[[Outcome], None]) -> None:
        performer = self.performers.get(type(effect))
        if performer is None:
            log.error("no handler for %s", type(effect).__name__)
            done(Outcome(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        try:
            performer(effect, done)
        except Exception:
            log.exception("%s failed", type(effect).__name__)
            done(Outcome(ErrorCode.UNKNOWN_SERVER_ERROR))

    def unflushed(self, shard: Shard) -> None:
        self._unit_of_work.unflushed(shard)

    def due_at(self, shard: Shard, at_ms: int) -> None:
        self._unit_of_work.due_at(shard, at_ms)

    def lost(self, shard: Shard, error: Exception) -> None:
        self._runtime.lost(shard, error)
