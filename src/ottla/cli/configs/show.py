"""Formats settings as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.cluster import Column

if TYPE_CHECKING:
    from ottla.client.configs import ConfigEntry, ResourceType

COLUMNS: Final = (Column("NAME"), Column("VALUE"), Column("SOURCE"), Column("TYPE"), Column("NOTE"))
_RULES: Final = {"gzip-level": "-1 or 1–9", "offset-reset": "earliest, latest or by_duration:PT1H"}

Bounds = Mapping[str, tuple[str | None, str | None]]
"""Setting of a group -> the minimum and the maximum that brokers allow."""


def value_text(entry: ConfigEntry) -> str | None:
    return "(hidden)" if entry.is_sensitive else entry.value


def row(entry: ConfigEntry) -> tuple[object, ...]:
    notes = ["read-only"] * entry.is_read_only + ["sensitive"] * entry.is_sensitive
    kind = entry.type.name.lower() if entry.type else None
    return entry.name, value_text(entry), entry.source.words, kind, ", ".join(notes)


def synonym_rows(entry: ConfigEntry) -> Iterable[tuple[object, ...]]:
    for synonym in entry.synonyms:
        yield f"  {synonym.name}", synonym.value, synonym.source.words, "", ""


def entry_json(entry: ConfigEntry) -> dict[str, Any]:
    """A setting in the JSON form of the console."""
    return {
        "name": entry.name,
        "value": entry.value,
        "sensitive": entry.is_sensitive,
        "read_only": entry.is_read_only,
        "source": entry.source.name,
        "type": entry.type.name,
        "default": entry.default,
        "doc": entry.documentation,
        "synonyms": [{"name": each.name, "value": each.value, "source": each.source.name} for each in entry.synonyms],
    }


def line(kind: ResourceType, entry: ConfigEntry, bounds: Bounds) -> str:
    """`share.record.lock.duration.ms  45000  (group; broker default 30000, allowed 15000–60000)`."""
    weaker = next((each for each in entry.synonyms if each.source is not entry.source), None)
    facts = []
    if weaker is not None and not entry.is_sensitive:
        source = "broker default" if kind.name == "GROUP" else weaker.source.words
        name = "" if entry.has_unit(weaker.name) else f"{weaker.name} "
        facts.append(f"{source} {name}{weaker.value}")
    allowed = allowed_text(kind, entry.name, bounds)
    if allowed:
        facts.append(f"allowed {allowed}")
    if entry.is_read_only:
        facts.append("read-only")
    rest = f"; {', '.join(facts)}" if facts else ""
    value = value_text(entry)
    return f"{entry.name}  {'-' if value is None else value}  ({entry.source.words}{rest})"


def allowed_text(kind: ResourceType, name: str, bounds: Bounds) -> str:
    """The allowed values of a setting, as far as brokers or our own tables say."""
    low, high = bounds.get(name, (None, None))
    if low is not None and high is not None:
        return f"{low}–{high}"
    if low is not None or high is not None:
        return f"≥ {low}" if low is not None else f"≤ {high}"
    return rule_text(_rule(kind, name))


def _rule(kind: ResourceType, name: str) -> str:
    from ottla.core.metadata import config_defs

    tables = {
        "TOPIC": config_defs.topic_defs,
        "BROKER": config_defs.broker_defs,
        "GROUP": config_defs.group_defs,
        "CLIENT_METRICS": config_defs.client_metrics_defs,
    }
    key = tables[kind.name]().get(name) if kind.name in tables else None
    return "" if key is None else key.rule


def rule_text(rule: str) -> str:
    """A rule of our tables as text; empty if it says little."""
    word, _, argument = rule.partition(" ")
    if rule in _RULES:
        return _RULES[rule]
    if rule.startswith(">="):
        return f"≥ {rule[2:]}"
    if ".." in rule:
        return rule.replace("..", "–")
    return argument.replace(",", ", ") if word in ("in", "nocase", "set", "set+") else ""
