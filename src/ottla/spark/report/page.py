"""The report as one HTML file: it works offline and without scripts, and loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.draw.document import asset, document, footer, main, shared, top_bar
from ottla.draw.markup import Markup, element, joined
from ottla.spark.report.headline import headline, summary, time_of
from ottla.spark.report.html_table import DETAIL, DETAILS, permalink
from ottla.spark.report.sections import SECTIONS

__all__ = ["POLICY", "page"]

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content security policy of the page."""
BYTES_MAX: Final = 3_000_000


def page(facts: Mapping[str, Any]) -> str:
    """The page of these facts. The same facts give the same page."""
    made = ""
    for detail in DETAILS:
        token = DETAIL.set(detail)
        try:
            made = _page(facts)
        finally:
            DETAIL.reset(token)
        if len(made.encode()) < BYTES_MAX:
            break
    return made


def _page(facts: Mapping[str, Any]) -> str:
    time = time_of(facts)
    sections = [_section(name, title, make(facts)) for name, title, make in SECTIONS]
    content = main(headline(facts), _jump(), *sections, data_from=round(time.low), data_to=round(time.high))
    scripts = element("script", shared("switch.js"), Markup("\n"), _own("report.js"))
    body = joined([top_bar("health of a Kafka cluster", tools=_clock()), content, footer(), scripts])
    return document(" · ".join(["Report", *facts["clusters"][:3]]), summary(facts), _head(), body)


def _head() -> Markup:
    policy = element("meta", http_equiv="Content-Security-Policy", content=POLICY)
    styles = element("style", joined([shared("ground.css"), shared("parts.css"), _own("report.css")], "\n"))
    return joined([policy, styles, element("script", shared("theme.js"))], "\n")


def _own(name: str) -> Markup:
    return asset("ottla.spark.report", name)


def _clock() -> Markup:
    """The switch between UTC and the reader's time zone, which the script shows."""
    return element("button", "UTC", type="button", class_="tool clock", aria_label="Times: UTC", hidden=True)


def _jump() -> Markup:
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in SECTIONS]
    return element("nav", element("ul", *links), class_="jump", aria_label="Sections")


def _section(name: str, title: str, content: Markup) -> Markup:
    heading = element("div", element("h2", title, id=f"{name}-title"), permalink(name), class_="heading")
    return element("section", heading, content, id=name, aria_labelledby=f"{name}-title")
