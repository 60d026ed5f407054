"""The sections of the page, in their order: what each is about, and how its plots are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import RULES
from ottla.health.wording import duration, plural
from ottla.spark.report.axes import Scale
from ottla.spark.report.band_plot import findings_plot, heat_plot
from ottla.spark.report.cards import anchor, badge, cards
from ottla.spark.report.count_plots import bar_plot, strip_plot
from ottla.spark.report.forms import identity, moment
from ottla.spark.report.line_plot import line_plot
from ottla.spark.report.listing import fields, listing

__all__ = ["SECTIONS", "headline"]

Facts = Mapping[str, Any]
BANDS: Final = 30
STATES: Final = {"critical": "critical", "warning": "warning", "notice": "to know", "ok": "fine", "recovered": "was wrong, is over",
                 "unseen": "not seen"}  # fmt: skip
READ: Final = {
    "timeline": "Every change to a group gives it a new epoch, a number that only grows. The wide grey line is the group’s "
    "epoch, the blue one the epoch for which work was dealt out, the thin ones are the members. Where they lie on each "
    "other the group is at rest; shaded is the time that a rebalance took.",
    "strip": "Each dot is one rebalance, one row for each group; the further right, the longer it took. Mind the scale: each "
    "line is about ten times the one before.",
    "tasks": "Each row is a task, time runs from left to right. The colour and its letter say which process ran the task; "
    "where the colour changes, the task moved.",
    "deliveries": "How many records were delivered once, twice, and so on. Many long bars below the first mean that work is "
    "done over and over.",
    "redelivery": "Of all deliveries in a minute, the part that was not the record’s first. Near 0 % is healthy.",
    "lag-lag": "Records that a group had not read yet, all its partitions together. A line that keeps rising does not catch "
    "up by itself.",
    "lag-seconds": "How long ago the record was written that a group reads next, of its slowest partition.",
    "quorum-lag": "How many records of the metadata log a replica had not copied yet; the greatest of each ten seconds. "
    "Near 0 is healthy.",
    "when": "Each bar is a finding below, from when to when it was true. An arrow at the end means that it still was.",
}


def time_of(facts: Facts) -> Scale:
    """The axis of time of all plots; a moment is drawn as a second."""
    low, high = facts["range"]["from_ms"], facts["range"]["to_ms"]
    return Scale(low, max(high, low + 1000))


def _figures(facts: Facts, area: str, kinds: Sequence[str] = ("lines", "heat", "strip", "bars")) -> Markup:
    time = time_of(facts)
    drawn = []
    for each in facts["figures"]:
        if each["area"] != area or each["kind"] not in kinds:
            continue
        read = READ[each["id"] if each["id"] in READ else each["id"].rsplit("-", 1)[0]]
        match each["kind"]:
            case "lines":
                drawn.append(line_plot(each, time, read))
            case "heat":
                drawn.append(heat_plot(each, time, read))
            case "strip":
                drawn.append(strip_plot(each, read))
            case _:
                drawn.append(bar_plot(each, read))
    return joined(drawn)


def _area(facts: Facts, name: str) -> Mapping[str, Any]:
    return next(each for each in facts["areas"] if each["id"] == name)


def _judged(facts: Facts, *names: str) -> Markup:
    """What the areas of a section are, and how they are."""
    areas = [_area(facts, name) for name in names]
    about = element("p", " ".join(area["about"] for area in areas), class_="about")
    return joined(
        [
            about,
            *(
                element("p", badge(area["state"], STATES[area["state"]]), " ", _said(area), class_="judged")
                for area in areas
            ),
        ]
    )


def _said(area: Mapping[str, Any]) -> str:
    end = {"unseen": " Nobody looked.", "ok": ". Nothing is wrong here that ottla can see."}
    return area["sentence"] + end.get(area["state"], ".").replace("..", ".")


# --- (1) headline -------------------------------------------------------------------------------------------------------


def headline(facts: Facts) -> Markup:
    span = facts["range"]["to_ms"] - facts["range"]["from_ms"]
    ids = joined([identity(each) for each in facts["clusters"]], ", ") if facts["clusters"] else "unknown"
    which = "Cluster " if len(facts["clusters"]) < 2 else "Clusters "
    period = joined(
        [
            which,
            ids,
            " · ",
            moment(facts["range"]["from_ms"]),
            " to ",
            moment(facts["range"]["to_ms"]),
            f" ({duration(span)}), UTC",
        ]
    )
    return element(
        "section",
        element("p", "Health report", class_="eyebrow"),
        element("h1", facts["headline"]["sentence"]),
        element("p", period, class_="period"),
        element("ul", *(_light(area) for area in facts["areas"]), class_="lights", aria_label="Areas"),
        _unseen_line(facts),
        _when(facts),
        id="headline",
        class_="headline",
    )


def _light(area: Mapping[str, Any]) -> Markup:
    counts = [f"{count} {severity}" for severity, count in area["open"].items() if count]
    counts += [f"{area['resolved']} over"] if area["resolved"] else []
    told = ", ".join(counts) or ("no findings" if area["state"] != "unseen" else "nobody looked")
    return element(
        "li",
        element("a", area["title"], href=f"#{ANCHORS[area['id']]}"),
        badge(area["state"], STATES[area["state"]]),
        element("span", told, class_="counts"),
        element("span", area["sentence"], class_="said"),
        class_=area["state"],
    )


def _unseen_line(facts: Facts) -> Markup:
    count = len(facts["unseen"])
    if not count:
        return element("p", f"All {len(RULES)} checks could be made.", class_="unseen-line")
    link = element("a", "what, and why", href="#unseen")
    return element("p", f"{count} of {len(RULES)} checks could not be made here: ", link, ".", class_="unseen-line")


def _when(facts: Facts) -> Markup:
    to_ms = time_of(facts).high
    rows = [
        {"name": f"{each['rule']} · {each['subject']['name']}", "severity": each["severity"], "state": each["state"],
         "from_ms": each["since_ms"], "to_ms": each["until_ms"] if each["until_ms"] is not None and each["state"] != "open" else round(to_ms),
         "href": f"#{anchor(each)}"}
        for each in facts["findings"][:BANDS]
    ]  # fmt: skip
    if not rows:
        return NOTHING
    rows.sort(key=lambda row: row["from_ms"])
    more = len(facts["findings"]) - len(rows)
    read = READ["when"] + (f" {more:,} more are not drawn." if more > 0 else "")
    return findings_plot(
        {"id": "when", "kind": "when", "title": "What happened when", "rows": rows}, time_of(facts), read
    )


# --- (2) findings -------------------------------------------------------------------------------------------------------


def findings(facts: Facts) -> Markup:
    if facts["findings"]:
        about = "What the rules found, worst first. Each says what is so and what to check; a cause is named only where the data show it."
        return joined([element("p", about, class_="about"), cards(facts["findings"])])
    looked = [area for area in facts["areas"] if area["state"] != "unseen"]
    if not looked:
        return element("p", "There was nothing to look at: no table has rows.", class_="about")
    numbers = element(
        "ul", *(element("li", element("b", area["title"]), f": {area['sentence']}.") for area in looked), class_="fine"
    )
    return joined(
        [
            element(
                "p",
                badge("ok", "fine"),
                " Nothing is wrong that ottla can see. The numbers behind it:",
                class_="judged",
            ),
            numbers,
        ]
    )


# --- (3) to (9) ---------------------------------------------------------------------------------------------------------


def cluster(facts: Facts) -> Markup:
    nodes = listing("nodes", "Nodes", facts["tables"]["nodes"], fields("id:plain:node", "host:text", "port:plain", "rack:text"),
                    "Which nodes there are was not seen.")  # fmt: skip
    return joined([_judged(facts, "cluster", "quorum"), nodes])


def groups(facts: Facts) -> Markup:
    columns = fields(
        "group:text", "type:text:kind", "state:text", "members:number", "group_epoch:plain:epoch",
        "assignment_epoch:plain:assigned", "rebalances:number", "longest_rebalance_ms:ms:longest", "joins:number",
        "leaves:number", "fences:number:thrown out", "converged_share:ratio:time at rest", "findings:number",
    )  # fmt: skip
    told = listing("groups", "Groups", facts["tables"]["groups"], columns, "No groups were seen.")
    return joined([_judged(facts, "groups"), told, _figures(facts, "groups", ("lines",))])


def rebalances(facts: Facts) -> Markup:
    columns = fields(
        "group:text", "group_epoch:plain:epoch", "started:time", "duration_ms:ms:took", "ended_by:text:ended by",
        "trigger:words:begun by", "trigger_members:ids:who", "members_before:number:members before", "members_after:number:after",
        "partitions_moved:number:partitions moved", "tasks_moved:number:tasks moved", "source:text",
    )  # fmt: skip
    triggers = fields(
        "trigger:words:begun by", "count:number:rebalances", "converged:number", "superseded:number", "emptied:number",
        "open:number", "longest_ms:ms:longest", "partitions_moved:number:partitions moved", "tasks_moved:number:tasks moved",
    )  # fmt: skip
    about = (
        "A rebalance deals out the partitions or tasks of a group among its members. It is over when every member has what it "
        "is to have. While it runs, what moves is not worked on."
    )
    return joined([
        element("p", about, class_="about"),
        _figures(facts, "groups", ("strip",)),
        listing("triggers", "What began rebalances, and what they moved", facts["tables"]["triggers"], triggers, "There were no rebalances."),
        listing("rebalances", "Rebalances", facts["tables"]["rebalances"], columns, "There were no rebalances.") if facts["tables"]["rebalances"]["rows"] else NOTHING,
    ])  # fmt: skip


def streams(facts: Facts) -> Markup:
    columns = fields(
        "group:text", "task:text", "kind:words:what", "role:text", "from_member:id:from", "to_member:id:to", "started:time",
        "ended:time", "warmup_ms:ms:warm-up", "revoke_ms:ms:giving up", "group_epoch:plain:epoch",
    )  # fmt: skip
    moved = listing("task_movement", "What moved", facts["tables"]["task_movement"], columns, "No task moved.")
    return joined([_judged(facts, "streams"), _figures(facts, "streams"), moved])


def share(facts: Facts) -> Markup:
    columns = fields(
        "group:text", "delivered:number:deliveries", "redelivered:number:repeated", "redelivered_share:ratio:part repeated",
        "accepted:number", "released:number", "rejected_or_archived:number:rejected or given up", "rejected:number",
        "lock_expiries:number:locks expired", "max_delivery_count:number:most deliveries of one record", "lag:number",
    )  # fmt: skip
    stalled = fields("group:text", "topic:text", "partition:plain", "stalled_s:s:stood still", "window_start:time:seen at",
                     "start_offset:plain:at offset", "lag:number")  # fmt: skip
    poison = fields(
        "group:text", "topic:text", "partition:plain", "offset:plain", "window_start:time:given up in the minute of"
    )
    tables = facts["tables"]
    note = (
        "Lag of a share group counts records that were not delivered and such as are being worked on. Rejects, expired locks "
        "and time in lock are known only where the metrics of ottla’s brokers were sampled."
    )
    return joined([
        _judged(facts, "share"),
        _figures(facts, "share"),
        listing("share_groups", "Share groups", tables["share_groups"], columns, "There are no share groups."),
        element("p", note, class_="note") if tables["share_groups"]["rows"] else NOTHING,
        listing("stalled", "Partitions that stood still", tables["stalled"], stalled, "No partition of a share group stood still."),
        listing("poison", "Records that no worker could finish", tables["poison"], poison, "No record was given up."),
    ])  # fmt: skip


def lag(facts: Facts) -> Markup:
    columns = fields(
        "group:text", "type:text:kind", "topic:text", "partitions:number", "lag_records:number:behind at the end",
        "lag_seconds:s:late at the end", "max_lag_records:number:most behind", "max_at:time:when", "max_lag_seconds:s:most late",
        "stuck:number:partitions stuck",
    )  # fmt: skip
    told = listing("lag", "Lag by group and topic", facts["tables"]["lag"], columns, "No lag was measured.")
    return joined([_judged(facts, "lag"), _figures(facts, "lag"), told])


def quorum(facts: Facts) -> Markup:
    replicas = fields("replica:plain:node", "role:text", "lag_offsets_max:number:behind at the end", "max_lag_offsets:number:most behind",
                      "max_lag_ms:ms:longest not caught up", "max_fetch_age_ms:ms:longest without a fetch")  # fmt: skip
    elections = fields("window_start:time:within ten seconds from", "leader:plain:new leader", "leader_epoch:plain:epoch",
                       "elections:number", "leaderless_ms:ms:without a leader", "leaderless_is_bound:yes:at most that long")  # fmt: skip
    about = element(
        "p", "How well the members of the quorum keep up with its leader, and when the leader changed.", class_="about"
    )
    return joined([
        about,
        _figures(facts, "quorum"),
        listing("replicas", "Replicas of the metadata log", facts["tables"]["replicas"], replicas, "Nothing is known of the quorum’s replicas."),
        listing("elections", "Elections", facts["tables"]["elections"], elections, "There was no election."),
    ])  # fmt: skip


# --- (10) what was read, and what was not -------------------------------------------------------------------------------


def unseen(facts: Facts) -> Markup:
    about = "A check that cannot be made says nothing, neither good nor bad. This is what each of them would need."
    rows = [{"rule": each["rule"], "why": each.get("why"), "what": _why(each["rule"])} for each in facts["unseen"]]
    table = {"rows": rows, "total": len(rows), "order": "in the order of the rules"}
    columns = fields("rule:text:check", "what:text:what it would find", "why:text:what it needs")
    return joined(
        [
            element("p", about, class_="about"),
            listing("unseen", "Checks that could not be made", table, columns, "All checks could be made."),
        ]
    )


def _why(rule: str) -> str | None:
    return RULES[rule].why if rule in RULES else None


def data(facts: Facts) -> Markup:
    run = facts["run"]
    inputs = fields("name:text:what", "where:text", "rows:number", "dropped:number", "late:number")
    outputs = fields(
        "name:text:table", "rows:number", "source:text:made from", "format:text", "path:text", "seconds:s:took"
    )
    tables = dict(facts["tables"]["outputs"])
    sources = run.get("source") or {}
    tables["rows"] = [{"source": sources.get(row.get("name")), **row} for row in tables["rows"]]
    versions = ", ".join(f"{name} {value}" for name, value in (run.get("versions") or {}).items() if value)
    again = (
        element("div", element("b", "To make this again: "), element("code", run["command"]), class_="again")
        if run.get("command")
        else NOTHING
    )
    return joined([
        element("p", "What this report was made of. The same facts are in report.json beside it.", class_="about"),
        listing("inputs", "What was read", facts["tables"]["inputs"], inputs, "What was read is not known."),
        listing("outputs", "Tables that were written", tables, outputs, "Which tables were written is not known."),
        element("p", f"Made by {versions}. " if versions else "", "Written ", moment(facts["generated"]), "."),
        again,
        _listed("Thresholds that were set", [f"{name} = {value:g}" for name, value in (run.get("thresholds") or {}).items()]),
        _listed("Notes", [str(each) for each in run.get("notes") or ()]),
    ])  # fmt: skip


def _listed(title: str, items: Sequence[str]) -> Markup:
    return (
        element("div", element("b", title), element("ul", *(element("li", each) for each in items)), class_="notes")
        if items
        else NOTHING
    )


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
ANCHORS: Final = {"cluster": "cluster", "quorum": "quorum", "groups": "groups", "streams": "streams", "share": "share", "lag": "lag",
                  "data": "data"}  # fmt: skip


def summary(facts: Facts) -> str:
    """For those who find the page by its description."""
    return f"{facts['headline']['sentence']} {plural(len(facts['findings']), 'finding')}."
