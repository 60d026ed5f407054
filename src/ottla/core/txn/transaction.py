"""A transactional id as its records tell it, the steps it can take, and each step as a record.

A `Transaction` is a value: a step gives the next one, and the record of that one is what is written. Epochs run from 0
to 32766; 32767 is left for the coordinator, so that it can always shut out the last producer. When they are used up the
id goes on with a new producer id: at the next InitProducerId, or with transaction version 2 at the end of a
transaction, where the new id is put aside in the prepare record (`next_producer_id`) and taken over on completion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ottla.core.coordinator.records import record, tombstone
from ottla.core.txn.states import MAY_FOLLOW, TransactionState
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.transaction_log import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionLogValuePartitionsSchema,
)

__all__ = [
    "EPOCH_MAX",
    "NO_EPOCH",
    "NO_PRODUCER_ID",
    "NO_TIMEOUT_MS",
    "Partition",
    "Transaction",
    "forget_record",
    "is_exhausted",
    "of_value",
    "to_record",
]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = (1 << 15) - 1
NO_TIMEOUT_MS: Final = (1 << 31) - 1
"""The time-out of a producer that takes part in a two-phase commit: its transactions never grow too old."""
_EPOCH_BUMPS_FROM: Final = 2
_NOT_STARTED: Final = -1


class Partition(NamedTuple):
    topic: str
    partition: int


def is_exhausted(producer_epoch: int) -> bool:
    """Whether no producer may get a higher epoch."""
    return producer_epoch >= EPOCH_MAX - 1


class Transaction(msgspec.Struct, frozen=True):
    """The hard state of a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last step: the same one, unless that step took a new one."""
    next_producer_id: int = NO_PRODUCER_ID
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[Partition] = frozenset()
    started_at_ms: int = _NOT_STARTED
    updated_at_ms: int = _NOT_STARTED
    client_version: int = 0
    """The transaction version under which the last step was taken."""

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= _EPOCH_BUMPS_FROM

    @property
    def is_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    @property
    def is_commit(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    # --- steps --------------------------------------------------------------------------------------------------------

    def initialized(self, producer_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """A producer begins, or begins again, with an epoch."""
        return self._step(
            TransactionState.EMPTY,
            producer_epoch=producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_at_ms=_NOT_STARTED,
            updated_at_ms=now_ms,
        )

    def rotated(self, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
        """The epochs are used up: a producer begins with a new id."""
        return self._step(
            TransactionState.EMPTY,
            producer_id=producer_id,
            producer_epoch=0,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_at_ms=_NOT_STARTED,
            updated_at_ms=now_ms,
        )

    def with_partitions(self, added: Iterable[Partition], client_version: int, now_ms: int) -> Transaction:
        return self._step(
            TransactionState.ONGOING,
            partitions=self.partitions.union(added),
            started_at_ms=now_ms if self.state.is_idle else self.started_at_ms,
            updated_at_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, *, is_commit: bool, client_version: int, next_producer_id: int = NO_PRODUCER_ID, now_ms: int
    ) -> Transaction:
        """The end is decided. With version 2 the epoch rises here, so that nothing late can follow the markers."""
        return self._step(
            TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + (client_version >= _EPOCH_BUMPS_FROM),
            next_producer_id=next_producer_id,
            started_at_ms=now_ms if self.state.is_idle else self.started_at_ms,
            updated_at_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, server_version: int, now_ms: int) -> Transaction:
        """Shut out the present producer and abort what it has open. No newcomer gets this epoch; with version 2 the
        producer itself may go on with it (`end_txn`)."""
        bumps = server_version >= _EPOCH_BUMPS_FROM
        step = self.prepared(is_commit=False, client_version=server_version if bumps else 0, now_ms=now_ms)
        return step if bumps else msgspec.structs.replace(step, producer_epoch=step.producer_epoch + 1)

    def completed(self, now_ms: int) -> Transaction:
        """All markers are written."""
        is_renewed = self.bumps_epoch and self.next_producer_id != NO_PRODUCER_ID
        return self._step(
            TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT,
            producer_id=self.next_producer_id if is_renewed else self.producer_id,
            producer_epoch=0 if is_renewed else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            updated_at_ms=now_ms,
        )

    def _step(self, state: TransactionState, **changes: object) -> Transaction:
        assert self.state in MAY_FOLLOW[state], f"{state} after {self.state} of {self.transactional_id}"
        return msgspec.structs.replace(self, state=state, previous_producer_id=self.producer_id, **changes)


# --- records ----------------------------------------------------------------------------------------------------------


def to_record(transaction: Transaction, feature_level: int) -> KeyedRecord:
    """The record that says it, in the version that the cluster's transaction.version allows."""
    is_flexible = feature_level >= 1
    partitions = None if transaction.state is TransactionState.EMPTY else _by_topic(transaction.partitions)
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if is_flexible else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if is_flexible else NO_PRODUCER_ID,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_at_ms,
        transaction_start_timestamp_ms=transaction.started_at_ms,
        client_transaction_version=transaction.client_version if is_flexible else 0,
    )
    return record(TransactionLogKey(transaction.transactional_id), value, 1 if is_flexible else 0)


def forget_record(transactional_id: str) -> KeyedRecord:
    return tombstone(TransactionLogKey(transactional_id))


def of_value(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """What a record says. ValueError if its state is none."""
    return Transaction(
        transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            Partition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        started_at_ms=value.transaction_start_timestamp_ms,
        updated_at_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _by_topic(partitions: Iterable[Partition]) -> tuple[TransactionLogValuePartitionsSchema, ...]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return tuple(TransactionLogValuePartitionsSchema(topic, tuple(found)) for topic, found in topics.items())
