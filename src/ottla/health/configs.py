"""The configs of groups, topics and brokers that rules read, with Kafka's defaults where nothing is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.health.facts import Configs
from ottla.health.series import LruDict

__all__ = ["KnownConfigs"]

DEFAULTS: Final[dict[str, int]] = {
    "consumer.session.timeout.ms": 45_000,
    "consumer.heartbeat.interval.ms": 5_000,
    "streams.session.timeout.ms": 45_000,
    "streams.heartbeat.interval.ms": 5_000,
    "share.record.lock.duration.ms": 30_000,
    "share.delivery.count.limit": 5,
    "share.partition.max.record.locks": 2_000,
    "min.insync.replicas": 1,
    "transaction.max.timeout.ms": 900_000,
}
REBALANCE_TIMEOUT_MS: Final = 300_000
"""The default of max.poll.interval.ms. No API reports the value of a member."""

BROKERS: Final = 1_000
PLUGIN: Final = "group.streams.topology.description.plugin.class"


class KnownConfigs:
    def __init__(self, room: int) -> None:
        self._values: LruDict[tuple[str, str], dict[str, str | None]] = LruDict(room)
        self._brokers: LruDict[str, dict[str, str | None]] = LruDict(BROKERS)
        self.listed: frozenset[str] | None = None
        """The brokers of the cluster, if they were ever listed. Nobody tells when the configs of others are gone."""

    def take(self, fact: Configs) -> None:
        if fact.resource == "broker":
            values = self._brokers.touch(fact.name, dict)
        else:
            values = self._values.touch((fact.resource, fact.name), dict)
        values.clear()
        values.update(fact.values)

    def of_group(self, group: str, key: str) -> int:
        """A group's own value, else the broker's (`group.` + key), else Kafka's default."""
        return self._number("group", group, key) or self._of_brokers("group." + key) or DEFAULTS[key]

    def of_topic(self, topic: str, key: str) -> int:
        return self._number("topic", topic, key) or self._of_brokers(key) or DEFAULTS[key]

    def of_brokers(self, key: str) -> int:
        return self._of_brokers(key) or DEFAULTS[key]

    def of_each_broker(self) -> Iterator[tuple[str, Mapping[str, str | None]]]:
        yield from sorted(self._listed())

    def broker_text(self, key: str) -> str | None:
        return next((values[key] for _, values in self._listed() if values.get(key)), None)

    def _listed(self) -> Iterator[tuple[str, dict[str, str | None]]]:
        return (each for each in self._brokers.items() if self.listed is None or each[0] in self.listed)

    def _of_brokers(self, key: str) -> int | None:
        return _as_number(self.broker_text(key))

    def _number(self, resource: str, name: str, key: str) -> int | None:
        return _as_number((self._values.get((resource, name)) or {}).get(key))


def _as_number(text: str | None) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        return None
