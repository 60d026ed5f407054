"""A page about the protocol, as data.

A page is about one message in one version, or about one error code. Renderers only print what is in it, so terminal,
JSON, Markdown and HTML always agree; the JSON form is the page itself.

Paths name fields the same way everywhere. A span of the example has a full path with indexes
(`ShareFetchRequest.Topics[0].TopicId`); diagram rows and schema rows have the same path without them
(`ShareFetchRequest.Topics[].TopicId`), which a span repeats as `field`, so that renderers find the bytes of a row.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

PageKind: TypeAlias = Literal["api", "record", "header", "error"]
Part: TypeAlias = Literal["request", "response"]
BlockKind: TypeAlias = Literal["frame", "header", "framing", "body", "batch"]
ChangeKind: TypeAlias = Literal["added", "removed", "changed"]


class PageRef(Struct, frozen=True):
    """Refers to a page. An API is named without Request or Response; without `version` the default one is meant."""

    kind: PageKind
    name: str
    part: Part | None = None
    version: int | None = None


class ProsePiece(Struct, frozen=True):
    """Some words of a text; those with a target are a link to that page."""

    text: str
    target: PageRef | None = None


Prose: TypeAlias = tuple[ProsePiece, ...]


def plain(prose: Prose) -> str:
    """A text without its links."""
    return "".join(piece.text for piece in prose)


class ErrorRow(Struct, frozen=True):
    """An error that the response may have, and what it means in this API."""

    name: str
    code: int
    retriable: bool
    meaning: Prose
    reserved: bool
    """Documented for the API, but no released broker is known to send it."""
    general: bool
    """Any API may answer with it; it has no special meaning here."""


class DiagramRow(Struct, frozen=True):
    """One field, or one tagged section, in the order of the bytes; a struct's rows follow its field, one deeper."""

    depth: int
    name: str
    type: str
    size: str
    """Bytes: "4", "2+n", "1+4n", "1+n×(…)". A leading 1 of a compact type is a varint and may grow to 5."""
    marks: tuple[str, ...]
    """Of: nullable, tag N, since vN, up to vN, not compact."""
    path: str
    is_tagged_section: bool = False


class Block(Struct, frozen=True):
    """A titled part of the diagram: frame, header, framing of a record, body, the batch in a records field."""

    kind: BlockKind
    title: str
    flexible: bool
    rows: tuple[DiagramRow, ...]


class SchemaRow(Struct, frozen=True):
    """A field of the schema in this version with its description; `depth` as in the diagram."""

    depth: int
    name: str
    signature: str
    """Type and attributes in schema text: `[]FetchTopic`, `string? = null (groupId)`, `int32 tag 1 = -1`."""
    versions: str
    """The versions of the message that have the field: "0+", "1-3"."""
    nullable: bool
    tag: int | None
    about: Prose
    path: str


class Span(Struct, frozen=True):
    """A label for the bytes `start` to `end` (exclusive) of the example. Its spans cover every byte once."""

    start: int
    end: int
    path: str
    field: str
    """The path without indexes."""
    label: str
    """A readable name: `Topics[0].TopicId`, `GroupId length`."""
    role: str
    """value, length, count, null, present, tags, tag, tag size. All but `value` are bytes around the value."""
    type: str
    value: str
    """The value of the bytes, as text."""
    hue: int
    """0 to 7; neighbouring fields differ, and a field's length has the hue of its value."""

    @property
    def is_value(self) -> bool:
        return self.role == "value"


class Example(Struct, frozen=True):
    """A plausible message as JSON and as bytes, with everything before it on the wire or on disk."""

    caption: str
    """The situation: `A member with two partitions stays in the group.`"""
    value: dict[str, Any]
    """The body, as `wire.to_json` writes it."""
    header: dict[str, Any] | None
    """The fields of the header; None if there is no header."""
    hex: str
    spans: tuple[Span, ...]
    body_at: int
    """Where the body begins in the bytes."""

    @property
    def data(self) -> bytes:
        return bytes.fromhex(self.hex)


class FieldChange(Struct, frozen=True):
    kind: ChangeKind
    path: str
    detail: str
    """The type that was added or removed, or the change: `int32`, `int32 → int64`, `nullable`."""


class VersionRow(Struct, frozen=True):
    """The changes of a version since the one before it; the first has none."""

    version: int
    notes: tuple[Prose, ...]
    changes: tuple[FieldChange, ...]
    flexible: bool
    unstable: bool
    shown: bool
    """Whether it is the version of the page."""


class MessagePage(Struct, frozen=True):
    """The page of one message (or record type, or header) in one version."""

    ref: PageRef
    title: str
    """`ShareFetchRequest v2`."""
    message: str
    """Kafka's name: `ShareFetchRequest`, `StreamsGroupMetadataValue`."""
    kind: str
    """request, response, header, data, coordinator-key, coordinator-value, metadata."""
    api_key: int | None
    """The API key; for a record its type; None if there is none."""
    version: int
    versions: tuple[int, ...]
    """All versions that exist."""
    flexible_from: int | None
    unstable: bool
    """Whether brokers serve this version only if unstable versions are enabled."""
    listeners: tuple[str, ...]
    framing: str | None
    """The framing of a stored record: type16, version16, frame-varints; None if there is none, and for APIs."""
    stored_in: str | None
    """The internal topic or file that holds such records."""
    summary: Prose
    purpose: Prose
    sender: Prose
    previous: Prose
    next: Prose
    counterpart: PageRef | None
    """The response of a request, the value of a key, and the other way round."""
    errors: tuple[ErrorRow, ...]
    diagram: tuple[Block, ...]
    schema: tuple[SchemaRow, ...]
    example: Example
    version_rows: tuple[VersionRow, ...]
    """Newest first."""


class ErrorUse(Struct, frozen=True):
    """An API that may answer with the error of the page."""

    api: str
    api_key: int
    meaning: Prose
    reserved: bool
    target: PageRef


class ErrorPage(Struct, frozen=True):
    ref: PageRef
    title: str
    name: str
    code: int
    retriable: bool
    exception: str | None
    """The class that Java clients raise."""
    meaning: Prose
    remedy: Prose
    general: bool
    """Every API may answer with it."""
    uses: tuple[ErrorUse, ...]
    """The APIs whose schemas describe it, by API key."""


Page: TypeAlias = MessagePage | ErrorPage


class CatalogueRow(Struct, frozen=True):
    """One line of the list of all pages."""

    ref: PageRef
    api_key: int | None
    name: str
    versions: tuple[int, ...]
    summary: str


class CatalogueSection(Struct, frozen=True):
    title: str
    rows: tuple[CatalogueRow, ...]
