"""What the coordinator is asked beside Kafka's own requests, and what it asks of the broker.

InitProducerId and EndTxn come as they are on the wire. Requests that name several transactional ids, or that this node
makes itself, come as one of the requests below for each id; their answers are plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.core.txn.states import TransactionState
from ottla.core.txn.transaction import Partition

__all__ = [
    "AddPartitions",
    "DescribeTransaction",
    "ListTransactions",
    "Listed",
    "TakeProducerId",
    "VerifyPartitions",
    "WriteMarkers",
    "Written",
]

# --- requests ---------------------------------------------------------------------------------------------------------


class AddPartitions(NamedTuple):
    """Let partitions be part of the transaction, which begins with the first of them. Answer: an ErrorCode."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[Partition]
    client_version: int
    """2 if the producer's protocol lets brokers add partitions, else 0."""


class VerifyPartitions(NamedTuple):
    """Ask whether partitions are part of the transaction. Answer: a dictionary Partition -> ErrorCode."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[Partition]


class DescribeTransaction(NamedTuple):
    """Answer: the Transaction. Reject if there is none."""

    transactional_id: str


class ListTransactions(NamedTuple):
    """Answer: a list of `Listed`. None and an empty set let everything pass."""

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = frozenset()
    older_than_ms: int = -1
    matches: Callable[[str], bool] | None = None


class Listed(NamedTuple):
    transactional_id: str
    producer_id: int
    state: TransactionState


# --- effects ----------------------------------------------------------------------------------------------------------


class TakeProducerId(NamedTuple):
    """Get a producer id that nobody has had. Outcome: the id, or the error that prevents it."""

    number: int
    """Which of the requests that wait for an id this one is for."""


class WriteMarkers(NamedTuple):
    """Write the marker that ends a transaction to partitions, wherever they are led.

    Outcome: a dictionary Partition -> ErrorCode, with NONE for partitions that do not exist any more.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    transaction_version: int
    is_commit: bool
    partitions: Sequence[Partition]


# --- subjects of writes -----------------------------------------------------------------------------------------------


class Written(NamedTuple):
    """The record of a step was to be written: `settled` tells how that went."""

    transactional_id: str
    state: TransactionState
