"""Verification that an append belongs to a transaction that its coordinator knows (KIP-890).

The first batch that a producer writes to a partition in a transaction makes the partition part of it in the log, and
only a marker ends that. So before it is taken the coordinator is asked (KIP-890): producers of the older protocols have
added the partition themselves, and it is only verified; for those of transaction version 2 the partition is added now.
A coordinator on another node is asked over the network (`remote_coordinators`).

=============================================  =========================================================================
the coordinator says                           the producer hears
=============================================  =========================================================================
PRODUCER_FENCED                                INVALID_PRODUCER_EPOCH
TRANSACTION_ABORTABLE: it was not added        the same, or INVALID_TXN_STATE if its version does not know that error
CONCURRENT_TRANSACTIONS                        with version 2 the coordinator is asked again for a while, then the same
everything else                                the same
=============================================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from ottla.broker.coordinators.internal_topics import GROUPS
from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.transactions.ports import VerificationPorts
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.core.txn.messages import AddPartitions, VerifyPartitions
from ottla.core.txn.transaction import Partition
from ottla.wire.errors import ErrorCode
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest

__all__ = [
    "UNDECIDED",
    "TransactionSupport",
    "ask_coordinator",
    "has_open_transaction",
    "verify_offsets",
]

UNDECIDED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Nobody could be asked; that may be otherwise in a moment."""

_V2: Final = 2

Codes = Mapping[Partition, ErrorCode]


class TransactionSupport(Enum):
    """What a version of a producer's request supports."""

    OLD_ERRORS = "partitions were added before; TRANSACTION_ABORTABLE is not known"
    ABORTABLE_ERROR = "partitions were added before"
    ADDS = "partitions are added with the first write"

    @classmethod
    def of_produce(cls, version: int) -> TransactionSupport:
        if version >= 12:
            return cls.ADDS
        return cls.ABORTABLE_ERROR if version == 11 else cls.OLD_ERRORS

    @classmethod
    def of_txn_offset_commit(cls, version: int) -> TransactionSupport:
        if version >= 5:
            return cls.ADDS
        return cls.ABORTABLE_ERROR if version == 4 else cls.OLD_ERRORS


class _VerificationRequest:
    """A request to a transaction coordinator, repeated until the answer is final."""

    def __init__(
        self,
        node: VerificationPorts,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: frozenset[Partition],
        support: TransactionSupport,
        done: Callable[[Codes], None],
    ) -> None:
        self._node = node
        self._transactional_id = transactional_id
        self._partitions = partitions
        self._support = support
        self._done = done
        self._body: AddPartitions | VerifyPartitions
        if support is TransactionSupport.ADDS:
            self._body = AddPartitions(transactional_id, *producer, partitions, _V2)
        else:
            self._body = VerifyPartitions(transactional_id, *producer, partitions)
        self._until_ms = node.clock.monotonic_ms() + node.settings["add.partitions.to.txn.retry.backoff.max.ms"]

    def ask(self) -> None:
        coordinator = self._node.transactions.coordinator_of(self._transactional_id)
        if coordinator not in (NO_LEADER, self._node.node_id):
            self._node.remote_transactions.ask(coordinator, self._body, self._answered)
            return
        self._node.transactions.ask(
            None, self._transactional_id, self._body, self._answered, refuse=lambda code, message: code
        )

    def _answered(self, answer: ErrorCode | Codes) -> None:
        codes = dict.fromkeys(self._partitions, answer) if isinstance(answer, ErrorCode) else answer
        if (
            self._support is TransactionSupport.ADDS
            and answer is ErrorCode.CONCURRENT_TRANSACTIONS
            and self._may_wait()
        ):
            return
        self._done({each: self._as_told(code) for each, code in codes.items()})

    def _may_wait(self) -> bool:
        """Ask again soon: the end of the transaction before takes a moment."""
        now_ms = self._node.clock.monotonic_ms()
        if now_ms >= self._until_ms:
            return False
        again_at_ms = now_ms + self._node.settings["add.partitions.to.txn.retry.backoff.ms"]
        return self._node.purgatory.park(DelayedOperation(self._again, (), again_at_ms))

    def _again(self, expired: bool) -> bool:
        self.ask()
        return True

    def _as_told(self, code: ErrorCode) -> ErrorCode:
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and self._support is TransactionSupport.OLD_ERRORS:
            return ErrorCode.INVALID_TXN_STATE
        return code


def ask_coordinator(
    node: VerificationPorts,
    transactional_id: str,
    producer: tuple[int, int],
    partitions: frozenset[Partition],
    support: TransactionSupport,
    done: Callable[[Codes], None],
) -> None:
    """Verify or add partitions. `done` gets a code for each; at once, if nothing had to be written for it."""
    _VerificationRequest(node, transactional_id, producer, partitions, support, done).ask()


def verify_offsets(
    node: VerificationPorts,
    body: TxnOffsetCommitRequest,
    version: int,
    partition: int,
    done: Callable[[ErrorCode], None],
) -> None:
    """The same for the partition of `__consumer_offsets` to which a transaction commits offsets of a group.

    The client takes NOT_COORDINATOR for a word about the group; so if nobody can be asked about the transaction, it is
    told to try again (COORDINATOR_NOT_AVAILABLE).
    """
    wanted, producer = Partition(GROUPS.name, partition), (body.producer_id, body.producer_epoch)
    support = TransactionSupport.of_txn_offset_commit(version)
    is_needed = support is TransactionSupport.ADDS or node.settings["transaction.partition.verification.enable"]
    if not is_needed or has_open_transaction(node.replicas, wanted, producer):
        done(ErrorCode.NONE)
        return

    def answered(codes: Codes) -> None:
        done(ErrorCode.COORDINATOR_NOT_AVAILABLE if codes[wanted] in UNDECIDED else codes[wanted])

    ask_coordinator(node, body.transactional_id, producer, frozenset({wanted}), support, answered)


def has_open_transaction(replicas: Replicas, partition: Partition, producer: tuple[int, int]) -> bool:
    """Whether a producer has begun to write to a partition: then nothing needs to be asked."""
    replica = replicas.get(*partition)
    return replica is not None and replica.has_log and replica.log.producers.has_ongoing_transaction(*producer)
