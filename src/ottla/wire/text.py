"""The schema text: ottla's notation for Kafka's messages.

There is one file per API (request, then response) and one per family of records. A line is a message, a field, a shared
struct or a note; two spaces are one level of depth::

    file     = { message | comment | blank }             comment = "--" text, alone on its line
    message  = kind Name [key] "versions" range ["flexible" range] ["on" listener{","listener}] ["unstable"] [about]
    kind     = request | response | header | data | coordinator-key | coordinator-value | metadata
    note     = key ":" text                              key = purpose sender prev next error vN; right below a message
    field    = Name ":" ["[]"] type ["?" [range]] [range] ["tag" N ["@" range]] ["=" default] ["(" entity ")"]
               {"key" | "ignorable" | "zerocopy"} ["flex" range] [about]
    struct   = "struct" Name range                       shared by several fields of the message, its fields below it
    range    = N | N "+" | N "-" N | "none"
    default  = "null" | number | "true" | "false" | quoted text
    about    = "  -- " text

Defaults: a field without a range has 0+ (a tagged-only field: the range of its tag), "?" alone means nullable in all
versions of the field, no default means zero, "", empty or a fresh struct, no about means the glossary's text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

VERSION_MAX = 32767


class Range(NamedTuple):
    """Versions from `low` to `high`, both inclusive; empty if high < low."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __str__(self) -> str:
        if self.high < self.low:
            return "none"
        if self.high == VERSION_MAX:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


NONE = Range(0, -1)
ALWAYS = Range(0, VERSION_MAX)

Default: TypeAlias = "int | bool | str | None"
Kind: TypeAlias = Literal["request", "response", "header", "data", "coordinator-key", "coordinator-value", "metadata"]


class Field(NamedTuple):
    name: str
    type: str
    is_array: bool
    versions: Range
    nullable: Range
    tag: int | None
    tagged: Range
    default: Default
    """None if no default is given. The text "null" is the null default."""
    entity: str | None
    is_key: bool
    ignorable: bool
    zerocopy: bool
    flexible: Range | None
    about: str | None
    fields: tuple[Field, ...]


class StructText(NamedTuple):
    name: str
    versions: Range
    fields: tuple[Field, ...]


class Note(NamedTuple):
    key: str
    text: str


class Message(NamedTuple):
    kind: Kind
    name: str
    key: int | None
    versions: Range
    flexible: Range
    listeners: tuple[str, ...]
    unstable: bool
    about: str | None
    notes: tuple[Note, ...]
    fields: tuple[Field, ...]
    structs: tuple[StructText, ...]

    def struct_fields(self, type_name: str) -> tuple[Field, ...] | None:
        """The fields of a struct of this message; None if it has no such struct."""
        for struct in self.structs:
            if struct.name == type_name:
                return struct.fields
        return _inline_fields(self.fields, type_name) or next(
            (found for struct in self.structs if (found := _inline_fields(struct.fields, type_name))), None
        )


def _inline_fields(fields: tuple[Field, ...], type_name: str) -> tuple[Field, ...] | None:
    for field in fields:
        if field.fields:
            if field.type == type_name:
                return field.fields
            if found := _inline_fields(field.fields, type_name):
                return found
    return None


class SchemaError(ValueError):
    """A line of schema text that cannot be read."""


_MESSAGE = re.compile(
    r"(?P<kind>request|response|header|data|coordinator-key|coordinator-value|metadata) (?P<name>\w+)"
    r"(?: (?P<key>\d+))? versions (?P<versions>\S+)(?: flexible (?P<flexible>\S+))?(?: on (?P<on>[\w,]+))?"
    r"(?P<unstable> unstable)?(?:  -- (?P<about>.+))?"
)
_FIELD = re.compile(
    r"(?P<name>\w+): (?P<array>\[\])?(?P<type>\w+)(?P<nullable>\?(?P<nullrange>[\d+-]*))?"
    r"(?: (?P<versions>\d+(?:\+|-\d+)?))?"
    r"(?: tag (?P<tag>\d+)(?:@(?P<tagged>\S+))?)?(?: = (?P<default>\"[^\"]*\"|\S+))?(?: \((?P<entity>\w+)\))?"
    r"(?P<key> key)?(?P<ignorable> ignorable)?(?P<zerocopy> zerocopy)?(?: flex (?P<flex>\S+))?(?:  -- (?P<about>.+))?"
)
_STRUCT = re.compile(r"struct (?P<name>\w+) (?P<versions>\S+)")
_NOTE = re.compile(r"(?P<key>purpose|sender|prev|next|error|v\d+): (?P<text>.+)")
_INDENT = 2


class _Line(NamedTuple):
    number: int
    depth: int
    text: str


def parse_range(text: str) -> Range:
    if text == "none":
        return NONE
    if text.endswith("+"):
        return Range(int(text[:-1]), VERSION_MAX)
    low, dash, high = text.partition("-")
    return Range(int(low), int(high) if dash else int(low))


def parse_messages(text: str) -> tuple[Message, ...]:
    """All messages of one schema file."""
    lines = _lines(text)
    messages = []
    at = 0
    while at < len(lines):
        end = _end_of_block(lines, at)
        messages.append(_parse_message(lines[at], lines[at + 1 : end]))
        at = end
    return tuple(messages)


def parse_glossary(text: str) -> dict[str, str]:
    """Name -> description, of the fields that recur."""
    entries = (line.partition(": ") for line in text.splitlines() if line and not line.startswith("--"))
    return {name: about for name, _, about in entries}


def _lines(text: str) -> list[_Line]:
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        stripped = raw.strip()
        if stripped and not stripped.startswith("--"):
            lines.append(_Line(number, (len(raw) - len(raw.lstrip())) // _INDENT, stripped))
    return lines


def _end_of_block(lines: list[_Line], at: int) -> int:
    """The index after the lines that are nested below line `at`."""
    end = at + 1
    while end < len(lines) and lines[end].depth > lines[at].depth:
        end += 1
    return end


def _parse_message(head: _Line, body: list[_Line]) -> Message:
    match = _MESSAGE.fullmatch(head.text)
    if match is None:
        raise SchemaError(f"line {head.number}: not a message: {head.text}")
    notes = []
    while body and (note := _NOTE.fullmatch(body[0].text)):
        notes.append(Note(note["key"], note["text"]))
        body = body[1:]
    fields, structs = _parse_fields(body)
    return Message(
        kind=match["kind"],  # type: ignore[arg-type]  # the pattern admits these words only
        name=match["name"],
        key=None if match["key"] is None else int(match["key"]),
        versions=parse_range(match["versions"]),
        flexible=parse_range(match["flexible"] or "none"),
        listeners=tuple((match["on"] or "").split(",")) if match["on"] else (),
        unstable=match["unstable"] is not None,
        about=match["about"],
        notes=tuple(notes),
        fields=fields,
        structs=structs,
    )


def _parse_fields(lines: list[_Line]) -> tuple[tuple[Field, ...], tuple[StructText, ...]]:
    fields: list[Field] = []
    structs: list[StructText] = []
    at = 0
    while at < len(lines):
        end = _end_of_block(lines, at)
        inner, _ = _parse_fields(lines[at + 1 : end])
        if struct := _STRUCT.fullmatch(lines[at].text):
            structs.append(StructText(struct["name"], parse_range(struct["versions"]), inner))
        else:
            fields.append(_parse_field(lines[at], inner))
        at = end
    return tuple(fields), tuple(structs)


def _parse_field(line: _Line, inner: tuple[Field, ...]) -> Field:
    match = _FIELD.fullmatch(line.text)
    if match is None:
        raise SchemaError(f"line {line.number}: not a field: {line.text}")
    tag = None if match["tag"] is None else int(match["tag"])
    tagged = NONE if tag is None else parse_range(match["tagged"] or match["versions"] or "0+")
    versions = parse_range(match["versions"]) if match["versions"] else (tagged if tag is not None else ALWAYS)
    nullable = NONE if match["nullable"] is None else parse_range(match["nullrange"] or str(versions))
    return Field(
        name=match["name"],
        type=match["type"],
        is_array=match["array"] is not None,
        versions=versions,
        nullable=nullable,
        tag=tag,
        tagged=tagged,
        default=_parse_default(match["default"]),
        entity=match["entity"],
        is_key=match["key"] is not None,
        ignorable=match["ignorable"] is not None,
        zerocopy=match["zerocopy"] is not None,
        flexible=None if match["flex"] is None else parse_range(match["flex"]),
        about=match["about"],
        fields=inner,
    )


def _parse_default(text: str | None) -> Default:
    if text is None or text == "null":
        return text
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if text.startswith('"') else int(text, 0)
