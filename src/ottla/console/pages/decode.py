"""The decoder: pasted bytes, field by field. Nothing is stored, and the bytes are never part of an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ottla.console.html.parts import Column, facts, section, table
from ottla.console.html.wire import wire_tabs
from ottla.console.page import BadQueryError, Content, Page, PageContext
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.dissect import dissect, dissect_batches
from ottla.explain.guess import RECORD_BATCH, Candidate, Verdict, guess, guess_name
from ottla.explain.input_text import InputError, bytes_from_text
from ottla.explain.lookup import NotFound, find
from ottla.explain.prose import message_of
from ottla.explain.redact import carries_secret
from ottla.explain.tree import Node
from ottla.explain.values_text import value_text
from ottla.health.phrases import size

INPUT_MAX_BYTES: Final = 1024 * 1024
SHOWN_ROWS: Final = 2_000
SHOWN_BYTES: Final = 16
GUESSES: Final = 5
SURE: Final = 0.9
EXAMPLE: Final = "00000018001200030000000100026d6500066f74746c6104302e3100"


class Guess(msgspec.Struct, frozen=True):
    name: str
    versions: tuple[int, ...]
    fits: bool
    """Whether the bytes end where the message does."""


class Leaf(msgspec.Struct, frozen=True):
    path: str
    type: str
    begin: int
    end: int
    value: str
    depth: int
    hex: str


class Decoded(msgspec.Struct, frozen=True):
    text: str
    """What was pasted; empty on the page before anything was."""
    name: str
    size: int
    guesses: list[Guess]
    sureness: float
    phrase: str
    rows: list[Leaf]
    rows_left_out: int
    rest_bytes: int
    error: str | None


EMPTY: Final = Decoded("", "", 0, [], 0.0, "", [], 0, 0, None)


async def load(context: PageContext) -> Content[Decoded]:
    text = context.form.get("bytes", "").strip()
    if not text:
        return Content(EMPTY, "Decode bytes", [])
    return Content(decoded(text, context.form.get("name", "").strip()), "Decode bytes", [])


def decoded(text: str, name: str) -> Decoded:
    try:
        data = bytes_from_text(text)
    except InputError as error:
        return msgspec.structs.replace(EMPTY, text=text, name=name, error=str(error))
    if len(data) > INPUT_MAX_BYTES:
        told = f"that is {size(len(data))}; the page takes {size(INPUT_MAX_BYTES)}, ottla decode takes any file"
        return msgspec.structs.replace(EMPTY, name=name, size=len(data), error=told)
    verdict = guess_name(data, _names(name)) if name else guess(data)
    best = verdict.best
    found = msgspec.structs.replace(
        EMPTY,
        text=text,
        name=name,
        size=len(data),
        guesses=[Guess(each.name, each.versions, each.error is None) for each in verdict.candidates[:GUESSES]],
        sureness=round(verdict.sureness, 3),
        phrase="as named" if name else verdict.phrase,
    )
    if best is None:
        return msgspec.structs.replace(
            found, error=f"{len(data)} bytes match no message; name one to decode as much as possible"
        )
    if not name and _may_be_secret(data, verdict):
        return msgspec.structs.replace(
            found, error="one of the possible messages contains a secret; name the message to decode it"
        )
    return _dissected(found, data, best)


def _names(name: str) -> list[str]:
    try:
        return [message_of(each) for each in find([name])]
    except NotFound as error:
        raise BadQueryError(str(error)) from None


def _may_be_secret(data: bytes, verdict: Verdict) -> bool:
    """A guess may be wrong: bytes that may hold a secret are shown only if the reader names the message."""
    if verdict.sureness >= SURE:
        return False
    others = [each for each in verdict.candidates[1:] if each.name != RECORD_BATCH]
    return any(
        carries_secret(node) for each in others for node in dissect(data, each.name, each.version, each.wrapping).nodes
    )


def _dissected(found: Decoded, data: bytes, best: Candidate) -> Decoded:
    if best.name == RECORD_BATCH:
        nodes, rest, error = list(dissect_batches(data)), 0, None
    else:
        apart = dissect(data, best.name, best.version, best.wrapping)
        nodes, rest, error = list(apart.nodes), apart.rest_bytes, apart.error
    rows = list(_rows(nodes, data))
    return msgspec.structs.replace(
        found,
        rows=rows[:SHOWN_ROWS],
        rows_left_out=max(0, len(rows) - SHOWN_ROWS),
        rest_bytes=rest,
        error=None if error is None else str(error),
    )


def _rows(nodes: Iterable[Node], data: bytes, above: str = "", depth: int = 0) -> Iterator[Leaf]:
    for node in nodes:
        name = f"{above}.{node.name}" if above and not node.name.startswith("[") else f"{above}{node.name}"
        is_input = not node.layer
        shown = data[node.start : node.end][:SHOWN_BYTES].hex(" ") if is_input and not node.withheld else ""
        cut = " …" if is_input and node.end - node.start > SHOWN_BYTES else ""
        value = value_text(node) or node.holds or node.note
        yield Leaf(name, node.type, node.start, node.end, value, depth, "" if node.children else shown + cut)
        yield from _rows(node.children, data, name, depth + 1)


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[Decoded], _: PageContext) -> Markup:
    data = content.data
    return joined([wire_tabs("/wire/decode"), _form(data), _result(data) if data.text else NOTHING])


def _form(data: Decoded) -> Markup:
    how = element(
        "p",
        "Paste hex, a hex dump (xxd, hexdump, tcpdump) or base64. A message may include its size and header; "
        "record batches are decoded, too. Nothing is stored.",
        class_="lead",
    )
    box = element(
        "textarea", data.text or NOTHING, name="bytes", required=True, spellcheck="false", placeholder=EXAMPLE
    )
    name = element("input", name="name", value=data.name, autocomplete="off", placeholder="guessed")
    return joined(
        [
            how,
            element(
                "form",
                element("label", "Bytes", box, class_="wide"),
                element("label", "Message", name),
                element("button", "Decode", type="submit", class_="tool"),
                method="post",
                action="/wire/decode",
                class_="filter",
            ),
        ]
    )


def _result(data: Decoded) -> Markup:
    parts = []
    if data.error is not None:
        parts.append(element("p", data.error, class_="outage", role="alert"))
    if data.guesses:
        parts.append(_guesses(data))
    if data.rows:
        parts.append(_fields(data))
    return joined(parts)


def _guesses(data: Decoded) -> Markup:
    best, *others = data.guesses
    versions = ", ".join(f"v{each}" for each in best.versions)
    told: dict[str, str | int | float | None] = {
        "message": f"{best.name} {versions}".strip(),
        "certainty": data.phrase,
        "bytes": data.size,
        "not decoded": data.rest_bytes,
    }
    also = ", ".join(each.name for each in others)
    return section("Result", facts(told), element("p", f"It could also be {also}.") if also else NOTHING)


def _fields(data: Decoded) -> Markup:
    rows = [
        (
            element("code", f"{each.begin:#06x}"),
            element("code", each.hex) if each.hex else NOTHING,
            element(
                "span", each.path.rpartition(".")[2] or each.path, class_=f"deep{min(each.depth, 8)}", title=each.path
            ),
            each.type,
            each.value or NOTHING,
        )
        for each in data.rows
    ]
    columns = (Column("at"), Column("bytes"), Column("field"), Column("type"), Column("value"))
    left = f"{data.rows_left_out:,} more are not shown" if data.rows_left_out else ""
    return section("Fields", table("Fields in the order of their bytes", columns, rows), note=left)


PAGE: Final = Page("decode", "/wire/decode", Decoded, load, render, section="wire", form=frozenset({"bytes", "name"}))
