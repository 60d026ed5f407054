"""Requests and their answers as lines for people: who asked what, about which topics, and what became of it.

    127.0.0.1:52114 rdkafka Produce v10 orders[0,2] -> ok 62 B 0 ms
    127.0.0.1:52120 console Metadata v13 nowhere -> UNKNOWN_TOPIC_OR_PARTITION 88 B 1 ms

The words come from a walk through the messages by the names of their fields, which Kafka uses everywhere alike.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from ottla.broker.loop.clock import Clock
from ottla.broker.network.dispatch import Api
from ottla.broker.network.request import Request
from ottla.wire.errors import ErrorCode

__all__ = ["RequestLog", "described", "outcome"]

log = logging.getLogger("ottla.requests")

_NAMES_MAX: Final = 3
_DEPTH_MAX: Final = 6
_TOPIC_FIELDS: Final = ("name", "topic", "topic_name", "topic_id")
_PARTITION_FIELDS: Final = ("partition_index", "partition", "index", "partition_id")
_SUBJECT_FIELDS: Final = ("group_id", "transactional_id", "resource_name")
_CODES: Final = {int(code): code.name for code in ErrorCode}


class RequestLog:
    """Writes a line for each answer."""

    def __init__(self, clock: Clock, name_of: Callable[[bytes], str | None]) -> None:
        """`name_of` gives the name of the topic with an id, if there is one."""
        self._clock = clock
        self._name_of = name_of

    def answered(self, request: Request, api: Api, answer: Any, size_bytes: int) -> None:  # noqa: ANN401
        peer = request.connection.peer
        log.info(
            "%s:%d %s %s v%d%s -> %s %d B %d ms",
            peer.host,
            peer.port,
            request.client_id or "-",
            api.name,
            request.version,
            "".join(f" {word}" for word in described(request.body, self._name_of)),
            outcome(answer),
            size_bytes,
            self._clock.monotonic_ms() - request.received_at_ms,
        )


def described(body: object, name_of: Callable[[bytes], str | None]) -> list[str]:
    """What a request is about, in a few words."""
    words: list[str] = []
    topics: dict[str, list[int]] = {}
    for message in _messages(body):
        for field in _SUBJECT_FIELDS:
            value = getattr(message, field, None)
            if value:
                words.append(str(value))
        name = _topic_name(message, name_of)
        if name:
            topics.setdefault(name, []).extend(_partition_numbers(message))
    words += [_with_partitions(name, numbers) for name, numbers in list(topics.items())[:_NAMES_MAX]]
    if len(topics) > _NAMES_MAX:
        words.append(f"and {len(topics) - _NAMES_MAX} more")
    return words


def outcome(answer: object) -> str:
    """The errors in an answer, or ok."""
    if answer is None:
        return "no response expected"
    codes = dict.fromkeys(
        getattr(message, field)
        for message in _messages(answer)
        for field in message.__struct_fields__
        if field.endswith("error_code") and getattr(message, field)
    )
    return ",".join(_CODES.get(code, str(code)) for code in codes) or "ok"


def _messages(value: object, depth: int = 0) -> Iterator[msgspec.Struct]:
    """A message and all messages in it."""
    if isinstance(value, msgspec.Struct):
        yield value
        if depth < _DEPTH_MAX:
            for field in value.__struct_fields__:
                yield from _messages(getattr(value, field), depth + 1)
    elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
        for each in value:
            yield from _messages(each, depth)


def _topic_name(message: msgspec.Struct, name_of: Callable[[bytes], str | None]) -> str:
    kind = type(message).__name__
    if "Topic" not in kind or kind.endswith(("Config", "Request")):
        return ""
    for field in _TOPIC_FIELDS:
        value = getattr(message, field, None)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, bytes) and any(value):
            from ottla.wire import uuid_text

            return name_of(value) or uuid_text(value)
    return ""


def _partition_numbers(message: msgspec.Struct) -> list[int]:
    numbers = []
    for field in message.__struct_fields__:
        entries = getattr(message, field)
        for entry in entries if isinstance(entries, tuple) else ():
            if isinstance(entry, int) and "partition" in field:
                numbers.append(entry)
            elif isinstance(entry, msgspec.Struct):
                numbers += [
                    getattr(entry, each) for each in _PARTITION_FIELDS if isinstance(getattr(entry, each, None), int)
                ]
    return numbers


def _with_partitions(name: str, numbers: list[int]) -> str:
    if not numbers:
        return name
    shown = ",".join(map(str, numbers[:_NAMES_MAX])) + (",…" if len(numbers) > _NAMES_MAX else "")
    return f"{name}[{shown}]"
