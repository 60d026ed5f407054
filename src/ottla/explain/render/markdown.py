"""Pages as Markdown, for wikis, issues and code reviews.

The caller knows the addresses of pages: `link` turns a reference into an address; without it names are written as code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from ottla.explain import hexview
from ottla.explain.page import (
    Block,
    CatalogueSection,
    ErrorPage,
    ErrorRow,
    MessagePage,
    Page,
    PageRef,
    Prose,
    SchemaRow,
    VersionRow,
)
from ottla.explain.render.phrases import CHANGE_WORDS, SIZE_LEGEND, STORY_WORDS, facts, unchanged

Link = Callable[[PageRef], str]


def render(page: Page, link: Link | None = None) -> str:
    blocks = _error_page(page, link) if isinstance(page, ErrorPage) else _message_page(page, link)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _message_page(page: MessagePage, link: Link | None) -> Iterable[str]:
    yield f"# {page.title}"
    yield _prose(page.summary, link)
    yield f"*{' · '.join(facts(page))}*"
    for heading, text in zip(STORY_WORDS, (page.purpose, page.sender, page.previous, page.next), strict=True):
        if text:
            yield f"**{heading}** {_prose(text, link)}"
    if page.errors:
        yield "## Related errors"
        yield _errors(page.errors, link)
    yield "## Wire diagram"
    yield SIZE_LEGEND
    yield _fenced(_diagram(page.diagram))
    if page.schema:
        yield "## Schema"
        yield "\n".join(_schema_line(row, link) for row in page.schema)
    yield "## Example"
    yield page.example.caption
    yield _fenced(json.dumps(page.example.value, indent=2, ensure_ascii=False), "json")
    yield _fenced(_bytes(page))
    yield "## Versions"
    yield "\n".join(line for row in page.version_rows for line in _version_lines(page, row, link))


def _error_page(page: ErrorPage, link: Link | None) -> Iterable[str]:
    yield f"# {page.title}"
    retriable = "retriable" if page.retriable else "not retriable"
    exception = f" · Java clients raise `{page.exception}`" if page.exception else ""
    yield f"*error code {page.code} · {retriable}{exception}*"
    yield f"**Means** {_prose(page.meaning, link)}"
    yield f"**Do** {_prose(page.remedy, link)}"
    if page.uses or page.general:
        yield "## APIs that answer with it"
    if page.general:
        yield "Every API may."
    if page.uses:
        rows = [
            f"| {use.api_key} | {_name(use.api, use.target, link)}{' (reserved)' if use.reserved else ''} "
            f"| {_cell(_prose(use.meaning, link))} |"
            for use in page.uses
        ]
        yield "\n".join(["| key | API | meaning there |", "| ---: | --- | --- |", *rows])


def catalogue(sections: Sequence[CatalogueSection], link: Link | None = None) -> str:
    """The list of all pages."""
    blocks = ["# What can be explained"]
    for section in sections:
        blocks.append(f"## {section.title}")
        rows = [
            f"| {row.api_key if row.api_key is not None else ''} | {_name(row.name, row.ref, link)} "
            f"| {_cell(_escaped(row.summary))} |"
            for row in section.rows
        ]
        blocks.append("\n".join(["| key | name | what it is |", "| ---: | --- | --- |", *rows]))
    return "\n\n".join(blocks) + "\n"


def _prose(text: Prose, link: Link | None) -> str:
    return "".join(
        _escaped(piece.text) if piece.target is None else _name(piece.text, piece.target, link) for piece in text
    )


def _escaped(text: str) -> str:
    """Escapes underscores, stars and angle brackets: __consumer_offsets must not become bold."""
    for character in "\\_*<[`":
        text = text.replace(character, f"\\{character}")
    return text


def _name(text: str, target: PageRef, link: Link | None) -> str:
    return f"`{text}`" if link is None else f"[`{text}`]({link(target)})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```"


def _errors(errors: Sequence[ErrorRow], link: Link | None) -> str:
    lines = ["| code | error | | meaning here |", "| ---: | --- | --- | --- |"]
    for row in errors:
        marks = ", ".join(mark for mark, holds in (("retriable", row.retriable), ("reserved", row.reserved)) if holds)
        name = _name(row.name, PageRef("error", row.name), link)
        lines.append(f"| {row.code} | {name} | {marks} | {_cell(_prose(row.meaning, link))} |")
    return "\n".join(lines)


def _diagram(blocks: Sequence[Block]) -> str:
    rows = [row for block in blocks for row in block.rows]
    name_width = max(2 * row.depth + len(row.name) for row in rows) + 2
    type_width = max(len(row.type) for row in rows)
    size_width = max(len(row.size) for row in rows)
    lines = []
    for block in blocks:
        lines.append(f"{block.title}{' · flexible' if block.flexible else ''}")
        for row in block.rows:
            name = f"{'  ' * (row.depth + 1)}{row.name}"
            marks = ", ".join(row.marks)
            lines.append(f"{name:<{name_width}}  {row.type:<{type_width}}  {row.size:<{size_width}}  {marks}".rstrip())
    return "\n".join(lines)


def _schema_line(row: SchemaRow, link: Link | None) -> str:
    about = f": {_prose(row.about, link)}" if row.about else ""
    return f"{'  ' * row.depth}- **{row.name}** `{row.signature}`{about}"


def _bytes(page: MessagePage) -> str:
    lines = []
    for group, rows in hexview.rows(page.example):
        label = f"{'  ' * group.depth}{group.label} {group.value}"
        for row in rows:
            head = f"{row.offset:04x}  {' '.join(f'{cell.byte:02x}' for cell in row.cells)}"
            lines.append(f"{head:<53}  {label}".rstrip())
            label = ""
    return "\n".join(lines)


def _version_lines(page: MessagePage, row: VersionRow, link: Link | None) -> Iterable[str]:
    marks = [
        mark
        for mark, holds in (("this page", row.shown), ("flexible", row.flexible), ("unstable", row.unstable))
        if holds
    ]
    head = f"- **v{row.version}**" + (f" ({', '.join(marks)})" if marks else "")
    notes = " ".join(_prose(note, link) for note in row.notes)
    if not row.notes and not row.changes:
        notes = unchanged(page, row)
    yield f"{head} {notes}".rstrip()
    for change in row.changes:
        yield f"  - {CHANGE_WORDS[change.kind]} `{change.path.removeprefix(f'{page.message}.')}`: {change.detail}"
