"""Has the share coordinators make and delete state, as share groups ask; and drops what leaders held of it. Deletes
old records of `__share_group_state` when share coordinators ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from ottla.broker.coordinators.edge import Perform
from ottla.broker.coordinators.runtime import Runtime
from ottla.broker.share.share_node import ShareNode
from ottla.core.coordinator.contract import COMMITTED, Outcome
from ottla.core.share.group.effects import DeleteState, InitializeState, Refusal
from ottla.core.share.state import PruneLog
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from ottla.wire.types.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

__all__ = ["performers", "state_performers"]

Done = Callable[[Outcome], None]


def performers(share: Callable[[], ShareNode]) -> dict[type, Perform]:
    """What share groups ask for; `share` is called when they first do."""
    return {
        InitializeState: lambda effect, done: _initialize(share(), effect, done),
        DeleteState: lambda effect, done: _delete(share(), effect, done),
    }


def state_performers(share_state: Runtime) -> dict[type, Perform]:
    """What share coordinators ask for."""

    def prune(effect: PruneLog, done: Done) -> None:
        share_state.prune(effect.partition, effect.offset)
        done(COMMITTED)

    return {PruneLog: prune}


def _initialize(share: ShareNode, effect: InitializeState, done: Done) -> None:
    def answered(answer: InitializeShareGroupStateResponse) -> None:
        if effect.is_replacing:
            _drop(share, effect.group_id, (each.topic_id for each in effect.partitions))
        done(_outcome(answer))

    kind = InitializeShareGroupStateRequest
    topics = tuple(
        kind.InitializeStateData(
            topic_id,
            tuple(kind.PartitionData(each.partition, effect.state_epoch, each.start_offset) for each in partitions),
        )
        for topic_id, partitions in groupby(effect.partitions, key=lambda each: each.topic_id)
    )
    share.persister.ask(kind(effect.group_id, topics), answered)


def _delete(share: ShareNode, effect: DeleteState, done: Done) -> None:
    def answered(answer: DeleteShareGroupStateResponse) -> None:
        _drop(share, effect.group_id, (topic_id for topic_id, _ in effect.partitions))
        done(_outcome(answer))

    kind = DeleteShareGroupStateRequest
    topics = tuple(
        kind.DeleteStateData(topic_id, tuple(kind.PartitionData(partition) for _, partition in partitions))
        for topic_id, partitions in groupby(effect.partitions, key=lambda each: each[0])
    )
    share.persister.ask(kind(effect.group_id, topics), answered)


def _drop(share: ShareNode, group_id: str, topic_ids: Iterable[bytes]) -> None:
    """What leaders hold of share partitions whose state was changed is out of date. Some may have failed; they are
    loaded again as they are."""
    share.drop(group_id, frozenset(topic_ids))


def _outcome(answer: Any) -> Outcome:  # noqa: ANN401 - either of the two
    refusals = {
        (topic.topic_id, each.partition): Refusal(ErrorCode(each.error_code), each.error_message)
        for topic in answer.results
        for each in topic.partitions
        if each.error_code
    }
    if not refusals:
        return COMMITTED
    first = next(iter(refusals.values()))
    return Outcome(first.code, refusals, first.message)
