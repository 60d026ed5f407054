"""Keys, values and times of records, which anybody may have written: always text, never markup."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.client.record_text import Decoded, RecordRow, TypedRecord
from ottla.console.html.parts import badge
from ottla.draw.forms import iso
from ottla.draw.markup import NOTHING, Markup, element

__all__ = ["content", "headers", "hex_dump", "record_time", "typed_key"]

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999; producers may write any number."""
DUMP_BYTES: Final = 16


def record_time(ms: int) -> Markup:
    """The time of a record to the millisecond, or the bare number if it is no time."""
    if not 0 <= ms <= LAST_MS:
        return element("span", str(ms), title="not a time between 1970 and 9999")
    exact = iso(ms)
    return element("time", f"{exact[:10]} {exact[11:23]}", datetime=exact, title=exact)


def content(decoded: Decoded) -> Markup:
    """A key or a value, with what there is to say about it."""
    if decoded.record is not None:
        return _typed_value(decoded.record)
    if decoded.text is None:
        return badge("null")
    shown = element("code", decoded.text, class_="data") if decoded.text else badge("empty")
    return element("div", shown, _cut(decoded), _problem(decoded))


def _cut(decoded: Decoded) -> Markup:
    if not decoded.truncated:
        return NOTHING
    return element("small", f" … truncated: {decoded.bytes_len:,} bytes in all", class_="cut")


def _problem(decoded: Decoded) -> Markup:
    return element("small", f" {decoded.error}", class_="cut") if decoded.error else NOTHING


def typed_key(record: TypedRecord) -> Markup:
    return element("code", _json(record.key), class_="data")


def _typed_value(record: TypedRecord) -> Markup:
    """A value of an internal topic, with its type."""
    if record.json is None:
        return element("div", badge(record.type, "light"), " ", badge("tombstone"))
    title = badge(f"{record.type} v{record.version}", "light")
    return element("div", title, " ", element("code", _json(record.json), class_="data"))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def headers(row: RecordRow) -> Markup:
    shown = [element("div", element("b", each.k or "(empty)"), " ", content(each.v)) for each in row.headers]
    return element("div", *shown) if shown else NOTHING


def hex_dump(data: bytes, caption: str) -> Markup:
    """Bytes in rows of sixteen: where they are, what they are, and as letters."""
    rows = [data[at : at + DUMP_BYTES] for at in range(0, len(data), DUMP_BYTES)]
    lines = [
        f"{DUMP_BYTES * at:06x}  {row.hex(' '):<{3 * DUMP_BYTES - 1}}  {_letters(row)}" for at, row in enumerate(rows)
    ]
    return element("pre", "\n".join(lines), class_="dump", tabindex="0", role="region", aria_label=caption)


def _letters(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in row)
