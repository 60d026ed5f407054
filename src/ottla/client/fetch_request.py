"""Builds Fetch requests, for the asyncio and the blocking reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client.leaders import by_topic
from ottla.client.metadata import Metadata, TopicPartition
from ottla.wire.types.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic

__all__ = ["FetchLimits", "fetch_request"]

NO_EPOCH: Final = -1


class FetchLimits(NamedTuple):
    level: int
    """Isolation level."""
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int
    rack_id: str = ""


def fetch_request(metadata: Metadata, positions: Mapping[TopicPartition, int], limits: FetchLimits) -> FetchRequest:
    """Ask for these partitions from their positions on, without a session."""
    return FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=limits.level,
        topics=tuple(
            FetchRequestFetchTopic(
                topic=name,
                topic_id=metadata.id_of(name),
                partitions=tuple(_partition(metadata, at, positions[at], limits) for at in partitions),
            )
            for name, partitions in by_topic(positions).items()
        ),
        rack_id=limits.rack_id,
    )


def _partition(
    metadata: Metadata, at: TopicPartition, position: int, limits: FetchLimits
) -> FetchRequestFetchPartition:
    known = metadata.partition(at)
    return FetchRequestFetchPartition(
        partition=at.partition,
        current_leader_epoch=NO_EPOCH if known is None else known.leader_epoch,
        fetch_offset=position,
        partition_max_bytes=limits.partition_max_bytes,
    )
