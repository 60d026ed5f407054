"""InitProducerId: who may write under a transactional id from now on.

================================  ======================================================================================
the id is                         answer
================================  ======================================================================================
not known                         a new producer id, epoch 0
Empty, CompleteCommit or -Abort   no epoch named, or the present one: one epoch more, which shuts out older producers;
                                  the epoch before the last call of this producer: that call again, the same answer;
                                  another epoch, or another producer id: PRODUCER_FENCED. At epoch 32766 a new producer
                                  id with epoch 0
Ongoing                           the producer is shut out and its transaction aborted; CONCURRENT_TRANSACTIONS, so that
                                  the new one asks again
PrepareCommit, PrepareAbort       CONCURRENT_TRANSACTIONS
================================  ======================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.core.coordinator.contract import Context
from ottla.core.txn.transaction import NO_EPOCH, NO_PRODUCER_ID, NO_TIMEOUT_MS, Transaction, is_exhausted
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.init_producer_id import InitProducerIdRequest

__all__ = ["Begin", "NeedsProducerId", "check_request", "check_state", "judge"]


class NeedsProducerId(Exception):
    """The request can be granted only with a producer id that nobody has had."""


class Begin(NamedTuple):
    """What becomes of a transactional id."""

    transaction: Transaction
    last_epoch: int = NO_EPOCH
    """The epoch that the same producer had before; its call may come again."""


def check_request(request: InitProducerIdRequest, context: Context) -> int:
    """Refuse what is wrong by itself; gives the time-out of the producer's transactions."""
    settings = context.world.settings
    if request.transactional_id == "":
        raise Reject(ErrorCode.INVALID_REQUEST)
    if request.enable2_pc and not settings["transaction.two.phase.commit.enable"]:
        raise Reject(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise Reject(ErrorCode.UNSUPPORTED_VERSION)
    if request.enable2_pc:
        return NO_TIMEOUT_MS
    if not 0 < request.transaction_timeout_ms <= settings["transaction.max.timeout.ms"]:
        raise Reject(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return request.transaction_timeout_ms


def judge(
    request: InitProducerIdRequest,
    known: Transaction | None,
    last_epoch: int,
    new_producer_id: int | None,
    timeout_ms: int,
    context: Context,
) -> Begin:
    """Decide for an id that is not Ongoing. `last_epoch` is what `Begin` told when the id was last given an epoch."""
    now_ms = context.wall_ms
    if known is None:
        assert request.transactional_id is not None
        fresh = Transaction(request.transactional_id, _required(new_producer_id))
        return Begin(fresh.initialized(0, timeout_ms, now_ms))
    expected = None if request.producer_id == NO_PRODUCER_ID else request.producer_epoch
    if known.is_exhausted and expected in (None, known.producer_epoch):
        rotated = known.rotated(_required(new_producer_id), timeout_ms, now_ms)
        return Begin(rotated, NO_EPOCH if expected is None else known.producer_epoch)
    if expected is None or (expected == known.producer_epoch and not known.is_exhausted):
        begun = known.initialized(known.producer_epoch + 1, timeout_ms, now_ms)
        return Begin(begun, NO_EPOCH if expected is None else known.producer_epoch)
    if expected == last_epoch != NO_EPOCH:
        return Begin(known.initialized(known.producer_epoch, timeout_ms, now_ms), last_epoch)
    raise Reject(ErrorCode.PRODUCER_FENCED)


def check_state(request: InitProducerIdRequest, known: Transaction) -> None:
    """Refuse a foreign producer, and whoever comes while a transaction ends."""
    if request.producer_id != NO_PRODUCER_ID and not _is_own(request, known):
        raise Reject(ErrorCode.PRODUCER_FENCED)
    if known.state.is_prepare:
        raise Reject(ErrorCode.CONCURRENT_TRANSACTIONS)


def _is_own(request: InitProducerIdRequest, known: Transaction) -> bool:
    if request.producer_id == known.producer_id:
        return True
    # It used up its epochs, and may not have heard the answer that gave it a new id.
    return request.producer_id == known.previous_producer_id and is_exhausted(request.producer_epoch)


def _required(producer_id: int | None) -> int:
    if producer_id is None:
        raise NeedsProducerId
    return producer_id
