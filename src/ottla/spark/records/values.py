"""Turns decoded messages into values of a table's columns.

For each message and version, a function is made once. Fields that the version lacks are null or, on request, Kafka's
defaults. Secrets are null unless they are requested.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from ottla.spark.records.states import names_of
from ottla.spark.records.tables import consumer_message, decoded_column, name_column
from ottla.wire import WireError, uuid_text
from ottla.wire.compile import message_shape
from ottla.wire.keyed import decode_versioned
from ottla.wire.schemas import message_schema
from ottla.wire.shape import DefaultStruct, FieldShape, Struct, Type
from ottla.wire.text import Field, Message

__all__ = ["Convert", "ValueRules", "converter", "hide"]

Convert = Callable[[Any], Any]
_CONSUMER: Final = "consumer"
_SECRET_FIELDS: Final = {"UserScramCredentialRecord": frozenset(("Salt", "StoredKey", "ServerKey"))}
_SECRET_CONFIG: Final = re.compile(r"password|\.jaas\.|secret|keystore\.key|credential", re.IGNORECASE)


class ValueRules(NamedTuple):
    defaults: bool = False
    """Give absent fields Kafka's defaults."""
    secrets: bool = False
    """Show secrets."""


class _Context(NamedTuple):
    message: Message
    version: int
    rules: ValueRules
    is_consumer: bool


def converter(
    table_message: str, name: str, version: int, rules: ValueRules, columns: frozenset[str] | None = None
) -> Convert:
    """A function from a message of this name and version to the values of the columns of the table's message.

    With `columns`, it gives only those.
    """
    message = message_schema(table_message)
    shape = message_shape(name, version)

    def made(is_consumer: bool) -> Convert:
        return _struct(_Context(message, version, rules, is_consumer), message.fields, shape, columns)

    plain = made(False)
    if table_message == "ConfigRecord" and not rules.secrets:
        return lambda record: plain(_without_secret(record))
    if table_message != "GroupMetadataValue":
        return plain
    of_consumers = made(True)
    return lambda value: (of_consumers if value.protocol_type == _CONSUMER else plain)(value)


def hide(message: Any, json: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a message without secrets."""
    name = type(message).__name__
    for field in _SECRET_FIELDS.get(name, ()):
        json[field[0].lower() + field[1:]] = None
    if name == "ConfigRecord" and _SECRET_CONFIG.search(message.name):
        json["value"] = None
    return json


def _without_secret(record: Any) -> Any:
    if record.value is None or not _SECRET_CONFIG.search(record.name):
        return record
    return type(record)(record.resource_type, record.resource_name, record.name, None)


# --- making functions -------------------------------------------------------------------------------------------------
# One expression makes the tuple of a struct, `lambda it: (it.offset, text(it.topic_id), None)`: with millions of
# records, a call for each field would take most of the time.


def _struct(
    context: _Context, fields: tuple[Field, ...], shape: Struct, columns: frozenset[str] | None = None
) -> Convert:
    """A function from a struct to a tuple with one value for each column."""
    members = {member.name: member for member in (*shape.plain, *shape.tagged)}
    absent = {member.name: member for member in shape.absent}
    names: dict[str, Any] = {}
    parts: list[str] = []

    def call(function: Convert, argument: str) -> str:
        name = f"f{len(names)}"
        names[name] = function
        return f"{name}({argument})"

    def add(column: str | None, part: Callable[[], str]) -> None:
        if column is not None and (columns is None or column in columns):
            parts.append(part())

    for field in fields:
        member = members.get(field.name)
        is_hidden = field.name in _SECRET_FIELDS.get(context.message.name, ()) and not context.rules.secrets
        if member is None or is_hidden:
            default = None if is_hidden or not context.rules.defaults else _default(absent.get(field.name))
            value = "None"
            add(field.name, partial(repr, default))
        else:
            value = f"it.{member.attr}"
            add(field.name, partial(_plain_or_call, _value_of(context, field, member.type), value, call))
        states = names_of(context.message.name, field.name)
        if states is not None:
            add(name_column(context.message.name, field.name), partial(call, states.get, value))
        message = consumer_message(context.message.name, field.name)
        if message is not None:
            decoded = _unless_null(partial(_decoded, message))
            add(decoded_column(field.name), partial(call, decoded, value if context.is_consumer else "None"))
    made: Convert = eval(f"lambda it: ({''.join(f'{part}, ' for part in parts)})", names)
    return made


def _plain_or_call(inner: Convert | None, value: str, call: Callable[[Convert, str], str]) -> str:
    return value if inner is None else call(_unless_null(inner), value)


def _unless_null(function: Convert) -> Convert:
    return lambda value: None if value is None else function(value)


def _default(member: FieldShape | None) -> Any:
    """Kafka's default of an absent field, as a value of a column."""
    default = None if member is None else member.default
    if member is None or isinstance(default, DefaultStruct):
        return None
    return uuid_text(default) if member.type.kind == "uuid" and isinstance(default, bytes) else default


def _value_of(context: _Context, field: Field, kind: Type) -> Convert | None:
    """A function from a value that is not null to Arrow's value; None if they are the same."""
    if kind.kind == "uuid":
        return _text
    if kind.kind == "struct":
        assert kind.struct is not None
        fields = context.message.struct_fields(field.type)
        assert fields is not None
        return _struct(context, fields, kind.struct)
    if kind.kind != "array":
        return None
    assert kind.element is not None
    inner = _value_of(context, field, kind.element)
    return None if inner is None else _all_of(inner)


def _all_of(inner: Convert) -> Convert:
    return lambda values: [inner(value) for value in values]


@lru_cache(maxsize=10_000)
def _text(uuid: bytes) -> str:
    # A cluster has few ids, and each is in many records.
    return uuid_text(uuid)


_decoded_converters: dict[tuple[str, int], Convert] = {}


def _decoded(name: str, data: bytes) -> Any:
    """The message that a consumer encoded into bytes; null if it cannot be read, because clients may send anything."""
    try:
        found = decode_versioned(name, bytes(data))
    except WireError:
        return None
    key = (name, found.version)
    if key not in _decoded_converters:
        _decoded_converters[key] = converter(name, name, found.version, ValueRules())
    return _decoded_converters[key](found.message)
