"""The controller channel: the one way from this node's broker to the active controller.

A reply is given out when this node has seen what the request has changed: whoever asked finds it in the image. A
request that no controller takes, or whose controller resigns before its records are committed, waits for the next one;
it is refused when its time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ottla.core.metadata.context import Authorize, allow_all, unlimited
from ottla.core.metadata.controller import refuse
from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.controller.active_controller import ActiveController
    from ottla.broker.controller.publisher import MetadataPublisher

__all__ = ["ControllerChannel"]

WAIT_MAX_MS: Final = 30_000
"""How long a request without a time of its own waits for a controller."""


class ControllerChannel:
    """Sends requests to the controller."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, controller: ActiveController, publisher: MetadataPublisher
    ) -> None:
        self._loop = loop
        self._controller = controller
        self._publisher = publisher
        self._waiting: dict[Callable[[], None], asyncio.TimerHandle] = {}
        """How to send each request that waits for a controller, and the timer that ends the wait."""

    def send(
        self,
        request: object,
        api_version: int,
        done: Callable[[Any], None],
        *,
        authorize: Authorize = allow_all,
        charge: Callable[[int], bool] = unlimited,
    ) -> None:
        """Send a request; `done` gets the reply, when this node's image has what it speaks of.

        `authorize` and `charge` are asked in the name of the client, as in `ottla.core.metadata.context`.
        """
        until = self._loop.time() + getattr(request, "timeout_ms", WAIT_MAX_MS) / 1000

        def submit() -> None:
            self._controller.submit(request, api_version, replied, authorize=authorize, charge=charge)

        def replied(reply: object | None, end_offset: int) -> None:
            if reply is None:
                refuse_it = partial(done, refuse(request, _NO_CONTROLLER))
                self._waiting[submit] = self._loop.call_at(until, partial(self._give_up, submit, refuse_it))
            else:
                self._publisher.when_at(end_offset, partial(done, reply))

        submit()

    async def call(self, request: object, api_version: int) -> Any:  # noqa: ANN401 - the response to any request
        """Send a request of the node itself, and wait for the reply."""
        reply: asyncio.Future[Any] = self._loop.create_future()
        self.send(request, api_version, lambda message: None if reply.done() else reply.set_result(message))
        return await reply

    def controller_changed(self) -> None:
        """There is a controller: send it what waits for one."""
        waiting, self._waiting = self._waiting, {}
        for submit, timer in waiting.items():
            timer.cancel()
            submit()

    def close(self) -> None:
        """Drop what waits."""
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def _give_up(self, submit: Callable[[], None], refuse_it: Callable[[], None]) -> None:
        del self._waiting[submit]
        refuse_it()


_NO_CONTROLLER: Final = Reject(ErrorCode.REQUEST_TIMED_OUT, "The cluster has no active controller.")
