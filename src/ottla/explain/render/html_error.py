"""An error's page in HTML."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.page import ErrorPage, ErrorUse
from ottla.explain.render.html_parts import PageLinks, badge, crumbs, named, prose, section, table

UNDERSCORE = joined(["_", element("wbr")])
"""Where the line of a long name may break, on a phone."""


def error_parts(page: ErrorPage, links: PageLinks) -> Iterator[Markup]:
    yield crumbs(page, links)
    marks = [badge("retriable", "ok") if page.retriable else badge("not retriable", "critical")]
    if page.general:
        marks.append(badge("any API"))
    name = joined(page.name.split("_"), UNDERSCORE)
    title = element("h1", name, " ", element("span", str(page.code), class_="version"))
    lead = element("p", prose(page.meaning, links), class_="lead")
    chips = [element("li", mark) for mark in marks]
    if page.exception:
        chips.append(element("li", "Java clients raise ", element("code", page.exception)))
    head = element(
        "div",
        element("p", "Error code", class_="eyebrow"),
        title,
        lead,
        element("ul", *chips, class_="chips", aria_label="Facts"),
    )
    yield element("div", head, class_="masthead")
    if page.remedy:
        yield section("remedy", "What to do", links, element("p", prose(page.remedy, links)))
    if page.uses or page.general:
        yield section("uses", "APIs that answer with it", links, *_uses(page, links))


def _uses(page: ErrorPage, links: PageLinks) -> Iterator[Markup]:
    if page.general:
        yield element("p", "Every API may; these say more about it." if page.uses else "Every API may.")
    if page.uses:
        rows = [_use_row(use, links) for use in page.uses]
        yield table("APIs with this error", ("Key", "API", "What it means there"), rows, "codes")


def _use_row(use: ErrorUse, links: PageLinks) -> Markup:
    mark = joined([" ", badge("reserved", "warning")]) if use.reserved else NOTHING
    return element(
        "tr",
        element("td", str(use.api_key), class_="code"),
        element("th", named(use.api, use.target, links), mark, scope="row"),
        element("td", prose(use.meaning, links)),
    )
