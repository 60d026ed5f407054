"""Options of every format that connects to a cluster: its address, and Kafka's own client settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from ottla.client.address import parse_bootstrap_servers
from ottla.client.errors import ConfigurationError
from ottla.client.properties import NUMBERS, settings_of
from ottla.client.settings import Changes
from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn_once
from ottla.spark.options import CommonOptions, bad_option, boolean, option, positive, text

__all__ = ["ClusterOptions", "RecordOptions"]

MIB: Final = 1024 * 1024
CONNECT_TIMEOUT_MS: Final = 5_000
"""Shorter than the client's default, because the planner waits for it if a host is misspelt."""
REFUSED: Final = {
    "auto.offset.reset": "use startingOffsets",
    "key.deserializer": "keys are binary; cast them in the query",
    "value.deserializer": "values are binary; cast them in the query",
    "key.serializer": "cast the key to binary or string in the query",
    "value.serializer": "cast the value to binary or string in the query",
    "enable.auto.commit": "offsets are kept in the checkpoint; see commitOffsetsToGroup",
    "interceptor.classes": "interceptors are Java classes",
}
"""Settings that Spark's own source also rejects, and what to do instead."""
JAVA: Final = (".class", ".classes", ".factory.class")
KNOWN: Final = frozenset(
    {
        *NUMBERS,
        "check.crcs",
        "client.id",
        "client.rack",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "isolation.level",
        "max.partition.fetch.bytes",
        "ottla.oauth.callback",
        "security.protocol",
    }
)
FAMILIES: Final = ("ssl.", "sasl.")


@dataclass(frozen=True)
class RecordOptions(CommonOptions):
    """Options of all formats with the columns of records: how records become Arrow batches."""

    include_headers: bool = option("includeHeaders", boolean, False)
    include_leader_epoch: bool = option("includeLeaderEpoch", boolean, False)
    include_topic_id: bool = option("includeTopicId", boolean, False)
    arrow_batch_rows: int = option("arrowBatchRows", positive, 50_000)
    arrow_batch_bytes: int = option("arrowBatchBytes", positive, 8 * MIB)


@dataclass(frozen=True)
class ClusterOptions(CommonOptions):
    bootstrap_servers: str = option("kafka.bootstrap.servers", text, "")
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Kafka's client settings, without the prefix `kafka.`."""

    def __post_init__(self) -> None:
        name = "kafka.bootstrap.servers"
        if not self.bootstrap_servers:
            raise bad_option(name, "it is required")
        try:
            parse_bootstrap_servers(self.bootstrap_servers)
        except ConfigurationError as error:
            raise bad_option(name, str(error)) from None
        self._check_settings()
        self.client_settings()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.bootstrap_servers})"  # the settings may hold passwords

    def _known_settings(self) -> frozenset[str]:
        """The settings that this format uses; others cause a warning."""
        return KNOWN

    def _check_settings(self) -> None:
        known = self._known_settings()
        for name in self.kafka:
            if name in REFUSED:
                raise bad_option(f"kafka.{name}", REFUSED[name])
            if name.endswith(JAVA):
                raise bad_option(f"kafka.{name}", "it names Java classes, which Python cannot load")
            if name not in known and not name.startswith(FAMILIES):
                nearest = get_close_matches(name, known, n=1, cutoff=0.8)
                advice = f"; did you mean kafka.{nearest[0]}?" if nearest else ""
                warn_once(f"option kafka.{name} is unknown and ignored{advice}")

    def client_settings(self) -> Changes:
        """The settings of a client for this cluster. Raises OttlaSparkError, which names the wrong option."""
        defaults = {"socket.connection.setup.timeout.ms": str(CONNECT_TIMEOUT_MS)}
        try:
            return settings_of({**defaults, **self.kafka})
        except ConfigurationError as error:
            raise OttlaSparkError(f"option kafka.{error}") from None

    def number(self, name: str) -> int | None:
        """The value of a numeric Kafka setting, which must be positive; None if it is not given."""
        value = self.kafka.get(name)
        try:
            return None if value is None else positive(value)
        except ValueError as error:
            raise bad_option(f"kafka.{name}", str(error)) from None
