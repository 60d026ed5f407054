"""A message's page in HTML, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.address import field_anchor
from ottla.explain.page import Block, DiagramRow, ErrorRow, MessagePage, PageRef, SchemaRow, VersionRow
from ottla.explain.render import html_bytes, html_diagram
from ottla.explain.render.html_parts import PageLinks, badge, crumbs, named, prose, section, table
from ottla.explain.render.phrases import CHANGE_WORDS, SIZE_LEGEND, facts, unchanged

CHANGE_SIGNS = {"added": "+", "removed": "−", "changed": "~"}
HALVES = {"Key": "Value", "Value": "Key"}


def message_parts(page: MessagePage, links: PageLinks) -> Iterator[Markup]:
    yield crumbs(page, links)
    yield _masthead(page, links)
    yield _jump(page, links)
    yield _story(page, links)
    yield section("diagram", "Wire diagram", links, _diagram(page, links))
    yield _example(page, links)
    if page.schema:
        yield section("schema", "Schema", links, _schema(page, links))
    if page.errors:
        count = f"{sum(not row.reserved for row in page.errors)} that may come back"
        yield section("errors", "Related errors", links, *_errors(page, links), note=count)
    yield section("versions", "Versions", links, _versions(page, links))


def _masthead(page: MessagePage, links: PageLinks) -> Markup:
    title = element("h1", page.message, " ", element("span", f"v{page.version}", class_="version"))
    chips = element("ul", *(element("li", fact) for fact in facts(page)[1:]), class_="chips", aria_label="Facts")
    switches = element("div", _part_switch(page, links), _version_switch(page, links), class_="switches")
    lead = element("p", prose(page.summary, links), class_="lead") if page.summary else NOTHING
    head = element("div", element("p", _kind_text(page), class_="eyebrow"), title, lead, chips)
    return element("div", head, switches, class_="masthead")


def _kind_text(page: MessagePage) -> str:
    """`Request · API key 78`, `Value of an internal topic`."""
    words = {"coordinator-key": "Record key", "coordinator-value": "Record value", "metadata": "Metadata record"}
    return words.get(page.kind, "Data" if page.kind == "data" else page.kind.capitalize())


def _part_switch(page: MessagePage, links: PageLinks) -> Markup:
    """Request and response, or key and value, side by side."""
    if page.counterpart is None:
        return NOTHING
    if page.ref.part is not None:
        own, other = page.ref.part.capitalize(), str(page.counterpart.part).capitalize()
        entries = {own: page.ref, other: page.counterpart}
        order = ["Request", "Response"]
    else:
        own = "Key" if page.message.endswith("Key") else "Value"
        entries = {own: page.ref, HALVES[own]: page.counterpart}
        order = ["Key", "Value"]
    items = [_switch_item(text, entries[text], is_own=text == own, links=links) for text in order]
    return element("nav", element("ul", *items), class_="switch", aria_label="The other half")


def _version_switch(page: MessagePage, links: PageLinks) -> Markup:
    if len(page.versions) == 1:
        return NOTHING
    refs = {version: PageRef(page.ref.kind, page.ref.name, page.ref.part, version) for version in page.versions}
    items = [
        _switch_item(f"v{version}", ref, is_own=version == page.version, links=links) for version, ref in refs.items()
    ]
    return element("nav", element("ul", *items), class_="switch", aria_label="Versions")


def _switch_item(text: str, ref: PageRef, *, is_own: bool, links: PageLinks) -> Markup:
    if is_own:
        return element("li", element("span", text, aria_current="page"))
    address = links.link(ref)
    return element("li", element("a", text, href=address) if address else element("span", text))


def _jump(page: MessagePage, links: PageLinks) -> Markup:
    """The contents of the page."""
    titles = {"diagram": "Wire diagram", "example": "Example", "schema": "Schema", "errors": "Errors"}
    absent = [name for name, rows in (("schema", page.schema), ("errors", page.errors)) if not rows]
    titles = {name: title for name, title in (titles | {"versions": "Versions"}).items() if name not in absent}
    items = [element("li", element("a", title, href=f"#{links.prefix}{name}")) for name, title in titles.items()]
    return element("nav", element("ul", *items), class_="jump", aria_label="On this page")


def _story(page: MessagePage, links: PageLinks) -> Markup:
    steps = [("Before", page.previous, ""), ("Sent by", page.sender, "now"), ("After", page.next, "")]
    told = [
        element("li", element("h3", word), element("p", prose(text, links)), class_=kind or None)
        for word, text, kind in steps
        if text
    ]
    purpose = element("div", element("h3", "What it is for"), element("p", prose(page.purpose, links)), class_="for")
    flow = element("ol", *told, class_="flow") if told else NOTHING
    return section("story", "About", links, element("div", purpose if page.purpose else NOTHING, flow, class_="told"))


def _diagram(page: MessagePage, links: PageLinks) -> Markup:
    own = {row.path for row in page.schema}

    def anchor(row: DiagramRow) -> str | None:
        return f"#{links.prefix}{field_anchor(row.path)}" if row.path in own and not row.is_tagged_section else None

    blocks = [html_diagram.block(block, _block_title(block, links), anchor) for block in page.diagram]
    legend = element("p", f"Fields in the order of their bytes; a stack repeats. {SIZE_LEGEND}", class_="legend")
    return joined([legend, element("div", *blocks, class_="blocks")])


def _block_title(block: Block, links: PageLinks) -> Markup:
    """The header's title leads to the header's own page."""
    if block.kind == "header":
        name, _, version = block.title.rpartition(" v")
        return named(block.title, PageRef("header", name, None, int(version)), links)
    return joined([block.title])


def _schema(page: MessagePage, links: PageLinks) -> Markup:
    rows = [_schema_row(row, page, links) for row in page.schema]
    return table("Fields of this version", ("Field", "Type", "What it is"), rows, "fields")


def _schema_row(row: SchemaRow, page: MessagePage, links: PageLinks) -> Markup:
    name = element("th", element("span", row.name, class_="n"), scope="row", class_=f"d{min(row.depth, 7)}")
    since = int(row.versions.rstrip("+").partition("-")[0])
    when = []
    if not row.versions.endswith("+"):
        when.append(badge(f"only v{row.versions.replace('-', '–')}"))
    elif since > page.versions[0]:
        when.append(badge(f"since v{since}"))
    kind = html_diagram.type_family(row.signature.partition(" ")[0].rstrip("?"))
    signature = element("td", element("code", row.signature, class_=f"type-{kind}"), class_="sig")
    about = element("td", prose(row.about, links), *(joined([" ", mark]) for mark in when))
    return element("tr", name, signature, about, id=f"{links.prefix}{field_anchor(row.path)}", data_field=row.path)


def _errors(page: MessagePage, links: PageLinks) -> Iterator[Markup]:
    headings = ("Code", "Error", "What it means here")
    sent = [_error_row(row, links) for row in page.errors if not row.reserved]
    if sent:
        yield table("Errors that may come back", headings, sent, "codes")
    reserved = [_error_row(row, links) for row in page.errors if row.reserved]
    if reserved:
        yield element("h3", "Reserved")
        yield element("p", "Documented for this API, but no released broker is known to send them.", class_="legend")
        yield table("Reserved errors", headings, reserved, "codes reserved")


def _error_row(row: ErrorRow, links: PageLinks) -> Markup:
    marks = [badge("retriable", "ok")] if row.retriable else []
    if row.general:
        marks.append(badge("any API"))
    if row.reserved:
        marks.append(badge("reserved", "warning"))
    name = named(row.name, PageRef("error", row.name), links)
    return element(
        "tr",
        element("td", str(row.code), class_="code"),
        element("th", name, *(joined([" ", mark]) for mark in marks), scope="row"),
        element("td", prose(row.meaning, links)),
    )


def _example(page: MessagePage, links: PageLinks) -> Markup:
    example = page.example
    size = len(example.data)
    what = "with size and header" if example.header else "as stored" if example.body_at else "as they are"
    caption = element("p", example.caption, class_="caption") if example.caption else NOTHING
    hint = "Hover, tap or focus a field to see its bytes, or bytes to see their field."
    panel = element(
        "div",
        html_bytes.hex_rows(example),
        element("p", hint, class_="told-bytes", hidden=True),
        class_="panel",
    )
    pair = element("div", panel, html_bytes.tree_list(html_bytes.tree(page)), class_="pair")
    unit = "byte" if size == 1 else "bytes"
    return section("example", "Example", links, caption, pair, _copies(page), note=f"{size} {unit}, {what}")


def _copies(page: MessagePage) -> Markup:
    """The example to copy: as JSON, and as hex in one line."""
    value = json.dumps(page.example.value, indent=2, ensure_ascii=False)
    return element("div", _copy("As JSON", value), _copy("As hex", page.example.hex), class_="copies")


def _copy(title: str, text: str) -> Markup:
    return element("details", element("summary", title), element("pre", element("code", text), tabindex="0"))


def _versions(page: MessagePage, links: PageLinks) -> Markup:
    return element("ol", *(_version(row, page, links) for row in page.version_rows), class_="history", reversed=True)


def _version(row: VersionRow, page: MessagePage, links: PageLinks) -> Markup:
    ref = PageRef(page.ref.kind, page.ref.name, page.ref.part, row.version)
    address = None if row.shown else links.link(ref)
    text = f"v{row.version}"
    title = element("h3", element("a", text, href=address) if address else text, *_version_marks(row))
    notes = [element("p", prose(note, links)) for note in row.notes]
    if not row.notes and not row.changes:
        notes = [element("p", unchanged(page, row), class_="legend")]
    changes = [
        element(
            "li",
            element("span", CHANGE_SIGNS[change.kind], class_="sign", aria_hidden="true"),
            element("span", f"{CHANGE_WORDS[change.kind]} ", class_="word"),
            element("code", change.path.removeprefix(f"{page.message}."), class_="n"),
            " ",
            element("span", change.detail, class_="t"),
            class_=change.kind,
        )
        for change in row.changes
    ]
    listed = element("ul", *changes, class_="changes") if changes else NOTHING
    return element("li", title, element("div", *notes, listed), class_="shown" if row.shown else None)


def _version_marks(row: VersionRow) -> list[Markup]:
    marks = [("this page", "here", row.shown), ("flexible", "", row.flexible), ("unstable", "warning", row.unstable)]
    return [joined([" ", badge(text, kind)]) for text, kind, holds in marks if holds]
