"""Options of the format `ottla` as a source: those of Spark's own Kafka source, and some of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, cast

from ottla.client.blocking.reading import ReadOptions
from ottla.client.offsets import EARLIEST, LATEST, Isolation
from ottla.spark.cluster_options import ClusterOptions, RecordOptions
from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn_once
from ottla.spark.offsets import RESERVED, TopicPartition
from ottla.spark.options import (
    at_least,
    bad_option,
    boolean,
    duration_ms,
    json_object,
    names,
    one_of,
    option,
    options_of,
    positive,
    text,
)
from ottla.spark.schemas import RecordColumns

__all__ = ["ByPartition", "Place", "TopicOptions", "Where"]

ByPartition = Mapping[TopicPartition, int]
"""Offsets or timestamps by partition."""
Where = Literal["earliest", "latest"] | ByPartition
"""A place in the log, or one for each partition."""
POLL_TIMEOUT_MS: Final = 120_000
TRIGGER_DELAY_MS: Final = 15 * 60_000
ISOLATIONS: Final = ("read_uncommitted", "read_committed")


class Place(NamedTuple):
    """Where reading begins or ends, and which option says so."""

    option: str
    where: Where
    """Offsets may be -1 for the end and -2 for the start."""
    is_time: bool = False
    """The numbers are timestamps in milliseconds."""
    timestamp: int | None = None
    """One for all partitions."""


def _numbers_by_partition(value: str, *, lowest: int) -> ByPartition:
    found: dict[TopicPartition, int] = {}
    for topic, partitions in json_object(value).items():
        if not isinstance(partitions, dict):
            raise ValueError(f'topic {topic} has no object of partitions; write {{"{topic}":{{"0":23}}}}')  # noqa: TRY004
        for partition, number in partitions.items():
            if not partition.isdecimal() or type(number) is not int or number < lowest:
                raise ValueError(f"topic {topic} partition {partition}: {number!r} cannot be used")
            found[TopicPartition(topic, int(partition))] = number
    return found


def _where(value: str) -> Where:
    word = value.strip().lower()
    if word in ("earliest", "latest"):
        return cast(Literal["earliest", "latest"], word)
    if not word.startswith("{"):
        raise ValueError(f'{value!r} is none of earliest, latest and JSON such as {{"orders":{{"0":23,"1":-2}}}}')
    return _numbers_by_partition(value, lowest=EARLIEST)


def _timestamps(value: str) -> ByPartition:
    return _numbers_by_partition(value, lowest=0)


def _assigned(value: str) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    for topic, partitions in json_object(value).items():
        if not isinstance(partitions, list) or not all(type(each) is int and each >= 0 for each in partitions):
            raise ValueError(f'topic {topic} has no list of partitions; write {{"{topic}":[0,1]}}')
        found += [TopicPartition(topic, each) for each in partitions]
    if not found:
        raise ValueError("it names nothing")
    return tuple(dict.fromkeys(found))


def _pattern(value: str) -> str:
    import re2

    try:
        re2.compile(value)
    except re2.error as error:
        why = error.args[0]
        reason = why.decode(errors="replace") if isinstance(why, bytes) else why
        raise ValueError(f"{value!r} is no pattern of RE2: {reason}") from None
    return text(value)


@dataclass(frozen=True, repr=False)
class TopicOptions(RecordOptions, ClusterOptions):
    subscribe: tuple[str, ...] = option("subscribe", names, ())
    subscribe_pattern: str = option("subscribePattern", _pattern, "")
    assign: tuple[TopicPartition, ...] = option("assign", _assigned, ())
    starting_offsets: Where | None = option("startingOffsets", _where, None)
    ending_offsets: Where | None = option("endingOffsets", _where, None)
    starting_offsets_by_timestamp: ByPartition | None = option("startingOffsetsByTimestamp", _timestamps, None)
    ending_offsets_by_timestamp: ByPartition | None = option("endingOffsetsByTimestamp", _timestamps, None)
    starting_timestamp: int | None = option("startingTimestamp", at_least(0), None)
    ending_timestamp: int | None = option("endingTimestamp", at_least(0), None)
    strategy: str = option("startingOffsetsByTimestampStrategy", one_of("error", "latest"), "error")
    fail_on_data_loss: bool = option("failOnDataLoss", boolean, True)
    min_partitions: int | None = option("minPartitions", positive, None)
    max_records_per_partition: int | None = option("maxRecordsPerPartition", positive, None)
    max_offsets_per_trigger: int | None = option("maxOffsetsPerTrigger", positive, None)
    min_offsets_per_trigger: int | None = option("minOffsetsPerTrigger", positive, None)
    max_trigger_delay_ms: int = option("maxTriggerDelay", duration_ms, TRIGGER_DELAY_MS)
    group_id_prefix: str = option("groupIdPrefix", text, "spark-kafka-source")
    poll_timeout_ms: int = option("kafkaConsumer.pollTimeoutMs", positive, POLL_TIMEOUT_MS)
    offset_retries: int = option("fetchOffset.numRetries", at_least(0), 3)
    offset_retry_interval_ms: int = option("fetchOffset.retryIntervalMs", at_least(0), 1000)
    pattern_ttl_ms: int = option("partition.metadata.cache.ttl.ms", at_least(-1), -1)
    isolation_level: str = option("isolationLevel", one_of(*ISOLATIONS), "")
    commit_offsets_to_group: str = option("commitOffsetsToGroup", text, "")
    pushdown: bool = option("pushdown", boolean, True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(map(bool, (self.subscribe, self.subscribe_pattern, self.assign))) != 1:
            raise OttlaSparkError("options subscribe, subscribePattern, assign: give exactly one")
        if RESERVED in {*self.subscribe, *(at.topic for at in self.assign)}:
            raise OttlaSparkError(f"topic {RESERVED} cannot be read: its name has a meaning in checkpoints")
        low, high = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if low is not None and high is not None and low > high:
            raise bad_option("minOffsetsPerTrigger", f"{low} is more than maxOffsetsPerTrigger, {high}")

    def for_batch(self) -> TopicOptions:
        """These options, checked for a batch query."""
        start, end = self.starting(is_stream=False), self.ending()
        if not start.is_time and (start.where == "latest" or _has(start.where, LATEST)):
            raise bad_option(start.option, "a batch query cannot start at the latest offset")
        if not end.is_time and (end.where == "earliest" or _has(end.where, EARLIEST)):
            raise bad_option(end.option, "a batch query cannot end at the earliest offset")
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"):
            if getattr(self, _FIELDS[name]) is not None:
                warn_once(f"option {name} has no meaning in a batch query")
        return self

    def for_stream(self) -> TopicOptions:
        """These options, checked for a stream."""
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if getattr(self, _FIELDS[name]) is not None:
                raise bad_option(name, "a stream has no end")
        return self

    # --- what the values mean -----------------------------------------------------------------------------------------

    @property
    def columns(self) -> RecordColumns:
        return RecordColumns(self.include_headers, self.include_leader_epoch, self.include_topic_id)

    @property
    def isolation(self) -> Isolation:
        named = self.isolation_level or self.kafka.get("isolation.level", ISOLATIONS[0]).lower()
        if named not in ISOLATIONS:
            raise bad_option("kafka.isolation.level", f"{named!r} is none of {', '.join(ISOLATIONS)}")
        return cast(Isolation, named)

    def starting(self, *, is_stream: bool) -> Place:
        """Where to begin; a time for all partitions goes before times for each, and those before offsets."""
        if self.starting_timestamp is not None:
            return Place("startingTimestamp", {}, is_time=True, timestamp=self.starting_timestamp)
        if self.starting_offsets_by_timestamp is not None:
            return Place("startingOffsetsByTimestamp", self.starting_offsets_by_timestamp, is_time=True)
        return Place("startingOffsets", self.starting_offsets or ("latest" if is_stream else "earliest"))

    def ending(self) -> Place:
        """Where a batch query ends."""
        if self.ending_timestamp is not None:
            return Place("endingTimestamp", {}, is_time=True, timestamp=self.ending_timestamp)
        if self.ending_offsets_by_timestamp is not None:
            return Place("endingOffsetsByTimestamp", self.ending_offsets_by_timestamp, is_time=True)
        return Place("endingOffsets", self.ending_offsets or "latest")

    def read_options(self, topic_id: bytes | None) -> ReadOptions:
        """How a task reads."""
        usual = ReadOptions(self.isolation, topic_id, stall_timeout_ms=self.poll_timeout_ms)
        return usual._replace(
            max_wait_ms=self.number("fetch.max.wait.ms") or usual.max_wait_ms,
            min_bytes=self.number("fetch.min.bytes") or usual.min_bytes,
            max_bytes=self.number("fetch.max.bytes") or usual.max_bytes,
            partition_max_bytes=self.number("max.partition.fetch.bytes") or usual.partition_max_bytes,
            rack_id=self.kafka.get("client.rack", ""),
        )


_FIELDS: Final = {line.name: field for field, line in options_of(TopicOptions).items()}


def _has(where: Where, number: int) -> bool:
    return not isinstance(where, str) and number in where.values()
