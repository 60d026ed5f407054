"""Settings of a topic, a broker or a group with their origin: what somebody has set first, the defaults folded."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ottla.client.configs import ConfigEntry, ConfigSource
from ottla.console.html.parts import Column, code, nothing, table
from ottla.draw.forms import UNKNOWN
from ottla.draw.markup import Markup, element, joined

__all__ = ["Config", "config_tables", "configs_of"]

COLUMNS = (Column("setting"), Column("value"), Column("origin"), Column("would be else"))

OWN = ("TOPIC", "DYNAMIC_BROKER", "GROUP")


class Synonym(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    source: str


class Config(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    """None if it is not set, or sensitive."""
    sensitive: bool
    read_only: bool
    source: str
    default: str | None
    doc: str | None
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT.name


def configs_of(entries: Iterable[ConfigEntry]) -> list[Config]:
    """What was set for it alone, then what was set for all, then the defaults. Sensitive values are left out."""
    found = [_config(each) for each in entries]
    return sorted(found, key=lambda each: (each.is_default, each.source not in OWN, each.name))


def _config(entry: ConfigEntry) -> Config:
    hides = entry.is_sensitive
    return Config(
        entry.name,
        None if hides else entry.value,
        hides,
        entry.is_read_only,
        entry.source.name,
        None if hides else entry.default,
        entry.documentation,
        tuple(Synonym(each.name, None if hides else each.value, each.source.name) for each in entry.synonyms),
    )


def config_tables(configs: Iterable[Config]) -> Markup:
    known = list(configs)
    own = [each for each in known if not each.is_default]
    defaults = [each for each in known if each.is_default]
    shown = table("Settings that differ", COLUMNS, map(_row, own)) if own else nothing("All settings are the defaults.")
    folded = element(
        "details",
        element("summary", f"Defaults ({len(defaults)})"),
        table("Settings with their defaults", COLUMNS, map(_row, defaults)),
        class_="folded wide",
    )
    return joined([shown, folded] if defaults else [shown])


def _row(config: Config) -> tuple[Markup, ...]:
    name = element("span", config.name, title=config.doc)
    weaker = [each for each in config.synonyms if each.source != config.source]
    others = [joined([code(f"{each.name}={each.value}"), f" ({_words(each.source)})"]) for each in weaker]
    return (
        name,
        element("em", "hidden") if config.sensitive else UNKNOWN if config.value is None else code(config.value),
        element("span", _words(config.source), ", read only" if config.read_only else None),
        UNKNOWN if config.sensitive or not others else joined(others, ", "),
    )


def _words(source: str) -> str:
    return ConfigSource[source].words
