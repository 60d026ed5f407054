"""The list of all pages in HTML: APIs by key, records by the topic or file that holds them, errors by code."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.api_groups import GROUPS, group_of
from ottla.explain.kips import kips_of
from ottla.explain.page import CatalogueRow, CatalogueSection, PageRef, Part
from ottla.explain.render.html_parts import PageLinks, badge, named, table
from ottla.wire.errors import by_name

REQUEST: Part = "request"
RESPONSE: Part = "response"
_INTRO = (
    "Every request, response, record and error of Apache Kafka: what it is for, who sends it, what may go wrong, and "
    "what each of its bytes says. All examples were encoded by the codec and read back."
)


def list_page(sections: Sequence[CatalogueSection], links: PageLinks) -> Markup:
    by_kind: dict[str, list[CatalogueSection]] = {}
    for section in sections:
        by_kind.setdefault(section.rows[0].ref.kind, []).append(section)
    errors = by_kind["error"][0]
    parts = [
        _masthead(by_kind),
        _filter(),
        _part("apis", "APIs", [_apis(by_kind["api"][0].rows, links)]),
        _part("records", "Records", [_messages(section, links) for section in by_kind["record"]]),
        _part("headers", "Headers", [_messages(section, links, has_title=False) for section in by_kind["header"]]),
        _part("errors", "Errors", [_errors(errors.rows, links)]),
        element("p", "Nothing here matches.", class_="nothing", role="status", hidden=True),
    ]
    return element("article", *parts, class_="page list")


def _masthead(by_kind: dict[str, list[CatalogueSection]]) -> Markup:
    counts = {kind: sum(len(section.rows) for section in sections) for kind, sections in by_kind.items()}
    words = {"api": "APIs", "record": "record types", "header": "headers", "error": "errors"}
    chips = [element("li", element("a", f"{counts[kind]} {word}", href=f"#{kind}s")) for kind, word in words.items()]
    return element(
        "div",
        element("h1", "Kafka’s protocol, byte by byte"),
        element("p", _INTRO, class_="lead"),
        element("ul", *chips, class_="chips", aria_label="What there is"),
        class_="masthead",
    )


def _filter() -> Markup:
    """An input field and a button for each group of APIs, which the script shows."""
    box = element("input", type="search", id="filter", placeholder="Name, key, code or KIP", autocomplete="off")
    groups = [element("button", group, type="button", aria_pressed="false", data_group=group) for group in GROUPS]
    return element(
        "form",
        element("label", "Show only", for_="filter"),
        box,
        element("div", *groups, class_="groups", role="group", aria_label="Groups of APIs"),
        class_="filter",
        role="search",
        aria_label="Filter this list",
        hidden=True,
    )


def _part(name: str, title: str, content: Sequence[Markup]) -> Markup:
    return element("section", element("h2", title), *content, id=name)


def _apis(rows: Sequence[CatalogueRow], links: PageLinks) -> Markup:
    found = [_api_row(row, links) for row in rows]
    return table("APIs by key", ("Key", "API", "What it does", "Group", "Pages"), found, "codes listed")


def _api_row(row: CatalogueRow, links: PageLinks) -> Markup:
    group = group_of()[row.name]
    halves = [
        element("a", text, href=links.link(PageRef("api", row.name, part)))
        for text, part in (("request", REQUEST), ("response", RESPONSE))
    ]
    kips = kips_of(f"{row.name}Request", f"{row.name}Response")
    return element(
        "tr",
        element("td", str(row.api_key), class_="code"),
        element("th", named(row.name, row.ref, links), " ", element("small", _versions(row)), scope="row"),
        element("td", row.summary),
        element("td", group, class_="group"),
        element("td", joined(halves, " "), class_="halves"),
        data_find=_searchable(str(row.api_key), row.name, group, *kips),
        data_group=group,
    )


def _versions(row: CatalogueRow) -> str:
    low, high = row.versions[0], row.versions[-1]
    return f"v{low}" if low == high else f"v{low}–{high}"


def _searchable(*words: str) -> str:
    return " ".join(words).lower()


def _messages(section: CatalogueSection, links: PageLinks, *, has_title: bool = True) -> Markup:
    title = element("h3", section.title) if has_title else NOTHING
    rows = [_message_row(row, section.title, links) for row in section.rows]
    listed = table(section.title, ("Type", "Name", "What it is"), rows, "codes listed")
    return element("div", title, listed, class_="family")


def _message_row(row: CatalogueRow, family: str, links: PageLinks) -> Markup:
    key = "" if row.api_key is None else str(row.api_key)
    return element(
        "tr",
        element("td", key, class_="code"),
        element("th", named(row.name, row.ref, links), " ", element("small", _versions(row)), scope="row"),
        element("td", row.summary),
        data_find=_searchable(key, row.name, family, *kips_of(row.name)),
    )


def _errors(rows: Sequence[CatalogueRow], links: PageLinks) -> Markup:
    found = [_error_row(row, links) for row in rows]
    return table("Errors by code", ("Code", "Error", "What it means"), found, "codes listed")


def _error_row(row: CatalogueRow, links: PageLinks) -> Markup:
    error = by_name(row.name)
    mark = joined([" ", badge("retriable", "ok")]) if error.retriable else NOTHING
    return element(
        "tr",
        element("td", str(row.api_key), class_="code"),
        element("th", named(row.name, row.ref, links), mark, scope="row"),
        element("td", row.summary),
        data_find=_searchable(str(row.api_key), row.name, error.exception or ""),
    )
