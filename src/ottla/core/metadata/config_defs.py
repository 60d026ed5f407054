"""Every setting there is: its type, its default, what it may be, and whether it can be changed while a node runs.

Settings have Kafka's names. Values are text, as in files and on the wire; `ConfigKey.parse` gives them their type and
refuses what they must not be. Lines of the tables are taken apart when their key is first asked for: a node that starts
looks at a few dozen of some 400.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from typing import Any, Final

import msgspec

from ottla.core.metadata import config_values
from ottla.core.metadata.config_keys import read_text

CLUSTER_WIDE: Final = "cluster-wide"
PER_BROKER: Final = "per-broker"
READ_ONLY: Final = "read-only"


class ConfigError(ValueError):
    """A setting that is not known, or a value that it cannot have; the text is for people."""


class ConfigType(IntEnum):
    """Types of settings, with the numbers of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigKey(msgspec.Struct, frozen=True):
    """One setting. `default` is None where there is none; `rule` is a word of `config_values`."""

    name: str
    type: ConfigType
    default: str | None
    is_required: bool = False
    rule: str = ""
    update_mode: str = READ_ONLY
    is_internal: bool = False
    documentation: str = ""

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def is_dynamic(self) -> bool:
        return self.update_mode != READ_ONLY

    def parse(self, text: str | None, *, as_given: str | None = None) -> Any:  # noqa: ANN401 - what the type says
        """The value in a text; None stands for no value. Raises ConfigError, which shows the text `as_given`."""
        if text is None:
            return None
        try:
            value = config_values.convert(self.type.name, text.strip())
            config_values.check(self.rule, value)
        except ValueError as error:
            shown = "" if self.is_sensitive else f" {(text if as_given is None else as_given)!r}"
            raise ConfigError(f"{self.name} cannot be{shown}: {error}") from None
        return value

    @property
    def default_value(self) -> Any:  # noqa: ANN401
        return self.parse(self.default)


class ConfigDefs:
    """The settings of one kind of resource, in the order of their names."""

    __slots__ = ("_keys", "_lines", "kind")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self._lines = {line[: line.index(" |")]: line for line in text.splitlines()}
        self._keys: dict[str, ConfigKey] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, name: str) -> ConfigKey:
        key = self._keys.get(name)
        if key is None:
            line = self._lines.get(name)
            if line is None:
                raise ConfigError(self.unknown(name))
            key = self._keys[name] = _parse_line(line)
        return key

    def get(self, name: str) -> ConfigKey | None:
        return self[name] if name in self._lines else None

    def unknown(self, name: str) -> str:
        """What to say of a name that is not there."""
        from difflib import get_close_matches

        near = get_close_matches(name, self._lines, n=1, cutoff=0.0)
        return f"there is no {self.kind} setting {name!r}; the nearest is {near[0]}"


def _parse_line(line: str) -> ConfigKey:
    name, kind, default, rule, mode, *rest = (cell.strip() for cell in line.split("|", 5))
    kind, _, mark = kind.partition(" ")
    return ConfigKey(
        name=name,
        type=ConfigType[kind.upper()],
        default=None if default in ("null", "required") else default,
        is_required=default == "required",
        rule=rule,
        update_mode=mode or READ_ONLY,
        is_internal=mark == "internal",
        documentation=rest[0] if rest else "",
    )


@cache
def broker_defs() -> ConfigDefs:
    return ConfigDefs("broker", read_text("broker"))


@cache
def topic_defs() -> ConfigDefs:
    return ConfigDefs("topic", read_text("topic"))


@cache
def group_defs() -> ConfigDefs:
    return ConfigDefs("group", read_text("group"))


@cache
def client_metrics_defs() -> ConfigDefs:
    return ConfigDefs("client metrics", read_text("client_metrics"))
