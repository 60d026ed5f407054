"""All pages as a site: files that link to each other, a list of everything, and a search that needs no server.

`files` yields the files, and the caller writes them. One version of ottla always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.draw.document import document, footer, main, top_bar
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.address import HOME, exact, path, root_from
from ottla.explain.assemble import build
from ottla.explain.lookup import all_refs, catalogue
from ottla.explain.page import CatalogueRow, Page, PageRef
from ottla.explain.render.html import TAG_LINE, article, description, own
from ottla.explain.render.html_list import list_page
from ottla.explain.render.html_parts import PageLinks
from ottla.explain.search_index import OtherPage, SearchIndex

ASSETS = ("page.css", "site.css", "theme.js", "page.js", "site.js")
INDEX_SCRIPT = "assets/search-index.js"
TITLE = "Kafka’s protocol, byte by byte"


class SiteFile(NamedTuple):
    path: str
    text: str


class Frame(NamedTuple):
    """What surrounds every page of a site. A larger site, of which these pages are a part, has more in its bar."""

    tag_line: str = TAG_LINE
    list_file: str = HOME
    """The list of the pages about the protocol."""
    areas: tuple[tuple[str, str], ...] = ()
    """Title and file of each area of the site, for the bar."""
    searched: str = "messages, fields, errors"
    styles: tuple[str, ...] = ()
    """Style sheets besides those of these pages."""


ALONE = Frame()


def file_count() -> int:
    """How many files `files` gives."""
    return len(ASSETS) + sum(1 for _ in all_refs()) + 2


def files(frame: Frame = ALONE, others: Sequence[OtherPage] = ()) -> Iterator[SiteFile]:
    """Every file of the site, the list of pages last. `others` are pages of a larger site, which its search finds."""
    for name in ASSETS:
        yield SiteFile(f"assets/{name}", own(name))
    index = SearchIndex(others=others)
    neighbours = _neighbours()
    for ref in all_refs():
        page = build(ref)
        index.add(page)
        yield _page_file(page, neighbours, frame)
    yield SiteFile(INDEX_SCRIPT, index.script())
    yield SiteFile(frame.list_file, _list(frame))


def _page_file(page: Page, neighbours: dict[tuple[str, str], _Beside], frame: Frame) -> SiteFile:
    file = path(page.ref)
    root = root_from(file)

    def link(ref: PageRef) -> str:
        return f"{root}{path(ref)}"

    links = PageLinks(link, home=f"{root}{frame.list_file}")
    beside = neighbours.get((page.ref.kind, page.ref.name))
    pager = _pager(beside, page.ref, links) if beside else NOTHING
    content = main(article(page, links), pager)
    return SiteFile(file, framed(f"{page.title} · {TITLE}", description(page), content, root, frame))


def _list(frame: Frame) -> str:
    links = PageLinks(path, home=frame.list_file)
    about = "Every request, response, record and error of Apache Kafka: what it is for and what its bytes look like."
    return framed(TITLE, about, main(list_page(catalogue(), links)), "", frame)


def framed(title: str, about: str, content: Markup, root: str, frame: Frame) -> str:
    """A page of the site; `root` is the path to the root of the site."""
    sheets = [*(f"assets/{name}" for name in ASSETS if name.endswith("css")), *frame.styles]
    styles = [element("link", rel="stylesheet", href=f"{root}{sheet}") for sheet in sheets]
    theme = element("script", src=f"{root}assets/theme.js")
    scripts = [element("script", src=f"{root}assets/{name}", defer=True) for name in ("page.js", "site.js")]
    head = joined([*styles, theme, *scripts], "\n")
    tools = joined([_areas(frame, root), _search(frame.searched)])
    return document(
        title, about, head, joined([top_bar(frame.tag_line, f"{root}{HOME}", tools), content, footer()]), root
    )


def _areas(frame: Frame, root: str) -> Markup:
    links = [element("a", title, href=f"{root}{file}") for title, file in frame.areas]
    return element("nav", *links, class_="areas", aria_label="Areas") if links else NOTHING


def _search(searched: str) -> Markup:
    """The search box, which the script shows because it needs the script."""
    box = element(
        "input",
        id="search",
        type="search",
        role="combobox",
        placeholder=f"Search {searched}",
        autocomplete="off",
        spellcheck="false",
        aria_label=f"Search {searched}",
        aria_autocomplete="list",
        aria_expanded="false",
        aria_controls="hits",
    )
    hits = element("ul", id="hits", role="listbox", aria_label="Found", hidden=True)
    return element("search", box, element("kbd", "/", aria_hidden="true"), hits, hidden=True)


# --- from one page to the next ----------------------------------------------------------------------------------------


class _Beside(NamedTuple):
    """The pages before and after one in the list of all."""

    before: CatalogueRow | None
    after: CatalogueRow | None


def _neighbours() -> dict[tuple[str, str], _Beside]:
    """Kind and name of a page -> its neighbours in the list, within its kind."""
    found: dict[tuple[str, str], _Beside] = {}
    by_kind: dict[str, list[CatalogueRow]] = {}
    for section in catalogue():
        for row in section.rows:
            by_kind.setdefault(row.ref.kind, []).append(row)
    for rows in by_kind.values():
        for before, row, after in zip([None, *rows[:-1]], rows, [*rows[1:], None], strict=True):
            found[row.ref.kind, row.ref.name] = _Beside(before, after)
    return found


def _pager(beside: _Beside, own: PageRef, links: PageLinks) -> Markup:
    """Links to the neighbours; from a response to a response."""
    items = [
        element("a", _pager_text(row), href=links.link(exact(PageRef(row.ref.kind, row.ref.name, own.part))), rel=rel)
        for row, rel in ((beside.before, "prev"), (beside.after, "next"))
        if row is not None
    ]
    return element("nav", *items, class_="pager", aria_label="Neighbours")


def _pager_text(row: CatalogueRow) -> str:
    return row.name if row.api_key is None else f"{row.api_key} {row.name}"
