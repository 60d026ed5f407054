"""Rewrites the addresses of nodes in responses, so that a client keeps using a proxy.

Clients learn the addresses of nodes from responses and connect to them. The schemas say where addresses are: in a
struct with a `Host` and a `Port` beside the id of a node, in the struct itself or in the one around it (the listeners
of a quorum voter). Other addresses have no node id (a Streams application's endpoint, a client's host) and stay.

    changed = rewrite_response(response, version, lambda host, port, node_id: ("localhost", 9000 + node_id))
    sent = rewrite_frame(exchange.response, mapping)             # the same for a message of ottla.explain.exchanges
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ottla import wire
from ottla.explain.exchanges import Message
from ottla.wire import frames
from ottla.wire.compile import message_shape
from ottla.wire.index import MESSAGES
from ottla.wire.shape import FieldShape, Struct

__all__ = ["Mapping", "has_addresses", "rewrite_frame", "rewrite_response"]

Mapping = Callable[[str, int, int], tuple[str, int]]
"""`mapping(host, port, node_id)` returns the host and port that the client gets."""


class _Step(NamedTuple):
    """A field that holds addresses, itself or in structs below it."""

    attr: str
    is_array: bool
    plan: _Plan


class _Plan(NamedTuple):
    """How to rewrite a struct. `node_attr` is the field with the node's id; None if the enclosing struct has it."""

    is_address: bool
    node_attr: str | None
    steps: tuple[_Step, ...]

    @property
    def is_empty(self) -> bool:
        return not self.is_address and not self.steps


def has_addresses(name: str, version: int) -> bool:
    """Whether the message has addresses of nodes in this version."""
    entry = MESSAGES.get(name)
    if entry is None or entry.kind != "response" or not entry.low <= version <= entry.high:
        return False
    return not _plan_of(name, version).is_empty


def rewrite_response(response: Any, version: int, mapping: Mapping) -> Any:
    """The response with the mapping applied to every node's address; the same object if nothing changed."""
    name = type(response).__name__
    if not has_addresses(name, version):
        return response
    return _rewrite(response, _plan_of(name, version), mapping, None)


def rewrite_frame(message: Message, mapping: Mapping) -> bytes:
    """The whole frame of a response, with its size, as the client gets it.

    A frame that cannot be decoded or has no address is returned unchanged.
    """
    data = message.frame.data
    if message.body is None:
        return frames.frame(data)
    changed = rewrite_response(message.body, message.version, mapping)
    if changed is message.body:
        return frames.frame(data)
    return frames.frame(data[: message.body_start], wire.encode(changed, message.version))


@cache
def _plan_of(name: str, version: int) -> _Plan:
    return _plan(message_shape(name, version), inherits_node=False)


def _plan(shape: Struct, *, inherits_node: bool) -> _Plan:
    members = {member.name: member for member in (*shape.plain, *shape.tagged)}
    node_attr = next((member.attr for member in members.values() if _is_node_id(member)), None)
    knows_node = inherits_node or node_attr is not None
    is_address = "Host" in members and "Port" in members and knows_node
    steps = []
    for member in members.values():
        is_array = member.type.kind == "array"
        inner = member.type.element if is_array else member.type
        if inner is not None and inner.struct is not None:
            plan = _plan(inner.struct, inherits_node=knows_node)
            if not plan.is_empty:
                steps.append(_Step(member.attr, is_array, plan))
    return _Plan(is_address, node_attr, tuple(steps))


def _is_node_id(member: FieldShape) -> bool:
    return member.field.entity == "brokerId" and member.type.kind == "int32"


def _rewrite(value: Any, plan: _Plan, mapping: Mapping, node_id: int | None) -> Any:
    if plan.node_attr is not None:
        node_id = getattr(value, plan.node_attr)
    changes: dict[str, Any] = {}
    for step in plan.steps:
        held = getattr(value, step.attr)
        changed = _rewrite_held(held, step, mapping, node_id)
        if changed is not held:
            changes[step.attr] = changed
    if plan.is_address and value.host:  # "" means that the node is unknown
        assert node_id is not None
        host, port = mapping(value.host, value.port, node_id)
        if (host, port) != (value.host, value.port):
            changes |= {"host": host, "port": port}
    if not changes:
        return value
    from msgspec.structs import replace

    return replace(value, **changes)


def _rewrite_held(held: Any, step: _Step, mapping: Mapping, node_id: int | None) -> Any:
    if held is None:
        return None
    if not step.is_array:
        return _rewrite(held, step.plan, mapping, node_id)
    elements = tuple(_rewrite(element, step.plan, mapping, node_id) for element in held)
    is_same = all(new is old for new, old in zip(elements, held, strict=True))
    return held if is_same else elements
