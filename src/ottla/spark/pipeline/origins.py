"""The origin of a run's data: a cluster, or log directories of its brokers.

An origin knows which topics can be read. A topic that cannot is left out, and `notes` says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from ottla.spark.errors import OttlaSparkError
from ottla.wire.keyed import GROUP_TOPIC, SHARE_TOPIC

__all__ = ["ClusterOrigin", "DirectoryOrigin", "Origin", "cluster_origin", "directory_origin"]

SMALL_BYTES: Final = 256 << 20
METADATA_TOPIC: Final = "__cluster_metadata"
WHY_MISSING: Final = {
    GROUP_TOPIC: "no group has committed or joined yet, or DESCRIBE is not authorized",
    SHARE_TOPIC: "no share group has state yet, or DESCRIBE is not authorized",
}
NOT_OBSERVED: Final = "no observer has written to it, so data that only samples provide is missing"
_READ: Final = {"isolation": "read_committed", "failOnDataLoss": "false"}


class Origin(Protocol):
    """The source of a run's data."""

    @property
    def cluster(self) -> str: ...

    @property
    def where(self) -> str: ...

    @property
    def topics(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> list[str]: ...

    @property
    def format(self) -> str:
        """The format that reads it."""

    def options(self, topics: Sequence[str]) -> dict[str, str]:
        """The format's options for some topics."""

    @property
    def metadata_options(self) -> dict[str, str] | None:
        """Options of `ottla-records` for the metadata log; None if it cannot be read here."""

    @property
    def ids(self) -> Mapping[str, str]:
        """The ids of topics by name, as they are now."""

    @property
    def partitions(self) -> tuple[tuple[str, str, int], ...]:
        """Directory, topic and partition of topics that are not internal; empty for a cluster."""

    @property
    def is_small(self) -> bool:
        """Whether it is known to be small."""


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
    size_bytes: int = 0
    """The size of the logs that are read."""
    notes: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        return ", ".join(self.paths)

    @property
    def is_small(self) -> bool:
        return self.size_bytes <= SMALL_BYTES

    @property
    def format(self) -> str:
        return "ottla-log"

    def options(self, topics: Sequence[str]) -> dict[str, str]:
        return {**_READ, "path": ",".join(self.paths), "topic": ",".join(topics)}

    @property
    def metadata_options(self) -> dict[str, str] | None:
        if not self.has_metadata:
            return None
        return {"path": ",".join(self.paths), "record": "*", "topic": METADATA_TOPIC, "failOnDataLoss": "false"}


def directory_origin(paths: Sequence[str], observations: str) -> DirectoryOrigin:
    """The log directories at or right below some paths. OttlaSparkError if there is none."""
    from ottla.spark.log.directory import find_partitions
    from ottla.wire.keyed import FAMILIES

    logs = [each for path in paths for each in _log_directories(path)]
    found = find_partitions(logs, lambda _: True)
    if not found:
        raise OttlaSparkError(f"{', '.join(paths)} contains no partitions: give a directory of a broker's log.dirs")
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
        size_bytes=sum(
            segment.size_bytes for each in found if each.topic_partition.topic in wanted for segment in each.segments
        ),
        notes=_missing(wanted, tuple(names)),
    )


def _log_directories(path: str) -> list[str]:
    """The path itself if it is a log directory, else the log directories right below it."""
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
    partitions: tuple[tuple[str, str, int], ...] = ()

    @property
    def where(self) -> str:
        return self.bootstrap_servers

    @property
    def is_small(self) -> bool:
        return False

    @property
    def format(self) -> str:
        return "ottla"

    def options(self, topics: Sequence[str]) -> dict[str, str]:
        kafka = {f"kafka.{name}": value for name, value in self.settings.items()}
        return {
            **kafka,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "isolationLevel": _READ["isolation"],
            "failOnDataLoss": _READ["failOnDataLoss"],
            "subscribe": ",".join(topics),
        }

    @property
    def metadata_options(self) -> dict[str, str] | None:
        return None  # few principals may read the controllers' log, and any broker knows the ids of topics


def cluster_origin(bootstrap_servers: str, settings: Mapping[str, str], observations: str) -> ClusterOrigin:
    """The topics that a cluster lets us read. ClientError if it does not answer."""
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
