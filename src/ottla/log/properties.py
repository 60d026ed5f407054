"""`meta.properties`: whose data a log directory holds.

The file is Java's properties text. Written are `key=value` lines; read is what Java reads of it: comments with `#` or
`!`, `=`, `:` or blanks between key and value, and a backslash before a character that would mean something else.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.wire import uuid_bytes, uuid_text

__all__ = ["META_PROPERTIES_FILE", "MetaProperties", "PropertiesError", "parse_properties"]

META_PROPERTIES_FILE: Final = "meta.properties"
_VERSION: Final = 1
_SEPARATOR: Final = re.compile(r"(?<!\\)(?:\\\\)*[=:\s]")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """A properties file that does not say what it should."""


class MetaProperties(NamedTuple):
    cluster_id: str
    node_id: int
    directory_id: bytes | None
    """16 bytes; None in a directory of an old release, which gets one at its next start."""

    def format(self) -> bytes:
        lines = [f"cluster.id={self.cluster_id}", f"node.id={self.node_id}", f"version={_VERSION}"]
        if self.directory_id is not None:
            lines.insert(1, f"directory.id={uuid_text(self.directory_id)}")
        return "".join(f"{line}\n" for line in lines).encode()

    @classmethod
    def parse(cls, data: bytes) -> MetaProperties:
        properties = parse_properties(data)
        version = properties.get("version", "0")
        if version not in ("0", "1"):
            raise PropertiesError(f"version {version} of meta.properties is not known")
        node_key = "node.id" if version == "1" else "broker.id"
        for key in ("cluster.id", node_key):
            if not properties.get(key):
                raise PropertiesError(f"meta.properties has no {key}")
        try:
            node_id = int(properties[node_key])
            directory_id = uuid_bytes(properties["directory.id"]) if "directory.id" in properties else None
        except ValueError as error:
            raise PropertiesError(f"meta.properties: {error}") from None
        return cls(properties["cluster.id"], node_id, directory_id)


def parse_properties(data: bytes) -> dict[str, str]:
    """Keys and values of a properties file; a later line wins over an earlier one."""
    found: dict[str, str] = {}
    for line in _logical_lines(data):
        key, value = _split(line)
        found[key] = value
    return found


def _logical_lines(data: bytes) -> list[str]:
    """Lines without comments and blank ones; one that ends in a single backslash goes on in the next."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # what Java takes such files for
    lines: list[str] = []
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
        else:
            lines.append(pending)
            pending = ""
    return [*lines, pending] if pending else lines


def _split(line: str) -> tuple[str, str]:
    match = _SEPARATOR.search(line)
    if match is None:
        return _unescape(line), ""
    key, rest = line[: match.end() - 1], line[match.end() - 1 :].lstrip()
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip()
    return _unescape(key), _unescape(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
