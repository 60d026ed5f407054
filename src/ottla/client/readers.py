"""Which groups read a topic, as far as their coordinators tell: those that have committed something for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.group_offsets import try_committed
from ottla.client.groups import ListedGroup, list_groups
from ottla.client.metadata import TopicPartition
from ottla.client.share.offsets import try_describe_offsets

__all__ = ["Reader", "readers"]

_SHARE = "share"


class Reader(NamedTuple):
    """A group that reads a topic. `positions` is where it stands in each partition; `lags` what it says itself."""

    group_id: str
    kind: str
    positions: Mapping[TopicPartition, int]
    lags: Mapping[TopicPartition, int | None]

    def lag(self, ends: Mapping[TopicPartition, int]) -> int | None:
        """Records that are left to it, where the ends of the partitions are known; None if nothing is known."""
        if self.lags:
            known = [lag for lag in self.lags.values() if lag is not None]
        else:
            known = [max(0, ends[at] - position) for at, position in self.positions.items() if at in ends]
        return sum(known) if known else None


async def readers(client: Client) -> dict[str, list[Reader]]:
    """The readers of each topic, by the names of the groups. Groups that cannot be asked are left out."""
    by_coordinator: dict[tuple[int, bool], list[ListedGroup]] = {}
    for group in await list_groups(client):
        by_coordinator.setdefault((group.coordinator, group.type == _SHARE), []).append(group)
    found = await client.together(
        _share_readers(client, node_id, groups) if is_share else _readers(client, node_id, groups)
        for (node_id, is_share), groups in by_coordinator.items()
    )
    by_topic: dict[str, list[Reader]] = {}
    for topic, reader in sorted((pair for pairs in found for pair in pairs), key=_order):
        by_topic.setdefault(topic, []).append(reader)
    return by_topic


async def _readers(client: Client, node_id: int, groups: list[ListedGroup]) -> list[tuple[str, Reader]]:
    outcomes = await try_committed(client, node_id, [each.group_id for each in groups])
    pairs: list[tuple[str, Reader]] = []
    for group in groups:
        outcome = outcomes.get(group.group_id, {})
        offsets = {} if isinstance(outcome, ClientError) else outcome
        for topic in _topics(offsets):
            positions = {at: each.offset for at, each in offsets.items() if at.topic == topic}
            pairs.append((topic, Reader(group.group_id, group.type, positions, {})))
    return pairs


async def _share_readers(client: Client, node_id: int, groups: list[ListedGroup]) -> list[tuple[str, Reader]]:
    outcomes = await try_describe_offsets(client, node_id, [each.group_id for each in groups])
    pairs: list[tuple[str, Reader]] = []
    for group in groups:
        outcome = outcomes.get(group.group_id, {})
        offsets = {} if isinstance(outcome, ClientError) else outcome
        for topic in _topics(offsets):
            mine = {at: each for at, each in offsets.items() if at.topic == topic}
            positions = {at: each.start_offset for at, each in mine.items() if each.start_offset is not None}
            lags = {at: each.lag for at, each in mine.items()}
            pairs.append((topic, Reader(group.group_id, group.type, positions, lags)))
    return pairs


def _topics(partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted({at.topic for at in partitions})


def _order(pair: tuple[str, Reader]) -> tuple[str, str]:
    topic, reader = pair
    return topic, reader.group_id
