"""The controller channel: the one way from this node's broker to the active controller, on this node or another.

A reply is given out when this node has seen what the request has changed: whoever asked finds it in the image. A
request that no controller takes, or whose controller is gone before its records are committed, is sent again, until its
time is up or its client is gone. A client's request goes to another node in an envelope; the node's own requests go as
they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.controller.active_controller import refuse
from ottla.core.metadata.context import unlimited
from ottla.core.metadata.fault import Reject
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from ottla.broker.controller.active_controller import ActiveController
    from ottla.broker.controller.publisher import MetadataPublisher
    from ottla.broker.controller.remote_controller import RemoteController
    from ottla.broker.network.authorization import Access
    from ottla.broker.network.request import Request

__all__ = ["SEARCH_MS", "ControllerChannel"]

WAIT_MAX_MS: Final = 30_000
"""How long a request waits for a controller, if nobody says."""
RETRY_SECONDS: Final = 0.1
SEARCH_MS: Final = 1_000
"""How long a controller is looked for to create a topic for a client, which is told then, and asks again."""


_NO_CONTROLLER: Final = Reject(ErrorCode.REQUEST_TIMED_OUT, "The cluster has no active controller.")
_NOT_CONTROLLER: Final = Reject(ErrorCode.NOT_CONTROLLER)


class _Attempt:
    """A request that is to be answered before a time on the loop's clock."""

    __slots__ = ("api_version", "client", "done", "request", "retried_until", "until")

    def __init__(
        self,
        request: object,
        api_version: int,
        done: Callable[[Any], None],
        client: Request | None,
        until: float,
        retried_until: float,
    ) -> None:
        self.request = request
        self.api_version = api_version
        self.done = done
        self.client = client
        self.until = until
        self.retried_until = retried_until
        """Until then it is sent again if there is no controller."""

    @property
    def is_abandoned(self) -> bool:
        """Whether its client is gone. He may have asked another node since, and for something else after that."""
        return self.client is not None and self.client.connection.is_closed


class ControllerChannel:
    """Sends requests to the controller."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        controller: ActiveController,
        remote: RemoteController,
        publisher: MetadataPublisher,
        access: Access,
    ) -> None:
        self._loop = loop
        self._controller = controller
        self._remote = remote
        self._publisher = publisher
        self._access = access
        self._waiting: dict[_Attempt, asyncio.TimerHandle] = {}

    def send(
        self,
        request: object,
        api_version: int,
        done: Callable[[Any], None],
        *,
        client: Request | None = None,
        timeout_ms: int = WAIT_MAX_MS,
        search_ms: int | None = None,
    ) -> None:
        """Send a request; `done` gets the reply, when this node's image has what it speaks of.

        `client` has sent it, or something that this request is needed for: his rights and quotas count. `timeout_ms` is
        for requests without a time of their own. A controller is looked for during `search_ms`, or all that time.
        """
        now = self._loop.time()
        until = now + getattr(request, "timeout_ms", timeout_ms) / 1000
        retried_until = until if search_ms is None else now + search_ms / 1000
        self._submit(_Attempt(request, api_version, done, client, until, retried_until))

    async def call(self, request: object, api_version: int) -> Any:  # noqa: ANN401 - the response to any request
        """Send a request of the node itself, and wait for the reply."""
        reply: asyncio.Future[Any] = self._loop.create_future()
        self.send(request, api_version, lambda message: None if reply.done() else reply.set_result(message))
        return await reply

    def serve(self, request: object, api_version: int, done: Callable[[Any], None], *, client: Request) -> None:
        """Answer a request that came to the controller's own listener: NOT_CONTROLLER if this node is not active."""

        def committed(reply: object | None, end_offset: int) -> None:
            if reply is None:
                done(refuse(request, _NOT_CONTROLLER))
            else:
                self._publisher.when_at(end_offset, partial(done, reply))

        self._controller.submit(request, api_version, committed, **self._rights(client))

    def controller_changed(self) -> None:
        """There is another controller: send it what waits for one, or for the answer of the former one."""
        if self._controller.is_active:
            self._remote.close()
        else:
            self._remote.controller_changed()
        waiting, self._waiting = self._waiting, {}
        for attempt, timer in waiting.items():
            timer.cancel()
            self._send_again(attempt)

    def close(self) -> None:
        """Drop what waits."""
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
        self._remote.close()

    # --- one request --------------------------------------------------------------------------------------------------

    def _submit(self, attempt: _Attempt) -> None:
        if self._controller.is_active:
            self._controller.submit(
                attempt.request, attempt.api_version, partial(self._committed, attempt), **self._rights(attempt.client)
            )
        else:
            self._remote.submit(
                attempt.request,
                attempt.api_version,
                partial(self._replied, attempt),
                client=attempt.client,
                timeout_s=attempt.until - self._loop.time(),
            )

    def _rights(self, client: Request | None) -> dict[str, Any]:
        """What the controller of this node asks in the name of a client."""
        if client is None:
            return {}

        def authorize(operation: Operation, resource_type: ResourceType, name: str) -> bool:
            return self._access.authorize(client, operation, resource_type, name)

        return {
            "principal": client.principal,
            "authorize": authorize,
            "charge": unlimited if client.charge is None else client.charge.take_mutations,
        }

    def _committed(self, attempt: _Attempt, reply: object | None, end_offset: int) -> None:
        """The controller of this node has replied."""
        if reply is None:
            self._try_later(attempt)
        else:
            self._publisher.when_at(end_offset, partial(attempt.done, reply))

    def _replied(self, attempt: _Attempt, reply: Any) -> None:  # noqa: ANN401
        """The controller of another node has replied."""
        if reply is None:
            self._try_later(attempt)
            return
        client = attempt.client
        if isinstance(reply, ErrorCode):
            if reply == ErrorCode.UNSUPPORTED_VERSION and client is not None:
                client.connection.close("the controller does not support this version of the request")
                return
            reply = refuse(attempt.request, Reject(ErrorCode.UNKNOWN_SERVER_ERROR))
        elif client is not None and (pause_ms := getattr(reply, "throttle_time_ms", None)):
            client.connection.mute(pause_ms)
        self._wait_for_topics(attempt, reply)

    def _wait_for_topics(self, attempt: _Attempt, reply: object) -> None:
        """Give the reply out when this node knows the topics that were created; at the latest when the time is up."""
        image, names = self._publisher.image, _created(attempt.request, reply)

        def finish() -> None:
            timer.cancel()
            self._publisher.forget(finish)
            attempt.done(reply)

        timer = self._loop.call_at(attempt.until, finish)
        self._publisher.when(lambda: all(image.topic(name) is not None for name in names), finish)

    def _try_later(self, attempt: _Attempt) -> None:
        again = min(self._loop.time() + RETRY_SECONDS, attempt.retried_until)
        self._waiting[attempt] = self._loop.call_at(again, partial(self._try_again, attempt))

    def _try_again(self, attempt: _Attempt) -> None:
        del self._waiting[attempt]
        self._send_again(attempt)

    def _send_again(self, attempt: _Attempt) -> None:
        if self._loop.time() < attempt.retried_until and not attempt.is_abandoned:
            self._submit(attempt)
        else:
            attempt.done(refuse(attempt.request, _NO_CONTROLLER))


def _created(request: object, reply: object) -> list[str]:
    """The topics that a request has created."""
    if not isinstance(reply, CreateTopicsResponse) or not isinstance(request, CreateTopicsRequest):
        return []
    return [] if request.validate_only else [topic.name for topic in reply.topics if not topic.error_code]
