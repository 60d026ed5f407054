"""Builds messages from short-hand: each text, number or call is converted to the type of its field."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from ottla.wire.keyed import encode_framed
from simulation.shorthand import Call, ShorthandError

__all__ = ["Builder", "field_name"]

Resolve = Callable[[str], Any]
"""Replaces a text that names something, such as an id, by its value."""


class Builder:
    """Builds values. `resolve` is called for every text; `topic_id` returns the id of a topic."""

    def __init__(self, resolve: Resolve, topic_id: Callable[[str], bytes]) -> None:
        self._resolve = resolve
        self._topic_id = topic_id

    def message(self, target: type, fields: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """An instance of a struct or named tuple."""
        hints = _hints(target)
        given = {field_name(target, name): value for name, value in fields.items()}
        return target(**{name: self.value(value, hints[name]) for name, value in given.items()})

    def value(self, given: Any, target: Any) -> Any:  # noqa: ANN401
        if isinstance(given, str):
            given = self._resolve(given)
        if isinstance(given, Call):
            return self._call(given)
        target = _without_none(target)
        if given is None:
            return None
        if isinstance(given, dict) and _is_message(target):
            return self.message(target, given)
        if _is_message(target):
            return self.message(target, {next(iter(_hints(target))): given})
        return self._plain(given, target)

    def _plain(self, given: Any, target: Any) -> Any:  # noqa: ANN401
        origin = get_origin(target)
        if origin in (tuple, list):
            return origin(self.value(each, get_args(target)[0]) for each in given)
        if target is bytes:
            text = str(given)
            return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()
        if target is str:
            return str(given)
        return given

    def _call(self, call: Call) -> Any:  # noqa: ANN401
        makers = {"subscription": self._subscription, "assignment": self._assignment, "id": self._id, "uuid": _uuid}
        if call.name not in makers:
            raise ShorthandError(f"there is no {call.name}(); there are {', '.join(makers)}")
        return makers[call.name](call)

    def _id(self, call: Call) -> bytes:
        return self._topic_id(str(call.positional[0]))

    def _subscription(self, call: Call) -> bytes:
        """subscription(t, u, owned={t: [0]}, generation=3, rack=r, user_data=x, version=3)"""
        version = call.named.get("version", 3)
        owned = _topic_partitions("ConsumerProtocolSubscription", call.named.get("owned", {}))
        message = _class("ConsumerProtocolSubscription")(
            topics=tuple(call.positional),
            owned_partitions=owned if version >= 1 else (),
            generation_id=call.named.get("generation", -1),
            rack_id=call.named.get("rack"),
            user_data=_bytes_or_none(call.named.get("user_data")),
        )
        return encode_framed(message, version)

    def _assignment(self, call: Call) -> bytes:
        """assignment(t=[0, 1], u=[0])"""
        assigned = _topic_partitions("ConsumerProtocolAssignment", call.named)
        return encode_framed(_class("ConsumerProtocolAssignment")(assigned_partitions=assigned), 3)


def _uuid(call: Call) -> bytes:
    """uuid(7): an id that belongs to no topic."""
    return int(call.positional[0]).to_bytes(16, "big")


def _bytes_or_none(text: str | None) -> bytes | None:
    return None if text is None else str(text).encode()


def _topic_partitions(name: str, partitions: Mapping[str, list[int]]) -> tuple[Any, ...]:
    entry = _class(name).TopicPartition
    return tuple(entry(topic=topic, partitions=tuple(each)) for topic, each in partitions.items())


def _class(name: str) -> Any:  # noqa: ANN401
    from ottla.wire.compile import classes_of

    return classes_of(name)(name)


@cache
def _hints(target: type) -> dict[str, Any]:
    return get_type_hints(target)


def field_name(target: type, name: str) -> str:
    """The field of a name, in our spelling or in Kafka's, in any case."""
    wanted = _folded(name)
    for each in _hints(target):
        if _folded(each) == wanted:
            return each
    known = ", ".join(each for each in _hints(target) if each not in _HIDDEN)
    raise ShorthandError(f"{target.__name__} has no field {name!r}; it has {known}")


_HIDDEN: Final = frozenset({"unknown_tags"})


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _without_none(target: Any) -> Any:  # noqa: ANN401
    if get_origin(target) in (types.UnionType, Union):
        return next(each for each in get_args(target) if each is not type(None))
    return target


def _is_message(target: Any) -> bool:  # noqa: ANN401
    return isinstance(target, type) and (issubclass(target, msgspec.Struct) or hasattr(target, "_fields"))
