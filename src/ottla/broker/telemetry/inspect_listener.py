"""The inspect listener: state of a node that Kafka's protocol cannot tell, as JSON over HTTP.

    /inspect/v1/share/{group}    the records of a share group that are in flight on this node
    /inspect/v1/access           failed logins by user and address, refused requests by principal and API
    /inspect/v1/client-metrics   the clients that push their metrics, what they are asked for and what they have sent
    /inspect/v1/traffic          requests and responses as they pass, line by line (`traffic_page`)

It is off unless `ottla.inspect.listeners` names an address. That must be a loopback address, since whoever can connect
may read, unless `ottla.web.security.listener.name` names a listener with TLS and users.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote

from ottla.broker.network.web_server import Find, Page, Stream, Visit, is_loopback
from ottla.core.metadata.config_defs import ConfigError

if TYPE_CHECKING:
    from ottla.broker.loop.clock import Clock
    from ottla.broker.share import ShareNode
    from ottla.broker.telemetry.clients.telemetry import Telemetry
    from ottla.broker.telemetry.traffic_page import TrafficPage
    from ottla.core.metadata.image import MetadataImage

__all__ = ["SETTING", "InspectPorts", "inspect_address", "inspect_page"]

SETTING: Final = "ottla.inspect.listeners"
_ADDRESS: Final = re.compile(r"(https?)://(\[[0-9A-Fa-f:]+\]|[^:/\[\]]+):(\d{1,5})/?")
_SHARE: Final = re.compile(r"/inspect/v1/share/([^/]+)")
_ACCESS: Final = "/inspect/v1/access"
_CLIENT_METRICS: Final = "/inspect/v1/client-metrics"
_TRAFFIC: Final = "/inspect/v1/traffic"
_PORT_MAX: Final = 65_535


class InspectPorts(Protocol):
    """What the inspect listener shows of a node."""

    is_serving: bool
    clock: Clock
    image: MetadataImage

    @property
    def node_id(self) -> int: ...
    @property
    def share(self) -> ShareNode: ...
    @property
    def telemetry(self) -> Telemetry: ...
    @property
    def traffic(self) -> TrafficPage: ...
    def access_view(self) -> dict[str, object]: ...


def inspect_address(text: str, *, has_tls: bool = False, has_login: bool = False) -> tuple[str, int]:
    """Host and port, from the setting. Raises ConfigError."""
    matched = _ADDRESS.fullmatch(text)
    scheme = "https" if has_tls else "http"
    if matched is None or matched[1] != scheme or int(matched[3]) > _PORT_MAX:
        raise ConfigError(f"{SETTING}: {text!r} is not an address such as {scheme}://127.0.0.1:9093")
    host = matched[2].strip("[]")
    if not (has_tls and has_login) and not is_loopback(host):
        raise ConfigError(
            f"{SETTING}: {host} is not an address of this machine alone, such as 127.0.0.1; "
            f"for others set ottla.web.security.listener.name to a SASL_SSL listener"
        )
    return host, int(matched[3])


def inspect_page(node: InspectPorts) -> Find:
    def find(visit: Visit) -> Page | Stream | None:
        if visit.path == _TRAFFIC and node.is_serving:
            return node.traffic.find(visit)
        view = _view(node, visit.path) if node.is_serving else None
        return None if view is None else Page("application/json", json.dumps(view, ensure_ascii=False) + "\n")

    return find


def _view(node: InspectPorts, path: str) -> dict[str, object] | None:
    if path == _CLIENT_METRICS:
        return node.telemetry.view()
    if path == _ACCESS:
        return node.access_view()
    matched = _SHARE.fullmatch(path)
    if matched is None:
        return None
    from ottla.broker.share.share_window import share_window

    group_id = unquote(matched[1])
    partitions = node.share.partitions_of(group_id)
    return share_window(group_id, partitions, node_id=node.node_id, image=node.image, clock=node.clock)
