"""The parts of the facts that come from the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.spark.report.facts import data_part
from ottla.spark.report.findings import COLUMNS, findings_of
from ottla.spark.report.groups import groups_part
from ottla.spark.report.lag import lag_part
from ottla.spark.report.material import Material, material_of
from ottla.spark.report.part import Part
from ottla.spark.report.quorum import cluster_part, quorum_part
from ottla.spark.report.rebalances import rebalances_part
from ottla.spark.report.rows import Row, Rows
from ottla.spark.report.share import share_part
from ottla.spark.report.streams import streams_part
from ottla.spark.report.topics import topics_table

__all__ = ["findings_in", "parts_of"]


def findings_in(tables: Mapping[str, Any]) -> list[Row]:
    return findings_of(Rows(tables.get("findings")).each(COLUMNS))


def parts_of(
    tables: Mapping[str, Any], run: Mapping[str, Any], findings: Sequence[Row]
) -> tuple[dict[str, Part], Material]:
    """The parts by area; rebalances have a section of their own, in the area of groups."""
    material = material_of(tables, run, findings)
    groups, rebalances = groups_part(material), rebalances_part(material)
    groups.tables |= rebalances.tables
    groups.numbers |= rebalances.numbers
    groups.sentence += f", {rebalances.sentence}" if groups.has_rows else ""
    groups.figures += rebalances.figures
    cluster = cluster_part(run)
    cluster.tables["topics"] = topics_table(material)
    parts = {
        "cluster": cluster,
        "quorum": quorum_part(material),
        "groups": groups,
        "streams": streams_part(material),
        "share": share_part(material),
        "lag": lag_part(material),
        "data": data_part(run),
    }
    return parts, material
