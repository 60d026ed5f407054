"""Options of the format `ottla` as a source: those of Spark's own Kafka source, and some of ours."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ottla.client.settings import Settings
from ottla.spark.cluster_options import MIB, ClusterOptions, RecordOptions
from ottla.spark.errors import OttlaSparkError
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
from ottla.spark.topic.offsets import RESERVED, TopicPartition

__all__ = ["EARLIEST", "LATEST", "ByPartition", "TopicOptions"]

LATEST: Final = -1
EARLIEST: Final = -2
ByPartition = Mapping[TopicPartition, int]
"""Offsets or timestamps by partition."""
Where = Literal["earliest", "latest"] | ByPartition
"""A place in the log, or one for each partition."""
POLL_TIMEOUT_MS: Final = 120_000
TRIGGER_DELAY_MS: Final = 15 * 60_000
_LOG: Final = logging.getLogger("ottla.spark")


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
    if word == "earliest" or word == "latest":
        return word
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
    isolation_level: str = option("isolationLevel", one_of("read_uncommitted", "read_committed"), "")
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

    # --- what the values mean -----------------------------------------------------------------------------------------

    @property
    def columns(self) -> RecordColumns:
        return RecordColumns(self.include_headers, self.include_leader_epoch, self.include_topic_id)
