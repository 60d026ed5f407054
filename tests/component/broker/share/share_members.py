"""Members of share groups over the wire, as bare as can be: one connection and one session each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from ottla.wire.batch import split_batches
from ottla.wire.types import (
    IncrementalAlterConfigsRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from tests.component.broker.raw_client import Connection, RawClient, RunningNode, Topic, batch

SHARE_FETCH = 78
SHARE_ACKNOWLEDGE = 79
GROUP_RESOURCE = 32
_serial = count()

Batches = Iterable[tuple[int, int, Sequence[int]]]
Ranges = list[tuple[int, int, int]]

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
WAIT = {"max_wait_ms": 60_000}
"""Longer than any test."""


def new_group() -> str:
    return f"g{next(_serial)}"


def initialize(
    client: RawClient, group: str, topic: Topic, *partitions: int, start: int = 0, state_epoch: int = 2
) -> None:
    """What the group coordinator does when a member subscribes."""
    request = InitializeShareGroupStateRequest
    data = tuple(request.PartitionData(each, state_epoch, start) for each in partitions or (0,))
    answer = client.ask(request(group, (request.InitializeStateData(topic.topic_id, data),)), 0)
    assert not any(each.error_code for each in answer.results[0].partitions), answer


def kept(client: RawClient, group: str, topic: Topic, partition: int = 0) -> tuple[int, Ranges]:
    """What the share coordinator has kept: the start, and (first, last, state) with the delivery count behind it."""
    request = ReadShareGroupStateRequest
    data = (request.PartitionData(partition, -1),)
    found = client.ask(request(group, (request.ReadStateData(topic.topic_id, data),)), 0).results[0].partitions[0]
    assert not found.error_code, found
    batches = [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in found.state_batches
    ]
    return found.start_offset, batches


def summary(client: RawClient, group: str, topic: Topic, partition: int = 0) -> tuple[int, int]:
    """The start that is kept, and how many records behind it are done."""
    request = ReadShareGroupStateSummaryRequest
    data = (request.PartitionData(partition, -1),)
    found = (
        client.ask(request(group, (request.ReadStateSummaryData(topic.topic_id, data),)), 1).results[0].partitions[0]
    )
    assert not found.error_code, found
    return found.start_offset, found.delivery_complete_count


def configure(client: RawClient, group: str, **settings: object) -> None:
    """Set settings of a group, `_` for each dot, without their prefix `share.`."""
    request = IncrementalAlterConfigsRequest
    entries = tuple(
        request.AlterableConfig(f"share.{key.replace('_', '.')}", 0, str(value)) for key, value in settings.items()
    )
    answer = client.ask(request((request.AlterConfigsResource(GROUP_RESOURCE, group, entries),), False), 1)
    assert answer.responses[0].error_code == 0, answer


def produce(client: RawClient, topic: Topic, *sizes: int, partition: int = 0, **fields: Any) -> None:
    """One batch of each size."""
    for size in sizes:
        answer = client.produce(topic, batch(*[b"v"] * size, **fields), partition=partition)
        assert answer.error_code == 0, answer


def filled(
    client: RawClient, *sizes: int, partitions: int = 1, settings: Mapping[str, object] | None = None, **configs: object
) -> tuple[Topic, str]:
    """A topic with batches of these sizes in each partition, and a group, with settings, that begins with the first of
    them."""
    topic, group = client.topic(partitions, **configs), new_group()
    for partition in range(partitions):
        produce(client, topic, *sizes, partition=partition)
    initialize(client, group, topic, *range(partitions))
    if settings:
        configure(client, group, **settings)
    return topic, group


class Member:
    """Counts its session epoch by itself, unless a request is given one."""

    def __init__(self, client: RawClient, group: str, name: str, topic: Topic, *partitions: int) -> None:
        self.client = client
        self.group = group
        self.name = name
        self.topic = topic
        self.partitions = partitions or (0,)
        self.connection: Connection = client.connect(name)
        self.epoch = 0

    # --- fetching -----------------------------------------------------------------------------------------------------

    def request(self, epoch: int, acks: dict[int, Batches] | None = None, **fields: Any) -> ShareFetchRequest:
        request = ShareFetchRequest
        given = {each: request.FetchPartition(each) for each in self.partitions} if epoch == 0 else {}
        for partition, batches in (acks or {}).items():
            given[partition] = request.FetchPartition(
                partition, acknowledgement_batches=tuple(request.AcknowledgementBatch(*each) for each in batches)
            )
        fields.setdefault("max_wait_ms", 0)
        fields.setdefault("min_bytes", 1)
        fields.setdefault("max_records", 500)
        fields.setdefault("batch_size", 500)
        topics = (request.FetchTopic(self.topic.topic_id, tuple(given.values())),) if given else ()
        fields.setdefault("topics", topics)
        return request(group_id=self.group, member_id=self.name, share_session_epoch=epoch, **fields)

    def send(
        self, acks: dict[int, Batches] | None = None, *, version: int = 2, epoch: int | None = None, **fields: Any
    ) -> int:
        used = self.epoch if epoch is None else epoch
        if epoch is None:
            self.epoch += 1
        return self.connection.send(self.request(used, acks, **fields), version)

    def wait(self, running: RunningNode, **fields: Any) -> int:
        """Send a fetch, and see that it waits."""
        before = len(running.node.purgatory)
        fields.setdefault("max_wait_ms", 60_000)
        number = self.send(**fields)
        running.until(lambda: len(running.node.purgatory) > before)
        return number

    def receive(self, number: int, *, version: int = 2) -> Any:
        return self.connection.receive(SHARE_FETCH, version, number)

    def fetch(self, acks: dict[int, Batches] | None = None, *, version: int = 2, **fields: Any) -> Any:
        return self.receive(self.send(acks, version=version, **fields), version=version)

    def take(self, **fields: Any) -> Ranges:
        """What a fetch acquires, of the one partition that there is."""
        return acquired(self.fetch(**fields))

    # --- acknowledging ------------------------------------------------------------------------------------------------

    def acknowledge(
        self,
        *batches: tuple[int, int, Sequence[int]],
        partition: int = 0,
        epoch: int | None = None,
        version: int = 2,
        is_renew_ack: bool = False,
    ) -> int:
        """The error of the partition."""
        answer = self.acknowledge_all({partition: batches}, epoch=epoch, version=version, is_renew_ack=is_renew_ack)
        assert answer.error_code == 0, answer
        return int(answer.responses[0].partitions[0].error_code)

    def acknowledge_all(
        self, acks: dict[int, Batches], *, epoch: int | None = None, version: int = 2, is_renew_ack: bool = False
    ) -> Any:
        request = ShareAcknowledgeRequest
        partitions = tuple(
            request.AcknowledgePartition(partition, tuple(request.AcknowledgementBatch(*each) for each in batches))
            for partition, batches in acks.items()
        )
        used = self.epoch if epoch is None else epoch
        if epoch is None:
            self.epoch += 1
        topics = (request.AcknowledgeTopic(self.topic.topic_id, partitions),) if partitions else ()
        return self.connection.ask(request(self.group, self.name, used, is_renew_ack, topics), version)

    def close(self) -> None:
        """The connection, not the session."""
        self.connection.close()


def acquired(answer: Any) -> Ranges:
    """First offset, last offset and delivery count of all that was acquired, of all partitions."""
    assert answer.error_code == 0, answer
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def offsets_read(answer: Any) -> list[int]:
    """The offsets of all records that came, acquired or not."""
    return [
        record.offset
        for topic in answer.responses
        for partition in topic.partitions
        for one in split_batches(bytes(partition.records))
        for record in one.records()
    ]
