"""AllocateProducerIds: blocks of producer ids for brokers, no id given out twice."""

from __future__ import annotations

from typing import Final

from ottla.core.metadata.brokers import check_broker_epoch
from ottla.core.metadata.checks import check_cluster_access
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.fault import Reject
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.types.cluster_metadata import ProducerIdsRecord

BLOCK_SIZE: Final = 1000
_PRODUCER_ID_MAX: Final = (1 << 63) - 1


def allocate_producer_ids(state: ControllerState, request: AllocateProducerIdsRequest, context: Context) -> Result:
    """AllocateProducerIds: the next block goes to the broker that asks."""
    check_cluster_access(context, Operation.CLUSTER_ACTION)
    check_broker_epoch(state, request.broker_id, request.broker_epoch)
    start = max(state.image.next_producer_id, 0)
    if start > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise Reject(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
    record = ProducerIdsRecord(request.broker_id, request.broker_epoch, start + BLOCK_SIZE)
    reply = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    return Result((Versioned(record, 0),), reply)
