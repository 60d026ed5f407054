"""The calls of a transaction, one by one, for programs that end it elsewhere than they have begun it.

    identity = await begin(client, "loader-7", timeout_ms=60_000)
    producer = Producer(client, identity=identity)
    await producer.send_all(records)
    await commit_offsets(client, identity, "loader", {TopicPartition("input", 0): 42})
    await end(client, identity, commit=True)

`begin` fences whoever had the id before, and ends what that one had begun. Any connection may `end` a transaction that
knows the id, the producer id and its epoch. With transaction version 2 partitions and groups join by being written to;
below that the coordinator has to be told first, which `Producer` and `commit_offsets` do by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client.answers import Coordinated
from ottla.client.client import Client, always
from ottla.client.errors import check
from ottla.client.features import finalized_levels
from ottla.client.leaders import by_topic
from ottla.client.metadata import TopicPartition
from ottla.wire.types.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
)
from ottla.wire.types.end_txn import EndTxnRequest
from ottla.wire.types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.types.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTxnOffsetCommitRequestTopic,
)

__all__ = ["PRODUCE_EXPLICIT_MAX", "Identity", "Mark", "add_partitions", "begin", "commit_offsets", "end"]

FEATURE: Final = "transaction.version"
IMPLICIT: Final = 2
"""The version from which on partitions join by being written to."""
ADD_BY_CLIENT_MAX: Final = 3
"""Later versions of AddPartitionsToTxn are for brokers."""
EXPLICIT_MAX: Final = 4
"""Later versions of TxnOffsetCommit and EndTxn say that the client has transaction version 2."""
COMMIT_BY_NAME_MAX: Final = 5
"""Later versions of TxnOffsetCommit know topics by their ids only."""
PRODUCE_EXPLICIT_MAX: Final = 11


class Identity(NamedTuple):
    """Who writes in a transaction; it can be sent to another process."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    version: int
    """The transaction version of the cluster."""
    coordinator: int
    """The node that coordinates the transaction, so that another process need not look for it."""

    @property
    def is_implicit(self) -> bool:
        return self.version >= IMPLICIT


class Mark(NamedTuple):
    """An offset that becomes a group's with the transaction."""

    offset: int
    metadata: str = ""


async def begin(client: Client, transactional_id: str, *, timeout_ms: int) -> Identity:
    """Take an id over. What is under way in another's transaction is waited for."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    answer = await client.ask("InitProducerId", always(request), coordinator=("transaction", transactional_id))
    found = answer.of(InitProducerIdResponse)
    check(None, "InitProducerId", found.error_code, f"transactional id {transactional_id}")
    assert answer.peer.node_id is not None, "coordinators are found by their node ids"
    version = (await finalized_levels(client)).get(FEATURE, 0)
    return Identity(transactional_id, found.producer_id, found.producer_epoch, version, answer.peer.node_id)


async def add_partitions(client: Client, identity: Identity, partitions: Iterable[TopicPartition]) -> None:
    """Tell the coordinator which partitions are going to be written to; not needed if that is implicit."""
    topics = tuple(
        AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name, tuple(at.partition for at in places))
        for name, places in by_topic(partitions).items()
    )
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=identity.transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.producer_epoch,
        v3_and_below_topics=topics,
    )
    answer = await client.send(
        request, coordinator=("transaction", identity.transactional_id), max_version=ADD_BY_CLIENT_MAX
    )
    for topic in answer.results_by_topic_v3_and_below:
        for each in topic.results_by_partition:
            about = f"{topic.name}-{each.partition_index}"
            check(None, "AddPartitionsToTxn", each.partition_error_code, about)


async def commit_offsets(
    client: Client, identity: Identity, group_id: str, marks: Mapping[TopicPartition, Mark]
) -> None:
    """Let a group have these offsets if the transaction is committed."""
    if not identity.is_implicit:
        request = AddOffsetsToTxnRequest(*identity[:3], group_id)
        added = await client.send(request, coordinator=("transaction", identity.transactional_id))
        check(None, "AddOffsetsToTxn", added.error_code, f"group {group_id}")
    answer = await client.send(
        _commit_request(identity, group_id, marks),
        coordinator=("group", group_id),
        max_version=COMMIT_BY_NAME_MAX if identity.is_implicit else EXPLICIT_MAX,
    )
    for topic in answer.topics:
        for each in topic.partitions:
            check(None, "TxnOffsetCommit", each.error_code, f"group {group_id}, {topic.name}-{each.partition_index}")


def _commit_request(identity: Identity, group_id: str, marks: Mapping[TopicPartition, Mark]) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=identity.transactional_id,
        group_id=group_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        topics=tuple(
            TxnOffsetCommitRequestTxnOffsetCommitRequestTopic(
                name=name,
                partitions=tuple(
                    TxnOffsetCommitRequestTxnOffsetCommitRequestPartition(
                        at.partition, marks[at].offset, -1, marks[at].metadata
                    )
                    for at in places
                ),
            )
            for name, places in by_topic(marks).items()
        ),
    )


async def end(client: Client, identity: Identity, *, commit: bool) -> None:
    """Commit or abort. ResponseError if the transaction is no longer this one's to end."""
    coordinated: Coordinated = ("transaction", identity.transactional_id)
    client.learn_coordinator(coordinated, identity.coordinator)
    answer = await client.send(
        EndTxnRequest(*identity[:3], commit),
        coordinator=coordinated,
        max_version=None if identity.is_implicit else EXPLICIT_MAX,
    )
    check(None, "EndTxn", answer.error_code, f"transactional id {identity.transactional_id}")
