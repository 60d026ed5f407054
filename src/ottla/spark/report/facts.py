"""The facts of a report: all that its page says, as plain data. The page is made of them and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.health import Severity
from ottla.spark.report.areas import AREAS, Area, light
from ottla.spark.report.findings import findings_of, headline, linked
from ottla.spark.report.groups import groups_part
from ottla.spark.report.lag import lag_part
from ottla.spark.report.material import Material, Part, material_of, table
from ottla.spark.report.quorum import cluster_part, quorum_part
from ottla.spark.report.rebalances import rebalances_part
from ottla.spark.report.rows import Row
from ottla.spark.report.share import share_part
from ottla.spark.report.streams import streams_part

__all__ = ["VERSION", "facts_of"]

VERSION: Final = 1
_RUN: Final = ("run_id", "versions", "command", "source", "thresholds", "notes")


def facts_of(tables: Mapping[str, Any], run: Mapping[str, Any], generated: int) -> dict[str, Any]:
    """The facts, ready for JSON. A table is a pyarrow Table or Dataset and may be missing; `run` says what was read and
    how; `generated` is the time of the report in milliseconds since 1970."""
    findings = findings_of(tables.get("findings"))
    material = material_of(tables, run, findings)
    parts = _parts(material, run)
    shown: dict[str, Any] = {name: one for part in parts.values() for name, one in part.tables.items()}
    shown |= _run_tables(run)
    figures = [figure for part in parts.values() for figure in part.figures]
    areas = [_area(area, parts[area.id], findings, _is_looked_at(area, run)) for area in AREAS]
    return {
        "v": VERSION,
        "generated": generated,
        "range": {"from_ms": material.from_ms, "to_ms": material.to_ms},
        "clusters": list(material.clusters),
        "headline": headline(findings, is_looked_at=any(each["state"] != "unseen" for each in areas)),
        "areas": areas,
        "findings": [{**finding, "see": linked(finding, figures, shown)} for finding in findings],
        "unseen": list(run.get("unseen") or ()),
        "figures": figures,
        "tables": shown,
        "run": _run(run),
    }


def _parts(material: Material, run: Mapping[str, Any]) -> dict[str, Part]:
    """By area; what rebalances add stands in a section of its own, in the area of groups."""
    groups, rebalances = groups_part(material), rebalances_part(material)
    groups.tables |= rebalances.tables
    groups.figures += rebalances.figures
    return {
        "cluster": cluster_part(run),
        "quorum": quorum_part(material),
        "groups": groups,
        "streams": streams_part(material),
        "share": share_part(material),
        "lag": lag_part(material),
        "data": _data_part(run),
    }


def _is_looked_at(area: Area, run: Mapping[str, Any]) -> bool:
    """Whether something was read, and one rule of the area at least could be checked with it."""
    return bool(run.get("inputs")) and not area.rules <= {each["rule"] for each in run.get("unseen") or ()}


def _area(area: Area, part: Part, findings: Sequence[Row], is_looked_at: bool) -> dict[str, Any]:
    mine = [each for each in findings if each["area"] == area.id]
    is_open = [each["severity"] for each in mine if each["state"] == "open"]
    return {
        "id": area.id,
        "title": area.title,
        "about": area.about,
        "state": light(mine, has_rows=part.has_rows, is_looked_at=is_looked_at),
        "open": {severity.value: is_open.count(severity.value) for severity in Severity},
        "resolved": len(mine) - len(is_open),
        "sentence": part.sentence,
        "numbers": part.numbers,
    }


# --- the run ----------------------------------------------------------------------------------------------------------


def _data_part(run: Mapping[str, Any]) -> Part:
    inputs = list(run.get("inputs") or ())
    rows, dropped, late = (sum(each.get(name) or 0 for each in inputs) for name in ("rows", "dropped", "late"))
    holes = f"{dropped:,} samples were dropped" if dropped else "no samples were dropped"
    return Part(
        sentence=f"{rows:,} rows were read, {holes}" if inputs else "What was read is not known",
        numbers={"rows": rows, "dropped": dropped, "late": late},
        has_rows=bool(inputs),
    )


def _run_tables(run: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: list(run.get(name) or ()) for name in ("inputs", "tables")}
    return {"inputs": table(found["inputs"], len(found["inputs"]), "as they were read"),
            "outputs": table(found["tables"], len(found["tables"]), "as they were written")}  # fmt: skip


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    versions = run.get("versions") or {name: run[name] for name in ("ottla", "spark", "python") if name in run}
    return {name: run.get(name) for name in _RUN} | {"versions": versions}
