"""Features: the levels that nodes support, the level that holds, and what is off because it is low."""

from __future__ import annotations

import msgspec

from ottla.console.html.parts import Column, command, node_link, nothing, numbers, section, table
from ottla.console.page import Content, Page, PageContext
from ottla.draw.markup import Markup, element, joined
from ottla.health.facts import Cluster
from ottla.health.phrases import plural
from ottla.health.rules.features import default_level, shortfalls


class NodeLevels(msgspec.Struct, frozen=True):
    id: int
    min: int
    max: int


class FeatureRow(msgspec.Struct, frozen=True):
    name: str
    finalized: int
    """0: off."""
    default: int | None
    """The level of new clusters of this metadata.version, if it is one of those that start above 0."""
    nodes: list[NodeLevels]
    better: int | None
    """A level that all nodes support and that is higher."""
    off: str | None
    """What is off because the level is low."""


class Features(msgspec.Struct, frozen=True):
    rows: list[FeatureRow]


async def load(context: PageContext) -> Content[Features]:
    seen = context.watcher.state.cluster
    rows = [] if seen is None else feature_rows(seen.fact)
    return Content(Features(rows), "Features", context.sources("cluster"), context.hidden("cluster"), live=("cluster",))


def feature_rows(fact: Cluster) -> list[FeatureRow]:
    finalized = fact.finalized or {}
    nodes: dict[str, list[NodeLevels]] = {name: [] for name in finalized}
    for broker in fact.brokers:
        for name, (low, high) in (broker.supported or {}).items():
            nodes.setdefault(name, []).append(NodeLevels(broker.id, low, high))
    short = {each.name: each for each in shortfalls(fact)}
    return [
        FeatureRow(
            name=name,
            finalized=finalized.get(name, 0),
            default=default_level(name, finalized.get("metadata.version", 0)) or None,
            nodes=nodes[name],
            better=short[name].better if name in short else None,
            off=short[name].stays_off if name in short else None,
        )
        for name in sorted(nodes)
    ]


def render(content: Content[Features], _: PageContext) -> Markup:
    rows = content.data.rows
    if not rows:
        return nothing("No features reported yet. Nodes report them from Kafka 2.7 on (ApiVersions 3).")
    low = [each for each in rows if each.better is not None]
    lead = "Every feature is at the highest level that all nodes support."
    if low:
        lead = f"{plural(len(low), 'feature')} can be upgraded."
    columns = (
        Column("feature"),
        *numbers("level", "default level"),
        Column("supported by"),
        Column("disabled", is_optional=True),
    )
    return joined(
        [
            element("p", lead, class_="lead"),
            section("Levels", table("Features", columns, map(_cells, rows)),
                    note="Only brokers are listed; controllers are not queried."),
        ]
    )  # fmt: skip


def _cells(row: FeatureRow) -> tuple[Markup | str | None, ...]:
    return row.name, str(row.finalized), None if row.default is None else str(row.default), _nodes(row), _off(row)


def _nodes(row: FeatureRow) -> Markup | None:
    """Nodes that support the same levels are named together."""
    alike: dict[tuple[int, int], list[Markup]] = {}
    for each in row.nodes:
        alike.setdefault((each.min, each.max), []).append(node_link(each.id))
    told = [joined([f"{low}–{high}: node{'' if len(ids) == 1 else 's'} ", joined(ids, ", ")])
            for (low, high), ids in sorted(alike.items())]  # fmt: skip
    return joined(told, "; ") if told else None


def _off(row: FeatureRow) -> Markup | None:
    if row.better is None:
        return None
    raise_it = f"ottla quorum features upgrade {row.name}={row.better}"
    return joined([f"{row.off} (all nodes support {row.better}): ", command(raise_it)])


PAGE = Page("features", "/features", Features, load, render, section="nodes")
