"""Options of every format that talks to a cluster: where it is, and Kafka's own client settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.client.address import parse_bootstrap_servers
from ottla.client.errors import ConfigurationError
from ottla.spark.options import CommonOptions, bad_option, boolean, option, positive, text

__all__ = ["ClusterOptions", "RecordOptions"]

MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class RecordOptions(CommonOptions):
    """How records become Arrow batches, for every format that has the columns of records."""

    include_headers: bool = option("includeHeaders", boolean, False)
    include_leader_epoch: bool = option("includeLeaderEpoch", boolean, False)
    include_topic_id: bool = option("includeTopicId", boolean, False)
    arrow_batch_rows: int = option("arrowBatchRows", positive, 50_000)
    arrow_batch_bytes: int = option("arrowBatchBytes", positive, 8 * MIB)


@dataclass(frozen=True)
class ClusterOptions(CommonOptions):
    bootstrap_servers: str = option("kafka.bootstrap.servers", text, "")
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Kafka's client settings, without the `kafka.` before them."""

    def __post_init__(self) -> None:
        name = "kafka.bootstrap.servers"
        if not self.bootstrap_servers:
            raise bad_option(name, "it is required")
        try:
            parse_bootstrap_servers(self.bootstrap_servers)
        except ConfigurationError as error:
            raise bad_option(name, str(error)) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.bootstrap_servers})"  # the settings may hold passwords
