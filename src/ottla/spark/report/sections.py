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
from ottla.spark.report.line_plot import line_plot
from ottla.spark.report.listings import listed

__all__ = ["SECTIONS"]

Facts = Mapping[str, Any]

READ: Final = {
    "strip": "Each dot is one rebalance, each row a group; the further right, the longer it took. Mind the scale: "
    "each step is about ten times the one before.",
    "tasks": "Each row is a task, time runs from left to right. Colour and letter say which process ran the task; "
    "where the colour changes, the task moved.",
    "deliveries": "Every time that a record is handed out counts: as its first delivery, as its second, and so on. "
    "Long bars below the first mean that work is done over and over.",
    "redelivery": "Of all deliveries in a minute, the part that was not the record’s first. Near 0 % is healthy.",
    "lag-records": "Records that a group had not read yet, all its partitions together. A line that keeps rising does "
    "not catch up by itself.",
    "lag-seconds": "For how long the record that a group reads next had been waiting, in its slowest partition.",
    "quorum-lag": "Records of the metadata log that a replica had not copied yet; the most in each ten seconds. "
    "Near 0 is healthy.",
}
"""How to read each plot, for first-time readers."""
_EPOCHS: Final = (
    "Every change to a group gives it a new epoch, a number that only grows. The wide grey line is the group’s epoch, "
    "the blue line the epoch for which work was dealt out, and each thin line the epoch at which a member works. Where "
    "they lie on each other, the group is at rest. Shaded is the time that a rebalance took."
)
_REBALANCES: Final = (
    "A rebalance deals out the partitions or tasks of a group among its members. It is over when every member has what "
    "it is to have. While it runs, what moves is not worked on."
)
_SHARE_NOTE: Final = (
    "The lag of a share group counts records that were not delivered yet and those that are being worked on; it is not "
    "to be compared with the lag of other groups. Rejected records and expired locks are known only where the metrics "
    "of ottla’s brokers were sampled."
)
_FINDINGS: Final = (
    "What the rules found, worst first: what is so, since when, the numbers behind it, and what to check. Where the "
    "data do not show a cause, none is named."
)


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
    end = {"unseen": ": nobody looked.", "ok": ". Nothing is wrong here that ottla can see."}
    return f"{area['sentence']}{end.get(area['state'], '.')}"


def _plots(facts: Facts, area: str, *kinds: str) -> Markup:
    drawn = [_plot(each, facts) for each in facts["figures"] if each["area"] == area and each["kind"] in kinds]
    return element("div", *drawn, class_=f"plots {'two' if kinds == ('lines',) else ''}".strip()) if drawn else NOTHING


def _plot(figure: Facts, facts: Facts) -> Markup:
    read = READ.get(figure["id"]) or READ.get(figure["id"].rpartition("-")[0], "")
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
        return _about("There was nothing to look at: no table has rows.")
    words = " Nothing is wrong that ottla can see. The numbers behind it:"
    items = [element("li", element("b", area["title"]), f": {area['sentence']}.") for area in looked]
    return joined([element("p", badge("ok", "fine"), words, class_="judged"), element("ul", *items, class_="fine")])


def cluster(facts: Facts) -> Markup:
    return joined([_judged(facts, "cluster", "quorum"), _tables(facts, "nodes")])


def groups(facts: Facts) -> Markup:
    plots = _plots(facts, "groups", "lines")
    read = joined([element("h3", "Epochs over time"), element("p", _EPOCHS, class_="read")]) if plots else NOTHING
    return joined([_judged(facts, "groups"), _tables(facts, "groups"), element("div", read, plots, class_="epochs")])


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
    about = _about("How well the members of the quorum keep up with its leader, and when the leader changed.")
    return joined([about, _plots(facts, "quorum", "lines"), _tables(facts, "replicas", "elections")])


def unseen(facts: Facts) -> Markup:
    about = _about("A check that cannot be made says nothing, neither good nor bad. This is what each would need.")
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
            _about("What this report was made of. The same facts are in report.json beside it."),
            _tables(facts, "inputs"),
            listed("outputs", outputs),
            element(
                "p", "Written ", moment(facts["generated"]), f" by {versions}." if versions else ".", class_="again"
            ),
            _again(run.get("command")),
            _noted("Thresholds that were set", thresholds),
            _noted("Notes", [str(each) for each in run.get("notes") or ()]),
        ]
    )


def _again(command: str | None) -> Markup:
    if not command:
        return NOTHING
    return element("p", element("b", "To make this again: "), element("code", command), class_="again")


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
    ("unseen", "What cannot be seen here", unseen),
    ("data", "Data used", data),
)
"""Anchor, title and content; after the headline, in the order of the page."""
