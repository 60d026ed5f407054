"""OffsetFetch: where a group goes on reading.

Nothing stored is no error, nor is a group or a topic that does not exist: the offset is -1 then. An offset that was
committed for an older topic of the same name counts as nothing, if the request names topics by id.

==========================================  ===============================  ==========================================
condition                                   error                            stands for
==========================================  ===============================  ==========================================
the group does not tell this member         what `Group.check_fetch` raises  the group; before v2 each partition
topic id not known (v10)                    UNKNOWN_TOPIC_ID                 the topic
no DESCRIBE on the topic                    TOPIC_AUTHORIZATION_FAILED       the topic; left out if all were asked for
a transaction is open, stable ones wanted   UNSTABLE_OFFSET_COMMIT           the partition
==========================================  ===============================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.core.coordinator.contract import Context, Reply, Result
from ottla.core.groups.offsets.records import NO_TOPIC_ID
from ottla.core.groups.offsets.requests import FetchOffsets
from ottla.core.groups.offsets.store import NOTHING_STORED, OffsetStore, StoredOffset
from ottla.core.groups.table import GroupTable
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestGroup as _AskedGroup
from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestTopics as _AskedTopic
from ottla.wire.types.offset_fetch import OffsetFetchResponseOffsetFetchResponseGroup as _Group
from ottla.wire.types.offset_fetch import OffsetFetchResponseOffsetFetchResponsePartitions as _Partition
from ottla.wire.types.offset_fetch import OffsetFetchResponseOffsetFetchResponseTopics as _Topic

__all__ = ["Fetching", "group_error"]

_GROUP_ERRORS_FROM: Final = 2
_BY_ID_FROM: Final = 10
_UNSTABLE: Final = ErrorCode.UNSTABLE_OFFSET_COMMIT


def group_error(group: _AskedGroup, code: int, version: int) -> _Group:
    """The answer if nothing can be said about a group. Version 1 has no place for it but the partitions."""
    if version >= _GROUP_ERRORS_FROM:
        return _Group(group.group_id, error_code=code)
    return _Group(group.group_id, tuple(_refused(topic, code) for topic in group.topics or ()))


class Fetching:
    def __init__(self, table: GroupTable, store: OffsetStore) -> None:
        self._table = table
        self._store = store

    def fetch(self, request: FetchOffsets, context: Context) -> Result:
        return Result(replies=(Reply(context.token, self._answer(request, context)),))

    def _answer(self, request: FetchOffsets, context: Context) -> _Group:
        asked = request.group
        group = self._table.get(asked.group_id)
        if group is not None:
            try:
                group.check_fetch(asked.member_id, asked.member_epoch)
            except Reject as reject:
                return group_error(asked, reject.code, context.api_version)
        reading = _Reading(self._store, asked.group_id, context, request.require_stable)
        if asked.topics is None:
            return _Group(asked.group_id, tuple(reading.all_topics()))
        return _Group(asked.group_id, tuple(map(reading.topic, asked.topics)))


class _Reading:
    """One group's offsets as one client may see them."""

    def __init__(self, store: OffsetStore, group_id: str, context: Context, require_stable: bool) -> None:
        self._committed = store.committed(group_id)
        self._unstable = store.unstable(group_id) if require_stable else NOTHING_STORED
        self._context = context
        self._by_id = context.api_version >= _BY_ID_FROM

    def topic(self, asked: _AskedTopic) -> _Topic:
        name = asked.name
        if self._by_id:
            topic = self._context.world.topics.by_id(asked.topic_id)
            if topic is None:
                return _refused(asked, ErrorCode.UNKNOWN_TOPIC_ID)
            name = topic.name
        if not self._context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name):
            return _refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partitions = self._partitions(name, asked.topic_id, asked.partition_indexes)
        return _Topic(asked.name, asked.topic_id, tuple(partitions))

    def all_topics(self) -> Iterable[_Topic]:
        for name, by_partition in self._committed.items():
            if not self._context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name):
                continue
            topic_id = NO_TOPIC_ID
            if self._by_id:
                topic = self._context.world.topics.by_name(name)
                if topic is None:
                    continue  # there is no way to name it
                topic_id = topic.topic_id
            yield _Topic(name, topic_id, tuple(self._partitions(name, NO_TOPIC_ID, by_partition)))

    def _partitions(self, name: str, topic_id: bytes, indexes: Iterable[int]) -> Iterable[_Partition]:
        """For a topic id, or for any if there is none."""
        committed: Mapping[int, StoredOffset] = self._committed.get(name, NOTHING_STORED)
        unstable = self._unstable.get(name, NOTHING_STORED)
        for index in indexes:
            if index in unstable:
                yield _Partition(index, -1, -1, "", _UNSTABLE)
                continue
            stored = committed.get(index)
            if stored is None or _is_other(stored.value.topic_id, topic_id):
                yield _Partition(index, -1, -1, "")
            else:
                value = stored.value
                yield _Partition(index, value.offset, value.leader_epoch, value.metadata)


def _is_other(stored: bytes, asked: bytes) -> bool:
    """Whether two topic ids are known and differ."""
    return stored not in (asked, NO_TOPIC_ID) and asked != NO_TOPIC_ID


def _refused(topic: _AskedTopic, code: int) -> _Topic:
    return _Topic(
        topic.name, topic.topic_id, tuple(_Partition(index, -1, -1, "", code) for index in topic.partition_indexes)
    )
