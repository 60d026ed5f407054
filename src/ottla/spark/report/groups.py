"""Groups: one row for each, and the epochs of the most important ones, as lines over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import pyarrow.compute as pc

from ottla.health.phrases import number, plural
from ottla.spark.report.group_search import all_groups
from ottla.spark.report.material import KEYS, Key, Material
from ottla.spark.report.names import clients_of, told_apart
from ottla.spark.report.part import Part, table
from ottla.spark.report.rows import Row
from ottla.spark.report.thin import Point, steps, thinned

TIMELINES: Final = 12
MEMBER_LINES: Final = 6
SPANS: Final = 100
POINTS: Final = 400
"""Points of each line in these plots, of which two are side by side."""
_EPOCH_EVENTS: Final = ("epoch_bumped", "target_computed", "member_epoch", "member_left", "member_fenced", "deleted")


def groups_part(material: Material) -> Part:
    rows = _rows(material)
    order = "with findings first, then by number of rebalances"
    part = Part(has_rows=bool(rows))
    part.tables["groups"] = table(rows, len(rows), order)
    if len(rows) > TIMELINES:
        part.tables["all_groups"] = all_groups(material, rows)
    part.figures = _timelines(material, [(row["cluster"], row["group"]) for row in rows])
    longest = max((row["longest_rebalance_ms"] or 0 for row in rows), default=0)
    kinds = Counter(row["type"] or "unknown" for row in rows)
    rebalances = sum(row["rebalances"] for row in rows)
    part.numbers = {"groups": len(rows), "by_type": dict(sorted(kinds.items())), "rebalances": rebalances,
                    "longest_rebalance_ms": longest}  # fmt: skip
    told = ", ".join(f"{number(count)} {kind}" for kind, count in sorted(kinds.items()))
    part.sentence = f"{plural(len(rows), 'group')} ({told})" if rows else "No groups"
    return part


# --- the table --------------------------------------------------------------------------------------------------------


def _rows(material: Material) -> list[Row]:
    found: dict[Key, Row] = {}
    for row in _of_timeline(material) + _of_rebalances(material) + _of_stability(material) + _of_lag(material):
        mine = found.setdefault((row["cluster"], row["group"]), _nothing(row))
        mine.update({name: value for name, value in row.items() if value is not None})
    about = [each for each in material.findings if each["subject"]["kind"] == "group"]
    findings = Counter(each["subject"]["name"] for each in about)
    open_findings = Counter(each["subject"]["name"] for each in about if each["state"] == "open")
    for row in found.values():
        row["findings"], row["open_findings"] = findings[row["group"]], open_findings[row["group"]]
    return sorted(found.values(), key=_by_interest)


def _nothing(row: Row) -> Row:
    names = ("type", "state", "members", "group_epoch", "assignment_epoch", "epochs", "joins", "leaves", "fences",
             "converged_share", "longest_rebalance_ms", "alarm", "alarm_reason")  # fmt: skip
    return {"cluster": row["cluster"], "group": row["group"], **dict.fromkeys(names), "rebalances": 0}


def _by_interest(row: Row) -> tuple[Any, ...]:
    return (
        -row["open_findings"],
        -row["findings"],
        row["alarm"] is None,
        -row["rebalances"],
        row["cluster"],
        row["group"],
    )


def _of_timeline(material: Material) -> list[Row]:
    timeline = material.rows("group_timeline")
    newest = {"type": ("type", "max"), "group_epoch": ("group_epoch", "max"),
              "assignment_epoch": ("assignment_epoch", "max")}  # fmt: skip
    changed = timeline.where(
        (pc.field("event") == "state_changed") & (pc.field("new") != pc.coalesce(pc.field("old"), pc.scalar("")))
    )
    states = [
        {**{name: row[name] for name in KEYS}, "state": row["new"]} for row in changed.newest(KEYS, "ts", ["new"])
    ]
    return timeline.grouped(KEYS, newest) + states


def _of_rebalances(material: Material) -> list[Row]:
    rebalances = material.rows("rebalances")
    counted = {
        "rebalances": ("started", "count"),
        "longest_rebalance_ms": ("duration_ms", "max"),
        "type": ("type", "max"),
        "group_epoch": ("group_epoch", "max"),
    }
    newest = rebalances.newest(KEYS, "started", ["members_after"])
    sizes = [{**{name: row[name] for name in KEYS}, "members": row["members_after"]} for row in newest]
    return rebalances.grouped(KEYS, counted) + sizes


def _of_stability(material: Material) -> list[Row]:
    summed = {name: (name, "sum") for name in ("epochs", "joins", "leaves", "fences")}
    wanted = {**summed, "type": ("type", "max"), "share_sum": ("converged_share", "sum"),
              "share_count": ("converged_share", "count"), "alarm": ("alarm", "min"),
              "alarm_reason": ("alarm_reason", "min")}  # fmt: skip
    rows = material.rows("stability").grouped(KEYS, wanted)
    for row in rows:
        total, count = row.pop("share_sum"), row.pop("share_count")
        row["converged_share"] = round(total / count, 4) if count else None
    return rows


def _of_lag(material: Material) -> list[Row]:
    """Groups for which there are only commits."""
    return material.rows("consumer_lag").grouped(KEYS, {"type": ("type", "max")})


# --- epochs over time -------------------------------------------------------------------------------------------------


def _timelines(material: Material, keys: list[Key]) -> list[Row]:
    if not keys:
        return []
    chosen = keys[:TIMELINES]
    events = _by_group(_events(material, chosen), chosen)
    spans = _by_group(_spans(material, chosen), chosen)
    clients = clients_of(material, (row["member"] for found in events.values() for row in found))
    drawn = [(key, lines) for key in chosen if (lines := _lines(material, events[key], clients))]
    return [_timeline(material, key, lines, spans[key], at) for at, (key, lines) in enumerate(drawn, 1)]


def _events(material: Material, chosen: list[Key]) -> Iterable[Row]:
    rows = material.rows("group_timeline").among(chosen).where(pc.field("event").isin(_EPOCH_EVENTS))
    names = ("cluster", "group", "ts", "seq", "event", "member", "new", "group_epoch", "assignment_epoch")
    return rows.each(names)


def _spans(material: Material, chosen: list[Key]) -> Iterable[Row]:
    names = ("cluster", "group", "started", "ended", "group_epoch", "ended_by", "trigger")
    return material.rows("rebalances").among(chosen).each(names)


def _by_group(rows: Iterable[Row], chosen: list[Key]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {key: [] for key in chosen}
    for row in rows:
        if (row["cluster"], row["group"]) in found:
            found[row["cluster"], row["group"]].append(row)
    return found


def _lines(material: Material, events: list[Row], clients: dict[str, str]) -> list[Row]:
    events.sort(key=lambda row: (row["ts"], row["seq"]))
    lines = _epoch_lines(events, material.to_ms) + _member_lines(events, clients, material.to_ms)
    return [line | {"points": _drawn(line["points"], material)} for line in lines if line["points"]]


def _timeline(material: Material, key: Key, lines: list[Row], spans: list[Row], at: int) -> Row:
    spans.sort(key=lambda row: ((row["started"] - (row["ended"] or material.to_ms)), row["started"]))
    longest = sorted(spans[:SPANS], key=lambda row: (row["started"], row["group_epoch"] or 0))
    return {
        "id": f"timeline-{at}",
        "area": "groups",
        "kind": "lines",
        "title": f"Epochs of {material.label(key)}",
        "groups": [key[1]],
        "unit": "epoch",
        "lines": lines,
        "spans": [_span(row, material.to_ms) for row in longest],
        "left_out": max(0, len(spans) - SPANS),
    }


def _drawn(points: list[Point], material: Material) -> list[Point]:
    return thinned(steps(sorted(points)), material.from_ms, material.to_ms, POINTS)


def _epoch_lines(events: list[Row], to_ms: int) -> list[Row]:
    """Epochs up to the end, or to the deletion of the group."""
    is_deleted = bool(events) and events[-1]["event"] == "deleted"
    end_ms = events[-1]["ts"] if is_deleted else to_ms
    group = [(row["ts"], row["group_epoch"]) for row in events if row["event"] == "epoch_bumped"]
    target = [(row["ts"], row["assignment_epoch"]) for row in events if row["event"] == "target_computed"]
    named = (("group epoch", group), ("assignment epoch", target))
    return [
        {"name": name, "role": name.split()[0], "step": True, "points": _known(points, end_ms)}
        for name, points in named
    ]


def _known(points: Iterable[tuple[int, Any]], end_ms: int) -> list[Point]:
    found = [(ms, value) for ms, value in points if value is not None]
    return [*found, (max(end_ms, found[-1][0]), found[-1][1])] if found else []


def _member_lines(events: list[Row], clients: dict[str, str], to_ms: int) -> list[Row]:
    """A line for each of the first members, and one for the others, with the lowest of their epochs."""
    told: dict[str, list[Point]] = {}
    gone: dict[str, int] = {}
    for row in events:
        member = row["member"]
        if row["event"] == "member_epoch" and (row["new"] or "").lstrip("-").isdigit():
            told.setdefault(member, []).append((row["ts"], int(row["new"])))
            gone.pop(member, None)
        elif row["event"] in ("member_left", "member_fenced") and member in told:
            gone[member] = row["ts"]
    ended = {member: [*points, (gone.get(member, to_ms), points[-1][1])] for member, points in told.items()}
    shown, rest = list(ended)[:MEMBER_LINES], list(ended)[MEMBER_LINES:]
    lines = [_member_line(told_apart(member, clients, shown), ended[member]) for member in shown]
    return lines + ([_member_line(f"lowest of {len(rest)} other members", _lowest(ended, rest))] if rest else [])


def _member_line(name: str, points: list[Point]) -> Row:
    return {"name": name, "role": "member", "step": True, "points": points}


def _lowest(told: dict[str, list[Point]], names: list[str]) -> list[Point]:
    """The lowest epoch of these members; each counts from its first point to its last."""
    steps_of = sorted((point, name, point == told[name][-1]) for name in names for point in told[name])
    now: dict[str, float] = {}
    found = []
    for (ms, value), name, is_last in steps_of:
        now[name] = value
        found.append((ms, min(now.values())))
        if is_last:
            del now[name]
    return found


def _span(row: Row, to_ms: int) -> Row:
    words = f"epoch {row['group_epoch']}: {(row['trigger'] or 'unknown').replace('_', ' ')}, {row['ended_by']}"
    return {"from_ms": row["started"], "to_ms": row["ended"] if row["ended"] is not None else to_ms, "name": words}
