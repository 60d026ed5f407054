"""The world of a node's cores: settings, topics, features, randomness."""

from __future__ import annotations

from typing import Any

from ottla.broker.config.settings import Settings
from ottla.broker.coordinators.topics import TopicsView
from ottla.broker.loop.randomness import Randomness
from ottla.core.coordinator.contract import World
from ottla.core.metadata.config_defs import group_defs
from ottla.core.metadata.features import OTTLA_VERSION
from ottla.core.metadata.image import GROUP, MetadataImage

__all__ = ["GroupValues", "make_world"]


class GroupValues:
    """The settings of groups, parsed on first use. Groups without settings of their own share one value."""

    def __init__(self, settings: Settings, image: MetadataImage) -> None:
        self._settings = settings
        self._image = image
        self._defaults: dict[str, Any] = {}
        self._own: dict[tuple[str, str], Any] = {}

    def __call__(self, group_id: str, name: str) -> Any:  # noqa: ANN401
        own = self._image.configs(GROUP, group_id)
        if name not in own:
            if name not in self._defaults:
                self._defaults[name] = self._value(name, {})
            return self._defaults[name]
        key = (group_id, name)
        if key not in self._own:
            self._own[key] = self._value(name, own)
        return self._own[key]

    def _value(self, name: str, own: Any) -> Any:  # noqa: ANN401
        settings = self._settings
        return group_defs()[name].parse(
            settings.rules.group_text(name, own, settings.broker_dynamic, settings.cluster_dynamic)
        )

    def forget(self) -> None:
        """Settings of groups or of brokers have changed."""
        self._defaults.clear()
        self._own.clear()


def make_world(
    settings: Settings, image: MetadataImage, topics: TopicsView, group_setting: GroupValues, randomness: Randomness
) -> World:
    return World(
        settings=settings,
        group_setting=group_setting,
        topics=topics,
        feature=lambda name: image.features.get(name, 0),
        new_uuid=randomness.uuid,
        draw=randomness.fraction,
        serves_newest=lambda: image.all_support(OTTLA_VERSION, 1),
    )
