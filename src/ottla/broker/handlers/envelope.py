"""Envelope (58): a request that a broker passes on, with the principal and the address of its client.

Version 0, on controller listeners only. The request is handled as if the client had sent it. A principal, address or
request that cannot be read, and an API that brokers do not pass on, are errors of the envelope; so is a controller that
is not active, so that the broker looks for another one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.controller.forwarding import FORWARDABLE, Sender, error_codes, read_sender
from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import ClientConnection, Close, CloseCause, DelayedResponse, Peer, Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import SIZE_BYTES
from ottla.wire.reject import Reject
from ottla.wire.types.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Forwarded
    from ottla.broker.network.dispatch import Api, Dispatch
    from ottla.broker.network.repeated_heartbeat import RepeatedHeartbeat

API_KEY: Final = 58
VERSIONS: Final = (0, 0)


class ForwardedConnection:
    """The connection of a client to the broker that has passed its request on."""

    offered_apis = FORWARDABLE
    client_software = None
    repeated_heartbeat: RepeatedHeartbeat | None = None
    sasl = None

    def __init__(self, broker: ClientConnection, sender: Sender) -> None:
        self._broker = broker
        self.peer = Peer(sender.host, 0, broker.peer.listener)
        self.principal = sender.principal
        self.is_token_login = sender.is_token_login
        self.client_id = ""

    @property
    def is_closed(self) -> bool:
        return self._broker.is_closed

    def mute(self, pause_ms: int) -> None:
        """The broker does that, when it finds the pause in the answer."""

    def close(self, reason: str | Close) -> None:
        """It is not ours to close."""


def handle(node: Forwarded, request: Request) -> DelayedResponse:
    check_cluster(node, request, Operation.CLUSTER_ACTION)
    envelope: EnvelopeRequest = request.body
    client = ForwardedConnection(request.connection, read_sender(envelope))
    dispatch = node.dispatch
    later = DelayedResponse()
    try:
        inner, api = dispatch.read(client, bytes(envelope.request_data), request.received_at_ms)
        if dispatch.meter is not None:
            dispatch.meter.begin(inner, len(envelope.request_data), node.clock.precise_ns())
        answer = dispatch.call(api, inner)
    except Close as close:
        unknown = ErrorCode.INVALID_REQUEST if close.cause is CloseCause.API_NOT_OFFERED else None
        raise Reject(unknown or ErrorCode.UNSUPPORTED_VERSION, str(close)) from None
    finish = partial(_finish, dispatch, api, inner, later)
    if isinstance(answer, DelayedResponse):
        later.on_cancel = answer.cancel
        answer.deliver_to(finish)
    else:
        finish(answer)
    return later


def _finish(dispatch: Dispatch, api: Api, inner: Request, later: DelayedResponse, answer: object) -> None:
    if ErrorCode.NOT_CONTROLLER in error_codes(answer):
        later.complete(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER))
    else:
        (frame,) = dispatch.write(api, inner, answer)
        assert isinstance(frame, bytes)
        later.complete(EnvelopeResponse(response_data=frame[SIZE_BYTES:]))


def refuse(request: Request, code: int, message: str | None) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=code)
