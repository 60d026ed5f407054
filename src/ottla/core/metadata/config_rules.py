"""Which value of a setting is in force, where it comes from, and what a resource may be given.

A setting of a topic comes from the first of these that has it, and a broker's from the second on::

    the topic                 1   DYNAMIC_TOPIC
    the broker, dynamically   2   DYNAMIC_BROKER
    all brokers, dynamically  3   DYNAMIC_DEFAULT_BROKER
    the node's own file       4   STATIC_BROKER
    the default               5   DEFAULT

On brokers most settings of topics have another name, and some have several in different units (`TOPIC_SYNONYMS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import dropwhile
from typing import Final, NamedTuple

from ottla.core.metadata.config_defs import (
    CLUSTER_WIDE,
    PER_BROKER,
    ConfigDefs,
    ConfigError,
    ConfigKey,
    ConfigType,
    broker_defs,
    client_metrics_defs,
    group_defs,
    topic_defs,
)
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import BROKER, CLIENT_METRICS, CLUSTER_DEFAULT, GROUP, TOPIC
from ottla.wire.errors import ErrorCode

DYNAMIC_TOPIC: Final = 1
DYNAMIC_BROKER: Final = 2
DYNAMIC_DEFAULT_BROKER: Final = 3
STATIC_BROKER: Final = 4
DEFAULT: Final = 5
DYNAMIC_BROKER_LOGGER: Final = 6
DYNAMIC_CLIENT_METRICS: Final = 7
DYNAMIC_GROUP: Final = 8

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

TOPIC_SYNONYMS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""Setting of a topic -> (setting of the broker, what one of its units is worth), the strongest first."""

THROTTLES: Final = frozenset(
    (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
"""Settings of brokers that can be made dynamically only, and stand in no table."""


LISTENER_PREFIX: Final = "listener.name."
"""Begins settings of single listeners."""

_OF_LISTENERS: Final = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)
"""Settings that can be changed for a listener only, under its prefix."""


class Synonym(NamedTuple):
    """One place in which a setting has a value."""

    name: str
    value: str | None
    source: int


class Setting(NamedTuple):
    """A setting in force. `synonyms` are all places that have it, the strongest first."""

    key: ConfigKey
    value: str | None
    source: int
    is_read_only: bool
    synonyms: tuple[Synonym, ...]

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def is_sensitive(self) -> bool:
        return self.key.is_sensitive


class Rules:
    """The rules of one node, whose own settings are `static`: text by name, only what was set."""

    __slots__ = ("resolve", "static")

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static = static
        self.resolve: Callable[[str, str, Mapping[str, str]], str] = lambda name, text, settings: text
        """Fills placeholders in the value of a broker's setting, by the providers that settings configure."""

    # --- which value is in force

    def broker_synonyms(self, name: str, broker: Mapping[str, str], cluster: Mapping[str, str]) -> Iterator[Synonym]:
        """Where a setting of the broker has a value, the strongest place first.

        Other names for the same are looked at in each place too. Like Apache Kafka, what they have counts only behind
        a value that the setting has under its own name: 168 hours alone do not show log.retention.ms a value.
        """
        found = self._places(_SAME_MEANING.get(name, (name,)), broker, cluster)
        return dropwhile(lambda synonym: synonym.name != name, found)

    def _places(
        self, names: tuple[str, ...], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> Iterator[Synonym]:
        for values, source in (
            (broker, DYNAMIC_BROKER),
            (cluster, DYNAMIC_DEFAULT_BROKER),
            (self.static, STATIC_BROKER),
        ):
            yield from (Synonym(name, values[name], source) for name in names if name in values)
        for name in names:
            default = broker_defs()[name].default
            if default is not None:
                yield Synonym(name, default, DEFAULT)

    def broker_text(self, name: str, broker: Mapping[str, str], cluster: Mapping[str, str]) -> str | None:
        """One setting of the broker."""
        for values in (broker, cluster, self.static):
            if name in values:
                return values[name]
        return broker_defs()[name].default

    def topic_value(
        self, name: str, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> str:
        """One setting of a topic. Raises ConfigError if there is no such setting."""
        if name in topic:
            return topic[name]
        for synonym, unit in TOPIC_SYNONYMS.get(name, ()):
            text = self.broker_text(synonym, broker, cluster)
            if text is not None:
                return _in_units(text, unit)
        return topic_defs()[name].default or ""

    def topic_configs(
        self, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> list[Setting]:
        """All settings of a topic, by name."""
        keys = [topic_defs()[name] for name in topic_defs()]
        return [
            self._topic_setting(key, topic, broker, cluster) for key in keys if not key.is_internal or key.name in topic
        ]

    def _topic_setting(
        self, key: ConfigKey, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> Setting:
        synonyms = [Synonym(key.name, topic[key.name], DYNAMIC_TOPIC)] if key.name in topic else []
        names = TOPIC_SYNONYMS.get(key.name, ())
        if names:
            synonyms += self.broker_synonyms(names[0][0], broker, cluster)
        source = synonyms[0].source if synonyms else DEFAULT
        return Setting(key, self.topic_value(key.name, topic, broker, cluster), source, False, tuple(synonyms))

    def broker_configs(self, broker: Mapping[str, str], cluster: Mapping[str, str]) -> list[Setting]:
        """All settings of the broker, by name; dynamic ones that stand in no table last."""
        found = [self._broker_setting(broker_defs()[name], broker, cluster) for name in broker_defs()]
        return [each for each in found if not each.key.is_internal or each.source != DEFAULT]

    def _broker_setting(self, key: ConfigKey, broker: Mapping[str, str], cluster: Mapping[str, str]) -> Setting:
        synonyms = tuple(self.broker_synonyms(key.name, broker, cluster))
        own = [each for each in synonyms if each.name == key.name]
        value = own[0].value if own else None
        source = synonyms[0].source if synonyms else DEFAULT
        return Setting(key, value, source, not key.is_dynamic, synonyms)

    def group_configs(
        self, group: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> list[Setting]:
        """All settings of a group, by name. Most have their defaults among the settings of brokers. Those that Apache
        Kafka 4.3 does not know are shown where they are set."""
        found = [self._group_setting(group_defs()[name], group, broker, cluster) for name in group_defs()]
        return [each for each in found if not each.key.is_internal or each.source != DEFAULT]

    def _group_setting(
        self, key: ConfigKey, group: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> Setting:
        synonyms = [Synonym(key.name, group[key.name], DYNAMIC_GROUP)] if key.name in group else []
        if f"group.{key.name}" in broker_defs():
            synonyms += self.broker_synonyms(f"group.{key.name}", broker, cluster)
        else:
            synonyms.append(Synonym(key.name, key.default, DEFAULT))
        return Setting(key, synonyms[0].value, synonyms[0].source, False, tuple(synonyms))

    def group_text(
        self, name: str, group: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> str | None:
        """One setting of a group."""
        return self._group_setting(group_defs()[name], group, broker, cluster).value

    def client_metrics_configs(self, subscription: Mapping[str, str]) -> list[Setting]:
        """All settings of a subscription, by name. Apache Kafka lists no synonyms of what was not set."""
        found = []
        for key in (client_metrics_defs()[name] for name in client_metrics_defs()):
            value = subscription.get(key.name)
            synonyms = () if value is None else (Synonym(key.name, value, DYNAMIC_CLIENT_METRICS),)
            source = DYNAMIC_CLIENT_METRICS if synonyms else DEFAULT
            found.append(Setting(key, key.default if value is None else value, source, False, synonyms))
        return found

    # --- what may be set

    def is_list(self, resource_type: int, name: str) -> bool:
        key = _defs(resource_type).get(name)
        return key is not None and key.type.name == "LIST"

    def default(self, resource_type: int, name: str) -> str | None:
        if resource_type == TOPIC:
            return self.topic_value(name, {}, {}, {})
        if resource_type == BROKER:
            return self.broker_text(name, {}, {})
        return _defs(resource_type)[name].default

    def check(
        self, resource_type: int, resource_name: str, configs: Mapping[str, str], changed: Mapping[str, str | None]
    ) -> None:
        """Reject what a resource must not have."""
        if resource_type == BROKER:
            self._check_broker(resource_name, configs, changed)
            return
        code = ErrorCode.INVALID_CONFIG
        if resource_type == CLIENT_METRICS:
            code = ErrorCode.INVALID_REQUEST
        try:
            values = {name: _defs(resource_type)[name].parse(value) for name, value in configs.items()}
            if resource_type == TOPIC:
                self._check_topic(configs, values)
            elif resource_type == GROUP:
                self._check_group(values)
            else:
                _check_client_metrics(values)
        except ConfigError as error:
            raise Reject(code, str(error)) from None

    def _check_broker(self, resource_name: str, configs: Mapping[str, str], changed: Mapping[str, str | None]) -> None:
        for name, value in changed.items():
            key = broker_key(name)
            if key is None:
                continue  # as Apache Kafka does: plugins may know it
            if not name.startswith(LISTENER_PREFIX):
                _check_updatable(resource_name, key, value)
            try:
                key.parse(None if value is None else self.resolve(name, value, configs), as_given=value)
            except ConfigError as error:
                # Not INVALID_CONFIG, as of other resources: Apache Kafka's brokers have their own check.
                raise Reject(ErrorCode.INVALID_REQUEST, str(error)) from None

    def _check_topic(self, configs: Mapping[str, str], values: Mapping[str, object]) -> None:
        low = int(self.topic_value("min.compaction.lag.ms", configs, {}, {}))
        high = int(self.topic_value("max.compaction.lag.ms", configs, {}, {}))
        if low > high:
            raise ConfigError(f"min.compaction.lag.ms ({low}) must not exceed max.compaction.lag.ms ({high})")
        if values.get("remote.storage.enable"):
            raise ConfigError("remote.storage.enable cannot be true: this cluster has no tiered storage")

    def _check_group(self, values: Mapping[str, object]) -> None:
        """Groups keep to the bounds that the broker sets."""
        for name, value in values.items():
            if not isinstance(value, int) or isinstance(value, bool):
                continue
            low, high = self._group_bound("min", name), self._group_bound("max", name)
            if (low is not None and value < low) or (high is not None and value > high):
                raise ConfigError(f"{name} cannot be {value}: the broker's bounds are {low} and {high}")
        for family in sorted({name.partition(".")[0] for name in values}):
            self._check_session(family, values)

    def _check_session(self, family: str, values: Mapping[str, object]) -> None:
        session, heartbeat = f"{family}.session.timeout.ms", f"{family}.heartbeat.interval.ms"
        if session in group_defs():
            session_ms, heartbeat_ms = (
                int(str(values.get(name) or self.broker_text(f"group.{name}", {}, {}))) for name in (session, heartbeat)
            )
            check_session(session, session_ms, heartbeat, heartbeat_ms)

    def _group_bound(self, bound: str, name: str) -> int | None:
        family, _, rest = name.partition(".")
        key = broker_defs().get(f"group.{family}.{bound}.{rest.removeprefix('num.')}")
        return None if key is None else int(self.broker_text(key.name, {}, {}) or 0)


def check_session(session: str, session_ms: int, heartbeat: str, heartbeat_ms: int) -> None:
    """Refuse a session that does not outlast the time between two heartbeats; both settings are given by name."""
    if session_ms <= heartbeat_ms:
        raise ConfigError(f"{session} ({session_ms}) must be more than {heartbeat} ({heartbeat_ms})")


def _check_updatable(resource_name: str, key: ConfigKey, value: str | None) -> None:
    name = key.name
    if not key.is_dynamic:
        raise Reject(ErrorCode.INVALID_REQUEST, f"{name} cannot be changed while brokers run.")
    if resource_name == CLUSTER_DEFAULT and key.update_mode == PER_BROKER:
        raise Reject(ErrorCode.INVALID_REQUEST, f"{name} is set for each broker by itself, not for all of them.")
    if name in _OF_LISTENERS and value is not None:
        raise Reject(ErrorCode.INVALID_REQUEST, f"{name} is set for each listener by itself: {LISTENER_PREFIX}…")


def broker_key(name: str) -> ConfigKey | None:
    """A setting of brokers that can be made while they run or in their files; None if nothing is known of it."""
    if name in THROTTLES:
        return ConfigKey(name, ConfigType.LONG, None, rule=">=0", update_mode=CLUSTER_WIDE)
    if not name.startswith(LISTENER_PREFIX):
        return broker_defs().get(name)
    _, _, base = name.removeprefix(LISTENER_PREFIX).partition(".")
    key = broker_defs().get(base)
    return None if key is None else ConfigKey(name, key.type, None, rule=key.rule)


_INTERVAL_MS: Final = (100, 3_600_000)
_MATCHES: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def _check_client_metrics(values: Mapping[str, object]) -> None:
    interval = values.get("interval.ms")
    low, high = _INTERVAL_MS
    if isinstance(interval, int) and not low <= interval <= high:
        # In the words that kafka-client-metrics is known to print.
        raise ConfigError(
            f"Invalid value {interval} for interval.ms, interval must be between {low} and {high} (1 hour)"
        )
    patterns = values.get("match")
    for entry in patterns if isinstance(patterns, tuple) else ():
        name, equals, expression = entry.partition("=")
        if not equals or name.strip() not in _MATCHES or not _is_expression(expression.strip()):
            raise Reject(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}")


def _is_expression(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _defs(resource_type: int) -> ConfigDefs:
    if resource_type == TOPIC:
        return topic_defs()
    if resource_type == BROKER:
        return broker_defs()
    return group_defs() if resource_type == GROUP else client_metrics_defs()


def _in_units(text: str, unit: int) -> str:
    """A number in the topic's unit; -1, no limit, is -1 in any."""
    if unit == 1:
        return text
    number = int(text)
    return text if number < 0 else str(number * unit)


def _same_meaning() -> dict[str, tuple[str, ...]]:
    """Setting of the broker -> all of the same meaning, the strongest first, as Apache Kafka lists them."""
    chains = [tuple(name for name, _ in names) for names in TOPIC_SYNONYMS.values() if len(names) > 1]
    found = {name: chain for chain in chains for name in chain}
    del found["log.flush.scheduler.interval.ms"]  # how often to look whether something is to be flushed
    return found


_SAME_MEANING: Final = _same_meaning()
