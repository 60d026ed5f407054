"""Offsets of partitions: the first, the last, and by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from ottla.client.client import Answer, Client
from ottla.client.errors import ClientError, ConfigurationError
from ottla.client.leaders import LeaderCall, Outcomes, Reply, by_topic, raise_first
from ottla.client.metadata import TopicPartition
from ottla.wire.types.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
    DeleteRecordsResponse,
)
from ottla.wire.types.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    ListOffsetsResponse,
)

__all__ = [
    "EARLIEST",
    "EARLIEST_LOCAL",
    "EARLIEST_PENDING_UPLOAD",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "Isolation",
    "ListedOffset",
    "Offsets",
    "delete_records",
    "isolation_level",
    "list_offsets",
    "spans",
    "try_list_offsets",
]

LATEST: Final = -1
"""Behind the last record: the high watermark, or the last stable offset for read_committed."""
EARLIEST: Final = -2
"""The log's start."""
MAX_TIMESTAMP: Final = -3
"""The first record with the largest timestamp (KIP-734)."""
EARLIEST_LOCAL: Final = -4
"""The first offset on the leader's own disk (KIP-405)."""
LATEST_TIERED: Final = -5
"""The last offset in remote storage (KIP-1005)."""
EARLIEST_PENDING_UPLOAD: Final = -6
"""The first offset that is not in remote storage yet (KIP-1023)."""

Offsets = Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
"""An offset or a timestamp for each partition, which may be written as a plain pair of topic and number."""
Isolation = Literal["read_uncommitted", "read_committed"]
_CONSUMER: Final = -1
_ISOLATED_VERSION: Final = 2


class ListedOffset(NamedTuple):
    offset: int
    """-1 if no record is old enough, or there is nothing of the kind."""
    timestamp_ms: int
    """The record's, where one was looked for by time; else -1."""
    leader_epoch: int


def isolation_level(isolation: Isolation) -> int:
    levels = {"read_uncommitted": 0, "read_committed": 1}
    if isolation not in levels:
        raise ConfigurationError(f"unknown isolation level {isolation!r}; known: {', '.join(levels)}")
    return levels[isolation]


async def list_offsets(
    client: Client,
    wanted: Offsets,
    *,
    isolation: Isolation = "read_uncommitted",
    timeout_ms: int | None = None,
) -> dict[TopicPartition, ListedOffset]:
    """For each partition the offset of EARLIEST, LATEST and so on, or of the first record not older than a timestamp.

    Timestamps are milliseconds. ResponseError for the first partition that cannot be asked.
    """
    return raise_first(await try_list_offsets(client, wanted, isolation=isolation, timeout_ms=timeout_ms))


async def try_list_offsets(
    client: Client,
    wanted: Offsets,
    *,
    isolation: Isolation = "read_uncommitted",
    timeout_ms: int | None = None,
) -> Outcomes[ListedOffset]:
    """Like `list_offsets`, with an outcome for each partition: some may be known although others cannot be asked."""
    level = isolation_level(isolation)
    timestamps = {TopicPartition(*at): timestamp for at, timestamp in wanted.items()}
    deadline = client.deadline(timeout_ms)

    def build(partitions: list[TopicPartition], version: int) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=level if version >= _ISOLATED_VERSION else 0,
            topics=tuple(
                ListOffsetsRequestListOffsetsTopic(
                    name,
                    tuple(
                        ListOffsetsRequestListOffsetsPartition(at.partition, timestamp=timestamps[at]) for at in each
                    ),
                )
                for name, each in by_topic(partitions).items()
            ),
            timeout_ms=client.settings.request_timeout_ms,
        )

    call = LeaderCall("ListOffsets", build, _read_list_offsets)
    return await call.ask(client, timestamps, deadline)


async def spans(
    client: Client, partitions: Iterable[TopicPartition], *, isolation: Isolation = "read_uncommitted"
) -> dict[TopicPartition, tuple[int | None, int | None]]:
    """Start and end offsets; None where the leader does not tell."""
    wanted = list(partitions)
    outcomes = await client.together(
        try_list_offsets(client, dict.fromkeys(wanted, which), isolation=isolation) for which in (EARLIEST, LATEST)
    )
    starts, ends = (
        {at: None if isinstance(outcome, ClientError) else outcome.offset for at, outcome in each.items()}
        for each in outcomes
    )
    return {at: (starts.get(at), ends.get(at)) for at in wanted}


def _read_list_offsets(answer: Answer) -> Iterable[Reply[ListedOffset]]:
    for topic in answer.of(ListOffsetsResponse).topics:
        for each in topic.partitions:
            at = TopicPartition(topic.name, each.partition_index)
            yield Reply(at, each.error_code, None, ListedOffset(each.offset, each.timestamp, each.leader_epoch))


async def delete_records(
    client: Client, before: Offsets, *, timeout_ms: int | None = None
) -> dict[TopicPartition, int]:
    """Delete the records before an offset of each partition; -1 is the high watermark. Gives where the logs start."""
    offsets = {TopicPartition(*at): offset for at, offset in before.items()}

    def build(partitions: list[TopicPartition], _: int) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            topics=tuple(
                DeleteRecordsRequestDeleteRecordsTopic(
                    name, tuple(DeleteRecordsRequestDeleteRecordsPartition(at.partition, offsets[at]) for at in each)
                )
                for name, each in by_topic(partitions).items()
            ),
            timeout_ms=client.settings.request_timeout_ms,
        )

    call = LeaderCall("DeleteRecords", build, _read_delete_records)
    return raise_first(await call.ask(client, offsets, client.deadline(timeout_ms)))


def _read_delete_records(answer: Answer) -> Iterable[Reply[int]]:
    for topic in answer.of(DeleteRecordsResponse).topics:
        for each in topic.partitions:
            yield Reply(TopicPartition(topic.name, each.partition_index), each.error_code, None, each.low_watermark)
