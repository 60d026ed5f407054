"""Aborts a hanging transaction: one that is open in a partition and that its coordinator has forgotten."""

from __future__ import annotations

from ottla.client.client import Client, always
from ottla.client.errors import UnknownBrokerError, check
from ottla.client.metadata import TopicPartition
from ottla.client.open_transactions import OpenProducer
from ottla.wire.types.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

__all__ = ["abort_transaction"]


async def abort_transaction(client: Client, at: TopicPartition, producer: OpenProducer) -> None:
    """Write an abort marker for an open transaction of a partition, as its coordinator would."""
    kind = WriteTxnMarkersRequest
    marker = kind.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=(kind.WritableTxnMarkerTopic(at.topic, (at.partition,)),),
        coordinator_epoch=producer.coordinator_epoch,
    )
    topic = (await client.topics([at.topic]))[at.topic]
    leader = topic.partitions[at.partition].leader
    if leader < 0:
        raise UnknownBrokerError(leader, ())
    answer = await client.ask("WriteTxnMarkers", always(kind(markers=(marker,))), broker=leader)
    for each in answer.of(WriteTxnMarkersResponse).markers:
        for named in each.topics:
            for partition in named.partitions:
                check(answer.peer, "WriteTxnMarkers", partition.error_code, str(at))
