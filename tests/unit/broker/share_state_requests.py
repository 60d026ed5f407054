"""Requests about the state of share partitions, for any broker that lets one send them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.wire.types.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.types.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.types.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.types.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.types.write_share_group_state import WriteShareGroupStateRequest

GROUP = "g"


def initialize(
    topic_id: bytes, partitions: Iterable[int] = (0,), *, epoch: int = 1, start: int = -1, group: str = GROUP
) -> InitializeShareGroupStateRequest:
    kind = InitializeShareGroupStateRequest
    asked = tuple(kind.PartitionData(each, epoch, start) for each in partitions)
    return kind(group, (kind.InitializeStateData(topic_id, asked),))


def read(
    topic_id: bytes, partitions: Iterable[int] = (0,), *, leader: int = 0, group: str = GROUP
) -> ReadShareGroupStateRequest:
    kind = ReadShareGroupStateRequest
    asked = tuple(kind.PartitionData(each, leader) for each in partitions)
    return kind(group, (kind.ReadStateData(topic_id, asked),))


def write(
    topic_id: bytes,
    *batches: tuple[int, int, int, int],
    partitions: Iterable[int] = (0,),
    epoch: int = 1,
    leader: int = 0,
    start: int = 0,
    count: int = 0,
    group: str = GROUP,
) -> WriteShareGroupStateRequest:
    """Ranges as first offset, last offset, state, delivery count."""
    kind = WriteShareGroupStateRequest
    written = tuple(kind.StateBatch(*batch) for batch in batches)
    asked = tuple(kind.PartitionData(each, epoch, leader, start, count, written) for each in partitions)
    return kind(group, (kind.WriteStateData(topic_id, asked),))


def delete(topic_id: bytes, partitions: Iterable[int] = (0,), *, group: str = GROUP) -> DeleteShareGroupStateRequest:
    kind = DeleteShareGroupStateRequest
    return kind(group, (kind.DeleteStateData(topic_id, tuple(map(kind.PartitionData, partitions))),))


def summarize(
    topic_id: bytes, partitions: Iterable[int] = (0,), *, group: str = GROUP
) -> ReadShareGroupStateSummaryRequest:
    kind = ReadShareGroupStateSummaryRequest
    asked = tuple(kind.PartitionData(each, 0) for each in partitions)
    return kind(group, (kind.ReadStateSummaryData(topic_id, asked),))


def results(answer: Any) -> dict[int, Any]:
    """Of the one topic of an answer, by partition."""
    (topic,) = answer.results
    return {each.partition: each for each in topic.partitions}


def codes(answer: Any) -> dict[int, int]:
    return {partition: each.error_code for partition, each in results(answer).items()}
