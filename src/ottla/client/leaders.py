"""Asking many partitions at once: each leader gets one request about all of its partitions.

What fails for a reason that another attempt can cure is asked again, of whoever leads by then, until the deadline. The
outcome is given for each partition by itself, since some may go well and others not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from ottla.client.backoff import Deadline
from ottla.client.client import Answer, Client
from ottla.client.errors import BackingOffError, ClientError, ProtocolError, RequestTimeoutError, ResponseError
from ottla.client.metadata import TopicPartition
from ottla.client.retry import Routing, retry_action

__all__ = ["LeaderCall", "Outcomes", "Reply", "by_leader", "by_topic", "raise_first"]

V = TypeVar("V")
Outcomes = dict[TopicPartition, V | ClientError]


class Reply(NamedTuple, Generic[V]):
    """What an answer says about one partition."""

    at: TopicPartition
    error_code: int
    error_message: str | None
    value: V


class LeaderCall(NamedTuple, Generic[V]):
    """A kind of request to leaders: how to make one for some partitions in a version, and how to read the answer."""

    api: str
    build: Callable[[list[TopicPartition], int], object]
    read: Callable[[Answer], Iterable[Reply[V]]]
    more_retriable: frozenset[int] = frozenset()
    max_version: int | None = None

    async def ask(self, client: Client, partitions: Iterable[TopicPartition], deadline: Deadline) -> Outcomes[V]:
        """A value or an error for each partition."""
        outcomes: Outcomes[V] = {}
        pending = list(dict.fromkeys(partitions))
        backoff = client.backoff()
        while True:
            leaders, errors = await by_leader(client, pending, deadline)
            rounds = await client.together(self._ask_one(client, *each, deadline) for each in leaders.items())
            attempted: list[Outcomes[V]] = [dict(errors), *rounds]
            for found in attempted:
                outcomes.update({at: _telling(outcomes.get(at), outcome) for at, outcome in found.items()})
            pending = [at for at in pending if self._is_curable(outcomes[at])]
            if not pending or not await backoff.pause(deadline):
                return outcomes

    async def _ask_one(
        self, client: Client, node_id: int, partitions: list[TopicPartition], deadline: Deadline
    ) -> Outcomes[V]:
        def build(version: int) -> object:
            return self.build(partitions, version)

        timeout_ms = max(1, deadline.left_ms)
        try:
            answer = await client.ask(
                self.api, build, broker=node_id, retry=False, timeout_ms=timeout_ms, max_version=self.max_version
            )
        except ClientError as error:
            if error.retriable:
                _distrust(client, partitions)
            return dict.fromkeys(partitions, error)
        replies: dict[TopicPartition, Reply[V]] = {reply.at: reply for reply in self.read(answer)}
        outcomes = {at: self._outcome(answer, at, replies.get(at)) for at in partitions}
        # An answer may have named the new leader; only where it did not, the cluster has to be asked.
        _distrust(client, [at for at in partitions if self._is_curable(outcomes[at]) and _leads(client, at, node_id)])
        return outcomes

    def _outcome(self, answer: Answer, at: TopicPartition, reply: Reply[V] | None) -> V | ClientError:
        if reply is None:
            return ProtocolError(answer.peer, f"{self.api}Response v{answer.version} does not contain {at}")
        if reply.error_code:
            return ResponseError(answer.peer, self.api, reply.error_code, str(at), reply.error_message)
        return reply.value

    def _is_curable(self, outcome: V | ClientError) -> bool:
        if isinstance(outcome, ResponseError):
            if outcome.api != self.api:
                return False  # the search for the leader has waited already
            return outcome.code in self.more_retriable or retry_action(outcome.code, Routing.LEADER) is not None
        if isinstance(outcome, BackingOffError):
            return False
        return isinstance(outcome, ClientError) and outcome.retriable


def _telling(before: V | ClientError | None, now: V | ClientError) -> V | ClientError:
    """What to report of two attempts: when the last had no time left, the failure before it says more."""
    if isinstance(before, ClientError) and isinstance(now, RequestTimeoutError):
        return before
    return now


async def by_leader(
    client: Client, partitions: Iterable[TopicPartition], deadline: Deadline
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, ClientError]]:
    """The partitions by the node that leads them, and why that is not known of the others."""
    leaders: dict[int, list[TopicPartition]] = {}
    errors: dict[TopicPartition, ClientError] = {}
    for at in partitions:
        try:
            leaders.setdefault((await client.leader(at, deadline)).leader, []).append(at)
        except ClientError as error:
            errors[at] = error
    return leaders, errors


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """The partitions by topic, as most requests list them."""
    topics: dict[str, list[TopicPartition]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at)
    return topics


def raise_first(outcomes: Outcomes[V]) -> dict[TopicPartition, V]:
    """The values, if all went well; else the first error."""
    values: dict[TopicPartition, V] = {}
    for at, outcome in outcomes.items():
        if isinstance(outcome, ClientError):
            raise outcome
        values[at] = outcome
    return values


def _leads(client: Client, at: TopicPartition, node_id: int) -> bool:
    known = client.metadata.partition(at)
    return known is None or known.leader == node_id


def _distrust(client: Client, partitions: Iterable[TopicPartition]) -> None:
    for at in partitions:
        client.metadata.expire(at.topic)
