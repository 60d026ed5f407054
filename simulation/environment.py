"""The environment of a core in a simulation: settings, features, ids and randomness, all decided by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ottla import wire
from ottla.core.coordinator.contract import World
from ottla.core.metadata.config_defs import broker_defs, group_defs
from simulation.topics import VirtualTopics

__all__ = ["CountedIds", "Environment", "VirtualSettings"]

_FEATURES: Final = {"group.version": 1, "transaction.version": 2, "share.version": 1, "streams.version": 1}


class VirtualSettings(Mapping[str, Any]):
    """Settings of a broker: those that were set, else Kafka's defaults."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def set(self, name: str, text: str) -> None:
        self._values[name] = broker_defs()[name].parse(text)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - each setting has its own type
        if name not in self._values:
            key = broker_defs()[name]
            self._values[name] = key.parse(key.default)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(broker_defs())

    def __len__(self) -> int:
        return len(list(broker_defs()))


class CountedIds:
    """Uuids that count up, with the texts `#1`, `#2`, so that a trace is readable and reproducible.

    They have the version bits of a random uuid, so that code that sets these changes nothing.
    """

    def __init__(self) -> None:
        self._texts: list[tuple[str, str]] = []

    def new(self) -> bytes:
        number = len(self._texts) + 1
        value = bytearray(number.to_bytes(16, "big"))
        value[6], value[8] = 0x40, 0x80
        digits = value.hex()
        dashed = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        self._texts.append((dashed, wire.uuid_text(bytes(value))))
        return bytes(value)

    def shorten(self, text: str) -> str:
        """Replace the texts of ids by `#n`."""
        if len(text) < 22:
            return text
        for number, texts in enumerate(self._texts, 1):
            for each in texts:
                text = text.replace(each, f"#{number}")
        return text

    def lengthen(self, number: int, *, dashed: bool = True) -> str:
        return self._texts[number - 1][0 if dashed else 1]


class Environment:
    """Makes the `World` of a core, which tests can change."""

    def __init__(self, draw: Callable[[], float] = lambda: 0.5) -> None:
        self.settings = VirtualSettings()
        self.group_settings: dict[tuple[str, str], Any] = {}
        self.features = dict(_FEATURES)
        self.topics = VirtualTopics()
        self.ids = CountedIds()
        self.world = World(
            settings=self.settings,
            group_setting=self.group_setting,
            topics=self.topics,
            feature=lambda name: self.features.get(name, 0),
            new_uuid=self.ids.new,
            draw=draw,
        )

    def set_for_group(self, group_id: str, name: str, text: str) -> None:
        self.group_settings[group_id, name] = group_defs()[name].parse(text)
        self.world.settings_version += 1

    def group_setting(self, group_id: str, name: str) -> Any:  # noqa: ANN401
        """A group's own setting, else the broker's with the prefix `group.`, else the default."""
        if (group_id, name) in self.group_settings:
            return self.group_settings[group_id, name]
        if f"group.{name}" in broker_defs():
            return self.settings[f"group.{name}"]
        key = group_defs()[name]
        return key.parse(key.default)
