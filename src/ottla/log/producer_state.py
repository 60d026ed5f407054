"""The producers of one partition: their entries, their open transactions, their snapshots on disk.

The rules for a single producer are in `ottla.log.producer_entry`. Here is what follows for the partition:

- the *last stable offset*, below which no transaction is undecided. A transaction holds it back while it is open
  (`_ongoing`), and after its marker until the high watermark has passed the marker (`_unreplicated`): the marker could
  still be truncated;
- `map_end_offset`, up to which the log is reflected here, and snapshots of that state, one at each segment's base, so
  that a restart or a truncation has no more than a segment to read;
- expiry: a producer that has written nothing for `producer.id.expiration.ms` and has no transaction open is forgotten.

Whether a transaction that begins here is known to its coordinator is asked by the broker. It takes a guard from
`verification_guard` before it asks and hands it to the append; a marker in between makes the guard void.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from ottla.log.disk import read_all, write_file
from ottla.log.errors import InvalidProducerEpochError, InvalidTxnStateError
from ottla.log.files import Directory
from ottla.log.names import SNAPSHOT_SUFFIX, file_name
from ottla.log.producer_entry import (
    NO_OFFSET,
    BatchMetadata,
    ProducerEntry,
    check_data,
    check_marker,
    find_duplicate,
    is_next,
)
from ottla.log.producer_snapshot import SnapshotError, format_snapshot, parse_snapshot
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import BatchView, ControlRecordType, read_control_type
from ottla.wire.batch_view import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.wire.fault import WireError

__all__ = ["Marker", "Origin", "ProducerState", "Verification", "read_marker"]

_MARKER: Final = struct.Struct(">hi")


class Origin(Enum):
    """The origin of an append, which decides what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
    RAFT_LEADER = "raft leader"


class Verification(NamedTuple):
    """What the broker knows of the transaction that an append belongs to, and of the marker that ends it.

    `guard` is None if the coordinator was not asked. `transaction_version` is that of the coordinator that sends a
    marker, or of the producer; from 2 on each transaction has an epoch of its own.
    """

    guard: int | None = None
    transaction_version: int = 0


class Marker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int
    timestamp: int


def read_marker(batch: BatchView) -> Marker | None:
    """The marker in a control batch; None if compaction has removed it, or if it is another control record."""
    records = batch.records()
    if not records:
        return None
    record = records[0]
    kind = read_control_type(record.key)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    if record.value is None or len(record.value) < _MARKER.size:
        raise WireError("EndTxnMarker", None, "the value of the marker is too short")
    _, coordinator_epoch = _MARKER.unpack_from(record.value)
    return Marker(kind == ControlRecordType.ABORT, coordinator_epoch, record.timestamp)


class ProducerState:
    __slots__ = ("_directory", "_entries", "_ongoing", "_unreplicated", "map_end_offset", "snapshot_offsets")

    def __init__(self, directory: Directory, snapshot_offsets: Iterable[int] = ()) -> None:
        self._directory = directory
        self._entries: dict[int, ProducerEntry] = {}
        # First offset -> producer, in order of offsets: a new transaction begins past all others.
        self._ongoing: dict[int, int] = {}
        # First offset -> offset of the marker.
        self._unreplicated: dict[int, int] = {}
        self.map_end_offset = 0
        self.snapshot_offsets = sorted(snapshot_offsets)

    # --- what is known ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Sequence[ProducerEntry]:
        return tuple(self._entries.values())

    def entry(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    @property
    def is_empty(self) -> bool:
        return not self._entries and not self._unreplicated

    def does_expect(self, batch: BatchView) -> bool:
        """Whether a batch goes on with, or repeats, what its producer has written here."""
        entry = self._entries.get(batch.producer_id)
        if entry is None or entry.producer_epoch != batch.producer_epoch:
            return False
        return is_next(entry, batch) or find_duplicate(entry, batch) is not None

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self._entries.get(producer_id)
        return entry is not None and entry.txn_first_offset != NO_OFFSET and entry.producer_epoch == producer_epoch

    def verification_guard(self, producer_id: int) -> int:
        """To be taken before the coordinator is asked about a transaction, and given to the append after it."""
        entry = self._entries.get(producer_id)
        return 0 if entry is None else entry.marker_count

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is not decided for good."""
        ongoing = next(iter(self._ongoing), None)
        if not self._unreplicated:
            return ongoing
        unreplicated = min(self._unreplicated)
        return unreplicated if ongoing is None else min(ongoing, unreplicated)

    # --- judging and noting appends -----------------------------------------------------------------------------------

    def check(self, batch: BatchView, origin: Origin, verification: Verification) -> BatchMetadata | None:
        """Check a batch with a producer id before a leader appends it; returns the batch that it repeats, if any."""
        entry = self._entries.get(batch.producer_id) or ProducerEntry(batch.producer_id)
        if batch.attributes & CONTROL_BIT:
            marker = read_marker(batch)
            if marker is not None:
                version = verification.transaction_version
                check_marker(entry, batch.producer_epoch, marker.coordinator_epoch, transaction_version=version)
            return None
        is_client = origin is Origin.CLIENT
        if is_client and (duplicate := find_duplicate(entry, batch)) is not None:
            return duplicate
        begins = False
        if batch.attributes & TRANSACTIONAL_BIT:
            begins = entry.txn_first_offset == NO_OFFSET or entry.producer_epoch != batch.producer_epoch
            if begins:
                _check_verified(entry, batch, verification)
        needs_zero = begins and verification.transaction_version >= 2
        check_data(entry, batch, is_client=is_client, needs_zero=needs_zero)
        return None

    def add(self, batch: BatchView, base_offset: int, max_timestamp: int) -> AbortedTxn | None:
        """Note a batch with a producer id; returns the transaction that it aborted."""
        producer_id = batch.producer_id
        if batch.attributes & CONTROL_BIT:
            marker = read_marker(batch)
            return None if marker is None else self._add_marker(batch, base_offset, marker)
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id)
        if entry.add_data(batch, base_offset, max_timestamp):
            self._ongoing[base_offset] = producer_id
        return None

    def _add_marker(self, batch: BatchView, offset: int, marker: Marker) -> AbortedTxn | None:
        entry = self._entries.setdefault(batch.producer_id, ProducerEntry(batch.producer_id))
        first_offset = entry.add_marker(batch.producer_epoch, marker.coordinator_epoch, marker.timestamp)
        if first_offset == NO_OFFSET:
            return None  # a transaction that wrote nothing here
        self._ongoing.pop(first_offset, None)
        self._unreplicated[first_offset] = offset
        if not marker.is_abort:
            return None
        last_stable_offset = next(iter(self._ongoing), offset + 1)
        return AbortedTxn(batch.producer_id, first_offset, offset, last_stable_offset)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Markers below the high watermark can no longer be truncated."""
        if self._unreplicated:
            self._unreplicated = {
                first: marker for first, marker in self._unreplicated.items() if marker >= high_watermark
            }

    def on_log_start_offset(self, log_start_offset: int) -> None:
        self.on_high_watermark(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        for entry in self.entries:
            if _is_expired(entry, now_ms, expiration_ms):
                del self._entries[entry.producer_id]

    def clear(self, map_end_offset: int) -> None:
        self._entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.map_end_offset = map_end_offset

    def take_over(self, other: ProducerState) -> None:
        """Copy the state of another log with the same records, including what no record tells."""
        self._entries, self._ongoing, self._unreplicated = other._entries, other._ongoing, other._unreplicated
        self.map_end_offset = other.map_end_offset

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def _snapshot_path(self, offset: int) -> str:
        return self._directory.file(file_name(offset, SNAPSHOT_SUFFIX))

    def take_snapshot(self, log_start_offset: int, *, sync: bool) -> str | None:
        """Write what is known up to `map_end_offset`, if no snapshot tells it; gives the path of a new one."""
        newest = self.snapshot_offsets[-1] if self.snapshot_offsets else log_start_offset
        if self.map_end_offset <= newest:
            return None
        path = self._snapshot_path(self.map_end_offset)
        write_file(self._directory.storage.disk, path, format_snapshot(self._entries.values()), sync=sync)
        self.snapshot_offsets.append(self.map_end_offset)
        return path

    def load_newest_snapshot(self, log_start_offset: int, now_ms: int, expiration_ms: int) -> list[str]:
        """Start from the newest snapshot that is whole, or from nothing; gives what is wrong with newer ones."""
        faults: list[str] = []
        self.clear(log_start_offset)
        while self.snapshot_offsets:
            offset = self.snapshot_offsets[-1]
            try:
                entries = parse_snapshot(read_all(self._directory.storage.disk, self._snapshot_path(offset)))
            except SnapshotError as error:
                faults.append(f"producer snapshot {offset}: {error}")
                self.delete_snapshots([offset])
                continue
            self._adopt([entry for entry in entries if not _is_expired(entry, now_ms, expiration_ms)])
            self.map_end_offset = offset
            break
        return faults

    def _adopt(self, entries: list[ProducerEntry]) -> None:
        self._entries = {entry.producer_id: entry for entry in entries}
        open_entries = [entry for entry in entries if entry.txn_first_offset != NO_OFFSET]
        open_entries.sort(key=lambda entry: entry.txn_first_offset)
        self._ongoing = {entry.txn_first_offset: entry.producer_id for entry in open_entries}

    def delete_snapshots(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            self.snapshot_offsets.remove(offset)
            self._directory.storage.disk.unlink(self._snapshot_path(offset))

    def delete_snapshots_outside(self, log_start_offset: int, log_end_offset: int) -> None:
        """Delete the snapshots that do not lie in a range, its start excluded: at the start all is unknown anyway."""
        low = bisect.bisect_right(self.snapshot_offsets, log_start_offset)
        high = bisect.bisect_right(self.snapshot_offsets, log_end_offset)
        self.delete_snapshots(self.snapshot_offsets[:low] + self.snapshot_offsets[max(low, high) :])

    def delete_stray_snapshots(self, base_offsets: Sequence[int]) -> None:
        """Delete the snapshots that belong to no segment, except the newest one if it is past the last base."""
        strays = [offset for offset in self.snapshot_offsets if offset not in base_offsets]
        if strays and base_offsets and strays[-1] >= base_offsets[-1]:
            strays.pop()
        self.delete_snapshots(strays)

    def snapshot_names_past(self, offset: int) -> list[str]:
        """Names of the snapshots past an offset."""
        return [file_name(one, SNAPSHOT_SUFFIX) for one in self.snapshot_offsets if one > offset]

    def forget_snapshot(self, offset: int) -> str | None:
        """Let go of the snapshot at a segment's base, whose file the caller moves out of the way; gives its name."""
        if offset not in self.snapshot_offsets:
            return None
        self.snapshot_offsets.remove(offset)
        return file_name(offset, SNAPSHOT_SUFFIX)


def _is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms


def _check_verified(entry: ProducerEntry, batch: BatchView, verification: Verification) -> None:
    """Refuse a batch that begins a transaction here of which the coordinator may not know."""
    if batch.producer_epoch < entry.producer_epoch:
        raise InvalidProducerEpochError(
            f"epoch {batch.producer_epoch} of producer {batch.producer_id} is smaller than its last known epoch "
            f"{entry.producer_epoch}"
        )
    # With version 2 a marker since then has a higher epoch, which was looked at just now.
    is_void = verification.transaction_version < 2 and verification.guard != entry.marker_count
    if verification.guard is None or is_void:
        raise InvalidTxnStateError(
            f"the batch of producer {batch.producer_id} is not part of a transaction that its coordinator knows of"
        )
