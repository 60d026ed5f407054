"""meta.properties, the identity of a log directory, and Java's properties format, in which it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from ottla.wire.values import uuid_bytes, uuid_text

META_PROPERTIES_FILE: Final = "meta.properties"
RESERVED_IDS: Final = 100
"""Ids below this number are reserved: unassigned, lost, migrating, and future ones."""
_VERSION: Final = 1
# The order in which Java's own table happens to write them.
_KEYS: Final = ("node.id", "directory.id", "version", "cluster.id")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NATURAL_LINE: Final = re.compile(r"\r\n|\r|\n")


class MetaPropertiesError(ValueError):
    """A meta.properties that cannot be used, with the reason."""


class MetaProperties(msgspec.Struct, frozen=True):
    """The owner of a directory. `directory_id` is None in directories that are older than such ids."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None = None


def write_meta_properties(meta: MetaProperties, now_ms: int) -> bytes:
    """The file's content, as Kafka writes it."""
    values = {"node.id": str(meta.node_id), "version": str(_VERSION), "cluster.id": meta.cluster_id}
    if meta.directory_id is not None:
        values["directory.id"] = uuid_text(meta.directory_id)
    return write_properties({key: values[key] for key in _KEYS if key in values}, now_ms).encode()


def read_meta_properties(data: bytes) -> MetaProperties:
    """The identity in a file of version 0 (node.id as broker.id) or 1. MetaPropertiesError for anything else."""
    values = read_properties(data.decode("utf-8", "replace"))
    version = values.get("version", "0")
    if version not in ("0", "1"):
        raise MetaPropertiesError(f"version {version!r} is not known; it is 0 or 1")
    node_key = "broker.id" if version == "0" and "node.id" not in values else "node.id"
    cluster_id = values.get("cluster.id", "")
    if not cluster_id:
        raise MetaPropertiesError("cluster.id is missing")
    return MetaProperties(cluster_id, _node_id(node_key, values.get(node_key)), _directory_id(values))


def _node_id(key: str, text: str | None) -> int:
    if text is None:
        raise MetaPropertiesError(f"{key} is missing")
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise MetaPropertiesError(f"{key}={text} is not a number")
    return int(text)


def _directory_id(values: Mapping[str, str]) -> bytes | None:
    text = values.get("directory.id")
    if text is None:
        return None
    try:
        raw = uuid_bytes(text)
    except ValueError as error:
        raise MetaPropertiesError(f"directory.id={text} is not an id: {error}") from None
    if int.from_bytes(raw, "big") < RESERVED_IDS:
        raise MetaPropertiesError(f"directory.id={text} is a reserved id")
    return raw


# --- Java's properties text


def write_properties(values: Mapping[str, str], now_ms: int) -> str:
    """The text that java.util.Properties stores: an empty comment, the date, one line per key."""
    date = datetime.fromtimestamp(now_ms // 1000, UTC)
    # Not %a and %b, which depend on the locale.
    day, month = _DAYS[date.weekday()], _MONTHS[date.month - 1]
    lines = ["#", f"#{day} {month} {date:%d %H:%M:%S} UTC {date:%Y}"]
    lines += [f"{_escaped(key, is_key=True)}={_escaped(value, is_key=False)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def read_properties(text: str) -> dict[str, str]:
    """Keys and values of a properties text; if a key is given twice, the last value counts."""
    return dict(_split(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> list[str]:
    """Lines without comments and blank lines; a backslash at the end joins a line with the next."""
    lines: list[str] = []
    continues = False
    for natural in _NATURAL_LINE.split(text):
        line = natural.lstrip(" \t\f")
        if not continues and (not line or line[0] in "#!"):
            continue
        is_cut = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        content = line[:-1] if is_cut else line
        if continues:
            lines[-1] += content
        else:
            lines.append(content)
        continues = is_cut
    return lines


def _split(line: str) -> tuple[str, str]:
    """The key ends at the first separator that is not escaped: blanks, and at most one = or :."""
    end = 0
    while end < len(line) and line[end] not in " \t\f=:":
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    value = line[end:].lstrip(" \t\f")
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(" \t\f")
    return _unescaped(line[:end]), _unescaped(value)


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        char = match[1]
        return chr(int(char[1:], 16)) if len(char) == 5 else _ESCAPES.get(char, char)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replace, text, flags=re.DOTALL)


def _escaped(text: str, *, is_key: bool) -> str:
    special = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f"}
    escaped = "".join(f"\\{char}" if char in "=:#!\\" else special.get(char, char) for char in text)
    if is_key:
        return escaped.replace(" ", r"\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped
