"""Opens bytes fields, whose content Kafka's brokers do not read.

=======================================  ==============================================================================
field                                    content
=======================================  ==============================================================================
JoinGroup, DescribeGroups metadata       ConsumerProtocolSubscription behind its version; Streams' own data inside it
SyncGroup, DescribeGroups assignment     ConsumerProtocolAssignment behind its version
GroupMetadataValue of __consumer_offsets both of these
Envelope                                 a whole request or response without its size, and the principal who sent it
=======================================  ==============================================================================

A field stays closed if the bytes are something else, such as another group protocol than the consumer's. The content of
an Envelope may be secret, so it is withheld if it cannot be opened.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from ottla.explain.tree import NOTHING, Node
from ottla.wire import frames
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES

__all__ = ["OPENINGS", "Grow", "Opening", "open_fields"]

_INT16 = Struct(">h")
_INT32 = Struct(">i")

Grow = Callable[[str, int, bytes, int], Node | None]
"""`grow(name, version, data, offset)`: the tree of a message, opened and redacted; None if the bytes are not one."""


Trail = tuple[Node, ...]
"""The structs around a node, innermost last."""


class Opening(NamedTuple):
    """A field and how it is opened."""

    path: str
    how: Callable[[Node, Trail, Grow], None]


def open_fields(message: str, root: Node, grow: Grow) -> None:
    """Open the fields of a message that hold another message."""
    for opening in OPENINGS.get(message, ()):
        for node, trail in list(root.find(opening.path)):
            if isinstance(node.value, bytes):
                opening.how(node, trail, grow)


# --- the consumer's protocol ------------------------------------------------------------------------------------------


def _open_subscription(node: Node, trail: Trail, grow: Grow) -> None:
    if _said(trail, "ProtocolType") in (None, "", "consumer"):
        opened = _open_versioned("ConsumerProtocolSubscription", node, grow)
        if opened is not None and _said(trail, "Name", "ProtocolName", "ProtocolData", "Protocol") in (None, "stream"):
            _open_streams_data(opened, grow)


def _open_assignment(node: Node, trail: Trail, grow: Grow) -> None:
    if _said(trail, "ProtocolType") in (None, "", "consumer"):
        _open_versioned("ConsumerProtocolAssignment", node, grow)


def _said(trail: Trail, *names: str) -> object:
    """The value of the nearest field with one of these names; None if there is none."""
    for struct in reversed(trail):
        for name in names:
            # In the records of __consumer_offsets, field names begin in lower case.
            node = struct.child(name) or struct.child(name[0].lower() + name[1:])
            if node is not None:
                return node.value
    return None


def _open_versioned(name: str, node: Node, grow: Grow) -> Node | None:
    """A message after its int16 version. An unknown newer version is read as our newest."""
    assert isinstance(node.value, bytes)
    if len(node.value) < _INT16.size:
        return None
    (version,) = _INT16.unpack_from(node.value)
    if not 0 <= version <= MESSAGES[name].high:
        return None
    at = node.end - len(node.value)
    opened = grow(name, version, node.value[_INT16.size :], at + _INT16.size)
    if opened is None:
        return None
    number = Node("Version", "int16", at, at + _INT16.size, value=version)
    node.children = [number, *opened.children]
    node.holds = f"{name} v{version}"
    node.value = NOTHING
    return node


def _open_streams_data(subscription: Node, grow: Grow) -> None:
    data = subscription.child("UserData")
    if data is None or not isinstance(data.value, bytes) or len(data.value) < _INT32.size:
        return
    name = "SubscriptionInfoData"
    (version,) = _INT32.unpack_from(data.value)
    if MESSAGES[name].low <= version <= MESSAGES[name].high:
        opened = grow(name, version, data.value, data.end - len(data.value))
        if opened is not None:
            data.children, data.value, data.holds = opened.children, NOTHING, f"{name} v{version}"


# --- envelopes --------------------------------------------------------------------------------------------------------


def _open_request(node: Node, trail: Trail, grow: Grow) -> None:
    data = node.value
    assert isinstance(data, bytes)
    at = node.end - len(data)
    try:
        header, body_start = frames.read_request_header(data)
        name = f"{frames.api_names()[header.request_api_key]}Request"
        top = grow(
            "RequestHeader",
            frames.request_header_version(header.request_api_key, header.request_api_version),
            data[:body_start],
            at,
        )
        body = grow(name, header.request_api_version, data[body_start:], at + body_start)
    except WireError:
        top = body = None
    if top is None or body is None:
        node.withhold()
        return
    top.name = "Header"
    node.children, node.value = [top, body], NOTHING
    node.holds = f"{name} v{header.request_api_version}"


def _withhold_response(node: Node, trail: Trail, grow: Grow) -> None:
    """Only the request tells which response it is, and that of CreateDelegationToken holds a secret."""
    node.withhold()


def _open_principal(node: Node, trail: Trail, grow: Grow) -> None:
    _open_versioned("DefaultPrincipalData", node, grow)


def _show_address(node: Node, trail: Trail, grow: Grow) -> None:
    from ipaddress import ip_address

    assert isinstance(node.value, bytes)
    if len(node.value) in (4, 16):
        node.note = str(ip_address(node.value))


OPENINGS: dict[str, tuple[Opening, ...]] = {
    "JoinGroupRequest": (Opening("Protocols[].Metadata", _open_subscription),),
    "JoinGroupResponse": (Opening("Members[].Metadata", _open_subscription),),
    "SyncGroupRequest": (Opening("Assignments[].Assignment", _open_assignment),),
    "SyncGroupResponse": (Opening("Assignment", _open_assignment),),
    "DescribeGroupsResponse": (
        Opening("Groups[].Members[].MemberMetadata", _open_subscription),
        Opening("Groups[].Members[].MemberAssignment", _open_assignment),
    ),
    "GroupMetadataValue": (
        Opening("members[].subscription", _open_subscription),
        Opening("members[].assignment", _open_assignment),
    ),
    "ConsumerGroupMemberMetadataValue": (
        Opening("ClassicMemberMetadata.SupportedProtocols[].Metadata", _open_subscription),
    ),
    "EnvelopeRequest": (
        Opening("RequestData", _open_request),
        Opening("RequestPrincipal", _open_principal),
        Opening("ClientHostAddress", _show_address),
    ),
    "EnvelopeResponse": (Opening("ResponseData", _withhold_response),),
}
