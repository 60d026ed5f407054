"""The transaction coordinators on other nodes, asked by AddPartitionsToTxn about many transactions at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.broker.peers.broker_connections import Brokers
from ottla.broker.peers.gathered_requests import GatheredRequests
from ottla.broker.peers.peer_connection import PeerError
from ottla.core.metadata.topic_image import partitions_by_topic
from ottla.core.txn.messages import AddPartitions, VerifyPartitions
from ottla.core.txn.transaction import Partition
from ottla.wire.errors import ErrorCode
from ottla.wire.types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    AddPartitionsToTxnRequestAddPartitionsToTxnTransaction,
    AddPartitionsToTxnResponse,
)

__all__ = ["RemoteCoordinators"]

_VERSIONS: Final = (4, 5)

Codes = Mapping[Partition, ErrorCode]
_Transaction = AddPartitionsToTxnRequestAddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequestAddPartitionsToTxnTopic


class RemoteCoordinators:
    """The transaction coordinators on other nodes."""

    def __init__(self, brokers: Brokers) -> None:
        self._requests: GatheredRequests[_Transaction] = GatheredRequests(
            brokers,
            _VERSIONS,
            lambda transactions: AddPartitionsToTxnRequest(transactions=tuple(transactions)),
            lambda transaction: (transaction.transactional_id,),
        )

    def ask(
        self, broker_id: int, body: AddPartitions | VerifyPartitions, done: Callable[[ErrorCode | Codes], None]
    ) -> None:
        """Ask what the coordinator on another node says to a request; an error stands for all partitions."""

        def answered(response: Any) -> None:  # noqa: ANN401
            done(
                ErrorCode.NETWORK_EXCEPTION
                if isinstance(response, PeerError)
                else _codes(response, body.transactional_id)
            )

        self._requests.ask(broker_id, _transaction(body), answered)


def _transaction(body: AddPartitions | VerifyPartitions) -> _Transaction:
    return _Transaction(
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        isinstance(body, VerifyPartitions),
        tuple(_Topic(name, tuple(found)) for name, found in partitions_by_topic(sorted(body.partitions)).items()),
    )


def _codes(response: AddPartitionsToTxnResponse, transactional_id: str) -> ErrorCode | Codes:
    """What an answer says of a transaction's partitions: one error for all, or one for each."""
    if response.error_code:
        return ErrorCode(response.error_code)
    codes = {
        Partition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for transaction in response.results_by_transaction
        if transaction.transactional_id == transactional_id
        for topic in transaction.topic_results
        for each in topic.results_by_partition
    }
    first, *others = set(codes.values()) or {ErrorCode.UNKNOWN_SERVER_ERROR}
    return first if not others else codes
