"""Frames of the traffic as lines of JSON, in the form of `ottla proxy --json`, with what only the broker knows.

Secrets are withheld and records left out by the same code as there (`ottla.explain`). A message that is too large for
the time that this may take has no `body`; the line then says why.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla import wire
from ottla.broker.network.request import Encoded
from ottla.explain.exchanges import Exchange, Message
from ottla.explain.facts import Facts, TopicNames, exchange_facts
from ottla.explain.show_exchange import Label, fact_pieces, message_json, needs_care
from ottla.explain.stream import Frame as WireFrame

if TYPE_CHECKING:
    from ottla.broker.telemetry.traffic import Frame, Viewer

__all__ = ["TrafficText", "has_error"]

BODY_BYTES_MAX: Final = 32 * 1024
CAREFUL_BODY_BYTES_MAX: Final = 4 * 1024
"""Of messages that may hold secrets or records, whose bytes are looked at one by one. Both without the records."""
HEX_BYTES_MAX: Final = 2 * 1024
_NS: Final = 1_000


class TrafficText:
    """`topic_name` gives the name of the topic with an id, if there is one."""

    def __init__(self, node_id: int, topic_name: Callable[[bytes], str | None]) -> None:
        self._node_id = node_id
        self._topic_names = TopicNames(topic_name)

    def frame(self, frame: Frame) -> bytes:
        is_careful = needs_care(frame.name, frame.version)
        limit_bytes = CAREFUL_BODY_BYTES_MAX if is_careful else BODY_BYTES_MAX
        is_shown = frame.body is not None and frame.size_bytes - frame.record_bytes <= limit_bytes
        data = _body_bytes(frame) if is_shown else None
        message = _message(frame, data)
        peer = frame.peer
        label = Label(peer.port, f"{peer.host}:{peer.port}", peer.listener)
        line = message_json(message, label, self._topic_names, with_records=False)
        exchange = _alone(message)
        facts = exchange_facts(exchange, self._topic_names)
        line |= {
            "node": self._node_id,
            "at_us": frame.at_us,
            "principal": frame.principal,
            "groups": list(facts.groups),
            "topics": list(facts.topics),
            "errors": dict(facts.errors),
            "text": _words(exchange, facts),
            "record_bytes_left_out": frame.record_bytes,
        }
        if frame.took_us is not None:
            line["latency_ms"] = frame.took_us / 1000
        if frame.body is not None and not is_shown:
            line["body_left_out"] = f"larger than {limit_bytes // 1024} KiB"
        if not is_careful and data is not None and len(data) <= HEX_BYTES_MAX:
            line["body_hex"] = data.hex()
        return _line(line)

    def status(self, viewer: Viewer) -> bytes:
        return _line(
            {
                "kind": "status",
                "node": self._node_id,
                "seen_per_second": viewer.seen_per_second,
                "shown_per_second": viewer.shown_per_second,
                "one_in": viewer.one_in,
                "dropped": viewer.dropped,
            }
        )


def has_error(body: Any, name: str, version: int) -> bool:  # noqa: ANN401
    """Whether a response has an error code in it, at any level."""
    message = Message(name, version, 0, None, body, 0, WireFrame(b"", 0, 0))
    return bool(exchange_facts(_alone(message), TopicNames()).errors)


def _words(exchange: Exchange, facts: Facts) -> str:
    """What a message is about, without its errors."""
    pieces = fact_pieces(exchange, replace(facts, errors=Counter()))
    return "".join(piece.text for piece in pieces).strip()


def _body_bytes(frame: Frame) -> bytes:
    if isinstance(frame.body, Encoded):
        return frame.body.body
    return wire.encoder(frame.name, frame.version)(frame.body)


def _message(frame: Frame, data: bytes | None) -> Message:
    """The frame as the proxy would have read it, without a body if that is not shown."""
    body = None
    if data is not None:
        is_encoded = isinstance(frame.body, Encoded)
        body = wire.decoder(frame.name, frame.version)(data) if is_encoded else frame.body
    seen = WireFrame(data or b"", frame.size_bytes, frame.at_us * _NS)
    return Message(frame.name, frame.version, frame.correlation_id, frame.client_id or None, body, 0, seen)


def _alone(message: Message) -> Exchange:
    """One side of an exchange; of the other nothing is said."""
    is_request = message.name.endswith("Request")
    return Exchange(message if is_request else None, None if is_request else message, "answered")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
