"""`/inspect/v1/traffic`: the traffic of this node's clients as lines of JSON, while somebody reads them.

    curl -N 'http://127.0.0.1:9405/inspect/v1/traffic?client=worker-*&api=ShareFetch&errors=1'

It needs the setting `ottla.inspect.traffic.enable`, and ALTER on the cluster, which is looked at again each second. A
line is a frame, or the status of the stream: what was seen, how much of it is shown, what the reader was too slow for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import parse_qsl

from ottla.broker.network.request import Close, Peer, Request
from ottla.broker.network.web_server import Page, Stream, Visit
from ottla.broker.telemetry.audit_events import denial_fields
from ottla.broker.telemetry.traffic import VIEWERS_MAX, Traffic, Viewer, Wanted
from ottla.broker.telemetry.traffic_text import TrafficText, has_error
from ottla.explain.filters import UnknownApi, make_filters
from ottla.wire.access import ANONYMOUS, CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.loop.clock import Clock
    from ottla.broker.network.dispatch import Dispatch
    from ottla.broker.network.refused_batches import RefusedBatches
    from ottla.broker.network.repeated_heartbeat import RepeatedHeartbeat
    from ottla.broker.network.sasl import SaslLogin
    from ottla.core.metadata.image import MetadataImage

__all__ = ["TrafficPage", "TrafficPorts"]

log = logging.getLogger(__name__)

SETTING: Final = "ottla.inspect.traffic.enable"
_LINES: Final = "application/x-ndjson"
_PLAIN: Final = "text/plain; charset=utf-8"
_KEYS: Final = ("client", "api", "errors")
_NO_CORRELATION: Final = -1


class TrafficPorts(Protocol):
    """What the page needs of a node."""

    config: NodeConfig
    clock: Clock
    image: MetadataImage
    dispatch: Dispatch

    @property
    def node_id(self) -> int: ...
    def authorize(
        self, request: Request, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool: ...
    def tell_audit(self, event: str, fields: dict[str, object]) -> None: ...


class _Visitor:
    """Somebody who asks for a page, as an authorizer sees him."""

    offered_apis: Collection[int] = ()
    client_software: tuple[str, str] | None = None
    refused_batches: RefusedBatches | None = None
    repeated_heartbeat: RepeatedHeartbeat | None = None
    sasl: SaslLogin | None = None
    is_closed = False
    is_token_login = False
    client_id = ""

    def __init__(self, visit: Visit) -> None:
        self.peer = Peer(visit.host, 0, "inspect")
        self.principal = ANONYMOUS if visit.user is None else f"User:{visit.user}"

    def mute(self, pause_ms: int) -> None: ...
    def close(self, reason: str | Close) -> None: ...


class TrafficRequest:
    """What stands for the request where it is told of; its name is that of the API."""


class _BadQuery(Exception):
    """A query that cannot be understood; the text says why."""


class TrafficPage:
    def __init__(self, node: TrafficPorts) -> None:
        self._node = node
        self._traffic = Traffic(node.dispatch, node.clock, has_error)
        self._text = TrafficText(node.node_id, node.image.topic_name)

    def find(self, visit: Visit) -> Page | Stream:
        visitor = _Visitor(visit)
        request = self._request(visitor)
        if not self._may_watch(request):
            self._tell_denied(request)
            return _refused("403 Forbidden", f"needs ALTER on the cluster (you are {visitor.principal})")
        if not self._node.config[SETTING]:
            return _refused("403 Forbidden", f"needs {SETTING}=true on node {self._node.node_id}")
        if self._traffic.is_full:
            return _refused("503 Service Unavailable", f"{VIEWERS_MAX} others watch this node, and no more can")
        try:
            wanted = _wanted(visit.query)
        except _BadQuery as error:
            return _refused("400 Bad Request", str(error))
        return Stream(_LINES, lambda: self._begin(request, wanted))

    def _begin(self, request: Request, wanted: Wanted) -> Viewer:
        filters = {"client": wanted.filters.client_ids, "api": sorted(wanted.filters.apis)}
        said = {"filters": filters | {"errors": wanted.has_errors_only}}
        self._node.tell_audit("tap.started", {**_who(request), **said})
        log.info("%s watches the traffic from %s", request.principal, request.connection.peer.host)
        return self._traffic.watch(wanted, self._text.frame, self._status_of(request))

    def _status_of(self, request: Request) -> Callable[[Viewer], bytes | None]:
        def status(viewer: Viewer) -> bytes | None:
            return self._text.status(viewer) if self._may_watch(request) else None

        return status

    def _request(self, visitor: _Visitor) -> Request:
        now_ms = self._node.clock.monotonic_ms()
        return Request(visitor, -1, 0, _NO_CORRELATION, "", TrafficRequest(), now_ms)

    def _may_watch(self, request: Request) -> bool:
        return self._node.authorize(request, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)

    def _tell_denied(self, request: Request) -> None:
        for denial in request.denials:
            self._node.tell_audit("authz.denied", {**_who(request), **denial_fields(denial)})


def _who(request: Request) -> dict[str, object]:
    peer = request.connection.peer
    return {"principal": request.principal, "host": peer.host, "listener": peer.listener, "api": "Traffic"}


def _wanted(query: str) -> Wanted:
    given: dict[str, list[str]] = {key: [] for key in _KEYS}
    for key, text in parse_qsl(query, keep_blank_values=True):
        if key not in given:
            raise _BadQuery(f"there is no {key!r} here, only {', '.join(_KEYS)}")
        if text:
            given[key].append(text)
    if any(text not in ("0", "1") for text in given["errors"]):
        raise _BadQuery("errors is 0 or 1")
    try:
        filters = make_filters(given["api"], given["client"])
    except UnknownApi as error:
        raise _BadQuery(f"{error}; the nearest is {error.nearest}") from None
    return Wanted(filters, has_errors_only="1" in given["errors"])


def _refused(status: str, why: str) -> Page:
    return Page(_PLAIN, f"{why}\n", status)
