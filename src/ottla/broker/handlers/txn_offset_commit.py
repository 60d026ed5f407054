"""TxnOffsetCommit (28): commit offsets of a group as part of a transaction.

Versions 0 to 6: from 2 on an offset has the leader epoch of the record before it, from 3 on members send their id and
generation, up to 4 the group must have been added to the transaction (AddOffsetsToTxn), from 5 on this request adds it,
from 6 on topics are named by id. The offsets are visible once the transaction is committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.broker.transactions.verification import verify_offsets
from ottla.core.coordinator.contract import Context
from ottla.core.coordinator.partitioner import partition_for
from ottla.core.groups.offsets.requests import TransactionalCommit
from ottla.core.groups.offsets.targets import Target, target_by_id, target_by_name
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 28
VERSIONS: Final = (0, 6)

_LOADING_KNOWN_FROM: Final = 2
"""Clients of older versions may fail on COORDINATOR_LOAD_IN_PROGRESS."""

_IDS_FROM: Final = 6

_Topic = TxnOffsetCommitResponseTxnOffsetCommitResponseTopic
_Partition = TxnOffsetCommitResponseTxnOffsetCommitResponsePartition
_Asked = TxnOffsetCommitRequestTxnOffsetCommitRequestTopic
_Targets = Sequence[tuple[_Asked, Target | None]]


def handle(node: Transactions, request: Request) -> Answer:
    code = _judge(node, request)
    if code:
        return refuse(request, code, None)
    targets = _targets(node, request)
    if all(target.error_of(each.partition_index) for topic, target in targets for each in topic.partitions):
        return _answer(request, targets, ErrorCode.NONE)
    later = DelayedResponse()

    def verify(code: ErrorCode) -> None:
        if code:
            later.complete(_answer(request, targets, code))
        else:
            _verify(node, request, targets, later)

    node.groups.ensure_topic(verify)
    return later


def _targets(node: Transactions, request: Request) -> list[tuple[_Asked, Target]]:
    """What each topic's partitions are refused with, whatever the coordinators say."""
    context = Context(0, 0, node.groups.world, authorize=node.authorizer_of(request))
    if request.version >= _IDS_FROM:
        return [(each, target_by_id(each.topic_id, Operation.READ, context)) for each in request.body.topics]
    return [(each, target_by_name(each.name, Operation.READ, context)) for each in request.body.topics]


def _judge(node: Transactions, request: Request) -> ErrorCode:
    body: TxnOffsetCommitRequest = request.body
    if not node.authorize(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, body.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not node.authorize(request, Operation.READ, ResourceType.GROUP, body.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if body.group_id else ErrorCode.INVALID_GROUP_ID


def _verify(node: Transactions, request: Request, targets: _Targets, later: DelayedResponse) -> None:
    """Ask the transaction's coordinator first, then the group's: its marker in between makes the append fail.

    Where the group has no coordinator here, the transaction's is not asked.
    """
    body: TxnOffsetCommitRequest = request.body
    guard = node.groups.verification_guard(body.group_id, body.producer_id)

    def verified(code: ErrorCode) -> None:
        if code:
            later.complete(_answer(request, targets, code))
            return
        commit = TransactionalCommit(body, guard)
        node.groups.ask(request, body.group_id, commit, later.complete, refuse=partial(refuse, request))

    partition = partition_for(body.group_id, node.groups.partition_count)
    if partition in node.groups.shards:
        verify_offsets(node, body, request.version, partition, verified)
    else:
        verified(ErrorCode.NONE)


def refuse(request: Request, code: int, message: str | None) -> TxnOffsetCommitResponse:
    return _answer(request, [(topic, None) for topic in request.body.topics], code)


def _answer(request: Request, targets: _Targets, code: int) -> TxnOffsetCommitResponse:
    """One error for all partitions but those that have another one of their own."""
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and request.version < _LOADING_KNOWN_FROM:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return TxnOffsetCommitResponse(
        topics=tuple(
            _Topic(
                topic.name,
                topic.topic_id,
                tuple(
                    _Partition(each.partition_index, (target and target.error_of(each.partition_index)) or code)
                    for each in topic.partitions
                ),
            )
            for topic, target in targets
        )
    )
