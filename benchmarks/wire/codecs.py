"""The codecs that are compared, behind one small interface.

Each gives plain callables for the timed loop, so that none of them pays for an adapter that its users do not have, and
tells whether a value of its own says what a content says, so that nobody is timed at doing something else.
"""

import importlib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, ClassVar, Protocol, get_args, get_type_hints
from uuid import UUID

from benchmarks.wire.contents import Content

Native = Any  # a value of the library's own type, or that type
Call = tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]
"""What the timed loop calls, and how its arguments are made of the bytes or the value at hand."""


class Codec(Protocol):
    name: str

    def has(self, message: str, version: int) -> bool: ...

    def decode_call(self, message: str, version: int) -> Call: ...

    def encode_call(self, message: str, version: int) -> Call: ...

    def decode(self, message: str, version: int, data: bytes) -> Native: ...

    def agrees(self, value: Native, content: Content) -> bool: ...


def same(value: object, content: object, field_of: Callable[[Any, str], object]) -> bool:
    """Whether a decoded value says what a plain one says, whatever types the library uses for it."""
    if isinstance(content, Mapping):
        return all(same(field_of(value, name), wanted, field_of) for name, wanted in content.items())
    if isinstance(content, list):
        if not isinstance(value, list | tuple) or len(value) != len(content):
            return False
        return all(same(one, wanted, field_of) for one, wanted in zip(value, content, strict=True))
    if isinstance(value, UUID):
        return value.bytes == content
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1) == content
    return bool(value == content)


class Ottla:
    """Ours, through the public functions."""

    name = "ottla"

    def __init__(self) -> None:
        self.wire: Any = importlib.import_module("ottla.wire")

    def has(self, message: str, version: int) -> bool:
        return True

    def decode_call(self, message: str, version: int) -> Call:
        return self.wire.decode, lambda data: (message, version, data)

    def encode_call(self, message: str, version: int) -> Call:
        return self.wire.encode, lambda value: (value, version)

    def decode(self, message: str, version: int, data: bytes) -> Native:
        return self.wire.decode(message, version, data)

    def agrees(self, value: Native, content: Content) -> bool:
        return same(value, content, getattr)


class OttlaPrepared(Ottla):
    """Ours, with the codec looked up beforehand, as kio's are; what a connection that knows its versions does."""

    name = "ottla (prepared)"

    def decode_call(self, message: str, version: int) -> Call:
        return self.wire.decoder(message, version), lambda data: (data,)

    def encode_call(self, message: str, version: int) -> Call:
        return self.wire.encoder(message, version), lambda value: (value,)


class Kio:
    """A native reader and a Python writer, both made once per class."""

    name = "kio"

    def __init__(self) -> None:
        serial = importlib.import_module("kio.serial")
        self.reader, self.writer = serial.entity_reader, serial.entity_writer
        self.error_code = importlib.import_module("kio.schema.errors").ErrorCode

    def type_of(self, message: str, version: int) -> Native:
        *api, kind = re.findall("[A-Z][a-z]*", message)
        module = f"kio.schema.{'_'.join(api).lower()}.v{version}.{kind.lower()}"
        return getattr(importlib.import_module(module), message)

    def has(self, message: str, version: int) -> bool:
        try:
            self.type_of(message, version)
        except ModuleNotFoundError:
            return False
        return True

    def decode_call(self, message: str, version: int) -> Call:
        return self.reader(self.type_of(message, version)), lambda data: (data, 0)

    def encode_call(self, message: str, version: int) -> Call:
        write = self.writer(self.type_of(message, version))

        def encode(value: object) -> bytes:
            buffer = io.BytesIO()
            write(buffer, value)
            return buffer.getvalue()

        return encode, lambda value: (value,)

    def decode(self, message: str, version: int, data: bytes) -> Native:
        value, size = self.reader(self.type_of(message, version))(data, 0)
        assert size == len(data)
        return value

    def agrees(self, value: Native, content: Content) -> bool:
        return same(value, content, lambda one, name: getattr(one, self._field_name(type(one), name)))

    @staticmethod
    def _field_name(struct: Native, name: str) -> str:
        """kio drops the unit where it uses a timedelta, and has the former name of one field of streams heartbeats."""
        known = {field.name for field in fields(struct)}
        return next(one for one in (name, name.removesuffix("_ms"), name.removesuffix("_legacy")) if one in known)

    def build(self, struct: Native, content: Content) -> Native:
        """A value of kio's own class: the bytes that all have to read are kio's, whose makers test it against Java."""
        hints = get_type_hints(struct)
        kinds = {field.name: field.metadata.get("kafka_type") for field in fields(struct)}
        renamed = {self._field_name(struct, name): value for name, value in content.items()}
        return struct(**{name: self._convert(hints[name], kinds[name], value) for name, value in renamed.items()})

    def _convert(self, hint: Native, kind: str | None, value: Native) -> Native:
        if isinstance(value, list):
            inner = next((one for one in _parts(hint) if is_dataclass(one)), None)
            return tuple(self.build(inner, one) if inner else one for one in value)
        match kind:
            case "uuid":
                return UUID(bytes=value)
            case "error_code":
                return self.error_code(value)
            case "timedelta_i32":
                return timedelta(milliseconds=value)
        return value


def _parts(hint: Native) -> list[Native]:
    """All the types that a hint such as `tuple[Topic, ...] | None` is made of."""
    return [hint] + [part for argument in get_args(hint) for part in _parts(argument)]


class KafkaPython:
    """Codecs generated in Python from Kafka's schemas at first use; it has only the APIs that its client needs."""

    name = "kafka-python"
    modules: ClassVar = {
        "MetadataResponse": "kafka.protocol.metadata",
        "FetchResponse": "kafka.protocol.consumer",
        "ProduceRequest": "kafka.protocol.producer",
    }

    def type_of(self, message: str) -> Native:
        return getattr(importlib.import_module(self.modules[message]), message)

    def has(self, message: str, version: int) -> bool:
        return message in self.modules

    def decode_call(self, message: str, version: int) -> Call:
        return self.type_of(message)[version].decode, lambda data: (data,)

    def encode_call(self, message: str, version: int) -> Call:
        return self.type_of(message).encode, lambda value: (value,)

    def decode(self, message: str, version: int, data: bytes) -> Native:
        return self.type_of(message)[version].decode(data)

    def agrees(self, value: Native, content: Content) -> bool:
        return same(value, content, self._field)

    @staticmethod
    def _field(value: Native, name: str) -> Native:
        if name == "topic_authorized_operations":  # a set of its own making; None where the broker was not asked
            return -(2**31) if value.authorized_operations is None else value.authorized_operations
        return getattr(value, name)


class Aiokafka:
    """Classes written by hand for each version, with arrays of tuples; none of its versions here is flexible."""

    name = "aiokafka"
    modules: ClassVar = {
        "MetadataResponse": "aiokafka.protocol.metadata",
        "FetchResponse": "aiokafka.protocol.fetch",
        "ProduceRequest": "aiokafka.protocol.produce",
    }

    def type_of(self, message: str, version: int) -> Native:
        return getattr(importlib.import_module(self.modules[message]), f"{message}_v{version}")

    def has(self, message: str, version: int) -> bool:
        if message not in self.modules:
            return False
        return hasattr(importlib.import_module(self.modules[message]), f"{message}_v{version}")

    def decode_call(self, message: str, version: int) -> Call:
        return self.type_of(message, version).decode, lambda data: (data,)

    def encode_call(self, message: str, version: int) -> Call:
        return self.type_of(message, version).encode, lambda value: (value,)

    def decode(self, message: str, version: int, data: bytes) -> Native:
        return self.type_of(message, version).decode(data)

    def agrees(self, value: Native, content: Content) -> bool:
        # Its field names are its own; the order is the wire's, as is that of the content.
        return bool(self._plain([value.__dict__[name] for name in value.SCHEMA.names]) == self._plain(content))

    def _plain(self, value: Native) -> Native:
        if isinstance(value, Mapping):
            return [self._plain(one) for one in value.values()]
        if isinstance(value, list | tuple):
            return [self._plain(one) for one in value]
        return value
