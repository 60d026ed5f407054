"""Rules for settings that are just enough to try the controller: a few keys of each kind."""

from collections.abc import Mapping

import msgspec

from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import BROKER, GROUP, TOPIC
from ottla.wire.errors import ErrorCode

TOPIC_SOURCE, BROKER_SOURCE, CLUSTER_SOURCE, DEFAULT_SOURCE = 1, 2, 3, 5

DEFAULTS: dict[int, dict[str, str]] = {
    TOPIC: {
        "cleanup.policy": "delete",
        "min.insync.replicas": "1",
        "retention.ms": "604800000",
        "unclean.leader.election.enable": "false",
    },
    BROKER: {"log.cleaner.threads": "1", "min.insync.replicas": "1", "node.id": "1", "cordoned.log.dirs": ""},
    GROUP: {"consumer.session.timeout.ms": "45000"},
}
LISTS = {"cleanup.policy", "cordoned.log.dirs"}
READ_ONLY = {"node.id"}
NUMBERS = {"min.insync.replicas", "retention.ms", "consumer.session.timeout.ms"}


class Effective(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    source: int
    is_sensitive: bool = False
    is_read_only: bool = False


class SimpleRules:
    def is_list(self, resource_type: int, name: str) -> bool:
        return name in LISTS

    def default(self, resource_type: int, name: str) -> str | None:
        return DEFAULTS[resource_type].get(name)

    def check(
        self, resource_type: int, resource_name: str, configs: Mapping[str, str], changed: Mapping[str, str | None]
    ) -> None:
        if resource_type == BROKER:
            if READ_ONLY & changed.keys():
                raise Reject(ErrorCode.INVALID_REQUEST, "read-only")
            return
        for name, value in configs.items():
            if name not in DEFAULTS.get(resource_type, {}):
                raise Reject(ErrorCode.INVALID_CONFIG, f"unknown: {name}")
            if name in NUMBERS and not value.lstrip("-").isdigit():
                raise Reject(ErrorCode.INVALID_CONFIG, f"not a number: {name}={value}")

    def topic_value(
        self, name: str, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> str:
        effective = self._effective(name, topic, broker, cluster)
        assert effective.value is not None
        return effective.value

    def topic_configs(
        self, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> list[Effective]:
        return [self._effective(name, topic, broker, cluster) for name in DEFAULTS[TOPIC]]

    def _effective(
        self, name: str, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> Effective:
        for source, configs in ((TOPIC_SOURCE, topic), (BROKER_SOURCE, broker), (CLUSTER_SOURCE, cluster)):
            if name in configs:
                return Effective(name, configs[name], source)
        return Effective(name, DEFAULTS[TOPIC][name], DEFAULT_SOURCE)
