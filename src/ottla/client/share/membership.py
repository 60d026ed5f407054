"""Being a member of a share group: heartbeats to its coordinator, which say what is assigned.

==========================  ========================================================================================
an answer                   what it does
==========================  ========================================================================================
a coordinator that moved,   asked again by the client itself, after a look for the coordinator
loads or is away
UNKNOWN_MEMBER_ID,          the assignment is dropped, and the member joins anew under the same id
FENCED_MEMBER_EPOCH
TOPIC_AUTHORIZATION_FAILED  told to the user once; the member stays
any other error             told to the user; the member is no longer one
==========================  ========================================================================================

A group that is new needs a moment before its first assignment, and Apache Kafka tells of it only in the next heartbeat.
So until there is one, heartbeats come after 100 ms, 200 ms and so on up to a second, instead of the group's interval,
by default five seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Iterable
from typing import Final

from ottla.client.client import Answer, Client, always
from ottla.client.errors import ClientError, ResponseError
from ottla.client.share.session import TopicIdPartition
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

__all__ = ["Membership"]

_log: Final = logging.getLogger("ottla.client.share")
JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
FIRST_INTERVAL_MS: Final = 100
EMPTY_INTERVAL_MS: Final = 1_000
"""The longest time between heartbeats without an assignment."""
REJOINING: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
LEAVE_TIMEOUT_MS: Final = 5_000


class Membership:
    """`assignment` changes whenever the coordinator says so; `on_news` is called then, and when something fails."""

    def __init__(
        self, client: Client, group_id: str, topics: Iterable[str], rack_id: str | None, on_news: Callable[[], None]
    ) -> None:
        self.member_id = uuid_text(uuid.uuid4().bytes)
        self.assignment: frozenset[TopicIdPartition] = frozenset()
        self.topics = tuple(dict.fromkeys(topics))
        self._client = client
        self._group_id = group_id
        self._rack_id = rack_id
        self._on_news = on_news
        self._epoch = JOINING_EPOCH
        self._is_join_unanswered = False
        """Whether it may be a member already, though nobody has told it so."""
        self._told_topics: tuple[str, ...] | None = None
        self._looked_for: tuple[str, ...] | None = None
        """The topics that were looked for because nothing was assigned."""
        self._failure: ClientError | None = None
        self._empty_interval_ms = FIRST_INTERVAL_MS
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._stay())

    def subscribe(self, topics: Iterable[str]) -> None:
        self.topics = tuple(dict.fromkeys(topics))
        self._hurry.set()

    def raise_failure(self) -> None:
        """Tell the user what went wrong. What ends the membership is told every time."""
        has_ended = self._task is not None and self._task.done()
        failure = self._failure
        if failure is not None:
            if not has_ended:
                self._failure = None
            raise failure
        if self._task is not None and has_ended:
            self._task.result()  # a bug of ours

    async def leave(self) -> None:
        """Stop, and tell the coordinator; if it cannot be reached, it will notice by itself."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._epoch == JOINING_EPOCH and not self._is_join_unanswered:
            return
        request = ShareGroupHeartbeatRequest(self._group_id, self.member_id, LEAVING_EPOCH, subscribed_topic_names=())
        with contextlib.suppress(ClientError):
            await self._ask(request, timeout_ms=LEAVE_TIMEOUT_MS)

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    async def _stay(self) -> None:
        backoff = self._client.backoff()
        while True:
            try:
                interval_ms = await self._heartbeat()
                backoff.attempts = 0
            except ClientError as error:
                if not self._is_passing(error):
                    self._failure = error
                    self._change(frozenset())
                    return
                interval_ms = backoff.next_ms()
            await self._pause(interval_ms)

    async def _pause(self, interval_ms: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(interval_ms / 1000):
                await self._hurry.wait()
        self._hurry.clear()  # and not before: there may be news since the last heartbeat was sent

    async def _heartbeat(self) -> float:
        """One heartbeat; gives the time until the next."""
        is_joining = self._epoch == JOINING_EPOCH
        topics = self.topics
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            rack_id=self._rack_id if is_joining else None,
            subscribed_topic_names=topics if is_joining or topics != self._told_topics else None,
        )
        self._is_join_unanswered = is_joining
        answer = await self._ask(request)
        self._is_join_unanswered = False
        body = answer.of(ShareGroupHeartbeatResponse)
        if body.error_code:
            about = f"group {self._group_id}"
            raise ResponseError(answer.peer, "ShareGroupHeartbeat", body.error_code, about, body.error_message)
        self._told_topics = topics
        self._epoch = body.member_epoch
        if body.assignment is not None:
            assigned = body.assignment.topic_partitions
            self._change(
                frozenset(TopicIdPartition(each.topic_id, index) for each in assigned for index in each.partitions)
            )
        if self.assignment:
            self._empty_interval_ms = FIRST_INTERVAL_MS
            return body.heartbeat_interval_ms
        interval_ms = self._empty_interval_ms
        if interval_ms == EMPTY_INTERVAL_MS and self._looked_for != topics:
            self._looked_for = topics
            await self._warn_of_missing(topics)
        self._empty_interval_ms = min(2 * interval_ms, EMPTY_INTERVAL_MS)
        return min(body.heartbeat_interval_ms, interval_ms)

    async def _warn_of_missing(self, topics: tuple[str, ...]) -> None:
        """Nothing is assigned for a while; the user may wait for topics that do not exist."""
        missing: list[str] = []
        with contextlib.suppress(ClientError):  # the member stays, whatever becomes of this
            missing = await self._client.unknown_topics(topics)
        if missing:
            names, verb = ", ".join(missing), "does" if len(missing) == 1 else "do"
            _log.warning("share group %s waits for %s, which %s not exist", self._group_id, names, verb)

    async def _ask(self, request: ShareGroupHeartbeatRequest, timeout_ms: int | None = None) -> Answer:
        return await self._client.ask(
            "ShareGroupHeartbeat", always(request), coordinator=("group", self._group_id), timeout_ms=timeout_ms
        )

    def _is_passing(self, error: ClientError) -> bool:
        """Whether the member goes on after an error."""
        if not isinstance(error, ResponseError) or error.api != "ShareGroupHeartbeat":
            return error.retriable
        if error.code in REJOINING:
            self._epoch = JOINING_EPOCH
            self._change(frozenset())
            return True
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._failure = error
            self._on_news()
            return True
        return error.retriable

    def _change(self, assignment: frozenset[TopicIdPartition]) -> None:
        self.assignment = assignment
        self._on_news()
