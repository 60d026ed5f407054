"""Requests about the state of share partitions, taken apart and put together again.

All five have one form: a group, topics by id, and their partitions; the answer has a result for each partition. So
whoever passes them on need not know which of them it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from ottla.core.share.state.kept import Key
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from ottla.wire.types.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from ottla.wire.types.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from ottla.wire.types.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.types.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

__all__ = ["Form", "answer_of", "coordinator_key", "form_of", "keys_of", "merged", "part_of", "refusal", "results_of"]

StateRequest = Any
"""One of the five."""


class Form(NamedTuple):
    """The classes of a request's answer."""

    response: Any
    topic_result: Any
    partition_result: Any


def _form(response: Any) -> Form:  # noqa: ANN401
    results = {name.removesuffix("Result"): each for name, each in vars(response).items() if name.endswith("Result")}
    partition_result = results.pop("Partition")
    (topic_result,) = results.values()
    return Form(response, topic_result, partition_result)


_FORMS: Final[dict[type, Form]] = {
    InitializeShareGroupStateRequest: _form(InitializeShareGroupStateResponse),
    ReadShareGroupStateRequest: _form(ReadShareGroupStateResponse),
    WriteShareGroupStateRequest: _form(WriteShareGroupStateResponse),
    DeleteShareGroupStateRequest: _form(DeleteShareGroupStateResponse),
    ReadShareGroupStateSummaryRequest: _form(ReadShareGroupStateSummaryResponse),
}


def form_of(body: StateRequest) -> Form:
    return _FORMS[type(body)]


@lru_cache(maxsize=16_384)
def coordinator_key(key: Key) -> str:
    """What the coordinator of a share partition is found by."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


def keys_of(body: StateRequest) -> list[Key]:
    """The share partitions that a request names; none, if it names no group."""
    if not body.group_id:
        return []
    return [Key(body.group_id, topic.topic_id, each.partition) for topic in body.topics for each in topic.partitions]


def part_of(body: StateRequest, keys: Collection[Key]) -> StateRequest:
    """The same request about some of its share partitions only."""
    topics = []
    for topic in body.topics:
        wanted = [each for each in topic.partitions if Key(body.group_id, topic.topic_id, each.partition) in keys]
        if wanted:
            topics.append(msgspec.structs.replace(topic, partitions=tuple(wanted)))
    return msgspec.structs.replace(body, topics=tuple(topics))


def merged(bodies: Sequence[StateRequest]) -> StateRequest:
    """One request in place of several of a kind, about different share partitions of one group."""
    first, *others = bodies
    if not others:
        return first
    topics: dict[bytes, Any] = {}
    for topic in (topic for body in bodies for topic in body.topics):
        known = topics.get(topic.topic_id)
        partitions = topic.partitions if known is None else (*known.partitions, *topic.partitions)
        topics[topic.topic_id] = msgspec.structs.replace(topic, partitions=partitions)
    return msgspec.structs.replace(first, topics=tuple(topics.values()))


def results_of(group_id: str, response: Any) -> dict[Key, Any]:  # noqa: ANN401
    """What an answer says of each share partition."""
    return {
        Key(group_id, topic.topic_id, each.partition): each for topic in response.results for each in topic.partitions
    }


def answer_of(body: StateRequest, results: Mapping[Key, Any]) -> Any:  # noqa: ANN401
    """The answer to a request, in its order."""
    form = form_of(body)
    return form.response(
        results=tuple(
            form.topic_result(
                topic_id=topic.topic_id,
                partitions=tuple(
                    results[Key(body.group_id, topic.topic_id, each.partition)] for each in topic.partitions
                ),
            )
            for topic in (body.topics if body.group_id else ())
        )
    )


def refusal(body: StateRequest, code: int, message: str | None) -> Any:  # noqa: ANN401
    """The answer that has one error for every share partition."""
    result = form_of(body).partition_result
    text = message or ErrorCode(code).meaning
    return answer_of(
        body, {key: result(partition=key.partition, error_code=code, error_message=text) for key in keys_of(body)}
    )
