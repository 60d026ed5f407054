"""Partitions of a transaction: adding them, and asking whether they were added.

=================================  ===========================================  ========================================
the transactional id               add                                          verify
=================================  ===========================================  ========================================
not known                          INVALID_PRODUCER_ID_MAPPING                  INVALID_PRODUCER_ID_MAPPING
PrepareCommit, PrepareAbort        CONCURRENT_TRANSACTIONS, whoever asks: with  CONCURRENT_TRANSACTIONS, after the next
                                   version 2 a producer may already use the     two lines
                                   id and epoch of its next transaction
has another producer id            INVALID_PRODUCER_ID_MAPPING                  INVALID_PRODUCER_ID_MAPPING
has another epoch                  PRODUCER_FENCED                              PRODUCER_FENCED
Ongoing with these partitions      no error, nothing is written                 no error
otherwise                          Ongoing with them; the time-out runs from    TRANSACTION_ABORTABLE for each partition
                                   the first of them                            that was not added
=================================  ===========================================  ========================================
"""

from __future__ import annotations

from ottla.core.txn.messages import AddPartitions, VerifyPartitions
from ottla.core.txn.states import TransactionState
from ottla.core.txn.transaction import Partition, Transaction
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["add", "verify"]


def add(request: AddPartitions, known: Transaction | None, now_ms: int) -> Transaction | None:
    """The transaction with the partitions; None if it has them already."""
    if not request.transactional_id:
        raise Reject(ErrorCode.INVALID_REQUEST)
    if known is None:
        raise Reject(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.state.is_prepare:
        raise Reject(ErrorCode.CONCURRENT_TRANSACTIONS)
    _check_producer(request, known)
    if known.state is TransactionState.ONGOING and request.partitions <= known.partitions:
        return None
    return known.with_partitions(request.partitions, request.client_version, now_ms)


def verify(request: VerifyPartitions, known: Transaction | None) -> dict[Partition, ErrorCode]:
    if not request.transactional_id:
        raise Reject(ErrorCode.INVALID_REQUEST)
    if known is None:
        raise Reject(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    _check_producer(request, known)
    if known.state.is_prepare:
        raise Reject(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        each: ErrorCode.NONE if each in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in request.partitions
    }


def _check_producer(request: AddPartitions | VerifyPartitions, known: Transaction) -> None:
    if request.producer_id != known.producer_id:
        raise Reject(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != known.producer_epoch:
        raise Reject(ErrorCode.PRODUCER_FENCED)
