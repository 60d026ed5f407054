"""`ottla explain config`: explains a setting: its purpose, its allowed values, and its synonyms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.cluster import Column, print_json, print_table
from ottla.cli.configs.show import rule_text
from ottla.cli.failure import Failure, nearest

if TYPE_CHECKING:
    from ottla.core.metadata.config_defs import ConfigDefs, ConfigKey

COLUMNS: Final = (Column("NAME"), Column("OF"), Column("TYPE"), Column("DEFAULT"), Column("CHANGED"))
_MODES: Final = {
    "cluster-wide": "at run time, for one broker or for all",
    "per-broker": "at run time, for one broker",
    "read-only": "only at start-up",
}


def explain_config(names: Sequence[str], form: str | None, *, is_list: bool) -> None:
    """Explain settings by name, or list them all."""
    if form in ("html", "markdown"):
        raise Failure(f"settings are not available as {form}", "give --json, or nothing")
    if is_list or not names:
        _show_list(as_json=form == "json")
        return
    found = [each for name in names for each in _found(name)]
    if form == "json":
        print_json({"rows": found})
        return
    for place, facts in enumerate(found):
        if place:
            click.echo()
        for line in _lines(facts):
            click.echo(line)


def _tables() -> dict[str, ConfigDefs]:
    from ottla.core.metadata.config_defs import broker_defs, client_metrics_defs, group_defs, topic_defs

    return {
        "topic": topic_defs(),
        "broker": broker_defs(),
        "group": group_defs(),
        "client-metrics": client_metrics_defs(),
    }


def is_setting(name: str) -> bool:
    return any(name in table for table in _tables().values())


def _found(name: str) -> list[dict[str, Any]]:
    """The settings with a name, which several types of resources may have."""
    tables = _tables()
    found = [_facts(kind, table[name]) for kind, table in tables.items() if name in table]
    if not found:
        every = {each for table in tables.values() for each in table}
        raise Failure(f"unknown setting '{name}'", nearest(name, every) or "'ottla explain config --list' lists all")
    return found


def _facts(kind: str, key: ConfigKey) -> dict[str, Any]:
    from ottla.broker.config.supported_settings import SUPPORTED_SETTINGS

    return {
        "name": key.name,
        "of": kind,
        "doc": key.documentation,
        "type": key.type.name.lower(),
        "default": key.default,
        "allowed": rule_text(key.rule) or None,
        "sensitive": key.is_sensitive,
        "changed": key.update_mode if kind == "broker" else "while it runs",
        "also": _also(kind, key.name),
        "bounds": _bounds(key.name) if kind == "group" else [],
        "supported": key.name in SUPPORTED_SETTINGS if kind == "broker" else None,
    }


def _also(kind: str, name: str) -> list[str]:
    """The synonyms of a setting, in order of precedence."""
    from ottla.core.metadata.config_defs import broker_defs
    from ottla.core.metadata.config_rules import TOPIC_SYNONYMS

    if kind == "topic":
        return [f"broker {synonym}" for synonym, _ in TOPIC_SYNONYMS.get(name, ())]
    if kind == "group":
        return [f"broker group.{name}"] if f"group.{name}" in broker_defs() else []
    if kind == "broker":
        topics = [topic for topic, names in TOPIC_SYNONYMS.items() if name in dict(names)]
        return [f"topic {topic}" for topic in topics]
    return []


def _bounds(name: str) -> list[str]:
    from ottla.cli.configs.get import bound_name
    from ottla.core.metadata.config_defs import broker_defs

    names = (bound_name(bound, name) for bound in ("min", "max"))
    return [each for each in names if each in broker_defs()]


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{click.style(facts['name'], bold=True)}  a setting of {_plural(facts['of'])}"
    yield f"  {facts['doc']}"
    default = "none" if facts["default"] is None else facts["default"] or '""'
    yield f"  type      {facts['type']}{', secret: never shown' if facts['sensitive'] else ''}"
    yield f"  default   {default}"
    if facts["allowed"]:
        yield f"  allowed   {facts['allowed']}"
    if facts["bounds"]:
        yield f"  bounds    {', '.join(facts['bounds'])} of the broker"
    if facts["also"]:
        yield f"  also      {', '.join(facts['also'])}"
    yield f"  changed   {_MODES.get(facts['changed'], facts['changed'])}"
    if facts["supported"] is False:
        yield "  note      accepted, but has no effect in ottla"


def _plural(kind: str) -> str:
    return "client metrics" if kind == "client-metrics" else f"{kind}s"


def _show_list(*, as_json: bool) -> None:
    every = [_facts(kind, table[name]) for kind, table in _tables().items() for name in table]
    if as_json:
        print_json({"rows": every})
        return
    print_table(COLUMNS, ((each["name"], each["of"], each["type"], each["default"], each["changed"]) for each in every))
