"""WriteTxnMarkers (27): end transactions in partitions that this node leads.

Versions 1 and 2. Transaction coordinators send it, and administrators who abort a hanging transaction. Version 2 has
the transaction version of each marker, which decides how its epoch is checked. Each partition has its own error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.transactions.marker_appends import Answers, append_markers
from ottla.core.metadata.fault import Reject
from ottla.core.txn.transaction import Partition
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WriteTxnMarkersResponseWritableTxnMarkerPartitionResult,
    WriteTxnMarkersResponseWritableTxnMarkerResult,
    WriteTxnMarkersResponseWritableTxnMarkerTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 27
VERSIONS: Final = (1, 2)

_Marker = WriteTxnMarkersResponseWritableTxnMarkerResult
_Topic = WriteTxnMarkersResponseWritableTxnMarkerTopicResult
_Partition = WriteTxnMarkersResponseWritableTxnMarkerPartitionResult


def handle(node: Transactions, request: Request) -> DelayedResponse:
    may_alter = node.authorize(request, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    if not may_alter and not node.authorize(request, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise Reject(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    later = DelayedResponse()
    append_markers(node, request.body, lambda answers: later.complete(_response(request.body, answers)))
    return later


def refuse(request: Request, code: int, message: str | None) -> WriteTxnMarkersResponse:
    body: WriteTxnMarkersRequest = request.body
    return WriteTxnMarkersResponse(
        tuple(
            _Marker(
                marker.producer_id,
                tuple(
                    _Topic(topic.name, tuple(_Partition(index, code) for index in topic.partition_indexes))
                    for topic in marker.topics
                ),
            )
            for marker in body.markers
        )
    )


def _response(body: WriteTxnMarkersRequest, answers: Answers) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        tuple(
            _Marker(
                marker.producer_id, tuple(_topic(topic.name, topic.partition_indexes, codes) for topic in marker.topics)
            )
            for marker, codes in zip(body.markers, answers, strict=True)
        )
    )


def _topic(name: str, indexes: Sequence[int], codes: Mapping[Partition, ErrorCode]) -> _Topic:
    return _Topic(name, tuple(_Partition(index, codes[Partition(name, index)]) for index in indexes))
