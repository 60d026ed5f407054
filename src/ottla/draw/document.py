"""HTML documents: the frame of every page, and the styles and scripts that all pages share."""

from __future__ import annotations

import pkgutil
from functools import cache

from ottla import __version__
from ottla.draw.markup import NOTHING, Attribute, Markup, element, joined

FOOTER = (
    f"Made by ottla {__version__}. Apache Kafka is a trademark of the Apache Software Foundation; "
    "ottla is not affiliated with it."
)


def document(title: str, about: str, head: Markup, body: Markup, root: str | None = None) -> str:
    """A whole HTML file. `head` holds styles and scripts, `root` is the path to the root of a site."""
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
    skip = element("a", "Skip to content", class_="skip", href="#main")
    content = joined(["\n", element("head", inner), "\n", element("body", skip, body), "\n"])
    return f"<!doctype html>\n{element('html', content, lang='en', data_root=root)}\n"


def top_bar(about: str, home: str | None = None, tools: Markup = NOTHING) -> Markup:
    """The bar above every page. Scripts show the switch between light and dark, which needs them."""
    name = joined([element("strong", "ottla"), " ", element("span", about)])
    brand = element("a", name, class_="brand", href=home) if home else element("span", name, class_="brand")
    switch = element("button", "◐", type="button", class_="theme", aria_label="Colours: system", hidden=True)
    return element("header", brand, tools, switch, class_="top")


def main(*content: str, **more: Attribute) -> Markup:
    return element("main", *content, id="main", tabindex="-1", **more)


def footer() -> Markup:
    return element("footer", element("p", FOOTER), class_="foot")


def shared(name: str) -> Markup:
    """A style or script of all pages: `ground.css` and `theme.js` for the head, `switch.js` for the end of the body."""
    return asset("ottla.draw", name)


@cache
def asset(package: str, name: str) -> Markup:
    """A file in the folder `assets` of a package, to be put into a document unchanged."""
    # Importing importlib.resources would take 20 ms.
    data = pkgutil.get_data(package, f"assets/{name}")
    assert data is not None, f"{package} has no {name}"
    return Markup(data.decode())
