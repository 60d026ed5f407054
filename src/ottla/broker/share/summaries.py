"""The progress of a share group in partitions: its start offset as last written, and its lag.

The lag is what lies between the start and the end of a partition, without what is done beyond the start. It is known
once the share coordinator has been told of a start, and how much is done. The end is the leader's high watermark; today
this node leads every partition that it knows of, and a leader elsewhere would be asked in `_lag`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ottla.broker.replicas.replicas import Replicas
from ottla.broker.share.persister import Persister
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import MetadataImage
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
    persister: Persister,
    image: MetadataImage,
    replicas: Replicas,
    group_id: str,
    topics: Sequence[SummaryTopic],
    done: Callable[[list[Topic]], None],
) -> None:
    """Describe partitions; `done` gets them in the same order, at once or later."""

    def answered(answer: ReadShareGroupStateSummaryResponse) -> None:
        summaries = {(topic.topic_id, each.partition): each for topic in answer.results for each in topic.partitions}
        done([_described(replicas, topic, summaries) for topic in topics])

    kind = ReadShareGroupStateSummaryRequest
    body = kind(
        group_id,
        tuple(
            kind.ReadStateSummaryData(topic.topic_id, tuple(map(kind.PartitionData, existing)))
            for topic in topics
            if (existing := _existing(image, topic))
        ),
    )
    persister.ask(body, answered)


def _existing(image: MetadataImage, topic: SummaryTopic) -> list[int]:
    """Apache Kafka asks for all, and waits long for those that do not exist."""
    return [each for each in dict.fromkeys(topic.partitions) if image.partition(topic.name, each) is not None]


def _described(replicas: Replicas, topic: SummaryTopic, summaries: dict[tuple[bytes, int], Summary]) -> Topic:
    partitions = (
        _partition(replicas, topic.name, each, summaries.get((topic.topic_id, each))) for each in topic.partitions
    )
    return Topic(topic.name, topic.topic_id, tuple(partitions))


def _partition(replicas: Replicas, topic: str, index: int, summary: Summary | None) -> Partition:
    """What cannot be read counts as nothing there, as with offsets of other groups."""
    if summary is None or summary.error_code:
        return Partition(index, NOT_KNOWN)
    try:
        lag = _lag(replicas, topic, index, summary)
    except Reject as reject:
        return Partition(index, error_code=reject.code, error_message=reject.code.meaning)
    return Partition(index, summary.start_offset, summary.leader_epoch, lag)


def _lag(replicas: Replicas, topic: str, index: int, summary: Summary) -> int:
    if NOT_KNOWN in (summary.start_offset, summary.delivery_complete_count):
        return NOT_KNOWN
    end_offset = replicas.leader(topic, index).high_watermark
    return end_offset - summary.start_offset - summary.delivery_complete_count
