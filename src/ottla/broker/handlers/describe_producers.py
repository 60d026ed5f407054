"""DescribeProducers (61): the producers of a partition, and their open transactions.

Version 0. Only the partition's leader answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.broker.replicas.lookup import check_access
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_names import check_topic_name
from ottla.log.errors import LogError
from ottla.wire.access import Operation
from ottla.wire.types.describe_producers import (
    DescribeProducersResponse,
    DescribeProducersResponsePartitionResponse,
    DescribeProducersResponseProducerState,
    DescribeProducersResponseTopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Records

API_KEY: Final = 61
VERSIONS: Final = (0, 0)

_Partition = DescribeProducersResponsePartitionResponse
_Topic = DescribeProducersResponseTopicResponse


def handle(node: Records, request: Request) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=tuple(
            _Topic(topic.name, tuple(_answer(node, request, topic.name, index) for index in topic.partition_indexes))
            for topic in request.body.topics
        )
    )


def refuse(request: Request, code: int, message: str | None) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=tuple(
            _Topic(topic.name, tuple(_Partition(index, code, message) for index in topic.partition_indexes))
            for topic in request.body.topics
        )
    )


def _answer(node: Records, request: Request, topic: str, index: int) -> _Partition:
    try:
        check_topic_name(topic)
        check_access(node, request, Operation.READ, topic)
        replica = node.replicas.leader(topic, index)
        entries = replica.log.producers.entries if replica.has_log else ()
    except Reject as error:
        return _Partition(index, error.code, error.message)
    except LogError as error:
        return _Partition(index, error.code, str(error))
    return _Partition(
        index,
        active_producers=tuple(
            DescribeProducersResponseProducerState(
                entry.producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
            for entry in entries
        ),
    )
