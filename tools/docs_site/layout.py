"""Pages as documents: the bar, the list of all pages, the table of contents, and the way from one page to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ottla.draw.document import main
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain import site
from ottla.explain.address import root_from
from ottla.explain.search_index import OtherPage
from ottla.explain.site import Frame, SiteFile
from tools.docs_site.markdown import Heading
from tools.docs_site.pages import Page, Section

STYLE: Final = "assets/docs.css"
PROTOCOL: Final = "protocol.html"
_CONTENTS_MIN: Final = 2
"""Pages with fewer headings have no table of contents."""


def files(sections: Sequence[Section]) -> Iterator[SiteFile]:
    """The whole site, the protocol included."""
    frame = frame_of(sections)
    pages = [page for section in sections for page in section.pages]
    for before, page, after in zip([None, *pages[:-1]], pages, [*pages[1:], None], strict=True):
        yield SiteFile(page.file, _document(page, sections, frame, _pager(page, before, after)))
    yield SiteFile(STYLE, (Path(__file__).parent / "docs.css").read_text(encoding="utf-8"))
    yield from site.files(frame, [_searched(page) for page in pages])


def frame_of(sections: Sequence[Section]) -> Frame:
    """The bar leads to the first page of each kind, and to the protocol."""
    kinds = [section for section in sections if section.title and "/" in section.pages[0].file]
    areas = [(section.title, section.pages[0].file) for section in kinds if section.pages[0].file.count("/") == 1]
    return Frame("documentation", PROTOCOL, (*areas, ("Protocol", PROTOCOL)), "pages, messages, errors", (STYLE,))


def _searched(page: Page) -> OtherPage:
    return OtherPage(page.file, page.rendered.title, page.rendered.sections)


def _document(page: Page, sections: Sequence[Section], frame: Frame, pager: Markup) -> str:
    root = root_from(page.file)
    rendered = page.rendered
    article = element("article", rendered.html, pager, class_="doc")
    inner = main(_contents(rendered.headings), article, _all_pages(page, sections, root), class_="docs")
    return site.framed(f"{rendered.title} · ottla", rendered.about[:200], inner, root, frame)


def _contents(headings: Sequence[Heading]) -> Markup:
    """The headings of the page; the list of all pages is one link away, where there is no room for both."""
    every = element("a", "All pages", href="#pages", class_="to-pages")
    listed = [heading for heading in headings[1:] if heading.level in (2, 3)]
    if len(listed) < _CONTENTS_MIN:
        return element("nav", every, class_="contents", aria_label="On this page")
    items = [
        element("li", element("a", title, href=f"#{anchor}"), class_=f"l{level}") for level, anchor, title in listed
    ]
    return element(
        "nav", every, element("h2", "On this page"), element("ul", *items), class_="contents", aria_label="On this page"
    )


def _all_pages(own: Page, sections: Sequence[Section], root: str) -> Markup:
    parts = []
    for section in sections:
        items = [element("li", _link(page, own, root)) for page in section.pages]
        if section.title:
            is_open = own in section.pages
            parts.append(element("details", element("summary", section.title), element("ul", *items), open=is_open))
        else:
            parts.append(element("ul", *items))
    protocol = element("ul", element("li", element("a", "Kafka’s protocol", href=f"{root}{PROTOCOL}")))
    return element("nav", *parts, protocol, class_="all-pages", id="pages", aria_label="All pages")


def _link(page: Page, own: Page, root: str) -> Markup:
    current = "page" if page.file == own.file else None
    return element("a", page.rendered.title, href=f"{root}{page.file}", aria_current=current)


def _pager(own: Page, before: Page | None, after: Page | None) -> Markup:
    root = root_from(own.file)
    items = [
        element("a", page.rendered.title, href=f"{root}{page.file}", rel=rel)
        for page, rel in ((before, "prev"), (after, "next"))
        if page is not None
    ]
    return element("nav", joined(items) or NOTHING, class_="pager", aria_label="Neighbours")
