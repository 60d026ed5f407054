"""Configs as pages show them: what somebody has set first, the defaults folded, and never a secret."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ottla.client.configs import ConfigEntry, ConfigSource
from ottla.console.html.parts import Column, code, nothing, table
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health.phrases import plural

__all__ = ["Config", "config_tables", "configs_of"]

COLUMNS = (
    Column("config"),
    Column("value"),
    Column("set by", is_short=True),
    Column("falls back to", about="what would hold if this value were removed", is_detail=True),
    Column("note", is_optional=True, is_short=True),
)
HIDDEN = "(hidden)"
LONG_NAME = 38
DOT = joined([".", element("wbr")])
"""Where the line of a long name may break."""
OWN = frozenset({"TOPIC", "DYNAMIC_BROKER", "GROUP"})
"""The origins of what was set for one topic, broker or group alone."""


class ConfigSynonym(msgspec.Struct, frozen=True):
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
    synonyms: list[ConfigSynonym]

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT.name


def configs_of(entries: Iterable[ConfigEntry]) -> list[Config]:
    """What was set for it alone, then what was set for all, then the defaults."""
    found = map(_config, entries)
    return sorted(found, key=lambda each: (each.is_default, each.source not in OWN, each.name))


def _config(entry: ConfigEntry) -> Config:
    hidden = entry.is_sensitive
    return Config(
        name=entry.name,
        value=None if hidden else entry.value,
        sensitive=hidden,
        read_only=entry.is_read_only,
        source=entry.source.name,
        default=None if hidden else entry.default,
        doc=entry.documentation,
        synonyms=[
            ConfigSynonym(each.name, None if hidden else each.value, each.source.name) for each in entry.synonyms
        ],
    )


def config_tables(configs: Iterable[Config], whose: str) -> Markup:
    """Those that are set, and the defaults behind a fold."""
    known = list(configs)
    own = [each for each in known if not each.is_default]
    defaults = [each for each in known if each.is_default]
    told = (
        table(f"Configs set for {whose}", COLUMNS, map(_row, own))
        if own
        else nothing(f"All configs of {whose} have default values.")
    )
    return joined([told, _folded(defaults, whose)])


def _folded(defaults: list[Config], whose: str) -> Markup:
    if not defaults:
        return NOTHING
    title = plural(len(defaults), "config with its default value", "configs with their default values")
    rows = table(f"Defaults of {whose}", COLUMNS, map(_row, defaults))
    return element("details", element("summary", title), rows, class_="folded")


def _row(config: Config) -> tuple[Markup | str | None, ...]:
    value = HIDDEN if config.sensitive else config.value
    return (
        _name(config),
        value if value is None else code(value),
        ConfigSource[config.source].words,
        _otherwise(config),
        "read only" if config.read_only else None,
    )


def _name(config: Config) -> Markup:
    name = config.name if len(config.name) < LONG_NAME else joined(config.name.split("."), DOT)
    if not config.doc:
        return code(name)
    return element("details", element("summary", code(name)), element("p", config.doc), class_="doc")


def _otherwise(config: Config) -> str | None:
    """The values that would hold if this one were taken away, the strongest first."""
    weaker = [each for each in config.synonyms if each.source != config.source and each.value is not None]
    return None if config.sensitive else "; ".join(_weaker(config, each) for each in weaker)


def _weaker(config: Config, synonym: ConfigSynonym) -> str:
    return f"{synonym.value or 'empty'} ({ConfigSource[synonym.source].words}{_other_name(config, synonym)})"


def _other_name(config: Config, synonym: ConfigSynonym) -> str:
    return "" if synonym.name == config.name else f", {synonym.name}"
