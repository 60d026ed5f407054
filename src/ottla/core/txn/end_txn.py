"""EndTxn: whether a transaction may be ended, and as what.

With transaction versions 0 and 1 the producer keeps its epoch, so its epoch must be the present one:

=================  ==========================  =========================
state              the same outcome            the other outcome
=================  ==========================  =========================
Ongoing            prepared                    prepared
Prepare...         CONCURRENT_TRANSACTIONS     INVALID_TXN_STATE
Complete...        done already: no error      INVALID_TXN_STATE
Empty              INVALID_TXN_STATE           INVALID_TXN_STATE
=================  ==========================  =========================

With version 2 each end raises the epoch and tells it to the producer, so one epoch less is that of a request sent again
(after an overflow: the id before, with the last epoch):

==============  ===========================  ==============  ==============================  =================
state           abort, sent again            abort, present  commit, sent again              commit, present
==============  ===========================  ==============  ==============================  =================
Empty           PRODUCER_FENCED              prepared        PRODUCER_FENCED                 INVALID_TXN_STATE
Ongoing         PRODUCER_FENCED              prepared        PRODUCER_FENCED                 prepared
CompleteAbort   no error, the present epoch  prepared        INVALID_TXN_STATE               INVALID_TXN_STATE
CompleteCommit  INVALID_TXN_STATE            prepared        no error, the present epoch     INVALID_TXN_STATE
Prepare...      CONCURRENT_TRANSACTIONS,     CONCURRENT_...  CONCURRENT_TRANSACTIONS,        CONCURRENT_...
                other outcome                                other outcome
                INVALID_TXN_STATE                            INVALID_TXN_STATE
==============  ===========================  ==============  ==============================  =================

While a transaction of version 2 ends, its producer may already use the epoch, or after an overflow the id, of the next
one: so in the Prepare states whoever is not sending again is asked to wait, not refused.

A producer that was shut out (`Transaction.fenced`) may go on with the epoch that did it, as if it had sent its abort
again. Not with 32767, which its next end could not raise: then it gets PRODUCER_FENCED.
"""

from __future__ import annotations

from typing import Final

from ottla.core.txn.transaction import EPOCH_MAX, Transaction
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.end_txn import EndTxnRequest

__all__ = ["EPOCH_BUMPS_FROM", "is_done_v1", "is_done_v2"]

EPOCH_BUMPS_FROM: Final = 5
"""From this version of EndTxn on, the producer follows transaction version 2."""


def is_done_v1(request: EndTxnRequest, known: Transaction) -> bool:
    """Whether nothing is left to do; False if the transaction is to be ended now. Reject otherwise."""
    if request.producer_id != known.producer_id:
        raise Reject(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != known.producer_epoch:
        raise Reject(ErrorCode.PRODUCER_FENCED)
    if known.state.is_prepare:
        raise _while_ending(request, known)
    if known.state.is_complete:
        _check_same(request, known)
        return True
    if known.state.is_idle:
        raise Reject(ErrorCode.INVALID_TXN_STATE)
    return False


def is_done_v2(request: EndTxnRequest, known: Transaction) -> bool:
    """As `is_done_v1`, for transaction version 2."""
    is_after_overflow = (
        request.producer_id == known.previous_producer_id != known.producer_id
        and request.producer_epoch == EPOCH_MAX - 1
        and known.producer_epoch == 0
    )
    is_again = is_after_overflow or (
        request.producer_id == known.producer_id and request.producer_epoch + 1 == known.producer_epoch
    )
    if known.state.is_prepare:
        raise _while_ending(request, known) if is_again else Reject(ErrorCode.CONCURRENT_TRANSACTIONS)
    if request.producer_id != known.producer_id and not is_after_overflow:
        raise Reject(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not known.state.is_complete or known.producer_epoch == EPOCH_MAX:
        is_again = False
    if request.producer_epoch != known.producer_epoch and not is_again:
        raise Reject(ErrorCode.PRODUCER_FENCED)
    if is_again:
        _check_same(request, known)
        return True
    if known.state.is_idle and request.committed:
        raise Reject(ErrorCode.INVALID_TXN_STATE)
    return False


def _while_ending(request: EndTxnRequest, known: Transaction) -> Reject:
    is_same = request.committed == known.is_commit
    return Reject(ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE)


def _check_same(request: EndTxnRequest, known: Transaction) -> None:
    if request.committed != known.is_commit:
        raise Reject(ErrorCode.INVALID_TXN_STATE)
