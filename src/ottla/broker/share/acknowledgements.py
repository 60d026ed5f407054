"""The acknowledgements of one request, and ShareAcknowledge.

Each partition has a result of its own: malformed batches, an unknown topic or a lost leader fail that partition alone.
`Acknowledgements` applies them all and calls `finished` when the last one has its result, usually once it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.broker.share.leader import ShareLeader
from ottla.broker.share.request_checks import check_request, find_source
from ottla.broker.share.responses import Leaders, by_topic
from ottla.core.share.partition.acknowledgement import check_batches
from ottla.core.share.partition.events import Acknowledgement
from ottla.core.share.sessions import Partition
from ottla.core.share.state.kept import Key
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

__all__ = ["AcknowledgeResult", "Acknowledgements", "acknowledge"]


class AcknowledgeResult(NamedTuple):
    """The result of the acknowledgements of a partition."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class Acknowledgements:
    def __init__(self, leader: ShareLeader, request: Request, finished: Callable[[], None]) -> None:
        self.results: dict[Partition, AcknowledgeResult] = {}
        self._leader = leader
        self._request = request
        self._finished = finished
        self._waiting = 0
        self._is_begun = False

    @property
    def is_finished(self) -> bool:
        return self._is_begun and not self._waiting

    def begin(self, asked: Iterable[tuple[Partition, Sequence[Any]]]) -> None:
        """Apply the batches of each partition; `finished` is called if some results come later than this returns."""
        for where, batches in asked:
            self._waiting += 1
            try:
                self._begin_one(where, batches)
            except Reject as reject:
                self._told(where, reject.code, reject.message)
        self._is_begun = True

    def _begin_one(self, where: Partition, batches: Sequence[Any]) -> None:
        leader, body = self._leader, self._request.body
        given = [Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types) for each in batches]
        check_batches(given, self._request.version, is_renew_ack=body.is_renew_ack)
        source = find_source(leader.edge, self._request, *where)
        if not given:
            self._told(where, ErrorCode.NONE, None)
            return
        led = leader.get(Key(body.group_id, *where))
        if led is None or led.source is not source:
            raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        led.acknowledge(body.member_id, given, partial(self._told, where))

    def _told(self, where: Partition, error: ErrorCode, message: str | None) -> None:
        if where not in self.results or error:
            self.results[where] = AcknowledgeResult(error, message)
        self._waiting -= 1
        if self.is_finished:
            self._finished()


# --- ShareAcknowledge -------------------------------------------------------------------------------------------------


def acknowledge(leader: ShareLeader, request: Request) -> Answer:
    """The response to a ShareAcknowledge; Reject if the whole request is refused."""
    check_request(leader.edge, request)
    body: ShareAcknowledgeRequest = request.body
    assert body.group_id is not None
    assert body.member_id is not None
    turn = leader.sessions.acknowledge(body.group_id, body.member_id, body.share_session_epoch)
    later = DelayedResponse()

    def finished() -> None:
        later.complete(_response(leader, request, acknowledgements))
        if turn.is_final:
            leader.close(turn.session)

    acknowledgements = Acknowledgements(leader, request, finished)
    acknowledgements.begin(
        ((topic.topic_id, each.partition_index), each.acknowledgement_batches)
        for topic in body.topics
        for each in topic.partitions
    )
    if acknowledgements.is_finished and not later.is_complete:
        finished()
    return later.message if later.is_complete else later


def _response(leader: ShareLeader, request: Request, acknowledgements: Acknowledgements) -> ShareAcknowledgeResponse:
    message = ShareAcknowledgeResponse
    leaders = Leaders(leader.edge, request)
    answered = []
    for where, (error, text) in acknowledgements.results.items():
        current = message.LeaderIdAndEpoch(*leaders.named(where, error))
        answered.append((where, message.PartitionData(where[1], error, text, current)))
    return message(
        acquisition_lock_timeout_ms=leader.settings(request.body.group_id).lock_duration_ms,
        responses=tuple(message.ShareAcknowledgeTopicResponse(*each) for each in by_topic(answered)),
        node_endpoints=tuple(message.NodeEndpoint(*each) for each in leaders.endpoints()),
    )
