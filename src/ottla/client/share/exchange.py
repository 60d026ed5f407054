"""What a share consumer says to leaders, and what it makes of their answers.

===============================  =======================================================================================
an answer                        what it does
===============================  =======================================================================================
no answer at all, or nobody      the session is over; the acknowledgements failed, for nobody knows whether they arrived
waits for it any more
no connection                    the same; what waits to be acknowledged fails as well, for others get these records
SHARE_SESSION_NOT_FOUND,         the session is over; the acknowledgements failed
INVALID_SHARE_SESSION_EPOCH,
SHARE_SESSION_LIMIT_REACHED
another error for all of it      the acknowledgements failed; told to the user, unless another attempt can cure it
an error for fetching            the new leader is learned, or the cluster is asked for it; what cannot be cured is told
a coordinator that is away       the acknowledgements stay, and go with the next request: the records are still locked
another error for                the acknowledgements failed
acknowledging
no session can be opened now     what waits to be acknowledged stays, and goes with the next request
a partition that is left out     its acknowledgements failed, as with Java's consumer
===============================  =======================================================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ottla.client.backoff import Backoff, Deadline
from ottla.client.client import Answer, Client
from ottla.client.clock import monotonic_s
from ottla.client.errors import (
    ClientError,
    ClosedError,
    ConnectError,
    ConnectionLostError,
    ResponseError,
    UnknownBrokerError,
    UnsupportedVersionError,
)
from ottla.client.metadata import TopicPartition
from ottla.client.share.acknowledgements import AcknowledgementBatch, PendingAcknowledgements
from ottla.client.share.records import AcknowledgeType, Acquired, AcquiredRange, settle
from ottla.client.share.session import NOTHING, Limits, Sent, ShareSession, TopicIdPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.types.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from ottla.wire.types.share_fetch import ShareFetchRequest, ShareFetchResponse, ShareFetchResponsePartitionData

__all__ = ["Exchange", "Fetched", "Outcomes"]

Outcomes = dict[TopicIdPartition, tuple[tuple[AcknowledgementBatch, ...], ClientError | None]]
"""What was acknowledged for each partition, and why it failed, if it did."""

SESSION_ENDED: Final = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
CURABLE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors of fetching that pass."""
STILL_LOCKED: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of acknowledging after which the same can be said again."""
NO_CONNECTION: Final = (ConnectError, ConnectionLostError, UnknownBrokerError)
"""Errors that say that there is none to the leader."""
NEWER_VERSION: Final = 2
"""Of ShareFetch and ShareAcknowledge, with acquire modes and renewal."""
CLOSE_TIMEOUT_MS: Final = 5_000


class Fetched(NamedTuple):
    """What a fetch has brought."""

    acquired: list[Acquired]
    error: ClientError | None = None
    """What is wrong with one of the partitions and cannot be cured. Others may have brought records all the same, which
    this member holds now."""
    is_well: bool = True
    """Whether the next attempt need not wait."""


class Exchange:
    """Talks to leaders for one consumer. `on_outcomes` hears what became of acknowledgements."""

    def __init__(self, client: Client, lane: str, on_outcomes: Callable[[Outcomes], None]) -> None:
        self._client = client
        self._lane = lane
        self._on_outcomes = on_outcomes
        self._names: dict[bytes, str] = {}
        self._backoffs: dict[int, Backoff] = {}

    # --- who leads ----------------------------------------------------------------------------------------------------

    def named(self, tp: TopicIdPartition) -> TopicPartition | None:
        name = self._names.get(tp.topic_id) or self._client.metadata.name_of(tp.topic_id)
        if name is None:
            return None
        self._names[tp.topic_id] = name
        return TopicPartition(name, tp.partition)

    async def leaders(
        self, assignment: Iterable[TopicIdPartition], subscribed: Iterable[str], deadline: Deadline
    ) -> dict[int, list[TopicIdPartition]]:
        """The partitions by the node that leads them; those whose leader is not known now are left out."""
        found: dict[int, list[TopicIdPartition]] = {}
        places = sorted(assignment)
        if any(self.named(tp) is None for tp in places):
            for name in subscribed:
                self._client.metadata.expire(name)
                await self._learn(name, deadline)
        metadata = self._client.metadata
        for name in dict.fromkeys(at.topic for tp in places if (at := self.named(tp)) is not None):
            await self._learn(name, deadline)
        for tp in places:
            at = self.named(tp)
            topic = metadata.topics.get(at.topic) if at is not None else None
            if at is None or topic is None or topic.topic_id != tp.topic_id:
                continue
            partition = topic.partitions.get(tp.partition)
            if partition is None or partition.leader not in metadata.brokers:
                metadata.expire(at.topic)
            else:
                found.setdefault(partition.leader, []).append(tp)
        return found

    async def _learn(self, name: str, deadline: Deadline) -> None:
        try:
            await self._client.topics([name], deadline)
        except ClientError as error:
            if not error.retriable:
                raise

    # --- fetching -----------------------------------------------------------------------------------------------------

    async def fetch(self, session: ShareSession, places: list[TopicIdPartition], limits: Limits) -> Fetched:
        """One request: what changed, what is acknowledged, and what comes back.

        ClientError for a request that cannot be cured. After what may pass it waits for a moment, so that the next
        attempt comes later.
        """
        async with session.turn:
            fetched = await self._fetch(session, places, limits)
        backoff = self._backoffs.setdefault(session.node_id, self._client.backoff())
        if fetched.is_well:
            backoff.attempts = 0
        elif fetched.error is None:
            await asyncio.sleep(backoff.next_ms() / 1000)
        return fetched

    async def _fetch(
        self,
        session: ShareSession,
        places: list[TopicIdPartition],
        limits: Limits,
        deadline: Deadline | None = None,
    ) -> Fetched:
        sent = session.take_acknowledgements()
        request = session.fetch_request(places, limits, sent)
        try:
            answer = await self._ask(
                "ShareFetch", request, session, sent, needs_newer=bool(limits.acquire_mode), deadline=deadline
            )
        except ClientError as error:
            self._lost(session, sent, error)
            self._distrust(places)
            if error.retriable:
                return Fetched([], is_well=False)
            raise
        body = answer.of(ShareFetchResponse)
        if body.error_code:
            self._refused(
                session, sent, ResponseError(answer.peer, "ShareFetch", body.error_code, message=body.error_message)
            )
            self._distrust(places)
            return Fetched([], is_well=False)
        session.answered()
        self._take_outcomes(answer, session, sent, _acknowledged(body))
        return self._taken(answer, session, body)

    def _taken(self, answer: Answer, session: ShareSession, body: ShareFetchResponse) -> Fetched:
        acquired: list[Acquired] = []
        error: ClientError | None = None
        is_well = True
        for tp, data in _partitions(body):
            at = self.named(tp)
            if at is None:
                continue
            if data.error_code:
                is_well = False
                error = self._take_error(answer, at, data, body) or error
            if data.acquired_records:
                acquired += self._acquired(session, at, tp, data, body.acquisition_lock_timeout_ms)
        return Fetched(acquired, error, is_well)

    def _acquired(
        self,
        session: ShareSession,
        at: TopicPartition,
        tp: TopicIdPartition,
        data: ShareFetchResponsePartitionData,
        lock_timeout_ms: int,
    ) -> Iterator[Acquired]:
        """The records of a partition; what is acquired and no record is acknowledged at once."""
        stored = data.records or b""
        ranges = [AcquiredRange(*each[:3]) for each in map(_range, data.acquired_records)]
        settled = settle(ranges, stored)
        acknowledgements = session.acknowledgements(tp)
        for kind, found in (
            (AcknowledgeType.GAP, settled.gaps),
            (AcknowledgeType.REJECT, settled.damaged),
            (AcknowledgeType.RELEASE, settled.unknown),
        ):
            for first, last, _ in found:
                acknowledgements.add_range(first, last, kind)
        if settled.records:
            yield Acquired(at, tp.topic_id, session.node_id, settled.records, stored, lock_timeout_ms, monotonic_s())

    def _take_error(
        self, answer: Answer, at: TopicPartition, data: ShareFetchResponsePartitionData, body: ShareFetchResponse
    ) -> ClientError | None:
        """Do what may cure the error of a partition; gives it back if nothing can."""
        if data.error_code not in CURABLE:
            return ResponseError(answer.peer, "ShareFetch", data.error_code, str(at), data.error_message)
        leader = data.current_leader
        metadata = self._client.metadata
        if not metadata.learn_leader(at, leader.leader_id, leader.leader_epoch, body.node_endpoints):
            metadata.expire(at.topic)
        return None

    # --- acknowledging ------------------------------------------------------------------------------------------------

    async def acknowledge(self, session: ShareSession, deadline: Deadline) -> Outcomes:
        """Send all that is to be acknowledged, again and again while that may help. What becomes of it otherwise, since
        another request of the session has failed, `on_outcomes` hears."""
        backoff = self._client.backoff()
        outcomes: Outcomes = {}
        while True:
            async with session.turn:
                if session.has_acknowledgements and not session.is_open:
                    await self._fetch(session, [], NOTHING, deadline)  # which opens one
                if session.has_acknowledgements and session.is_open:
                    outcomes |= await self._acknowledge(session, session.take_acknowledgements(), deadline)
            if not session.has_acknowledgements or not await backoff.pause(deadline):
                return outcomes if session.is_open else self._unsent(session) | outcomes

    def _unsent(self, session: ShareSession) -> Outcomes:
        """What still waits, and goes with the next request that can be sent."""
        waiting = session.take_waiting()
        session.take_back(waiting)
        return {tp: (batches, _no_session(session)) for tp, batches in waiting.items()}

    async def renew(
        self, session: ShareSession, ranges: Mapping[TopicIdPartition, Iterable[tuple[int, int]]], deadline: Deadline
    ) -> None:
        """Start the locks of ranges of offsets anew; the first error is raised."""
        async with session.turn:
            await self._open(session, deadline)
            if not session.is_open:
                raise _no_session(session)
            sent = {tp: _renewing(each) for tp, each in ranges.items()}
            outcomes = await self._acknowledge(session, sent, deadline, is_renewal=True)
        for _, error in outcomes.values():
            if error is not None:
                raise error

    async def close(self, session: ShareSession) -> None:
        """End a session; what its leader does not hear, it finds out when the connection closes."""
        deadline = Deadline(CLOSE_TIMEOUT_MS)
        async with session.turn:
            with suppress(ClientError):  # what became of the acknowledgements was told
                if session.has_acknowledgements and not session.is_open:
                    await self._fetch(session, [], NOTHING, deadline)
                if session.is_open:
                    sent = session.take_acknowledgements()
                    await self._acknowledged(session, sent, session.closing_request(sent), deadline)
            session.end()
            self._failed(session.take_waiting(), ClosedError("the consumer was closed before its leader took them"))

    async def _open(self, session: ShareSession, deadline: Deadline) -> None:
        """Renewals need a session, and only a fetch opens one."""
        backoff = self._client.backoff()
        while True:
            if not session.is_open:
                await self._fetch(session, [], NOTHING, deadline)
            if session.is_open or not await backoff.pause(deadline):
                return

    async def _acknowledge(
        self, session: ShareSession, sent: Sent, deadline: Deadline, *, is_renewal: bool = False
    ) -> Outcomes:
        request = session.acknowledge_request(sent, is_renewal=is_renewal)
        return await self._acknowledged(session, sent, request, deadline)

    async def _acknowledged(
        self, session: ShareSession, sent: Sent, request: ShareAcknowledgeRequest, deadline: Deadline
    ) -> Outcomes:
        is_renewal = request.is_renew_ack
        try:
            answer = await self._ask(
                "ShareAcknowledge", request, session, sent, needs_newer=is_renewal, deadline=deadline
            )
        except UnsupportedVersionError:
            raise  # nothing was sent
        except ClientError as error:
            return self._lost(session, sent, error)
        body = answer.of(ShareAcknowledgeResponse)
        if body.error_code:
            refusal = ResponseError(answer.peer, "ShareAcknowledge", body.error_code, message=body.error_message)
            return self._refused(session, sent, refusal)
        session.answered()
        said = {
            TopicIdPartition(topic.topic_id, each.partition_index): (each.error_code, each.error_message)
            for topic in body.responses
            for each in topic.partitions
        }
        return self._take_outcomes(answer, session, sent, said, is_renewal=is_renewal)

    def _take_outcomes(
        self,
        answer: Answer,
        session: ShareSession,
        sent: Sent,
        said: Mapping[TopicIdPartition, tuple[int, str | None]],
        *,
        is_renewal: bool = False,
    ) -> Outcomes:
        outcomes: Outcomes = {}
        for tp, batches in sent.items():
            code, message = said.get(tp, (ErrorCode.INVALID_RECORD_STATE, "it is missing in the leader's response"))
            error = ResponseError(answer.peer, "ShareAcknowledge", code, self._text(tp), message) if code else None
            outcomes[tp] = (batches, error)
            if code in STILL_LOCKED and not is_renewal:
                session.take_back({tp: batches})
        if outcomes and not is_renewal:
            # What is said again is no news yet.
            self._on_outcomes({tp: each for tp, each in outcomes.items() if not _is_still_locked(each[1])})
        return outcomes

    # --- failures -----------------------------------------------------------------------------------------------------

    def _refused(self, session: ShareSession, sent: Sent, error: ResponseError) -> Outcomes:
        """An error for the whole request; raised if nothing else can be done about it."""
        if error.code in SESSION_ENDED:
            session.end()
        else:
            session.answered()
        outcomes = self._failed(sent, error)
        if error.code not in SESSION_ENDED | CURABLE:
            raise error
        return outcomes

    def _lost(self, session: ShareSession, sent: Sent, error: ClientError) -> Outcomes:
        """No answer: the session is over. So are the locks, if there is no connection."""
        session.end()
        waiting = session.take_waiting() if isinstance(error, NO_CONNECTION) else {}
        return self._failed({tp: sent.get(tp, ()) + waiting.get(tp, ()) for tp in sent | waiting}, error)

    def _failed(self, sent: Sent, error: ClientError) -> Outcomes:
        outcomes: Outcomes = {tp: (batches, error) for tp, batches in sent.items()}
        if outcomes:
            self._on_outcomes(outcomes)
        return outcomes

    def _distrust(self, places: Iterable[TopicIdPartition]) -> None:
        for tp in places:
            if (at := self.named(tp)) is not None:
                self._client.metadata.expire(at.topic)

    def _text(self, tp: TopicIdPartition) -> str:
        return str(self.named(tp) or tp.partition)

    # --- sending ------------------------------------------------------------------------------------------------------

    async def _ask(
        self,
        api: str,
        request: ShareFetchRequest | ShareAcknowledgeRequest,
        session: ShareSession,
        sent: Sent,
        *,
        needs_newer: bool,
        deadline: Deadline | None = None,
    ) -> Answer:
        def build(version: int) -> object:
            if needs_newer and version < NEWER_VERSION:
                what = "renewed locks" if api == "ShareAcknowledge" else 'acquire_mode="record_limit"'
                raise UnsupportedVersionError(None, f"{api} v{NEWER_VERSION}", f"it has v{version}, without {what}")
            return request

        timeout_ms = None if deadline is None else max(1, deadline.left_ms)
        try:
            return await self._client.ask(
                api, build, broker=session.node_id, lane=self._lane, retry=False, timeout_ms=timeout_ms
            )
        except asyncio.CancelledError:
            # The leader may count a request whose answer nobody waits for any more.
            self._lost(session, sent, ClientError(f"{api} was cancelled before its response came"))
            raise


def _partitions(body: ShareFetchResponse) -> Iterator[tuple[TopicIdPartition, ShareFetchResponsePartitionData]]:
    for topic in body.responses:
        for data in topic.partitions:
            yield TopicIdPartition(topic.topic_id, data.partition_index), data


def _acknowledged(body: ShareFetchResponse) -> dict[TopicIdPartition, tuple[int, str | None]]:
    return {tp: (data.acknowledge_error_code, data.acknowledge_error_message) for tp, data in _partitions(body)}


def _range(each: Any) -> tuple[int, int, int]:  # noqa: ANN401
    return each.first_offset, each.last_offset, each.delivery_count


def _renewing(ranges: Iterable[tuple[int, int]]) -> tuple[AcknowledgementBatch, ...]:
    acknowledgements = PendingAcknowledgements()
    for first, last in ranges:
        acknowledgements.add_range(first, last, AcknowledgeType.RENEW)
    return acknowledgements.take()


def _no_session(session: ShareSession) -> ClosedError:
    return ClosedError(f"there is no share session with broker {session.node_id}")


def _is_still_locked(error: ClientError | None) -> bool:
    return isinstance(error, ResponseError) and error.code in STILL_LOCKED
