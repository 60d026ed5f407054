"""The progress of a share group in partitions: its start offset as last written, and its lag.

The lag is what lies between the start and the end of a partition, without what is done beyond the start. It is known
once the share coordinator has been told of a start, and how much is done. The end is the leader's high watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.broker.replicas.end_offsets import EndOffsets, ask_end_offsets
from ottla.broker.replicas.ports import EndOffsetPorts
from ottla.broker.share.persister import Persister
from ottla.core.metadata.image import MetadataImage
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition as Partition,
)
from ottla.wire.types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic as Topic,
)
from ottla.wire.types.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.types.read_share_group_state_summary import (
    ReadShareGroupStateSummaryResponsePartitionResult as Summary,
)

__all__ = ["SummaryTopic", "summarize"]

NOT_KNOWN: Final = -1


class SummaryTopic(NamedTuple):
    """A topic that exists. Of the partitions, not all need to."""

    name: str
    topic_id: bytes
    partitions: Sequence[int]


def summarize(
    node: EndOffsetPorts,
    persister: Persister,
    group_id: str,
    topics: Sequence[SummaryTopic],
    done: Callable[[list[Topic]], None],
) -> None:
    """Describe partitions; `done` gets them in the same order, at once or later."""

    def answered(answer: ReadShareGroupStateSummaryResponse) -> None:
        summaries = {(topic.topic_id, each.partition): each for topic in answer.results for each in topic.partitions}
        started = [
            (topic.name, each)
            for topic in topics
            for each in topic.partitions
            if _has_lag(summaries.get((topic.topic_id, each)))
        ]
        ask_end_offsets(node, started, lambda ends: done([_described(topic, summaries, ends) for topic in topics]))

    kind = ReadShareGroupStateSummaryRequest
    body = kind(
        group_id,
        tuple(
            kind.ReadStateSummaryData(topic.topic_id, tuple(map(kind.PartitionData, existing)))
            for topic in topics
            if (existing := _existing(node.image, topic))
        ),
    )
    persister.ask(body, answered)


def _existing(image: MetadataImage, topic: SummaryTopic) -> list[int]:
    """Apache Kafka asks for all, and waits long for those that do not exist."""
    return [each for each in dict.fromkeys(topic.partitions) if image.partition(topic.name, each) is not None]


def _has_lag(summary: Summary | None) -> bool:
    return summary is not None and NOT_KNOWN not in (summary.start_offset, summary.delivery_complete_count)


def _described(topic: SummaryTopic, summaries: Mapping[tuple[bytes, int], Summary], ends: EndOffsets) -> Topic:
    partitions = (
        _partition(each, summaries.get((topic.topic_id, each)), ends.get((topic.name, each), NOT_KNOWN))
        for each in topic.partitions
    )
    return Topic(topic.name, topic.topic_id, tuple(partitions))


def _partition(index: int, summary: Summary | None, end_offset: int | ErrorCode) -> Partition:
    """What cannot be read counts as nothing there, as with offsets of other groups."""
    if summary is None or summary.error_code:
        return Partition(index, NOT_KNOWN)
    if not _has_lag(summary):
        return Partition(index, summary.start_offset, summary.leader_epoch, NOT_KNOWN)
    if isinstance(end_offset, ErrorCode):
        return Partition(index, error_code=end_offset, error_message=end_offset.meaning)
    lag = end_offset - summary.start_offset - summary.delivery_complete_count
    return Partition(index, summary.start_offset, summary.leader_epoch, lag)
