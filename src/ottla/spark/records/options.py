"""Options of the format `ottla-records`, for log directories and for clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from ottla.log.names import TopicPartition
from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.options import ISOLATIONS, PathOptions, with_paths
from ottla.spark.options import CommonOptions, bad_option, boolean, names, one_of, option, positive, read_options, text
from ottla.spark.range_options import RangeOptions
from ottla.spark.records.tables import EVERY_RECORD, JSON_COLUMNS, METADATA_TOPICS, STATE_KEYS, Table, find_table
from ottla.spark.records.types import Column
from ottla.spark.records.values import ValueRules
from ottla.spark.topic.options import TopicOptions
from ottla.wire.keyed import FAMILIES

if TYPE_CHECKING:
    from ottla.spark.records.decode import Choice

__all__ = ["ClusterRecordOptions", "PathRecordOptions", "RecordRangeOptions", "read_record_options"]

DEFAULT_BATCH_ROWS: Final = 50_000
SNAPSHOT_SUFFIX: Final = ".checkpoint"
SERVERS: Final = "kafka.bootstrap.servers"
CLUSTER_TOPICS: Final = tuple(topic for topic in FAMILIES if topic != METADATA_TOPICS[0])
"""The topics that brokers let clients read."""


@dataclass(frozen=True, repr=False)
class RecordTableOptions(CommonOptions):
    """The table, its columns, and the form of its values."""

    record: str = option("record", text, "")
    topic: str = option("topic", one_of(*FAMILIES), "")
    column_names: tuple[str, ...] = option("columns", names, ())
    view: str = option("view", one_of("all", "latest"), "all")
    defaults: bool = option("defaults", boolean, False)
    secrets: bool = option("secrets", boolean, False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.record:
            raise bad_option("record", "it is required; name a record type such as OffsetCommit, or * for all")
        if self.topic and not self.is_every and self.table.topic != self.topic:
            raise bad_option("topic", f"{self.table.name} is in {self.table.topic}, not in {self.topic}")
        unknown = [name for name in self.column_names if name not in {column.name for column in self._all_columns}]
        if unknown:
            known = ", ".join(column.name for column in self._all_columns)
            raise bad_option("columns", f"unknown column {unknown[0]}; known: {known}")
        if self.is_latest and self.is_every:
            raise bad_option("view", "latest needs one record type")
        if self.is_latest and self.table.kind == "metadata" and not self.is_state:
            raise bad_option("view", f"{self.table.name} has no latest rows: it changes or removes other records")

    @property
    def is_every(self) -> bool:
        return self.record == EVERY_RECORD

    @property
    def table(self) -> Table:
        return find_table(self.record)

    @property
    def _all_columns(self) -> tuple[Column, ...]:
        return JSON_COLUMNS if self.is_every else self.table.columns

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """The columns that are read, in the order of the table."""
        return tuple(each for each in self._all_columns if not self.column_names or each.name in self.column_names)

    @property
    def table_topics(self) -> tuple[str, ...]:
        """The topics with the table's records."""
        if not self.is_every:
            return (self.table.topic,)
        return (self.topic,) if self.topic else tuple(FAMILIES)

    @property
    def is_latest(self) -> bool:
        return self.view == "latest"

    @property
    def is_state(self) -> bool:
        """Whether rows are the state to which the whole metadata log adds up."""
        return self.is_latest and self.table.name in STATE_KEYS

    @property
    def has_control(self) -> bool:
        """Whether control records of the quorum are included."""
        return self.is_every or self.table.kind == "control"

    @property
    def values(self) -> ValueRules:
        return ValueRules(self.defaults, self.secrets)

    def choice(self, values: Mapping[str, frozenset[str | int]]) -> Choice:
        """What a task decodes: the columns, and rows with the values that filters accept."""
        from ottla.spark.records.decode import Choice

        return Choice(frozenset(self.column_names) or None, values)


@dataclass(frozen=True, repr=False)
class RecordRangeOptions(RecordTableOptions, RangeOptions):
    """The table, and the range of its topic that is read."""

    arrow_batch_rows: int = option("arrowBatchRows", positive, DEFAULT_BATCH_ROWS)

    def __post_init__(self) -> None:
        super().__post_init__()
        start = self.starting(is_stream=False)
        if self.is_latest and self.table.kind != "keyed" and start.where != "earliest":
            raise bad_option(start.option, "the latest rows of the metadata log need the whole log")

    def for_plan(self) -> Self:
        """These options for planning: one task must see all records of a key to know the newest."""
        return replace(self, min_partitions=None, max_records_per_partition=None) if self.is_latest else self


@dataclass(frozen=True, repr=False)
class PathRecordOptions(RecordRangeOptions, PathOptions):
    isolation: str = option("isolation", one_of(*ISOLATIONS), "read_committed")

    def is_wanted(self, at: TopicPartition) -> bool:
        return super().is_wanted(at) and at.topic in self.table_topics

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(path for path in self.paths if not path.endswith(SNAPSHOT_SUFFIX))

    @property
    def snapshots(self) -> tuple[str, ...]:
        """Snapshots that are given as paths."""
        return tuple(path for path in self.paths if path.endswith(SNAPSHOT_SUFFIX))


@dataclass(frozen=True, repr=False)
class ClusterRecordOptions(RecordRangeOptions, TopicOptions):
    isolation_level: str = option("isolation", one_of(*ISOLATIONS), "read_committed")

    @property
    def is_metadata(self) -> bool:
        """Whether it is the metadata log, which is fetched from the leader of the controllers."""
        return self.table_topics == METADATA_TOPICS[:1]


def read_record_options(given: Mapping[str, str]) -> PathRecordOptions | ClusterRecordOptions:
    """The options of a query: for files if there is a path, else for a cluster."""
    options = with_paths(given)
    names = {name.lower() for name in options}
    if ("path" in names) == (SERVERS in names):
        raise OttlaSparkError(f"options path, {SERVERS}: give exactly one")
    if "path" in names:
        return read_options(PathRecordOptions, options)
    for name in ("subscribe", "subscribepattern", "assign"):
        if name in names:
            raise bad_option(name, "the record type determines the topic")
    wanted = {name: options[name] for name in options if name.lower() in ("record", "topic")}
    topics = read_options(RecordTableOptions, wanted).table_topics
    readable = [topic for topic in topics if topic in CLUSTER_TOPICS] or topics
    return read_options(ClusterRecordOptions, {**options, "subscribe": ",".join(readable)})
