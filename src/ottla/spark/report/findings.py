"""Findings in the report: with their area, why they matter, and links to plots and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import ottla.health.rules  # noqa: F401  enters the rules
from ottla.health import RULES, Severity
from ottla.health.phrases import plural
from ottla.spark.report.areas import area_of

__all__ = ["COLUMNS", "findings_of", "headline", "incidents", "linked"]

Row: TypeAlias = dict[str, Any]

COLUMNS: Final = (
    "cluster", "id", "rule", "severity", "state", "sentence", "subject_kind", "subject_name", "subject_topic",
    "subject_partition", "subject_member", "since_ms", "until_ms", "precision_ms", "times", "tier",
    "evidence", "next",
)  # fmt: skip
_SUBJECT = ("topic", "partition", "member")
_ORDER = list(Severity)


def findings_of(rows: Iterable[Row]) -> list[Row]:
    """Findings, the worst first: problems before notices, open ones before resolved ones, then by severity and age."""
    return sorted(map(_finding, rows), key=_urgency)


def _finding(row: Row) -> Row:
    rule = RULES.get(row["rule"])
    parts = {name: row[f"subject_{name}"] for name in _SUBJECT if row[f"subject_{name}"] is not None}
    return {
        "id": row["id"],
        "rule": row["rule"],
        "area": area_of(row["rule"]),
        "severity": row["severity"],
        "state": row["state"],
        "cluster": row["cluster"],
        "subject": {"kind": row["subject_kind"], "name": row["subject_name"], **parts},
        "since_ms": row["since_ms"],
        "until_ms": row["until_ms"],
        "precision_ms": row["precision_ms"],
        "times": row["times"] or 1,
        "tier": row["tier"],
        "sentence": row["sentence"],
        "why": rule.why if rule else "",
        "condition": rule.condition if rule else "",
        "evidence": json.loads(row["evidence"] or "{}"),
        "next": json.loads(row["next"] or "[]"),
    }


def _urgency(finding: Row) -> tuple[Any, ...]:
    severity = _ORDER.index(finding["severity"])
    is_notice = finding["severity"] == Severity.NOTICE
    return is_notice, finding["state"] != "open", severity, finding["since_ms"], finding["rule"], finding["id"]


def headline(findings: Sequence[Row], *, is_observed: bool) -> dict[str, Any]:
    """How many findings are open and how many are resolved, by severity; and one sentence."""
    counts = {state: _counts(findings, state) for state in ("open", "resolved")}
    is_open, resolved = (counts[state]["critical"] + counts[state]["warning"] for state in ("open", "resolved"))
    sentence = _headline(is_open, resolved, len(findings)) if is_observed else "No data"
    return {"sentence": sentence, **counts}


def _counts(findings: Sequence[Row], state: str) -> dict[str, int]:
    mine = [each["severity"] for each in findings if each["state"] == state]
    return {severity.value: mine.count(severity.value) for severity in Severity}


def _headline(is_open: int, resolved: int, found: int) -> str:
    if is_open or resolved:
        problems = plural(is_open, "open problem") if is_open else "No open problems"
        return f"{problems}, {resolved} resolved" if resolved else problems
    return f"No problems, {plural(found, 'notice')}" if found else "No problems found"


def incidents(figure: Mapping[str, Any], findings: Sequence[Row], end_ms: int) -> list[Row]:
    """The problems to mark on a plot: those of its groups, of its own area, and of the whole cluster. Problems of one
    severity that overlap are one incident. The worst come last, because they are drawn above the others."""
    found: list[Row] = []
    for severity in (Severity.WARNING, Severity.CRITICAL):
        mine = [each for each in findings if each["severity"] == severity and _concerns(each, figure)]
        found += _merged(sorted(mine, key=lambda finding: (finding["since_ms"], finding["id"])), end_ms)
    return found


def _merged(findings: Sequence[Row], end_ms: int) -> list[Row]:
    found: list[Row] = []
    for each in findings:
        until_ms = end_ms if each["until_ms"] is None else each["until_ms"]
        if found and each["since_ms"] <= found[-1]["to_ms"]:
            found[-1]["to_ms"] = max(found[-1]["to_ms"], until_ms)
            found[-1]["sentences"].append(each["sentence"])
        else:
            found.append({"from_ms": each["since_ms"], "to_ms": until_ms, "severity": each["severity"],
                          "finding": each["id"], "sentences": [each["sentence"]]})  # fmt: skip
    return found


def _concerns(finding: Row, figure: Mapping[str, Any]) -> bool:
    subject = finding["subject"]
    if subject["kind"] == "group" and figure["groups"]:
        return subject["name"] in figure["groups"]
    return finding["area"] in ("cluster", figure["area"])


def linked(finding: Row, figures: Sequence[Mapping[str, Any]], tables: Mapping[str, Any]) -> list[dict[str, str]]:
    """Links to the plots and tables of a finding's area, those of its group first."""
    group = finding["subject"]["name"] if finding["subject"]["kind"] == "group" else None
    mine = [each for each in figures if each["area"] == finding["area"]]
    of_group = [each for each in mine if group is not None and group in each["groups"]]
    wanted = of_group or [each for each in mine if not each["groups"]] or mine
    links = [{"text": each["title"], "href": f"#{each['id']}"} for each in wanted[:2]]
    names = [name for name in _TABLES_OF[finding["area"]] if tables.get(name, {}).get("total")]
    return links + [{"text": f"table {name.replace('_', ' ')}", "href": f"#table-{name}"} for name in names[:2]]


_TABLES_OF = {
    "cluster": ("nodes", "elections"),
    "quorum": ("replicas", "elections"),
    "groups": ("groups", "rebalances"),
    "streams": ("task_movement", "groups"),
    "share": ("share_groups", "poison"),
    "lag": ("lag",),
    "data": ("inputs",),
}
