"""Options of every format that reads ranges of offsets: their start and end, and the size of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self, cast

from ottla.client.offsets import EARLIEST, LATEST
from ottla.spark.notes import warn_once
from ottla.spark.offsets import TopicPartition
from ottla.spark.options import (
    CommonOptions,
    at_least,
    bad_option,
    boolean,
    duration_ms,
    json_object,
    one_of,
    option,
    options_of,
    positive,
    text,
)

__all__ = ["ByPartition", "RangeBound", "RangeOptions", "Where", "pattern"]

ByPartition = Mapping[TopicPartition, int]
"""Offsets or timestamps by partition."""
Where = Literal["earliest", "latest"] | ByPartition
"""A bound of all partitions, or one for each partition."""
TRIGGER_DELAY_MS: Final = 15 * 60_000


class RangeBound(NamedTuple):
    """The start or end of reading, and the option that gives it."""

    option: str
    where: Where
    """An offset may be -1 for the end or -2 for the start."""
    is_time: bool = False
    """Whether the numbers are timestamps in milliseconds."""
    timestamp: int | None = None
    """One timestamp for all partitions."""


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
        raise ValueError(f'{value!r} is not earliest, latest or JSON such as {{"orders":{{"0":23,"1":-2}}}}')
    return _numbers_by_partition(value, lowest=EARLIEST)


def _timestamps(value: str) -> ByPartition:
    return _numbers_by_partition(value, lowest=0)


def pattern(value: str) -> str:
    import re2

    try:
        re2.compile(value)
    except re2.error as error:
        why = error.args[0]
        reason = why.decode(errors="replace") if isinstance(why, bytes) else why
        raise ValueError(f"{value!r} is not an RE2 pattern: {reason}") from None
    return text(value)


@dataclass(frozen=True, repr=False)
class RangeOptions(CommonOptions):
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
    offset_retries: int = option("fetchOffset.numRetries", at_least(0), 3)
    offset_retry_interval_ms: int = option("fetchOffset.retryIntervalMs", at_least(0), 1000)
    pushdown: bool = option("pushdown", boolean, True)
    report_tasks: bool = option("reportTasks", boolean, False)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if low is not None and high is not None and low > high:
            raise bad_option("minOffsetsPerTrigger", f"{low} is more than maxOffsetsPerTrigger, {high}")

    def for_batch(self) -> Self:
        """These options, checked for a batch query."""
        start, end = self.starting(is_stream=False), self.ending()
        if not start.is_time and (start.where == "latest" or _has(start.where, LATEST)):
            raise bad_option(start.option, "a batch query cannot start at the latest offset")
        if not end.is_time and (end.where == "earliest" or _has(end.where, EARLIEST)):
            raise bad_option(end.option, "a batch query cannot end at the earliest offset")
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"):
            if getattr(self, _FIELDS[name]) is not None:
                warn_once(f"option {name} does not apply to batch queries")
        return self

    def for_stream(self) -> Self:
        """These options, checked for a stream."""
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if getattr(self, _FIELDS[name]) is not None:
                raise bad_option(name, "a stream has no end")
        return self

    def starting(self, *, is_stream: bool) -> RangeBound:
        """The start: a time for all partitions, else times by partition, else offsets."""
        if self.starting_timestamp is not None:
            return RangeBound("startingTimestamp", {}, is_time=True, timestamp=self.starting_timestamp)
        if self.starting_offsets_by_timestamp is not None:
            return RangeBound("startingOffsetsByTimestamp", self.starting_offsets_by_timestamp, is_time=True)
        return RangeBound("startingOffsets", self.starting_offsets or ("latest" if is_stream else "earliest"))

    def ending(self) -> RangeBound:
        """The end of a batch query."""
        if self.ending_timestamp is not None:
            return RangeBound("endingTimestamp", {}, is_time=True, timestamp=self.ending_timestamp)
        if self.ending_offsets_by_timestamp is not None:
            return RangeBound("endingOffsetsByTimestamp", self.ending_offsets_by_timestamp, is_time=True)
        return RangeBound("endingOffsets", self.ending_offsets or "latest")


_FIELDS: Final = {line.name: field for field, line in options_of(RangeOptions).items()}


def _has(where: Where, number: int) -> bool:
    return not isinstance(where, str) and number in where.values()
