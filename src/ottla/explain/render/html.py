"""Pages as HTML.

`article` is the page itself: plain, semantic markup without scripts and styles, readable as it is. `render` makes one
file of it that needs nothing else; the site (`ottla.explain.site`) puts the same articles into files that share
styles and scripts. Where a link leads is the caller's to say; a page that is not at hand gets no link.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ottla import __version__
from ottla.explain.address import exact
from ottla.explain.page import ErrorPage, Page, plain
from ottla.explain.render.html_error import error_parts
from ottla.explain.render.html_message import message_parts
from ottla.explain.render.html_parts import Place
from ottla.explain.render.markup import NOTHING, Markup, element, joined

FOOTER = (
    f"Made by ottla {__version__}. Apache Kafka is a trademark of the Apache Software Foundation; "
    "ottla is not affiliated with it."
)


def render(page: Page) -> str:
    """One page as a file of its own, styles and scripts inside."""
    return render_all([page])


def render_all(pages: Sequence[Page]) -> str:
    """One page or several in a file; they link to each other, and names of all other pages are no links."""
    prefixes = {page.ref: f"p{number}-" if len(pages) > 1 else "" for number, page in enumerate(pages)}
    anchors = {ref: f"#{prefix}top" for ref, prefix in prefixes.items()}
    articles = [article(page, Place(lambda ref: anchors.get(exact(ref)), prefix=prefixes[page.ref])) for page in pages]
    head = joined([element("style", asset("page.css")), element("script", asset("theme.js"))])
    scripts = element("script", asset("page.js"))
    title = " · ".join(page.title for page in pages)
    return document(title, description(pages[0]), head, joined([top_bar(), main(*articles), footer(), scripts]))


def document(title: str, about: str, head: Markup, body: Markup, root: str | None = None) -> str:
    """A whole HTML file. `head` is what loads styles and scripts, `root` leads to the root of a site."""
    inner = joined(
        [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", title),
            element("meta", name="description", content=about),
            head,
        ],
        "\n",
    )
    skip = element("a", "Skip to the page", class_="skip", href="#main")
    content = joined(["\n", element("head", inner), "\n", element("body", skip, body), "\n"])
    return f"<!doctype html>\n{element('html', content, lang='en', data_root=root)}\n"


def description(page: Page) -> str:
    return plain(page.meaning if isinstance(page, ErrorPage) else page.summary)


def top_bar(home: str | None = None, tools: Markup = NOTHING) -> Markup:
    """The bar above every page. The switch between light and dark does nothing without scripts and waits for them."""
    name = joined([element("strong", "ottla"), " ", element("span", "Kafka’s protocol, byte by byte")])
    brand = element("a", name, class_="brand", href=home) if home else element("span", name, class_="brand")
    switch = element("button", "◐", type="button", class_="theme", aria_label="Colours: as the system", hidden=True)
    return element("header", brand, tools, switch, class_="top")


def main(*content: str) -> Markup:
    return element("main", *content, id="main", tabindex="-1")


def footer() -> Markup:
    return element("footer", element("p", FOOTER), class_="foot")


@cache
def asset(name: str) -> Markup:
    """A style or script of this package, to be put into a document as it is."""
    # The loader reads files and zip archives alike; importlib.resources would, too, at 20 ms for its import.
    assert __spec__ is not None
    loader: Any = __spec__.loader
    folder = __file__.rpartition("html.py")[0]
    return Markup(bytes(loader.get_data(f"{folder}assets/{name}")).decode())


def article(page: Page, place: Place) -> Markup:
    """A page for any document."""
    parts = error_parts(page, place) if isinstance(page, ErrorPage) else message_parts(page, place)
    return element("article", *parts, class_="page", id=f"{place.prefix}top")
