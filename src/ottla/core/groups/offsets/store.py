"""The hard state of offsets: what is committed, and what transactions will commit.

Theory of operation. A record without a producer id is committed as it is replayed. A record of a transaction is
*pending* under its producer id until the transaction's marker comes: a commit moves it to the committed ones, unless a
later record has come in between; an abort drops it. The later record is the one with the larger offset in the log, and
not the one that became visible last: compaction keeps the record with the largest offset, so anything else would show
another value after it. A tombstone drops what is committed and what is pending.

=====================  =====================  ===============================================================
replayed               committed              pending
=====================  =====================  ===============================================================
record                 becomes it             stays
record of producer p   stays                  becomes it, under p
tombstone              goes                   goes, under every producer
commit of p            becomes it, if newer   goes, under p
abort of p             stays                  goes, under p
=====================  =====================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ottla.wire.types.group_classic import OffsetCommitValue

__all__ = ["NOTHING_STORED", "ByTopic", "OffsetStore", "StoredOffset"]


class StoredOffset(msgspec.Struct, frozen=True, gc=False):
    value: OffsetCommitValue
    record_offset: int
    """Where its record stands in the log."""

    def plain(self) -> tuple[Any, ...]:
        value = self.value
        times = (value.commit_timestamp, value.expire_timestamp)
        return value.offset, value.leader_epoch, value.metadata, *times, value.topic_id, self.record_offset


ByPartition = dict[int, StoredOffset]
ByTopic = dict[str, ByPartition]

NOTHING_STORED: Final[Mapping[Any, Any]] = MappingProxyType({})


class OffsetStore:
    def __init__(self) -> None:
        self._committed: dict[str, ByTopic] = {}
        self._pending: dict[int, dict[str, ByTopic]] = {}
        """By producer id."""
        self._writers: dict[str, dict[str, dict[int, set[int]]]] = {}
        """Group, topic, partition -> producer ids that have something pending there: `_pending` turned around."""

    # --- questions ----------------------------------------------------------------------------------------------------

    def committed(self, group_id: str) -> Mapping[str, Mapping[int, StoredOffset]]:
        """By topic and partition."""
        return self._committed.get(group_id, NOTHING_STORED)

    def unstable(self, group_id: str) -> Mapping[str, Mapping[int, set[int]]]:
        """The partitions for which something is pending, with the producers, by topic and partition."""
        return self._writers.get(group_id, NOTHING_STORED)

    def holds(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether something is committed or pending."""
        return partition in self.committed(group_id).get(topic, NOTHING_STORED) or partition in self.unstable(
            group_id
        ).get(topic, NOTHING_STORED)

    def partitions_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Each partition for which something is committed or pending, once."""
        committed = self.committed(group_id)
        for topic, by_partition in committed.items():
            yield from ((topic, partition) for partition in by_partition)
        for topic, writers in self.unstable(group_id).items():
            known = committed.get(topic, NOTHING_STORED)
            yield from ((topic, partition) for partition in writers if partition not in known)

    def stored_ids(self) -> Iterator[tuple[str, str, int, bytes]]:
        """Group, topic, partition and topic id of whatever is committed or pending; an entry for each."""
        for by_group in (self._committed, *self._pending.values()):
            for group_id, topic, partition, stored in _each(by_group):
                yield group_id, topic, partition, stored.value.topic_id

    def holders_of(self, topic: str) -> Iterator[tuple[str, int, bytes]]:
        """Group, partition and stored topic id of whatever is committed or pending for a topic; an entry for each."""
        for by_group in (self._committed, *self._pending.values()):
            for group_id, by_topic in by_group.items():
                for partition, stored in by_topic.get(topic, NOTHING_STORED).items():
                    yield group_id, partition, stored.value.topic_id

    # --- replay -------------------------------------------------------------------------------------------------------

    def put(self, group_id: str, topic: str, partition: int, stored: StoredOffset) -> None:
        _put(self._committed, group_id, topic, partition, stored)

    def put_pending(self, producer_id: int, group_id: str, topic: str, partition: int, stored: StoredOffset) -> None:
        _put(self._pending.setdefault(producer_id, {}), group_id, topic, partition, stored)
        by_partition = self._writers.setdefault(group_id, {}).setdefault(topic, {})
        by_partition.setdefault(partition, set()).add(producer_id)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        _take(self._committed, group_id, topic, partition)
        for producer_id in _take(self._writers, group_id, topic, partition) or ():
            _take(self._pending[producer_id], group_id, topic, partition)
            if not self._pending[producer_id]:
                del self._pending[producer_id]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for group_id, by_topic in self._pending.pop(producer_id, {}).items():
            for topic, by_partition in by_topic.items():
                for partition, stored in by_partition.items():
                    self._forget_writer(producer_id, group_id, topic, partition)
                    if committed and self._is_newest(group_id, topic, partition, stored):
                        self.put(group_id, topic, partition, stored)

    def _is_newest(self, group_id: str, topic: str, partition: int, stored: StoredOffset) -> bool:
        existing = self.committed(group_id).get(topic, NOTHING_STORED).get(partition)
        return existing is None or existing.record_offset < stored.record_offset

    def _forget_writer(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        writers = self._writers[group_id][topic][partition]
        writers.discard(producer_id)
        if not writers:
            _take(self._writers, group_id, topic, partition)

    # --- inspection ---------------------------------------------------------------------------------------------------

    def hard_state(self) -> dict[Any, Any]:
        state: dict[Any, Any] = {}
        for group_id, topic, partition, stored in _each(self._committed):
            state["committed", group_id, topic, partition] = stored.plain()
        for producer_id, by_group in self._pending.items():
            for group_id, topic, partition, stored in _each(by_group):
                state["pending", producer_id, group_id, topic, partition] = stored.plain()
        return state


def _put(by_group: dict[str, ByTopic], group_id: str, topic: str, partition: int, stored: StoredOffset) -> None:
    by_topic = by_group.get(group_id)
    if by_topic is None:
        by_topic = by_group[group_id] = {}
    by_partition = by_topic.get(topic)
    if by_partition is None:
        by_partition = by_topic[topic] = {}
    by_partition[partition] = stored


def _take(by_group: dict[str, dict[str, dict[int, Any]]], group_id: str, topic: str, partition: int) -> Any:  # noqa: ANN401
    """Remove an entry and the levels that it leaves empty; gives it, or None."""
    by_topic = by_group.get(group_id)
    by_partition = by_topic.get(topic) if by_topic is not None else None
    if by_topic is None or by_partition is None:
        return None
    taken = by_partition.pop(partition, None)
    if not by_partition:
        del by_topic[topic]
        if not by_topic:
            del by_group[group_id]
    return taken


def _each(by_group: dict[str, ByTopic]) -> Iterator[tuple[str, str, int, StoredOffset]]:
    for group_id, by_topic in by_group.items():
        for topic, by_partition in by_topic.items():
            for partition, stored in by_partition.items():
                yield group_id, topic, partition, stored
