"""OffsetCommit and TxnOffsetCommit: decide which offsets of a request are stored.

What may go wrong, and for what the answer stands (v is the version of OffsetCommit / of TxnOffsetCommit):

=============================================  ====================================  ===================================
condition                                      error                                 stands for
=============================================  ====================================  ===================================
topic id not known (v10 / v6)                  UNKNOWN_TOPIC_ID                      the topic
no READ on the topic                           TOPIC_AUTHORIZATION_FAILED            the topic
no such topic or partition                     UNKNOWN_TOPIC_OR_PARTITION            the topic, the partition
TxnOffsetCommit without a group id             INVALID_GROUP_ID                      all that are left
no such group, generation given                GROUP_ID_NOT_FOUND, before v9 / v6    all that are left
                                               ILLEGAL_GENERATION
the group does not take it from this member    what `Group.check_commit` raises      all that are left
the member may not commit one partition        what `CommitCheck` raises             all that are left
metadata too long                              OFFSET_METADATA_TOO_LARGE             the partition
=============================================  ====================================  ===================================

A group that does not exist accepts offsets of anybody who gives no generation: it comes into being with them, as an
empty classic group. If nothing is left of a request, the group is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import Context, Producer, Reply, Result
from ottla.core.groups.offsets.records import NO_EXPIRY, NO_TOPIC_ID, offset_record
from ottla.core.groups.offsets.requests import TransactionalCommit
from ottla.core.groups.offsets.targets import Target, target_by_id, target_by_name
from ottla.core.groups.table import Claim, CommitCheck, GroupTable
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_classic import OffsetCommitValue
from ottla.wire.types.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

__all__ = ["Committing"]

_COMMIT_BY_ID_FROM: Final = 10
_COMMIT_GROUP_ERRORS_FROM: Final = 9
_TXN_BY_ID_FROM: Final = 6
_TXN_V2_FROM: Final = 5
"""From here on each transaction has an epoch of its own (KIP-890)."""
_V2: Final = 2
_TXN_GROUP_ERRORS_FROM: Final = 6
"""From here on clients know GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH; before, both are ILLEGAL_GENERATION."""
_DEFAULT_RETENTION: Final = -1
_NEVER_MS: Final = 2**63 - 1
"""The last time that a record can tell. In Java a longer retention begins again at the smallest number, and is over."""
_NONE: Final = ErrorCode.NONE

_Targets = Sequence[tuple[Any, Target]]
"""Topics as the request has them, with what was found out about them."""


class _Terms(NamedTuple):
    """What holds for all offsets of a request."""

    metadata_max_length: int
    commit_at_ms: int
    expire_at_ms: int
    keeps_topic_id: bool
    """Whether records tell the topic's id. Those of version 1, which expire, have no place for it; and for those of a
    transaction Apache Kafka does not look it up."""


class Committing:
    def __init__(self, table: GroupTable) -> None:
        self._table = table

    def offset_commit(self, request: OffsetCommitRequest, context: Context) -> Result:
        targets = _targets(request.topics, context, by_id=context.api_version >= _COMMIT_BY_ID_FROM)
        expires = request.retention_time_ms != _DEFAULT_RETENTION
        expire_at_ms = min(context.wall_ms + request.retention_time_ms, _NEVER_MS) if expires else NO_EXPIRY
        terms = _terms(context, expire_at_ms, keeps_topic_id=not expires)
        records, refusal = self._decide(request, targets, terms, context)
        topics = _answer(OffsetCommitResponse, targets, refusal, terms)
        return Result(records, (Reply(context.token, OffsetCommitResponse(topics=topics)),))

    def txn_offset_commit(self, commit: TransactionalCommit, context: Context) -> Result:
        request, by_id = commit.request, context.api_version >= _TXN_BY_ID_FROM
        targets = _targets(request.topics, context, by_id=by_id)
        terms = _terms(context, NO_EXPIRY, keeps_topic_id=by_id)
        records, refusal = self._decide(request, targets, terms, context)
        transaction_version = _V2 if context.api_version >= _TXN_V2_FROM else 0
        topics = _answer(TxnOffsetCommitResponse, targets, refusal, terms)
        return Result(
            records,
            (Reply(context.token, TxnOffsetCommitResponse(topics=topics)),),
            producer=Producer(request.producer_id, request.producer_epoch, commit.guard, transaction_version),
        )

    def _decide(
        self,
        request: OffsetCommitRequest | TxnOffsetCommitRequest,
        targets: _Targets,
        terms: _Terms,
        context: Context,
    ) -> tuple[list[KeyedRecord], ErrorCode]:
        """The records, or why there are none."""
        if not _is_anything_left(targets):
            return [], _NONE
        try:
            check = self._check(request, context)
            return _records(request.group_id, targets, check, terms), _NONE
        except Reject as reject:
            return [], _code(reject, request, context)

    def _check(self, request: OffsetCommitRequest | TxnOffsetCommitRequest, context: Context) -> CommitCheck | None:
        is_transactional = isinstance(request, TxnOffsetCommitRequest)
        if is_transactional and not request.group_id:
            raise Reject(ErrorCode.INVALID_GROUP_ID)
        group = self._table.get(request.group_id)
        generation = request.generation_id_or_member_epoch
        if group is None:
            if generation >= 0:
                raise Reject(ErrorCode.GROUP_ID_NOT_FOUND)
            return None
        claim = Claim(request.member_id, generation, request.group_instance_id, is_transactional)
        return group.check_commit(claim, context)


def _terms(context: Context, expire_at_ms: int, *, keeps_topic_id: bool) -> _Terms:
    return _Terms(context.world.settings["offset.metadata.max.bytes"], context.wall_ms, expire_at_ms, keeps_topic_id)


def _targets(topics: Sequence[Any], context: Context, *, by_id: bool) -> _Targets:
    if by_id:
        return [(topic, target_by_id(topic.topic_id, Operation.READ, context)) for topic in topics]
    return [(topic, target_by_name(topic.name, Operation.READ, context)) for topic in topics]


def _is_anything_left(targets: _Targets) -> bool:
    for topic, target in targets:
        if target.error is _NONE:
            for partition in topic.partitions:
                if 0 <= partition.partition_index < target.partition_count:
                    return True
    return False


def _records(group_id: str, targets: _Targets, check: CommitCheck | None, terms: _Terms) -> list[KeyedRecord]:
    limit, now_ms, expire_at_ms, keeps_topic_id = terms
    records = []
    for topic, target in targets:
        if target.error is not _NONE:
            continue
        name = target.name
        topic_id = target.topic_id if keeps_topic_id else NO_TOPIC_ID
        for partition in topic.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            if not 0 <= index < target.partition_count or is_too_long(metadata, limit):
                continue
            if check is not None:
                check(name, target.topic_id, index)
            value = OffsetCommitValue(
                partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, expire_at_ms, topic_id
            )
            records.append(offset_record(group_id, name, index, value))
    return records


def is_too_long(metadata: str, limit: int) -> bool:
    """Kafka counts UTF-16 units, whatever the name of the setting says."""
    length = len(metadata)
    if 2 * length <= limit:
        return False
    return length > limit or len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * limit


def _code(reject: Reject, request: OffsetCommitRequest | TxnOffsetCommitRequest, context: Context) -> ErrorCode:
    """What a client of this version understands."""
    if isinstance(request, TxnOffsetCommitRequest):
        if context.api_version >= _TXN_GROUP_ERRORS_FROM:
            return reject.code
        is_newer = reject.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH)
    else:
        is_newer = reject.code is ErrorCode.GROUP_ID_NOT_FOUND and context.api_version < _COMMIT_GROUP_ERRORS_FROM
    return ErrorCode.ILLEGAL_GENERATION if is_newer else reject.code


def _answer(kind: Any, targets: _Targets, refusal: ErrorCode, terms: _Terms) -> tuple[Any, ...]:  # noqa: ANN401
    """The topics of a response of either kind: their classes have the same fields."""
    topic_class, partition_class = _CLASSES[kind]
    topics = []
    for topic, target in targets:
        partitions = []
        for partition in topic.partitions:
            code = target.error_of(partition.partition_index) or refusal
            if not code and is_too_long(partition.committed_metadata or "", terms.metadata_max_length):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            partitions.append(partition_class(partition.partition_index, code))
        topics.append(topic_class(topic.name, topic.topic_id, tuple(partitions)))
    return tuple(topics)


_CLASSES: Final[dict[Any, tuple[Any, Any]]] = {
    OffsetCommitResponse: (
        OffsetCommitResponse.OffsetCommitResponseTopic,
        OffsetCommitResponse.OffsetCommitResponsePartition,
    ),
    TxnOffsetCommitResponse: (
        TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic,
        TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition,
    ),
}
