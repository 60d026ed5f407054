"""The rules of compaction: which records stay. What reads and writes files is in `ottla.log.cleaner`.

Theory of operation. A compacted log keeps the newest record of each key. The part behind the *first dirty offset* has
not been looked at yet. A run reads the dirty part once and notes the newest offset of each key (`KeyMap`), then copies
the whole log up to the end of that map, leaving out what an equal key further on has replaced. Offsets never change.

What must not vanish at once gets a *delete horizon*, a time noted in the batch by the run that first meets it, and goes
with a run after that time:

* a tombstone, so that a reader on its way through the log still learns of the deletion;
* a transaction marker, once no batch of its transaction is left (`Transactions` knows).

Data of aborted transactions go at once. A batch without records stays, as a header of 61 bytes, while it holds the last
sequence of a producer that is still active, or is the last one of the cleaned range, which keeps the log's end known.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from enum import Enum
from hashlib import blake2b
from typing import Final, NamedTuple

from ottla.log.producer_entry import NO_OFFSET, ProducerEntry
from ottla.log.producer_state import read_marker
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import BatchView, Record

__all__ = [
    "BatchRetention",
    "BatchRetentionResult",
    "KeyMap",
    "LastRecord",
    "Transactions",
    "batch_retention",
    "keeps",
    "last_records",
]

_DIGEST_BYTES: Final = 16
# 128 MB of Kafka's map at 24 bytes an entry would be five million; an entry of ours takes about 150.
ENTRIES_MAX: Final = 1_000_000


class KeyMap:
    """Key -> the newest offset at which it was seen, up to `end_offset`. Long keys are kept by their digest."""

    __slots__ = ("_entries_max", "_offsets", "end_offset")

    def __init__(self, start_offset: int, entries_max: int = ENTRIES_MAX) -> None:
        self._offsets: dict[bytes, int] = {}
        self._entries_max = entries_max
        self.end_offset = start_offset

    def __len__(self) -> int:
        return len(self._offsets)

    def has_room_for(self, count: int) -> bool:
        """Whether so many more keys fit; an empty map takes any one batch, so that a run always gets somewhere."""
        return not self._offsets or len(self._offsets) + count <= self._entries_max

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[_short(key)] = offset

    def newest(self, key: bytes) -> int:
        return self._offsets.get(_short(key), NO_OFFSET)


def _short(key: bytes) -> bytes:
    # One byte longer than any key kept as it is, so that no digest is taken for a key.
    return key if len(key) <= _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest() + b"#"


class Transactions:
    """The transactions that are open at the position of a run, and how each of them ends."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, AbortedTxn]] = []
        self._known: set[AbortedTxn] = set()
        self._aborted: dict[int, AbortedTxn] = {}
        self._aborted_with_data: set[int] = set()
        self._committed: set[int] = set()

    def expect(self, aborted: Iterable[AbortedTxn]) -> None:
        """Aborted transactions that overlap what will be read next; those told before are not taken twice."""
        for txn in aborted:
            if txn not in self._known:
                self._known.add(txn)
                heapq.heappush(self._coming, (txn.first_offset, txn))

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            txn = heapq.heappop(self._coming)[1]
            self._known.discard(txn)
            self._aborted.setdefault(txn.producer_id, txn)

    def is_aborted(self, batch: BatchView) -> bool:
        """Note a batch of data; whether its transaction was aborted."""
        self._reach(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._aborted_with_data.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def end(self, batch: BatchView) -> tuple[bool, AbortedTxn | None]:
        """Note a control batch -> whether it may go, and the abort that stays in the index because data are left."""
        self._reach(batch.last_offset)
        marker = read_marker(batch) if batch.record_count else None
        if batch.record_count == 0:
            return True, None
        if marker is None:
            return False, None  # not the end of a transaction
        if not marker.is_abort:
            had_data = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not had_data, None
        txn = self._aborted.pop(batch.producer_id, None)
        had_data = batch.producer_id in self._aborted_with_data
        self._aborted_with_data.discard(batch.producer_id)
        return (False, txn) if had_data and txn is not None else (True, None)


class LastRecord(NamedTuple):
    """The last record of an active producer: an offset of data, or -1 and the epoch of a marker."""

    data_offset: int
    producer_epoch: int


def last_records(entries: Iterable[ProducerEntry]) -> dict[int, LastRecord]:
    return {entry.producer_id: LastRecord(entry.last_data_offset, entry.producer_epoch) for entry in entries}


class BatchRetention(Enum):
    DELETE = "the batch is removed"
    DELETE_EMPTY = "the batch is removed if no record of it stays"
    RETAIN_EMPTY = "the batch stays, without records if need be"


class BatchRetentionResult(NamedTuple):
    retention: BatchRetention
    drops_records: bool
    """No record of the batch stays: aborted data, or a marker past its delete horizon."""
    needs_horizon: bool
    """A marker whose transaction has no batch left: it gets a delete horizon now."""
    kept_abort: AbortedTxn | None = None


def batch_retention(
    batch: BatchView,
    transactions: Transactions,
    producers: Mapping[int, LastRecord],
    range_end_offset: int,
    now_ms: int,
) -> BatchRetentionResult:
    """Whether a batch is removed or stays; `keeps` decides about its records."""
    needs_horizon, kept_abort = False, None
    if batch.is_control:
        needs_horizon, kept_abort = transactions.end(batch)
        horizon = batch.delete_horizon_ms
        drops_records = needs_horizon and horizon is not None and horizon <= now_ms
    else:
        drops_records = transactions.is_aborted(batch)
    if _is_last_of_producer(batch, producers) or batch.next_offset == range_end_offset:
        retention = BatchRetention.RETAIN_EMPTY
    else:
        retention = BatchRetention.DELETE if drops_records else BatchRetention.DELETE_EMPTY
    return BatchRetentionResult(retention, drops_records, needs_horizon, kept_abort)


def _is_last_of_producer(batch: BatchView, producers: Mapping[int, LastRecord]) -> bool:
    last = producers.get(batch.producer_id) if batch.has_producer_id else None
    if last is None:
        return False
    if last.data_offset >= 0:
        return batch.last_offset == last.data_offset
    return batch.is_control and batch.producer_epoch == last.producer_epoch


def keeps(batch: BatchView, record: Record, keys: KeyMap, now_ms: int) -> bool:
    """Whether a record of data stays."""
    if record.offset >= keys.end_offset:
        return True
    if record.key is None or record.offset < keys.newest(bytes(record.key)):
        return False
    horizon = batch.delete_horizon_ms
    return record.value is not None or horizon is None or now_ms < horizon
