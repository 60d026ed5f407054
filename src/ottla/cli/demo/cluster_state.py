"""The state of the cluster during the demo: topics, groups and the quorum, as any client can see them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from ottla.cli.demo.plan import (
    AUDIT,
    BILLING,
    BILLING_MEMBERS,
    LINES,
    ORDERS,
    PAYMENTS,
    RISK_CHECKS,
    RISK_WORKERS,
    TOPICS,
    WORD_TOTALS,
)
from ottla.client import LATEST, Client, ClientError, TopicPartition, list_offsets, topics
from ottla.client.cluster import QuorumDescription, describe_quorum
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.group_offsets import committed, share_starts
from ottla.client.group_view import GroupView
from ottla.client.groups import list_groups, try_view
from ottla.client.metadata import Partition

__all__ = ["ClusterState", "DemoTimeoutError"]

T = TypeVar("T")
POLL_S: Final = 0.2
NOBODY: Final = -1
EXPECTED: Final = {BILLING: len(BILLING_MEMBERS), RISK_CHECKS: RISK_WORKERS, WORD_TOTALS: 1, AUDIT: 1}
"""Group -> members."""


class DemoTimeoutError(Exception):
    """An expected state was not reached in time."""


class ClusterState:
    """Uses a new connection each time, because a node may have been down in between."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def _client(self) -> Client:
        return Client(self._bootstrap, client_id="demo", default_api_timeout_ms=10_000)

    async def create_topics(self) -> None:
        async with self._client() as client:
            wanted = (topics.NewTopic(name, partitions=count) for name, count in TOPICS.items())
            await topics.create(client, *wanted)

    async def quorum(self) -> QuorumDescription:
        async with self._client() as client:
            return await describe_quorum(client)

    async def leaders(self) -> Counter[int]:
        """Node -> how many partitions it leads, those of coordinators included."""
        return Counter(each.leader for each in await self._partitions())

    async def _partitions(self) -> list[Partition]:
        async with self._client() as client:
            return [each for topic in (await client.all_topics()).values() for each in topic.partitions.values()]

    async def led_by_others(self, gone: int, timeout_s: float) -> Counter[int]:
        """Wait until others lead all that a node led."""

        async def find() -> Counter[int] | None:
            led = await self.leaders()
            return None if {gone, NOBODY} & led.keys() else led

        return await _until(find, timeout_s, f"not all partitions of node {gone} got a new leader")

    async def in_sync(self, timeout_s: float) -> bool:
        """Wait until all replicas are in sync."""

        async def find() -> bool | None:
            partitions = await self._partitions()
            return all(set(each.isr) == set(each.replicas) for each in partitions) or None

        return await _until(find, timeout_s, "not all replicas got in sync")

    async def cluster_id(self) -> str:
        async with self._client() as client:
            return client.metadata.cluster_id or ""

    async def start_share_at_the_beginning(self) -> None:
        async with self._client() as client:
            change = Change(Operation.SET, "share.auto.offset.reset", "earliest")
            await alter(client, Resource(ResourceType.GROUP, RISK_CHECKS), [change])

    async def groups(self) -> dict[str, GroupView]:
        async with self._client() as client:
            views = await try_view(client, await list_groups(client))
            return {name: view for name, view in views.items() if isinstance(view, GroupView)}

    async def stable(self, timeout_s: float, members: Mapping[str, int] | None = None) -> dict[str, GroupView]:
        """Wait until every group has its members and is stable."""
        wanted = {**EXPECTED, **(members or {})}

        async def find() -> dict[str, GroupView] | None:
            views = await self.groups()
            return views if all(is_settled(views.get(name), count) for name, count in wanted.items()) else None

        return await _until(find, timeout_s, "the groups did not become stable")

    async def taken_over(self, lost: frozenset[TopicPartition], gone: str, timeout_s: float) -> GroupView:
        """Wait until other members have the partitions of `gone`."""

        async def find() -> GroupView | None:
            view = (await self.groups()).get(BILLING)
            if view is None or any(member.member_id == gone for member in view.members):
                return None
            held = {at for member in view.members for at in member.assignment}
            return view if lost <= held else None

        return await _until(find, timeout_s, f"no member took over {', '.join(map(str, sorted(lost)))}")

    async def drained(self, timeout_s: float) -> dict[TopicPartition, int]:
        """Wait until every group has read to the end of its topic; returns the end offsets."""

        async def find() -> dict[TopicPartition, int] | None:
            async with self._client() as client:
                every = [TopicPartition(name, index) for name, count in TOPICS.items() for index in range(count)]
                ends = {
                    at: each.offset for at, each in (await list_offsets(client, dict.fromkeys(every, LATEST))).items()
                }
                return ends if await _is_drained(client, ends) else None

        return await _until(find, timeout_s, "the groups did not read to the end")


def is_settled(view: GroupView | None, members: int) -> bool:
    if view is None or view.state != "Stable" or len(view.members) != members:
        return False
    return all(member.assignment for member in view.members) and all(
        member.target is None or set(member.target) == set(member.assignment) for member in view.members
    )


async def _is_drained(client: Client, ends: Mapping[TopicPartition, int]) -> bool:
    for group, topic in ((BILLING, ORDERS), (AUDIT, ORDERS), (WORD_TOTALS, LINES)):
        done = await committed(client, group)
        if any(at not in done or done[at].offset < end for at, end in ends.items() if at.topic == topic):
            return False
    starts = await share_starts(client, RISK_CHECKS)
    return all(at in starts and starts[at].lag == 0 for at in ends if at.topic == PAYMENTS)


async def _until(find: Callable[[], Awaitable[T | None]], timeout_s: float, otherwise: str) -> T:
    last: ClientError | None = None
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    found = await find()
                except ClientError as error:
                    last, found = error, None
                if found is not None:
                    return found
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        why = f": {last}" if last else ""
        raise DemoTimeoutError(f"{otherwise} within {timeout_s:.0f} s{why}") from None
