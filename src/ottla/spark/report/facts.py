"""The facts of a report: everything that its page shows, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.health import Severity
from ottla.spark.report.areas import AREAS, Area, light
from ottla.spark.report.findings import COLUMNS, Row, findings_of, headline, incidents, linked
from ottla.spark.report.part import Part, table

__all__ = ["VERSION", "data_part", "facts_of", "facts_of_findings"]

VERSION: Final = 1
TABLES_SHOWN: Final = (
    "nodes", "topics", "replicas", "elections", "groups", "all_groups", "rebalances", "triggers", "task_movement",
    "share_groups", "stalled", "poison", "lag", "inputs", "outputs",
)  # fmt: skip
"""All tables of the facts, with or without rows."""
_RUN: Final = ("run_id", "versions", "command", "source", "thresholds", "notes")


def facts_of(tables: Mapping[str, Any], run: Mapping[str, Any], generated: int) -> dict[str, Any]:
    """The facts, ready for JSON. A table is a pyarrow Table or Dataset and may be missing; `run` is the run file;
    `generated` is the time of the report in milliseconds since 1970."""
    # Only this function needs pyarrow.
    from ottla.spark.report.from_tables import findings_in, parts_of

    findings = findings_in(tables)
    parts, material = parts_of(tables, run, findings)
    return _facts(findings, parts, run, generated, (material.from_ms, material.to_ms), material.clusters)


def facts_of_findings(rows: Iterable[Row], run: Mapping[str, Any], generated: int) -> dict[str, Any]:
    """Facts without tables, if there is no pyarrow: rows have the columns of the table of findings."""
    findings = findings_of([dict.fromkeys(COLUMNS) | row for row in rows])
    asked = run.get("range") or {}
    ends = [each[end] for each in findings for end in ("since_ms", "until_ms") if each[end] is not None]
    ends += [asked[end] for end in ("from_ms", "to_ms") if asked.get(end) is not None]
    span = (min(ends, default=0), max(ends, default=0))
    told = "Findings only; numbers need the tables of the pipeline"
    parts = {area.id: Part(told, has_rows=_is_observed(area, run)) for area in AREAS} | {"data": data_part(run)}
    return _facts(findings, parts, run, generated, span, run.get("clusters") or ())


def _facts(
    findings: Sequence[Row],
    parts: Mapping[str, Part],
    run: Mapping[str, Any],
    generated: int,
    span: tuple[int, int],
    clusters: Sequence[str],
) -> dict[str, Any]:
    nothing = {name: table([], 0, "") for name in TABLES_SHOWN}
    tables = {
        **nothing,
        **_run_tables(run),
        **{name: one for part in parts.values() for name, one in part.tables.items()},
    }
    figures = [_marked(figure, findings, span[1]) for part in parts.values() for figure in part.figures]
    areas = [_area(area, parts[area.id], findings, _is_observed(area, run)) for area in AREAS]
    return {
        "v": VERSION,
        "generated": generated,
        "range": {"from_ms": span[0], "to_ms": span[1]},
        "clusters": list(clusters),
        "headline": headline(findings, is_observed=any(each["state"] != "unseen" for each in areas)),
        "areas": areas,
        "findings": [{**finding, "see": linked(finding, figures, tables)} for finding in findings],
        "unseen": list(run.get("unseen") or ()),
        "figures": figures,
        "tables": tables,
        "run": _run(run),
    }


def _marked(figure: Row, findings: Sequence[Row], end_ms: int) -> Row:
    """A plot over time with the problems of that time."""
    return figure | {"incidents": incidents(figure, findings, end_ms)} if figure["kind"] == "lines" else figure


def _is_observed(area: Area, run: Mapping[str, Any]) -> bool:
    """Whether something was read, and at least one rule of the area could be checked."""
    return bool(run.get("inputs")) and not area.rules <= {each["rule"] for each in run.get("unseen") or ()}


def _area(area: Area, part: Part, findings: Sequence[Row], is_observed: bool) -> dict[str, Any]:
    mine = [each for each in findings if each["area"] == area.id]
    is_open = [each["severity"] for each in mine if each["state"] == "open"]
    return {
        "id": area.id,
        "title": area.title,
        "about": area.about,
        "state": light(area, mine, has_rows=part.has_rows, is_observed=is_observed),
        "open": {severity.value: is_open.count(severity.value) for severity in Severity},
        "resolved": len(mine) - len(is_open),
        "sentence": part.sentence,
        "numbers": part.numbers,
    }


# --- the run ----------------------------------------------------------------------------------------------------------


def data_part(run: Mapping[str, Any]) -> Part:
    inputs = list(run.get("inputs") or ())
    rows, dropped, late = (sum(each.get(name) or 0 for each in inputs) for name in ("rows", "dropped", "late"))
    holes = f"{dropped:,} samples dropped" if dropped else "no samples dropped"
    return Part(
        sentence=f"{rows:,} rows read, {holes}" if inputs else "Inputs unknown",
        numbers={"rows": rows, "dropped": dropped, "late": late},
        has_rows=bool(inputs),
    )


def _run_tables(run: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: list(run.get(name) or ()) for name in ("inputs", "tables")}
    return {"inputs": table(found["inputs"], len(found["inputs"]), "in the order read"),
            "outputs": table(found["tables"], len(found["tables"]), "in the order written")}  # fmt: skip


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    versions = run.get("versions") or {name: run[name] for name in ("ottla", "spark", "python") if name in run}
    return {name: run.get(name) for name in _RUN} | {"versions": versions}
