"""The state of one producer in a partition, and the rules that its next batch must follow.

Theory of operation. A producer numbers its records; a batch carries the first number, and the next batch must go on
where the last one ended. The newest five batches are remembered, so that a batch sent again is recognised and answered
with the offsets it was given the first time. A higher epoch starts over at number 0 and shuts out the lower ones.

==============================================  ==================================================================
a client's batch                                answer
==============================================  ==================================================================
same epoch, same numbers as one of five         its old offsets; nothing is written
epoch below the known one                       INVALID_PRODUCER_EPOCH
epoch above, first number not 0                 OUT_OF_ORDER_SEQUENCE_NUMBER
epoch above, first number 0                     accepted
same epoch, not the next number                 OUT_OF_ORDER_SEQUENCE_NUMBER
producer not known                              accepted whatever its number (the records that would tell may be
                                                deleted); with transaction version 2 in a transaction only 0
no transaction bit while one is open            INVALID_TXN_STATE
transaction bit, none open, none verified       INVALID_TXN_STATE
==============================================  ==================================================================

A transaction begins with its first batch and ends with a marker, which also carries the coordinator's epoch. Under
transaction version 2 the marker's producer epoch is one above that of the data, so that nothing late can follow it.

These functions check batches against one `ProducerEntry` and change it. A batch from another replica, or from the log
itself, is not checked: its leader has done that already.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.log.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from ottla.wire.batch import BatchView, decrement_sequence
from ottla.wire.batch_view import TRANSACTIONAL_BIT

__all__ = [
    "NO_OFFSET",
    "NO_PRODUCER_EPOCH",
    "REMEMBERED_BATCHES",
    "BatchMetadata",
    "ProducerEntry",
    "check_data",
    "check_marker",
    "find_duplicate",
    "is_next",
]

REMEMBERED_BATCHES: Final = 5
NO_PRODUCER_EPOCH: Final = -1
NO_OFFSET: Final = -1
_NO_SEQUENCE: Final = -1
_SEQUENCE_MAX: Final = (1 << 31) - 1
_EPOCH_MAX: Final = (1 << 15) - 1


class BatchMetadata(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer. `txn_first_offset` is where its open transaction begins, -1 if none is open."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_timestamp",
        "marker_count",
        "producer_epoch",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.txn_first_offset = NO_OFFSET
        self.marker_count = 0
        """How many markers this process has seen; a verification is void if one has come since it began."""
        self.batches: list[BatchMetadata] = []

    def __repr__(self) -> str:
        return f"ProducerEntry({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else _NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def add_data(self, batch: BatchView, base_offset: int, max_timestamp: int) -> bool:
        """Note a batch that was written; whether it began a transaction."""
        self._set_epoch(batch.producer_epoch)
        if len(self.batches) == REMEMBERED_BATCHES:
            del self.batches[0]
        delta = batch.last_offset_delta
        self.batches.append(BatchMetadata(batch.last_sequence, base_offset + delta, delta, max_timestamp))
        self.last_timestamp = max_timestamp
        if batch.attributes & TRANSACTIONAL_BIT and self.txn_first_offset == NO_OFFSET:
            self.txn_first_offset = base_offset
            return True
        return False

    def add_marker(self, producer_epoch: int, coordinator_epoch: int, timestamp: int) -> int:
        """Note a marker that was written; returns the first offset of the transaction that it ended, or -1."""
        self._set_epoch(producer_epoch)
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = timestamp
        self.marker_count += 1
        first_offset, self.txn_first_offset = self.txn_first_offset, NO_OFFSET
        return first_offset

    def _set_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches.clear()


def find_duplicate(entry: ProducerEntry, batch: BatchView) -> BatchMetadata | None:
    """The remembered batch that this one repeats."""
    if batch.producer_epoch != entry.producer_epoch:
        return None
    last_sequence, offset_delta = batch.last_sequence, batch.last_offset_delta
    for known in entry.batches:
        # With the last number and the count, the first one is the same, too.
        if known.last_sequence == last_sequence and known.offset_delta == offset_delta:
            return known
    return None


def check_data(entry: ProducerEntry, batch: BatchView, *, is_client: bool, needs_zero: bool) -> None:
    """Check an append as leader. `needs_zero`: it may begin a transaction of version 2, whose numbers begin at 0."""
    if batch.producer_epoch < entry.producer_epoch:
        raise _stale_epoch(entry, batch.producer_epoch, "<", 0)
    if is_client:
        _check_sequence(entry, batch, needs_zero=needs_zero)
    if entry.txn_first_offset != NO_OFFSET and not batch.is_transactional:
        raise InvalidTxnStateError(
            f"producer {entry.producer_id} has a transaction open since offset {entry.txn_first_offset}, "
            "but the batch is not part of it"
        )


def _check_sequence(entry: ProducerEntry, batch: BatchView, *, needs_zero: bool) -> None:
    first = batch.base_sequence
    if needs_zero and first != 0 and not entry.batches:
        raise OutOfOrderSequenceError(
            f"producer {entry.producer_id} begins with sequence number {first}; "
            "in a transaction of version 2 it has to be 0"
        )
    if entry.producer_epoch == NO_PRODUCER_EPOCH:
        return
    if batch.producer_epoch != entry.producer_epoch:
        if first != 0:
            raise OutOfOrderSequenceError(
                f"producer {entry.producer_id} begins its epoch {batch.producer_epoch} with sequence number {first} "
                f"instead of 0; its epoch was {entry.producer_epoch}"
            )
        return
    if not is_next(entry, batch):
        raise OutOfOrderSequenceError(
            f"producer {entry.producer_id} sent sequence number {first} after {entry.last_sequence} "
            f"in epoch {entry.producer_epoch}"
        )


def is_next(entry: ProducerEntry, batch: BatchView) -> bool:
    """Whether the numbers of a batch go on where those of the same epoch have ended."""
    first, last = batch.base_sequence, entry.last_sequence
    return first == last + 1 or (first == 0 and last == _SEQUENCE_MAX)


def check_marker(
    entry: ProducerEntry, producer_epoch: int, coordinator_epoch: int, *, transaction_version: int
) -> None:
    """Check a marker that a transaction coordinator sends."""
    known = entry.producer_epoch
    if transaction_version >= 2 and producer_epoch == known:
        # Sent again after it was written: harmless, so it is written again. (An epoch at its limit cannot rise.)
        if entry.txn_first_offset != NO_OFFSET and producer_epoch != _EPOCH_MAX:
            raise _stale_epoch(entry, producer_epoch, "<=", transaction_version)
    elif producer_epoch < known:
        raise _stale_epoch(entry, producer_epoch, "<=" if transaction_version >= 2 else "<", transaction_version)
    if coordinator_epoch < entry.coordinator_epoch:
        raise TransactionCoordinatorFencedError(
            f"the marker for producer {entry.producer_id} comes from coordinator epoch {coordinator_epoch}; "
            f"epoch {entry.coordinator_epoch} has written here"
        )


def _stale_epoch(
    entry: ProducerEntry, producer_epoch: int, relation: str, transaction_version: int
) -> InvalidProducerEpochError:
    return InvalidProducerEpochError(
        f"epoch {producer_epoch} of producer {entry.producer_id} is {relation} its last known epoch "
        f"{entry.producer_epoch} (transaction version {transaction_version})"
    )
