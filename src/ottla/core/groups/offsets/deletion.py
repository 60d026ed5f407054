"""OffsetDelete, and the other ways in which offsets go at once: with their group, with their topic.

==========================================  =====================================  ====================================
condition of OffsetDelete                   error                                  stands for
==========================================  =====================================  ====================================
no group id                                 INVALID_GROUP_ID                       the request
no such group                               GROUP_ID_NOT_FOUND                     the request
the group keeps its offsets now             what `Group.check_offset_delete`       the request
                                            raises, NON_EMPTY_GROUP
no READ on the topic                        TOPIC_AUTHORIZATION_FAILED             the topic
no such topic or partition                  UNKNOWN_TOPIC_OR_PARTITION             the topic, the partition
somebody in the group reads the topic       GROUP_SUBSCRIBED_TO_TOPIC              the topic
==========================================  =====================================  ====================================

Deleting what is not there is no error, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.core.coordinator.contract import Context, Reply, Result, Topics, TopicsChange
from ottla.core.groups.offsets.records import NO_TOPIC_ID, offset_tombstone
from ottla.core.groups.offsets.store import OffsetStore
from ottla.core.groups.offsets.targets import Target, target_by_name
from ottla.core.groups.table import Group, GroupTable
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.types.offset_delete import OffsetDeleteRequestOffsetDeleteRequestTopic as _AskedTopic
from ottla.wire.types.offset_delete import OffsetDeleteResponseOffsetDeleteResponsePartition as _Partition
from ottla.wire.types.offset_delete import OffsetDeleteResponseOffsetDeleteResponseTopic as _Topic

__all__ = ["Deleting"]

_NONE: Final = ErrorCode.NONE


class Deleting:
    def __init__(self, table: GroupTable, store: OffsetStore) -> None:
        self._table = table
        self._store = store

    def offset_delete(self, request: OffsetDeleteRequest, context: Context) -> Result:
        try:
            group = self._group(request.group_id)
        except Reject as reject:
            return Result(replies=(Reply(context.token, OffsetDeleteResponse(error_code=reject.code)),))
        records: list[KeyedRecord] = []
        topics = tuple(self._delete(group, topic, records, context) for topic in request.topics)
        return Result(records, (Reply(context.token, OffsetDeleteResponse(topics=topics)),))

    def _group(self, group_id: str) -> Group:
        if not group_id:
            raise Reject(ErrorCode.INVALID_GROUP_ID)
        group = self._table.get(group_id)
        if group is None:
            raise Reject(ErrorCode.GROUP_ID_NOT_FOUND)
        group.check_offset_delete()
        return group

    def _delete(self, group: Group, topic: _AskedTopic, records: list[KeyedRecord], context: Context) -> _Topic:
        target = target_by_name(topic.name, Operation.READ, context)
        is_subscribed = target.error is _NONE and group.is_subscribed_to(topic.name)
        partitions = []
        for index in dict.fromkeys(each.partition_index for each in topic.partitions):
            code = _code(target, index, is_subscribed=is_subscribed)
            partitions.append(_Partition(index, code))
            if code is _NONE and self._store.holds(group.group_id, topic.name, index):
                records.append(offset_tombstone(group.group_id, topic.name, index))
        return _Topic(topic.name, tuple(partitions))

    def all_of_group(self, group_id: str) -> list[KeyedRecord]:
        """What removes all offsets of a group, those that transactions have not committed yet included."""
        return [offset_tombstone(group_id, *each) for each in self._store.partitions_of(group_id)]

    def of_topics(self, change: TopicsChange) -> Result:
        """Offsets of deleted topics mean nothing to topics that get their names later."""
        keys: dict[tuple[str, str, int], None] = {}
        for name, topic_id in change.deleted:
            keys.update(dict.fromkeys(self._of_topic(name, topic_id)))
        return Result([offset_tombstone(*key) for key in keys], is_atomic=False)

    def of_missing_topics(self, topics: Topics) -> Result:
        """A crash can come between the deletion of a topic and the tombstones of its offsets. Whoever loads a shard
        knows all topics that its offsets can be of: they were created before this node was made the leader."""
        is_there: dict[tuple[str, bytes], bool] = {}
        keys: dict[tuple[str, str, int], None] = {}
        for group_id, name, partition, topic_id in self._store.stored_ids():
            topic = (name, topic_id)
            if topic not in is_there:
                found = topics.by_name(name) if topic_id == NO_TOPIC_ID else topics.by_id(topic_id)
                is_there[topic] = found is not None
            if not is_there[topic]:
                keys[group_id, name, partition] = None
        return Result([offset_tombstone(*key) for key in keys], is_atomic=False)

    def _of_topic(self, name: str, topic_id: bytes) -> Iterable[tuple[str, str, int]]:
        """Offsets that were committed for another topic of this name stay."""
        for group_id, partition, stored_id in self._store.holders_of(name):
            if stored_id in (topic_id, NO_TOPIC_ID):
                yield group_id, name, partition


def _code(target: Target, index: int, *, is_subscribed: bool) -> ErrorCode:
    code = target.error_of(index)
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if code is _NONE and is_subscribed else code
