"""Where the data lie: a cluster, or log directories of one. Both say which topics there are to read, and what is amiss.

What cannot be read is said in `notes` and left out; the rest goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ottla.spark.errors import OttlaSparkError
from ottla.spark.pipeline.decoding import GROUP_TOPIC, SHARE_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ClusterOrigin", "DirectoryOrigin", "Origin", "cluster_origin", "directory_origin"]

METADATA_TOPIC: Final = "__cluster_metadata"
WHY_MISSING: Final = {
    GROUP_TOPIC: "no group has committed or joined yet, or it may not be described",
    SHARE_TOPIC: "no share group has had state yet, or it may not be described",
}
NOT_OBSERVED: Final = "no observer has written to it: what only samples tell is not known"
_READ: Final = {"isolation": "read_committed", "failOnDataLoss": "false"}


class Origin(Protocol):
    """What a run reads."""

    @property
    def cluster(self) -> str: ...

    @property
    def where(self) -> str: ...

    @property
    def topics(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> list[str]: ...

    def batch(self, spark: SparkSession, topics: Sequence[str]) -> DataFrame:
        """The records of topics up to now, with Spark's columns for records."""

    def stream(self, spark: SparkSession, topics: Sequence[str]) -> DataFrame:
        """The same and what follows."""

    def metadata(self, spark: SparkSession) -> DataFrame | None:
        """Records of the metadata log, decoded; None if it cannot be read here."""

    def topic_ids(self) -> Mapping[str, str]:
        """The ids of topics by name, as they are now."""


def _missing(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    return [f"{topic} was not found: {WHY_MISSING.get(topic, NOT_OBSERVED)}" for topic in wanted if topic not in there]


# --- log directories --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DirectoryOrigin:
    cluster: str
    paths: tuple[str, ...]
    topics: tuple[str, ...]
    ids: Mapping[str, str]
    partitions: tuple[tuple[str, str, int], ...] = ()
    """Directory, topic and partition of the topics that are not internal."""
    has_metadata: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        return ", ".join(self.paths)

    def batch(self, spark: SparkSession, topics: Sequence[str]) -> DataFrame:
        return spark.read.format("ottla-log").options(**self._options(topics)).load()

    def stream(self, spark: SparkSession, topics: Sequence[str]) -> DataFrame:
        options = {**self._options(topics), "startingOffsets": "earliest"}
        return spark.readStream.format("ottla-log").options(**options).load()

    def _options(self, topics: Sequence[str]) -> dict[str, str]:
        return {**_READ, "path": ",".join(self.paths), "topic": ",".join(topics)}

    def metadata(self, spark: SparkSession) -> DataFrame | None:
        if not self.has_metadata:
            return None
        options = {"path": ",".join(self.paths), "record": "*", "topic": METADATA_TOPIC, "failOnDataLoss": "false"}
        return spark.read.format("ottla-records").options(**options).load()

    def topic_ids(self) -> Mapping[str, str]:
        return self.ids


def directory_origin(paths: Sequence[str], observations: str) -> DirectoryOrigin:
    """The log directories at or right below some paths. OttlaSparkError if there is none."""
    from ottla.spark.log.directory import find_partitions
    from ottla.wire.keyed import FAMILIES

    logs = [each for path in paths for each in _log_directories(path)]
    found = find_partitions(logs, lambda _: True)
    if not found:
        raise OttlaSparkError(
            f"{', '.join(paths)} holds no partition of a topic: name a directory of a broker's log.dirs"
        )
    names = {each.topic_partition.topic for each in found}
    wanted = (GROUP_TOPIC, SHARE_TOPIC, observations)
    clusters = sorted({each.directory.cluster_id for each in found if each.directory.cluster_id})
    others = {
        (each.uri, *each.topic_partition)
        for each in found
        if each.topic_partition.topic not in {*FAMILIES, observations}
    }
    return DirectoryOrigin(
        cluster=clusters[0] if clusters else "",
        paths=tuple(logs),
        topics=tuple(topic for topic in wanted if topic in names),
        ids={each.topic_partition.topic: each.topic_id for each in found if each.topic_id is not None},
        partitions=tuple(sorted(others)),
        has_metadata=METADATA_TOPIC in names,
        notes=_missing(wanted, tuple(names)),
    )


def _log_directories(path: str) -> list[str]:
    """The path itself if it is a log directory, else those right below it: a broker may have several, as may a set of
    nodes."""
    from ottla.log.names import parse_directory_name
    from ottla.spark.log.storage import is_remote
    from ottla.wire.properties import META_PROPERTIES_FILE

    if is_remote(path):
        return [path]
    directory = Path(path)
    if not directory.is_dir():
        raise OttlaSparkError(f"{path} is not a directory" if directory.exists() else f"{path} does not exist")
    below = [each for each in sorted(directory.iterdir()) if each.is_dir()]
    is_log = (directory / META_PROPERTIES_FILE).exists() or any(parse_directory_name(each.name) for each in below)
    if is_log:
        return [str(directory)]
    return [str(each) for each in below if (each / META_PROPERTIES_FILE).exists()] or [str(directory)]


# --- clusters ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClusterOrigin:
    cluster: str
    bootstrap_servers: str
    settings: Mapping[str, str]
    topics: tuple[str, ...]
    ids: Mapping[str, str]
    notes: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.bootstrap_servers

    def batch(self, spark: SparkSession, topics: Sequence[str]) -> DataFrame:
        return spark.read.format("ottla").options(**self._options(topics)).load()

    def stream(self, spark: SparkSession, topics: Sequence[str]) -> DataFrame:
        options = {**self._options(topics), "startingOffsets": "earliest"}
        return spark.readStream.format("ottla").options(**options).load()

    def _options(self, topics: Sequence[str]) -> dict[str, str]:
        kafka = {f"kafka.{name}": value for name, value in self.settings.items()}
        return {
            **kafka,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "isolationLevel": _READ["isolation"],
            "failOnDataLoss": _READ["failOnDataLoss"],
            "subscribe": ",".join(topics),
        }

    def metadata(self, spark: SparkSession) -> DataFrame | None:
        return None  # controllers show their log to few; what is needed of it, topics' ids, any broker tells

    def topic_ids(self) -> Mapping[str, str]:
        return self.ids


def cluster_origin(bootstrap_servers: str, settings: Mapping[str, str], observations: str) -> ClusterOrigin:
    """What a cluster lets us read. ClientError if it does not answer."""
    from ottla.client.client import Client
    from ottla.spark.clients import client_for
    from ottla.spark.cluster_options import ClusterOptions
    from ottla.wire import uuid_text

    options = ClusterOptions(bootstrap_servers=bootstrap_servers, kafka=dict(settings))
    client = client_for(options)
    topics = client.call(Client.all_topics)
    wanted = (GROUP_TOPIC, SHARE_TOPIC, observations)
    return ClusterOrigin(
        cluster=client.metadata.cluster_id or "",
        bootstrap_servers=bootstrap_servers,
        settings=settings,
        topics=tuple(topic for topic in wanted if topic in topics),
        ids={name: uuid_text(topic.topic_id) for name, topic in topics.items() if any(topic.topic_id)},
        notes=_missing(wanted, tuple(topics)),
    )
