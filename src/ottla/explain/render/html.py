"""Pages as HTML.

`article` is the page itself: plain, semantic markup without scripts and styles, readable as it is. `render` makes one
file of it that needs nothing else; the site (`ottla.explain.site`) puts the same articles into files that share
styles and scripts. The caller decides where links lead; a page that is not available gets no link.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.draw.document import asset, document, footer, main, shared, top_bar
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.address import exact
from ottla.explain.page import ErrorPage, Page, plain
from ottla.explain.render.html_error import error_parts
from ottla.explain.render.html_message import message_parts
from ottla.explain.render.html_parts import PageLinks

TAG_LINE = "Kafka’s protocol, byte by byte"
_GROUND = {"page.css": "ground.css", "page.js": "switch.js"}
"""Style or script of these pages -> the one that all pages share, which goes before it."""


def render(page: Page) -> str:
    """One page as a file of its own, styles and scripts inside."""
    return render_all([page])


def render_all(pages: Sequence[Page]) -> str:
    """One page or several in a file. They link to each other; the names of other pages are not links."""
    prefixes = {page.ref: f"p{number}-" if len(pages) > 1 else "" for number, page in enumerate(pages)}
    anchors = {ref: f"#{prefix}top" for ref, prefix in prefixes.items()}
    articles = [
        article(page, PageLinks(lambda ref: anchors.get(exact(ref)), prefix=prefixes[page.ref])) for page in pages
    ]
    head = joined([element("style", own("page.css")), element("script", own("theme.js"))])
    scripts = element("script", own("page.js"))
    title = " · ".join(page.title for page in pages)
    return document(title, description(pages[0]), head, joined([bar(), main(*articles), footer(), scripts]))


def description(page: Page) -> str:
    return plain(page.meaning if isinstance(page, ErrorPage) else page.summary)


def bar(home: str | None = None, tools: Markup = NOTHING) -> Markup:
    return top_bar(TAG_LINE, home, tools)


def own(name: str) -> Markup:
    """A style or script of these pages, after the shared one that it needs."""
    if name == "theme.js":
        return shared(name)
    text = asset("ottla.explain.render", name)
    return joined([shared(_GROUND[name]), text], "\n") if name in _GROUND else text


def article(page: Page, links: PageLinks) -> Markup:
    """A page for any document."""
    parts = error_parts(page, links) if isinstance(page, ErrorPage) else message_parts(page, links)
    return element("article", *parts, class_="page", id=f"{links.prefix}top")
