"""Partitions that are on their way to other brokers."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import check
from ottla.client.metadata import TopicPartition
from ottla.wire.types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

__all__ = ["Reassignment", "list_reassignments"]


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
