"""The settings in force: dynamic settings first, then those of the node's configuration.

`settings["fetch.max.bytes"]` has the setting's type. Values are worked out when first asked for and forgotten when the
metadata log changes them. Topics with equal settings share one `LogConfig`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.config.supported_settings import SUPPORTED_SETTINGS, unsupported_text
from ottla.core.metadata.config_defs import ConfigError, broker_defs, topic_defs
from ottla.core.metadata.config_rules import Rules
from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT, TOPIC, MetadataImage
from ottla.log.config import LONG_MAX, LogConfig

__all__ = ["Settings"]

log = logging.getLogger(__name__)

# Setting of a topic -> field of LogConfig.
_LOG_FIELDS: Final = {
    name: name.replace(".", "_")
    for name in (
        "segment.bytes",
        "segment.ms",
        "segment.jitter.ms",
        "segment.index.bytes",
        "index.interval.bytes",
        "file.delete.delay.ms",
        "max.message.bytes",
        "message.timestamp.type",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "compression.type",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "flush.messages",
        "flush.ms",
        "retention.ms",
        "retention.bytes",
        "delete.retention.ms",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "max.compaction.lag.ms",
    )
}


_TOPIC_VALUES_MAX: Final = 10_000


class Settings:
    """The settings in force on one node."""

    def __init__(self, config: NodeConfig, rules: Rules, image: MetadataImage) -> None:
        self.config = config
        self.rules = rules
        rules.resolve = self.resolve
        self._image = image
        self._values: dict[str, Any] = {}
        self._resolved: dict[str, dict[str, str]] = {}
        self._warned: set[str] = set()
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        self._topic_values: dict[tuple[str, str], tuple[Mapping[str, str], Any]] = {}
        """By topic and name: what was set on the topic when the value was read, and the value."""
        self.has_timed_flushes = False
        """Whether any topic that was asked for has `flush.ms`."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        if name not in self._values:
            text = self.rules.broker_text(name, self.broker_dynamic, self.cluster_dynamic)
            self._values[name] = broker_defs()[name].parse(text)
        return self._values[name]

    @property
    def broker_dynamic(self) -> Mapping[str, str]:
        """The dynamic settings of this broker."""
        return self._dynamic(str(self.config.node_id))

    @property
    def cluster_dynamic(self) -> Mapping[str, str]:
        """The dynamic settings of all brokers."""
        return self._dynamic(CLUSTER_DEFAULT)

    def as_texts(self) -> Mapping[str, str]:
        """All that is set for this broker, the dynamic settings on top of the node's own."""
        return {**self.config.static, **self.cluster_dynamic, **self.broker_dynamic}

    def as_given(self, name: str) -> Mapping[str, str]:
        """What was set for a broker, or without a name for all of them, with its placeholders."""
        return self._image.configs(BROKER, name)

    def _dynamic(self, name: str) -> Mapping[str, str]:
        """What was set for brokers while they ran, with placeholders filled; what cannot be filled does not count."""
        raw = self.as_given(name)
        if not any("${" in text for text in raw.values()):
            return raw
        if name not in self._resolved:
            self._resolved[name] = dict(self._filled(raw))
        return self._resolved[name]

    def _filled(self, raw: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for name, text in raw.items():
            try:
                value = self.resolve(name, text, raw)
                if name in broker_defs():
                    broker_defs()[name].parse(value, as_given=text)
            except ConfigError as error:
                log.warning("%s", error)
            else:
                yield name, value

    def resolve(self, name: str, text: str, settings: Mapping[str, str]) -> str:
        """A value that may come from a provider, by the providers of these settings, of all brokers and of the node."""
        return self.config.providers.resolve(name, text, settings, self.as_given(CLUSTER_DEFAULT), self.config.static)

    def forget(self) -> None:
        """Drop cached values: settings of brokers have changed."""
        self._warn_of_unsupported()
        self._values.clear()
        self._resolved.clear()
        self._log_configs.clear()
        self._topic_values.clear()

    def _warn_of_unsupported(self) -> None:
        """Warn, once for each, of dynamic settings that ottla does not support."""
        made = {name for place in (str(self.config.node_id), CLUSTER_DEFAULT) for name in self.as_given(place)}
        unsupported = {name for name in made if name in broker_defs() and name not in SUPPORTED_SETTINGS} - self._warned
        if unsupported:
            self._warned |= unsupported
            log.warning("%s", unsupported_text(unsupported))

    def topic_value(self, topic_name: str, name: str) -> Any:  # noqa: ANN401
        """One setting of a topic."""
        topic = self._image.configs(TOPIC, topic_name)
        known = self._topic_values.get((topic_name, name))
        if known is None or known[0] is not topic:
            if len(self._topic_values) >= _TOPIC_VALUES_MAX:
                self._topic_values.clear()  # of topics that are gone, most of them
            known = (topic, topic_defs()[name].parse(self._topic_text(name, topic)))
            self._topic_values[topic_name, name] = known
        return known[1]

    def throttle(self, name: str) -> float:
        """A rate that can be set dynamically only, in bytes a second; infinite if it is not set."""
        text = self.broker_dynamic.get(name) or self.cluster_dynamic.get(name)
        return float(text) if text else math.inf

    def log_config(self, topic_name: str) -> LogConfig:
        """The settings of a topic's logs."""
        topic = self._image.configs(TOPIC, topic_name)
        key = frozenset(topic.items())
        config = self._log_configs.get(key)
        if config is None:
            config = self._log_configs[key] = self._make_log_config(topic)
        return config

    def _topic_text(self, name: str, topic: Mapping[str, str]) -> str:
        return self.rules.topic_value(name, topic, self.broker_dynamic, self.cluster_dynamic)

    def _make_log_config(self, topic: Mapping[str, str]) -> LogConfig:
        values = {field: topic_defs()[name].parse(self._topic_text(name, topic)) for name, field in _LOG_FIELDS.items()}
        values["cleanup_policy"] = frozenset(
            topic_defs()["cleanup.policy"].parse(self._topic_text("cleanup.policy", topic))
        )
        if "internal.segment.bytes" in topic:
            values["segment_bytes"] = int(topic["internal.segment.bytes"])
        self.has_timed_flushes = self.has_timed_flushes or values["flush_ms"] < LONG_MAX
        return LogConfig(
            producer_id_expiration_ms=self["producer.id.expiration.ms"],
            ottla_validate_records=self["ottla.validate.records"],
            **values,
        )
