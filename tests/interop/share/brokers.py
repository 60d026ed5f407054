"""The broker under test, with the same settings for both, and what tests prepare there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from ottla.client import Client, Delivered, Producer, ProducerRecord, TopicPartition, topics
from ottla.client.errors import check
from ottla.client.group_offsets import share_starts
from ottla.wire.types import IncrementalAlterConfigsRequest
from tests.interop.apache import ONE_NODE
from tests.interop.node.brokers import Node, node_of

T = TypeVar("T")

GROUP_RESOURCE = 32
SETTINGS = {
    **{key: value for key, value in ONE_NODE.items() if key.startswith(("group.", "offsets.", "share.", "trans"))},
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.max.record.lock.duration.ms": "600000",
    "group.share.min.delivery.count.limit": "2",
    "group.share.min.session.timeout.ms": "5000",
    "log.cleaner.backoff.ms": "200",
}
"""Locks and sessions may be so short that tests need not wait for their end, and locks longer than any test."""


def new_node(kind: str, directory: Path, *, data_dir: Path | None = None, **settings: object) -> Node:
    """A node that has not been started yet."""
    return node_of(kind, directory, data_dir=data_dir, **{**SETTINGS, **settings})


class Start(NamedTuple):
    """Where a share group starts in a partition, as its coordinator has kept it, and how many records are left."""

    offset: int
    lag: int | None


class Cluster:
    """What tests do to a cluster besides consuming."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def run(self, work: Callable[[Client], Awaitable[T]]) -> T:
        async def working() -> T:
            async with Client(self.bootstrap_servers) as client:
                return await work(client)

        return asyncio.run(working())

    def topic(self, name: str, partitions: int = 1, **configs: object) -> str:
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        self.run(lambda client: topics.create(client, topics.NewTopic(name, partitions, configs=settings)))
        return name

    def produce(self, topic: str, *values: str, partition: int = 0, timestamp_ms: int | None = None) -> list[Delivered]:
        """One batch."""
        records = [
            ProducerRecord(topic, value.encode(), partition=partition, timestamp_ms=timestamp_ms) for value in values
        ]
        return self.run(lambda client: Producer(client).send_all(records))

    def configure(self, group: str, settings: Mapping[str, object]) -> None:
        kind = IncrementalAlterConfigsRequest
        changes = tuple(kind.AlterableConfig(key, 0, str(value)) for key, value in settings.items())
        request = kind(resources=(kind.AlterConfigsResource(GROUP_RESOURCE, group, changes),))
        answer = self.run(lambda client: client.send(request))
        check(None, "IncrementalAlterConfigs", answer.responses[0].error_code, group, answer.responses[0].error_message)

    def starts(self, group: str) -> dict[TopicPartition, Start]:
        found = self.run(lambda client: share_starts(client, group))
        return {at: Start(each.offset, each.lag) for at, each in found.items()}

    def lag(self, group: str) -> int | None:
        """Over all partitions; None where it is not known of one."""
        lags = [each.lag for each in self.starts(group).values()]
        return None if None in lags else sum(lag for lag in lags if lag is not None)
