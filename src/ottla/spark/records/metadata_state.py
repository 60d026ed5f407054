"""The state of a cluster, table by table: the newest rows of the metadata log.

Records of the metadata log have no keys. A record describes something that its fields name (`STATE_KEYS`), and later
records of other types change or remove it. Records of a metadata transaction take effect at its end, or never if it is
aborted. A table replays only the records that its rows depend on.

The place of a row (offset, time, epoch) is that of the last record that changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from ottla import wire
from ottla.spark.errors import OttlaSparkError
from ottla.spark.records.bytes import RecordBytes, is_of_types, read_frame
from ottla.spark.records.decode import Places, RecordDecoder, Source
from ottla.spark.records.tables import STATE_KEYS
from ottla.wire.keyed import record_types
from ottla.wire.types import cluster_metadata as log

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.records.tables import Table
    from ottla.wire.columns import Columns

__all__ = ["MetadataState"]

_REMOVALS: Final[dict[str, Callable[[Any], bool]]] = {
    "ClientQuotaRecord": lambda it: it.remove,
    "ConfigRecord": lambda it: it.value is None,
    "FeatureLevelRecord": lambda it: it.feature_level == 0,
}
"""Records that remove what they name."""
_TRANSACTIONS: Final = (log.BeginTransactionRecord, log.EndTransactionRecord, log.AbortTransactionRecord)
_TOPIC: Final = 2
_NO_LEADER_CHANGE: Final = -2
_NO_RECOVERY_CHANGE: Final = -1
_FENCING: Final = {1: True, -1: False}
_MIGRATING: Final = bytes(15) + b"\x02"
"""The directory of a replica whose broker has not named one."""


class _Place(NamedTuple):
    offset: int
    timestamp: int
    epoch: int


class _Entry(NamedTuple):
    message: Any
    version: int
    place: _Place


class MetadataState:
    """The rows of one table, while the metadata log is replayed."""

    def __init__(self, table: Table, decoder: RecordDecoder) -> None:
        self._table = table
        self._decoder = decoder
        self._key = STATE_KEYS[table.name]
        self._is_removal = _REMOVALS.get(table.name, lambda it: False)
        self._effects: dict[type, Callable[[MetadataState, Any, int, _Place], None]] = {
            getattr(log, table.name): MetadataState._put,
            **_EFFECTS.get(table.name, {}),
        }
        wanted = {each.__name__ for each in (*self._effects, *_TRANSACTIONS)}
        self._messages = {
            number: name for number, name in record_types(table.topic, "metadata").items() if name in wanted
        }
        self._entries: dict[Any, _Entry] = {}
        self._topics: dict[bytes, str] = {}
        self._settings: dict[str, set[Any]] = {}
        """Topic -> the keys of its settings."""
        self._held_back: list[tuple[Any, int, _Place]] | None = None

    # --- what is read -------------------------------------------------------------------------------------------------

    def rows(self, found: Iterable[tuple[Source, Columns, int, int]]) -> Iterator[pa.RecordBatch]:
        """The state after all records of a log, in the order of the last changes."""
        for _, columns, from_offset, until_offset in found:
            self._add(columns, from_offset, until_offset)
        entries = list(self._entries.values())
        if not entries:
            return
        offsets, timestamps, epochs = (np.array(each) for each in zip(*(it.place for it in entries), strict=True))
        made = [self._decoder.message_row(each.message, each.version) for each in entries]
        places = Places(offsets, timestamps, epochs.astype(np.int32))
        yield self._decoder.arrow(Source(self._table.topic, 0), places, made)

    def _add(self, columns: Columns, from_offset: int, until_offset: int) -> None:
        """Replay the records of a range."""
        is_control = columns.batches.is_control[columns.batch_index]
        is_inside = (columns.offset >= from_offset) & (columns.offset < until_offset)
        types = is_of_types(columns, tuple(self._messages), is_keyed=False)
        chosen = np.flatnonzero(types & ~is_control & is_inside)
        places = zip(*(each.tolist() for each in Places.of(columns, chosen)), strict=True)
        for value, place in zip(RecordBytes(columns, chosen).values, places, strict=True):
            frame = read_frame(value or b"")
            if frame is not None:
                self._replay(*self._decoded(value or b"", *frame, _Place(*place)))

    def _decoded(self, value: bytes, number: int, version: int, start: int, place: _Place) -> tuple[Any, int, _Place]:
        name = self._messages[number]
        if version not in wire.versions(name):
            text = f"offset {place.offset} of the metadata log has version {version} of {name}, which is not supported"
            raise OttlaSparkError(f"{text}; view=all shows the records without it")
        return wire.decoder(name, version)(value, start), version, place

    # --- what records do ----------------------------------------------------------------------------------------------

    def _replay(self, message: Any, version: int, place: _Place) -> None:
        if isinstance(message, log.BeginTransactionRecord):
            self._held_back = []
        elif isinstance(message, log.EndTransactionRecord | log.AbortTransactionRecord):
            held_back, self._held_back = self._held_back or [], None
            if isinstance(message, log.EndTransactionRecord):
                for each in held_back:
                    self._replay(*each)
        elif self._held_back is not None:
            self._held_back.append((message, version, place))
        else:
            self._effects[type(message)](self, message, version, place)

    def _put(self, message: Any, version: int, place: _Place) -> None:
        key = self._key(message)
        self._entries.pop(key, None)  # so that the order is that of the changes
        if not self._is_removal(message):
            self._entries[key] = _Entry(message, version, place)

    def _change(self, key: Any, place: _Place, change: Callable[[Any], dict[str, Any]]) -> None:
        """Replace some fields of what a key names, if it is there."""
        known = self._entries.pop(key, None)
        if known is not None:
            self._entries[key] = _Entry(
                msgspec.structs.replace(known.message, **change(known.message)), known.version, place
            )

    def _remove_named(self, message: Any, version: int, place: _Place) -> None:
        """Remove what the fields of another record name: they are called as in the records of the table."""
        self._entries.pop(self._key(message), None)

    # --- topics, partitions and settings

    def _name_topic(self, message: log.TopicRecord, version: int, place: _Place) -> None:
        self._topics[message.topic_id] = message.name

    def _change_partition(self, message: log.PartitionChangeRecord, version: int, place: _Place) -> None:
        self._change((message.topic_id, message.partition_id), place, lambda known: _partition_changes(known, message))

    def _remove_partitions(self, message: log.RemoveTopicRecord, version: int, place: _Place) -> None:
        number = 0  # partitions are counted without gaps
        while self._entries.pop((message.topic_id, number), None) is not None:
            number += 1

    def _clear_elr(self, message: log.ClearElrRecord, version: int, place: _Place) -> None:
        cleared = log.PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())
        for key, each in list(self._entries.items()):
            is_named = message.topic_name in ("", self._topics.get(each.message.topic_id))
            if is_named and (each.message.eligible_leader_replicas or each.message.last_known_elr):
                self._change(key, place, lambda known: _partition_changes(known, cleared))

    def _put_setting(self, message: log.ConfigRecord, version: int, place: _Place) -> None:
        self._put(message, version, place)
        if message.resource_type == _TOPIC:
            self._settings.setdefault(message.resource_name, set()).add(self._key(message))

    def _remove_settings(self, message: log.RemoveTopicRecord, version: int, place: _Place) -> None:
        for key in self._settings.pop(self._topics.pop(message.topic_id, ""), ()):
            self._entries.pop(key, None)

    # --- brokers

    def _change_broker(self, message: log.BrokerRegistrationChangeRecord, version: int, place: _Place) -> None:
        self._change(message.broker_id, place, lambda known: _broker_changes(known, message))

    def _fence_broker(self, message: Any, version: int, place: _Place) -> None:
        is_fenced = isinstance(message, log.FenceBrokerRecord)
        self._change(message.id, place, lambda known: {"fenced": is_fenced})


_EFFECTS: Final[dict[str, dict[type, Callable[[MetadataState, Any, int, _Place], None]]]] = {
    "AccessControlEntryRecord": {log.RemoveAccessControlEntryRecord: MetadataState._remove_named},
    "ConfigRecord": {
        log.ConfigRecord: MetadataState._put_setting,
        log.TopicRecord: MetadataState._name_topic,
        log.RemoveTopicRecord: MetadataState._remove_settings,
    },
    "DelegationTokenRecord": {log.RemoveDelegationTokenRecord: MetadataState._remove_named},
    "PartitionRecord": {
        log.TopicRecord: MetadataState._name_topic,
        log.PartitionChangeRecord: MetadataState._change_partition,
        log.RemoveTopicRecord: MetadataState._remove_partitions,
        log.ClearElrRecord: MetadataState._clear_elr,
    },
    "RegisterBrokerRecord": {
        log.UnregisterBrokerRecord: MetadataState._remove_named,
        log.BrokerRegistrationChangeRecord: MetadataState._change_broker,
        log.FenceBrokerRecord: MetadataState._fence_broker,
        log.UnfenceBrokerRecord: MetadataState._fence_broker,
    },
    "TopicRecord": {log.RemoveTopicRecord: MetadataState._remove_named},
    "UserScramCredentialRecord": {log.RemoveUserScramCredentialRecord: MetadataState._remove_named},
}
"""Table -> records besides its own that its rows depend on."""


def _partition_changes(known: log.PartitionRecord, change: log.PartitionChangeRecord) -> dict[str, Any]:
    """The fields of a partition that a change sets. An election raises the leader epoch."""
    names = ("isr", "replicas", "removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr")
    found = {name: getattr(change, name) for name in names if getattr(change, name) is not None}
    found["partition_epoch"] = known.partition_epoch + 1
    if change.leader != _NO_LEADER_CHANGE:
        found |= {"leader": change.leader, "leader_epoch": known.leader_epoch + 1}
    if change.leader_recovery_state != _NO_RECOVERY_CHANGE:
        found["leader_recovery_state"] = change.leader_recovery_state
    if change.directories is not None:
        found["directories"] = change.directories
    elif change.replicas is not None and known.directories:
        directories = dict(zip(known.replicas, known.directories, strict=False))
        found["directories"] = tuple(directories.get(replica, _MIGRATING) for replica in change.replicas)
    return found


def _broker_changes(known: log.RegisterBrokerRecord, change: log.BrokerRegistrationChangeRecord) -> dict[str, Any]:
    cordoned = change.cordoned_log_dirs
    return {
        "fenced": _FENCING.get(change.fenced, known.fenced),
        "in_controlled_shutdown": known.in_controlled_shutdown or change.in_controlled_shutdown == 1,
        "log_dirs": change.log_dirs or known.log_dirs,
        "cordoned_log_dirs": known.cordoned_log_dirs if cordoned is None else cordoned,
    }
