"""The sections of the page in order: what each is about, and how to read its plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ottla.draw.forms import moment
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import RULES
from ottla.spark.report.band_plot import heat_plot
from ottla.spark.report.cards import badge, cards
from ottla.spark.report.count_plots import bar_plot, strip_plot
from ottla.spark.report.headline import STATES, time_of
from ottla.spark.report.html_search import search_box
from ottla.spark.report.line_plot import line_plot
from ottla.spark.report.listings import listed

__all__ = ["SECTIONS"]

Facts = Mapping[str, Any]

READ: Final = {
    "strip": "Each dot is a rebalance, each row a group; the further right, the longer it took. The scale is "
    "logarithmic.",
    "tasks": "Each row is a task, time runs from left to right. Colour and letter show which process ran the task; "
    "where the colour changes, the task moved.",
    "deliveries": "How often records were delivered: for the first time, the second, and so on. Long bars below the "
    "first mean repeated work.",
    "redelivery": "Share of redeliveries among all deliveries, in windows of {window_s:g} s. Near 0 % is healthy.",
    "lock-time": "Mean time that a delivered record was locked, in windows of {window_s:g} s. If it comes close to the "
    "lock duration, consumers are too slow. Known only if metrics of ottla brokers were sampled.",
    "lag-records": "Records that a group had not read yet, over all partitions. If the line keeps rising, the group "
    "does not catch up by itself.",
    "lag-seconds": "How long the next record to read had been waiting, in the group’s slowest partition.",
    "quorum-lag": "Records of the metadata log that a replica had not fetched yet; the maximum in each ten seconds. "
    "Near 0 is healthy.",
}
"""How to read each plot, for first-time readers."""
_EPOCHS: Final = (
    "Every change to a group increments its epoch. The wide grey line is the group epoch, the blue line the assignment "
    "epoch, and each thin line the epoch of a member. Where the lines coincide, the group is stable. Rebalances are "
    "shaded."
)
_REBALANCES: Final = (
    "A rebalance reassigns the partitions or tasks of a group to its members. It ends when every member has its target "
    "assignment. Until then, partitions and tasks that move are not processed."
)
_SHARE_NOTE: Final = (
    "The lag of a share group counts undelivered and in-flight records, so it is not comparable with the lag of other "
    "groups. Rejected records and expired locks are known only if metrics of ottla brokers were sampled."
)
_FINDINGS: Final = "Findings of the rules, the most severe first, each with its evidence and next steps."


# --- what sections are made of ----------------------------------------------------------------------------------------


def _about(text: str) -> Markup:
    return element("p", text, class_="about")


def _judged(facts: Facts, *names: str) -> Markup:
    """The areas of a section, with their lights."""
    areas = [next(each for each in facts["areas"] if each["id"] == name) for name in names]
    judged = [
        element("p", badge(each["state"], STATES[each["state"]]), " ", _said(each), class_="judged") for each in areas
    ]
    return joined([_about(" ".join(each["about"] for each in areas)), *judged])


def _said(area: Facts) -> str:
    end = {"unseen": ": not observed.", "ok": ". No problems found."}
    return f"{area['sentence']}{end.get(area['state'], '.')}"


def _plots(facts: Facts, area: str, *kinds: str) -> Markup:
    drawn = [_plot(each, facts) for each in facts["figures"] if each["area"] == area and each["kind"] in kinds]
    return element("div", *drawn, class_=f"plots {'two' if kinds == ('lines',) else ''}".strip()) if drawn else NOTHING


def _plot(figure: Facts, facts: Facts) -> Markup:
    read = READ.get(figure["id"]) or READ.get(figure["id"].rpartition("-")[0], "")
    read = read.format(window_s=figure["window_ms"] / 1000) if "window_ms" in figure else read
    match figure["kind"]:
        case "lines":
            return line_plot(figure, time_of(facts), read)
        case "heat":
            return heat_plot(figure, time_of(facts), read)
        case "strip":
            return strip_plot(figure, read)
        case _:
            return bar_plot(figure, read)


def _tables(facts: Facts, *names: str) -> Markup:
    return joined(listed(name, facts["tables"][name]) for name in names)


# --- the sections -----------------------------------------------------------------------------------------------------


def findings(facts: Facts) -> Markup:
    if facts["findings"]:
        return joined([_about(_FINDINGS), cards(facts["findings"])])
    looked = [area for area in facts["areas"] if area["state"] != "unseen"]
    if not looked:
        return _about("No data: no table has rows.")
    words = " No problems found. Key numbers:"
    items = [element("li", element("b", area["title"]), f": {area['sentence']}.") for area in looked]
    return joined([element("p", badge("ok", "healthy"), words, class_="judged"), element("ul", *items, class_="fine")])


def cluster(facts: Facts) -> Markup:
    return joined([_judged(facts, "cluster", "quorum"), _tables(facts, "nodes", "topics")])


def groups(facts: Facts) -> Markup:
    plots = _plots(facts, "groups", "lines")
    read = joined([element("h3", "Epochs over time"), element("p", _EPOCHS, class_="read")]) if plots else NOTHING
    found = search_box(facts["tables"]["all_groups"])
    parts = [_judged(facts, "groups"), _tables(facts, "groups"), found, element("div", read, plots, class_="epochs")]
    return joined(parts)


def rebalances(facts: Facts) -> Markup:
    names = ["triggers", "rebalances"] if facts["tables"]["rebalances"]["rows"] else ["triggers"]
    return joined([_about(_REBALANCES), _plots(facts, "groups", "strip"), _tables(facts, *names)])


def streams(facts: Facts) -> Markup:
    return joined([_judged(facts, "streams"), _plots(facts, "streams", "heat"), _tables(facts, "task_movement")])


def share(facts: Facts) -> Markup:
    note = element("p", _SHARE_NOTE, class_="note") if facts["tables"]["share_groups"]["rows"] else NOTHING
    plots = _plots(facts, "share", "bars", "lines")
    tables = _tables(facts, "share_groups"), note, _tables(facts, "stalled", "poison")
    return joined([_judged(facts, "share"), plots, *tables])


def lag(facts: Facts) -> Markup:
    return joined([_judged(facts, "lag"), _plots(facts, "lag", "lines"), _tables(facts, "lag")])


def quorum(facts: Facts) -> Markup:
    about = _about("How well replicas of the metadata log keep up with the leader, and when the leader changed.")
    return joined([about, _plots(facts, "quorum", "lines"), _tables(facts, "replicas", "elections")])


def unseen(facts: Facts) -> Markup:
    about = _about("These rules could not be checked. The table shows what each of them needs.")
    rows = [{"rule": each["rule"], "what": _why(each["rule"]), "why": each.get("why")} for each in facts["unseen"]]
    return joined([about, listed("unseen", {"rows": rows, "total": len(rows), "order": "in the order of the rules"})])


def _why(rule: str) -> str | None:
    return RULES[rule].why if rule in RULES else None


def data(facts: Facts) -> Markup:
    run = facts["run"]
    outputs = dict(facts["tables"]["outputs"])
    sources = run.get("source") or {}
    outputs["rows"] = [{"source": sources.get(row.get("name")), **row} for row in outputs["rows"]]
    versions = ", ".join(f"{name} {value}" for name, value in run["versions"].items() if value)
    thresholds = [f"{name} = {value:g}" for name, value in (run.get("thresholds") or {}).items()]
    return joined(
        [
            _about("Sources of this report. The same data is in report.json in the same directory."),
            _tables(facts, "inputs"),
            listed("outputs", outputs),
            element(
                "p", "Written ", moment(facts["generated"]), f" by {versions}." if versions else ".", class_="again"
            ),
            _again(run.get("command")),
            _noted("Custom thresholds", thresholds),
            _noted("Notes", [str(each) for each in run.get("notes") or ()]),
        ]
    )


def _again(command: str | None) -> Markup:
    if not command:
        return NOTHING
    return element("p", element("b", "To reproduce this report: "), element("code", command), class_="again")


def _noted(title: str, items: Sequence[str]) -> Markup:
    listed_items = element("ul", *(element("li", each) for each in items))
    return element("div", element("b", title), listed_items, class_="notes") if items else NOTHING


SECTIONS: Final[tuple[tuple[str, str, Callable[[Facts], Markup]], ...]] = (
    ("findings", "Findings", findings),
    ("cluster", "Cluster and quorum", cluster),
    ("groups", "Groups", groups),
    ("rebalances", "Rebalances", rebalances),
    ("streams", "Streams groups", streams),
    ("share", "Share groups", share),
    ("lag", "Lag", lag),
    ("quorum", "Quorum lag and elections", quorum),
    ("unseen", "Not visible here", unseen),
    ("data", "Data used", data),
)
"""Anchor, title and content; after the headline, in the order of the page."""
