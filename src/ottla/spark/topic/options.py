"""Options of the format `ottla` as a source: those of Spark's own Kafka source, and some more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, cast

from ottla.client.blocking.range_reader import ReadOptions
from ottla.client.offsets import Isolation
from ottla.client.settings import Changes
from ottla.spark.cluster_options import ClusterOptions, RecordOptions
from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn_once
from ottla.spark.offsets import RESERVED, TopicPartition
from ottla.spark.options import at_least, bad_option, json_object, names, one_of, option, positive, text
from ottla.spark.range_options import RangeOptions, pattern
from ottla.spark.schemas import RecordColumns

__all__ = ["TopicOptions", "joined_records"]

POLL_TIMEOUT_MS: Final = 120_000
JOINED_RECORDS: Final = 1_000
"""A task of a stream reads at least so many records: a Python worker takes some 30 ms for each task, and as little for
hundreds of records as for one."""
ISOLATIONS: Final = ("read_uncommitted", "read_committed")


def _assigned(value: str) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    for topic, partitions in json_object(value).items():
        if not isinstance(partitions, list) or not all(type(each) is int and each >= 0 for each in partitions):
            raise ValueError(f'topic {topic} has no list of partitions; write {{"{topic}":[0,1]}}')
        found += [TopicPartition(topic, each) for each in partitions]
    if not found:
        raise ValueError("it is empty")
    return tuple(dict.fromkeys(found))


def joined_records(least: int | None, most: int | None, usual: int = JOINED_RECORDS) -> int:
    """The least number of records of a task, from the options minRecordsPerPartition and maxRecordsPerPartition."""
    if least is not None and most is not None and least > most:
        raise bad_option("minRecordsPerPartition", f"{least} is more than maxRecordsPerPartition, {most}")
    return least or (usual if most is None else 1)


@dataclass(frozen=True, repr=False)
class TopicOptions(RangeOptions, RecordOptions, ClusterOptions):
    subscribe: tuple[str, ...] = option("subscribe", names, ())
    subscribe_pattern: str = option("subscribePattern", pattern, "")
    assign: tuple[TopicPartition, ...] = option("assign", _assigned, ())
    group_id_prefix: str = option("groupIdPrefix", text, "spark-kafka-source")
    poll_timeout_ms: int = option("kafkaConsumer.pollTimeoutMs", positive, POLL_TIMEOUT_MS)
    min_records_per_partition: int | None = option("minRecordsPerPartition", positive, None)
    pattern_ttl_ms: int = option("partition.metadata.cache.ttl.ms", at_least(-1), -1)
    isolation_level: str = option("isolationLevel", one_of(*ISOLATIONS), "")
    commit_offsets_to_group: str = option("commitOffsetsToGroup", text, "")

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(map(bool, (self.subscribe, self.subscribe_pattern, self.assign))) != 1:
            raise OttlaSparkError("options subscribe, subscribePattern, assign: give exactly one")
        if RESERVED in {*self.subscribe, *(at.topic for at in self.assign)}:
            raise OttlaSparkError(f"topic {RESERVED} cannot be read: its name is reserved for checkpoints")
        joined_records(self.min_records_per_partition, self.max_records_per_partition)  # raises if they disagree
        self.read_options(None)  # raises in the planner, not in a task

    # --- what the values mean -----------------------------------------------------------------------------------------

    @property
    def joined_records(self) -> int:
        """The least number of records of a task of a stream."""
        usual = JOINED_RECORDS if self.min_partitions is None else 1
        return joined_records(self.min_records_per_partition, self.max_records_per_partition, usual)

    @property
    def columns(self) -> RecordColumns:
        return RecordColumns(self.include_headers, self.include_leader_epoch, self.include_topic_id)

    @property
    def isolation(self) -> Isolation:
        named = self.isolation_level or self.kafka.get("isolation.level", ISOLATIONS[0]).lower()
        if named not in ISOLATIONS:
            raise bad_option("kafka.isolation.level", f"{named!r} is not one of {', '.join(ISOLATIONS)}")
        return cast(Isolation, named)

    def for_batch(self) -> Self:
        if self.min_records_per_partition is not None:
            warn_once("option minRecordsPerPartition does not apply to batch queries")
        return super().for_batch()

    def client_settings(self) -> Changes:
        """The settings of a client, whose id looks like the group id of Spark's own source."""
        named = self.kafka.get("group.id", self.group_id_prefix)
        return {"client_id": named, **super().client_settings()}

    def read_options(self, topic_id: bytes | None) -> ReadOptions:
        """The options with which a task reads."""
        usual = ReadOptions(self.isolation, topic_id, stall_timeout_ms=self.poll_timeout_ms)
        return usual._replace(
            max_wait_ms=self.number("fetch.max.wait.ms") or usual.max_wait_ms,
            min_bytes=self.number("fetch.min.bytes") or usual.min_bytes,
            max_bytes=self.number("fetch.max.bytes") or usual.max_bytes,
            partition_max_bytes=self.number("max.partition.fetch.bytes") or usual.partition_max_bytes,
            rack_id=self.kafka.get("client.rack", ""),
        )
