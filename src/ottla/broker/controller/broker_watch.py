"""Notices that the process of a broker has died, long before its session runs out.

A broker is suspected when the connection that its heartbeats came on is closed, and when this node becomes the active
controller and has not heard of the broker yet. A suspect is asked for its API versions at each of its listeners, until
it is heard of or its session has ended:

====================================  ==============================================================================
its listeners                         what follows
====================================  ==============================================================================
all refuse, twice, 200 ms apart       its process is dead, and it is fenced
all are silent, or some refuse        a new process that has its directories and listeners may take its place
one answers, or cannot be reached     nothing; it is asked again after a second
====================================  ==============================================================================

Only a refusal says that a process is dead: one that is stopped or starved is silent, and its session goes on. A process
that starts is silent as well, since it listens before it serves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.broker.peers.peer_connection import Address, PeerConnection, PeerError, PeerEvent
from ottla.wire.types.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from ottla.broker.controller.active_controller import ActiveController
    from ottla.core.metadata.cluster_image import BrokerImage

__all__ = ["BrokerWatch"]

log = logging.getLogger(__name__)

REFUSALS: Final = 2
REFUSED_AGAIN_SECONDS: Final = 0.2
ANSWER_SECONDS: Final = 0.5
AGAIN_SECONDS: Final = 1.0
_API_VERSIONS: Final = (0, 3)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """What is needed of an event loop."""

    def call_later(self, delay: float, callback: Callable[[], Any]) -> Timer: ...


class Connect(Protocol):
    def __call__(
        self, address: Address, security_protocol: int, told: Callable[[PeerEvent], None], timeout_s: float
    ) -> PeerConnection: ...


class _Outcome(Enum):
    REFUSED = "connection refused"
    SILENT = "no response"
    OTHER = "other"


class _Suspect:
    """A broker that may be dead, and the listeners that have been asked."""

    def __init__(self, broker: BrokerImage) -> None:
        self.broker_id = broker.broker_id
        self.epoch = broker.epoch
        self.outcomes: dict[Address, _Outcome | None] = {}
        self.connections: list[PeerConnection] = []
        self.refusals = 0
        self.timer: Timer | None = None

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        for connection in self.connections:
            connection.close()
        self.connections.clear()


class BrokerWatch:
    """Suspects brokers and asks after them, while this node is the active controller."""

    def __init__(self, loop: Loop, controller: ActiveController, connect: Connect) -> None:
        self._loop = loop
        self._controller = controller
        self._connect = connect
        self._heard_on: dict[int, object] = {}
        """The connection of each broker's last heartbeat."""
        self._suspects: dict[int, _Suspect] = {}

    def begin(self, brokers: Iterable[BrokerImage]) -> None:
        """This node is the active controller now, and has heard of none of these brokers."""
        for broker in brokers:
            if not broker.fenced and broker.broker_id not in self._heard_on:
                self._suspect(broker)

    def heard(self, broker_id: int, epoch: int, connection: object) -> None:
        """A heartbeat has come. Those of a former process of the broker do not count."""
        broker = self._registered(broker_id)
        if broker is None or broker.epoch != epoch:
            return
        self._heard_on[broker_id] = connection
        suspect = self._suspects.pop(broker_id, None)
        if suspect is not None:
            suspect.end()

    def connection_closed(self, connection: object) -> None:
        for broker_id in [each for each, last in self._heard_on.items() if last is connection]:
            del self._heard_on[broker_id]
            broker = self._registered(broker_id)
            if broker is not None:
                self._suspect(broker)

    def end(self) -> None:
        """This node is not the active controller any more, or stops."""
        self._heard_on.clear()
        for suspect in self._suspects.values():
            suspect.end()
        self._suspects.clear()

    def _registered(self, broker_id: int) -> BrokerImage | None:
        image = self._controller.image
        return None if image is None else image.brokers.get(broker_id)

    # --- one suspect --------------------------------------------------------------------------------------------------

    def _suspect(self, broker: BrokerImage) -> None:
        suspect = self._suspects[broker.broker_id] = _Suspect(broker)
        self._ask(suspect)

    def _ask(self, suspect: _Suspect) -> None:
        suspect.end()
        broker = self._registered(suspect.broker_id)
        if broker is None or not self._controller.has_session(suspect.broker_id, suspect.epoch):
            self._suspects.pop(suspect.broker_id, None)
            return
        protocols = {Address(each.host, each.port): each.security_protocol for each in broker.endpoints}
        suspect.outcomes = dict.fromkeys(protocols)
        for address, protocol in protocols.items():
            connection = self._connect(address, protocol, partial(self._told, suspect, address), ANSWER_SECONDS)
            suspect.connections.append(connection)
            connection.send(ApiVersionsRequest("ottla", "1"), _API_VERSIONS, partial(self._answered, suspect, address))
        # What is never told, such as a connection that is not made in time, leaves the outcome open.
        suspect.timer = self._loop.call_later(2 * ANSWER_SECONDS, partial(self._judge, suspect))

    def _told(self, suspect: _Suspect, address: Address, event: PeerEvent) -> None:
        outcomes = {PeerEvent.REFUSED: _Outcome.REFUSED, PeerEvent.SILENT: _Outcome.SILENT}
        self._note(suspect, address, outcomes.get(event, _Outcome.OTHER))

    def _answered(self, suspect: _Suspect, address: Address, response: Any) -> None:  # noqa: ANN401
        if not isinstance(response, PeerError):
            self._note(suspect, address, _Outcome.OTHER)

    def _note(self, suspect: _Suspect, address: Address, outcome: _Outcome) -> None:
        if suspect.outcomes.get(address) is not None or self._suspects.get(suspect.broker_id) is not suspect:
            return
        suspect.outcomes[address] = outcome
        if None not in suspect.outcomes.values():
            if suspect.timer is not None:
                suspect.timer.cancel()
            suspect.timer = self._loop.call_later(0, partial(self._judge, suspect))

    def _judge(self, suspect: _Suspect) -> None:
        outcomes = set(suspect.outcomes.values())
        suspect.end()
        if outcomes == {_Outcome.REFUSED}:
            suspect.refusals += 1
            if suspect.refusals >= REFUSALS:
                log.warning("broker %d is dead: its port refuses connections", suspect.broker_id)
                del self._suspects[suspect.broker_id]
                self._controller.broker_ended(suspect.broker_id, suspect.epoch)
                return
            self._again(suspect, REFUSED_AGAIN_SECONDS)
            return
        suspect.refusals = 0
        if _Outcome.SILENT in outcomes and outcomes <= {_Outcome.REFUSED, _Outcome.SILENT}:
            self._controller.broker_silent(suspect.broker_id, suspect.epoch)
        self._again(suspect, AGAIN_SECONDS)

    def _again(self, suspect: _Suspect, seconds: float) -> None:
        suspect.timer = self._loop.call_later(seconds, partial(self._ask, suspect))
