"""The first screen: one sentence, a light for each area, and a timeline of findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.draw.forms import identity, moment
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import RULES
from ottla.health.phrases import duration, plural
from ottla.spark.report.axes import Scale
from ottla.spark.report.band_plot import findings_plot
from ottla.spark.report.cards import anchor, badge

__all__ = ["STATES", "headline", "summary", "time_of"]

BANDS: Final = 20
STATES: Final = {
    "critical": "critical",
    "warning": "warning",
    "notice": "notice",
    "ok": "healthy",
    "recovered": "recovered",
    "none": "none",
    "unseen": "not visible",
}
_READ: Final = (
    "Each bar is a finding, from start to end; the findings are described below. An arrow marks a finding that is "
    "ongoing."
)

Facts = Mapping[str, Any]


def time_of(facts: Facts) -> Scale:
    """The time axis of all plots; it covers at least a second."""
    low, high = facts["range"]["from_ms"], facts["range"]["to_ms"]
    return Scale(low, max(high, low + 1000))


def summary(facts: Facts) -> str:
    """The description of the page."""
    return f"{facts['headline']['sentence']}. {plural(len(facts['findings']), 'finding')}."


def headline(facts: Facts) -> Markup:
    return element(
        "section",
        element("p", "Health report", class_="eyebrow"),
        element("h1", facts["headline"]["sentence"]),
        element("p", _period(facts), class_="period"),
        element("ul", *map(_light, facts["areas"]), class_="lights", aria_label="Areas"),
        _unseen(facts),
        _when(facts),
        id="headline",
        class_="headline",
    )


def _period(facts: Facts) -> Markup:
    ids = joined([identity(each) for each in facts["clusters"]], ", ") if facts["clusters"] else "unknown"
    which = "Cluster " if len(facts["clusters"]) < 2 else "Clusters "
    ends = facts["range"]
    took = f" ({duration(ends['to_ms'] - ends['from_ms'])})"
    return joined([which, ids, " · ", moment(ends["from_ms"]), " to ", moment(ends["to_ms"]), took])


def _light(area: Facts) -> Markup:
    counts = [f"{count} {severity}" for severity, count in area["open"].items() if count]
    counts += [f"{area['resolved']} resolved"] if area["resolved"] else []
    nothing = "not observed" if area["state"] == "unseen" else "no findings"
    return element(
        "li",
        element("a", area["title"], href=f"#{area['id']}"),
        badge(area["state"], STATES[area["state"]]),
        element("span", ", ".join(counts) or nothing, class_="counts"),
        element("span", area["sentence"], class_="said"),
        class_=area["state"],
    )


def _unseen(facts: Facts) -> Markup:
    count = len(facts["unseen"])
    if not count:
        return NOTHING
    link = element("a", "list and requirements", href="#unseen")
    return element("p", f"{count} of {len(RULES)} rules could not be checked: ", link, ".", class_="unseen-line")


def _when(facts: Facts) -> Markup:
    """The findings over time, in the order in which they opened."""
    to_ms = round(time_of(facts).high)
    rows = sorted((_band(each, to_ms) for each in facts["findings"][:BANDS]), key=lambda row: row["from_ms"])
    if not rows:
        return NOTHING
    more = len(facts["findings"]) - len(rows)
    read = _READ + (f" {more:,} more are not drawn." if more else "")
    drawn = {"id": "when", "kind": "when", "title": "Timeline", "rows": rows}
    return findings_plot(drawn, time_of(facts), read)


def _band(finding: Facts, to_ms: int) -> dict[str, Any]:
    is_over = finding["state"] != "open" and finding["until_ms"] is not None
    return {
        "name": f"{finding['rule']} · {finding['subject']['name']}",
        "severity": finding["severity"],
        "state": finding["state"],
        "from_ms": finding["since_ms"],
        "to_ms": finding["until_ms"] if is_over else to_ms,
        "href": f"#{anchor(finding)}",
    }
