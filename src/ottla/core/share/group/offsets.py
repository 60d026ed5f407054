"""An administrator changes where an empty group goes on reading, or makes it forget a topic.

Both are written first, then done at the share coordinators, and answered when that has ended and is written as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ottla.core.coordinator.contract import Topic, Topics
from ottla.core.groups.table import Group
from ottla.core.share.group.effects import NewState, Refusal, Refusals
from ottla.core.share.group.group import ShareGroup, share_group
from ottla.core.share.group.state_topics import SharePartitionId, StateTopic, StateTopics
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_share_group_offsets import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from ottla.wire.types.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestPartition as _AskedPartition,
)
from ottla.wire.types.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic as _AskedTopic,
)
from ottla.wire.types.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition as _AlteredPartition,
)
from ottla.wire.types.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic as _AlteredTopic,
)
from ottla.wire.types.delete_share_group_offsets import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse
from ottla.wire.types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic as _DeletedTopic,
)

__all__ = ["Alteration", "Deletion", "altered", "check_unused", "deleted", "plan_alteration", "plan_deletion"]

NOTHING_TO_DELETE = "There is no offset information to delete."


def check_unused(group_id: str, group: Group | None) -> ShareGroup:
    """A share group without members."""
    found = share_group(group_id, group)
    found.check_delete()
    return found


# --- other offsets ----------------------------------------------------------------------------------------------------


class Alteration(NamedTuple):
    partitions: tuple[NewState, ...]
    topics: Mapping[bytes, StateTopic]
    response: AlterShareGroupOffsetsResponse
    """If all goes well."""


def plan_alteration(request: AlterShareGroupOffsetsRequest, topics: Topics) -> Alteration:
    """Any offset will do, as in Apache Kafka: beyond the end it waits for it, and -1 stands for a reset."""
    new: list[NewState] = []
    names: dict[bytes, str] = {}
    responses = []
    for asked in request.topics:
        topic = topics.by_name(asked.topic_name)
        responses.append(_AlteredTopic(asked.topic_name, *_checked(asked, topic)))
        if topic is not None:
            names[topic.topic_id] = topic.name
            new += [
                NewState(topic.topic_id, each.partition_index, each.start_offset)
                for each in asked.partitions
                if _exists(topic, each)
            ]
    numbers: dict[bytes, set[int]] = {}
    for topic_id, partition, _ in new:
        numbers.setdefault(topic_id, set()).add(partition)
    known = {topic_id: StateTopic(names[topic_id], frozenset(each)) for topic_id, each in numbers.items()}
    return Alteration(tuple(new), known, AlterShareGroupOffsetsResponse(responses=tuple(responses)))


def _exists(topic: Topic | None, asked: _AskedPartition) -> bool:
    return topic is not None and 0 <= asked.partition_index < topic.partition_count


def _checked(asked: _AskedTopic, topic: Topic | None) -> tuple[bytes, tuple[_AlteredPartition, ...]]:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions = tuple(
        _AlteredPartition(each.partition_index)
        if _exists(topic, each)
        else _AlteredPartition(each.partition_index, unknown, unknown.meaning)
        for each in asked.partitions
    )
    return topic.topic_id if topic is not None else bytes(16), partitions


def altered(response: AlterShareGroupOffsetsResponse, refusals: Refusals) -> AlterShareGroupOffsetsResponse:
    """The response, with what did not work."""
    if not refusals:
        return response
    return replace(
        response,
        responses=tuple(
            replace(
                topic,
                partitions=tuple(
                    _with_refusal(each, refusals.get((topic.topic_id, each.partition_index)))
                    for each in topic.partitions
                ),
            )
            for topic in response.responses
        ),
    )


def _with_refusal(partition: _AlteredPartition, refusal: Refusal | None) -> _AlteredPartition:
    if refusal is None:
        return partition
    return replace(partition, error_code=refusal.code, error_message=refusal.message or refusal.code.meaning)


# --- no offsets -------------------------------------------------------------------------------------------------------


class Deletion(NamedTuple):
    partitions: tuple[SharePartitionId, ...]
    state_topics: StateTopics
    response: DeleteShareGroupOffsetsResponse
    """If all goes well."""


def plan_deletion(request: DeleteShareGroupOffsetsRequest, group: ShareGroup, topics: Topics) -> Deletion:
    """Of a topic whose deletion was begun and not ended, all partitions are deleted anew."""
    state_topics = group.state_topics
    partitions: list[SharePartitionId] = []
    responses = []
    for asked in request.topics:
        topic = topics.by_name(asked.topic_name)
        numbers = () if topic is None else _deletable(state_topics, topic)
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            responses.append(_DeletedTopic(asked.topic_name, bytes(16), unknown, unknown.meaning))
        elif not numbers:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            responses.append(_DeletedTopic(asked.topic_name, bytes(16), code, NOTHING_TO_DELETE))
        else:
            partitions += [(topic.topic_id, each) for each in numbers]
            responses.append(_DeletedTopic(asked.topic_name, topic.topic_id))
    deleting = state_topics.delete({topic_id for topic_id, _ in partitions})
    return Deletion(tuple(partitions), deleting, DeleteShareGroupOffsetsResponse(responses=tuple(responses)))


def _deletable(state_topics: StateTopics, topic: Topic) -> Sequence[int]:
    known = state_topics.initialized.get(topic.topic_id)
    if known is not None:
        return sorted(known.partitions)
    return range(topic.partition_count) if topic.topic_id in state_topics.deleting else ()


def deleted(response: DeleteShareGroupOffsetsResponse, refusals: Refusals) -> DeleteShareGroupOffsetsResponse:
    """The response, with what did not work."""
    failed = {topic_id: refusal for (topic_id, _), refusal in refusals.items()}
    return replace(
        response,
        responses=tuple(
            replace(each, error_code=refusal.code, error_message=refusal.message or refusal.code.meaning)
            if (refusal := failed.get(each.topic_id)) is not None
            else each
            for each in response.responses
        ),
    )
