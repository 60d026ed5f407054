"""Partitions that are on their way to other brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import ResponseError, check
from ottla.client.metadata import TopicPartition
from ottla.wire.types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsRequestReassignableTopic,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

__all__ = ["Reassignment", "list_reassignments", "try_reassign"]


class Reassignment(NamedTuple):
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def list_reassignments(client: Client) -> dict[TopicPartition, Reassignment]:
    """All partitions that are being moved. It takes DESCRIBE on the cluster."""
    request = ListPartitionReassignmentsRequest(timeout_ms=client.settings.request_timeout_ms, topics=None)
    answer = await client.ask("ListPartitionReassignments", always(request), broker="controller")
    body = answer.of(ListPartitionReassignmentsResponse)
    check(answer.peer, "ListPartitionReassignments", body.error_code, message=body.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            each.replicas, each.adding_replicas, each.removing_replicas
        )
        for topic in body.topics
        for each in topic.partitions
    }


async def try_reassign(
    client: Client, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, ResponseError | None]:
    """Let partitions move to other brokers, or stop them from it (None); gives why one does not.

    Each begins to move or fails on its own. It takes ALTER on the cluster.
    """
    api, kind = "AlterPartitionReassignments", AlterPartitionReassignmentsRequestReassignablePartition
    topics = tuple(
        AlterPartitionReassignmentsRequestReassignableTopic(
            name,
            tuple(kind(at.partition, None if replicas is None else tuple(replicas)) for at, replicas in partitions),
        )
        for name, partitions in groupby(sorted(wanted.items()), key=lambda item: item[0].topic)
    )
    request = AlterPartitionReassignmentsRequest(client.settings.request_timeout_ms, topics=topics)
    answer = await client.ask(api, always(request), broker="controller")
    body = answer.of(AlterPartitionReassignmentsResponse)
    check(answer.peer, api, body.error_code, message=body.error_message)
    return {
        (at := TopicPartition(topic.name, each.partition_index)): (
            ResponseError(answer.peer, api, each.error_code, str(at), each.error_message) if each.error_code else None
        )
        for topic in body.responses
        for each in topic.partitions
    }
