"""Reads records that are written as JSON, as Kafka's own tools print them, with the fields of `ottla.wire.types`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

__all__ = ["json_reader"]


def json_reader(*kinds: type[msgspec.Struct], only: str, **types: Any) -> Callable[[str | bytes], Any]:
    """A function that reads the JSON of messages of these kinds, as far as the fields go that are named in `only`.

    What it gives has those fields under the names of the wire types. Bytes and ids stay text. A field that is not
    written is None if it may be null or one of the kinds does not have it; otherwise it has the default of its wire
    type. `types` says as what a field is read, if not as its own type: `msgspec.Raw` leaves it as it is written.
    """
    fields = ((name, *_type_and_default(kinds, name)) for name in only.split())
    chosen = [(name, types.get(name, kind), default) for name, kind, default in fields]
    return msgspec.json.Decoder(_struct(kinds[0], chosen)).decode


def _struct(kind: type[msgspec.Struct], fields: list[tuple[str, Any, Any]]) -> type[msgspec.Struct]:
    return msgspec.defstruct(kind.__name__, fields, rename="camel", gc=False)


def _type_and_default(kinds: tuple[type[msgspec.Struct], ...], name: str) -> tuple[Any, Any]:
    having = [kind for kind in kinds if name in kind.__struct_fields__]
    found = _json_type(get_type_hints(having[0])[name])
    if len(having) < len(kinds) or NoneType in get_args(found):
        return found | None, None
    default = getattr(having[0](), name)
    return found, "" if isinstance(default, bytes) else default


def _json_type(kind: Any) -> Any:
    parts = get_args(kind)
    if NoneType in parts:
        return _json_type(next(each for each in parts if each is not NoneType)) | None
    if get_origin(kind) is tuple:
        return list[_json_type(parts[0])]  # type: ignore[misc]
    if issubclass(kind, msgspec.Struct):
        return _struct(kind, list(_all_fields(kind)))
    return str if kind is bytes else kind


def _all_fields(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any, Any]]:
    for name in kind.__struct_fields__:
        if name != "unknown_tags":
            yield (name, *_type_and_default((kind,), name))
