"""Topics: create, delete, describe, and give them more partitions.

`create`, `delete` and `describe` raise the first error, after all topics were tried; their twins `try_create`,
`try_delete` and `try_describe` give an outcome for each topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla.client.client import Client, always
from ottla.client.errors import ClientError, ResponseError, UnsupportedVersionError, check
from ottla.client.metadata import Topic
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreatePartitionsResponse,
)
from ottla.wire.types.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    CreateTopicsResponse,
)
from ottla.wire.types.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    DeleteTopicsResponse,
)
from ottla.wire.types.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic,
)

__all__ = [
    "CreatedTopic",
    "NewTopic",
    "PartitionDescription",
    "TopicDescription",
    "add_partitions",
    "create",
    "delete",
    "describe",
    "try_create",
    "try_delete",
    "try_describe",
]

CLUSTER_DEFAULT: Final = -1
_DELETE_BY_STATE_VERSION: Final = 6

V = TypeVar("V")


class NewTopic(NamedTuple):
    name: str
    partitions: int = CLUSTER_DEFAULT
    replication_factor: int = CLUSTER_DEFAULT
    configs: Mapping[str, str] = {}
    assignments: Mapping[int, Sequence[int]] = {}
    """The brokers of each partition, the preferred leader first; then the two numbers stay as they are."""


class CreatedTopic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int
    """-1 where the broker does not say (before 2.4)."""
    replication_factor: int
    configs: Mapping[str, str | None]


class PartitionDescription(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    """Replicas that may become leaders although they are not in sync any more (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class TopicDescription(NamedTuple):
    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        return max((len(each.replicas) for each in self.partitions), default=0)


# --- create -----------------------------------------------------------------------------------------------------------


async def create(client: Client, *topics: NewTopic, validate_only: bool = False) -> list[CreatedTopic]:
    """Create topics. ResponseError for the first one that cannot be created."""
    return _all_well(await try_create(client, *topics, validate_only=validate_only))


async def try_create(
    client: Client, *topics: NewTopic, validate_only: bool = False
) -> dict[str, CreatedTopic | ResponseError]:
    """Create topics, or with `validate_only` see whether they could be created."""
    request = CreateTopicsRequest(
        topics=tuple(map(_creatable, topics)),
        timeout_ms=client.settings.request_timeout_ms,
        validate_only=validate_only,
    )
    answer = await client.ask("CreateTopics", always(request), broker="controller")
    outcomes: dict[str, CreatedTopic | ResponseError] = {}
    for each in answer.of(CreateTopicsResponse).topics:
        if each.error_code:
            outcomes[each.name] = ResponseError(
                answer.peer, "CreateTopics", each.error_code, f"topic {each.name}", each.error_message
            )
        else:
            configs = {config.name: config.value for config in each.configs or ()}
            outcomes[each.name] = CreatedTopic(
                each.name, each.topic_id, each.num_partitions, each.replication_factor, configs
            )
    return outcomes


def _creatable(topic: NewTopic) -> CreateTopicsRequestCreatableTopic:
    return CreateTopicsRequestCreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            CreateTopicsRequestCreatableReplicaAssignment(index, tuple(brokers))
            for index, brokers in topic.assignments.items()
        ),
        configs=tuple(CreateTopicsRequestCreatableTopicConfig(name, value) for name, value in topic.configs.items()),
    )


# --- delete -----------------------------------------------------------------------------------------------------------


async def delete(client: Client, *names: str) -> None:
    """Delete topics. ResponseError for the first one that cannot be deleted."""
    _all_well(await try_delete(client, *names))


async def try_delete(client: Client, *names: str) -> dict[str, ResponseError | None]:
    timeout_ms = client.settings.request_timeout_ms

    def build(version: int) -> DeleteTopicsRequest:
        if version < _DELETE_BY_STATE_VERSION:
            return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
        states = tuple(DeleteTopicsRequestDeleteTopicState(name) for name in names)
        return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)

    answer = await client.ask("DeleteTopics", build, broker="controller")
    outcomes: dict[str, ResponseError | None] = {}
    for each in answer.of(DeleteTopicsResponse).responses:
        name = each.name or ""
        client.metadata.forget(name)
        outcomes[name] = None
        if each.error_code:
            outcomes[name] = ResponseError(
                answer.peer, "DeleteTopics", each.error_code, f"topic {name}", each.error_message
            )
    return outcomes


# --- describe ---------------------------------------------------------------------------------------------------------


async def describe(client: Client, *names: str) -> list[TopicDescription]:
    """Describe topics, or all of them if none is named. ResponseError for one that does not exist."""
    return _all_well(await try_describe(client, *names))


async def try_describe(client: Client, *names: str) -> dict[str, TopicDescription | ResponseError]:
    try:
        return await _describe_by_pages(client, names)
    except UnsupportedVersionError:  # before 3.7
        return await _describe_by_metadata(client, names)


async def _describe_by_pages(client: Client, names: Iterable[str]) -> dict[str, TopicDescription | ResponseError]:
    """DescribeTopicPartitions answers with so many partitions at a time, and a topic may be cut between two pages."""
    wanted = tuple(DescribeTopicPartitionsRequestTopicRequest(name) for name in sorted(set(names)))
    outcomes: dict[str, TopicDescription | ResponseError] = {}
    cursor: DescribeTopicPartitionsRequestCursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(topics=wanted, cursor=cursor)
        answer = await client.ask("DescribeTopicPartitions", always(request))
        page = answer.of(DescribeTopicPartitionsResponse)
        for each in page.topics:
            name = each.name or ""
            error = ResponseError(answer.peer, "DescribeTopicPartitions", each.error_code, f"topic {name}")
            outcomes[name] = error if each.error_code else _continued(outcomes.get(name), each)
        following = page.next_cursor
        if following is None:
            return outcomes
        cursor = DescribeTopicPartitionsRequestCursor(following.topic_name, following.partition_index)


def _continued(
    known: TopicDescription | ResponseError | None,
    page: DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic,
) -> TopicDescription:
    before = known.partitions if isinstance(known, TopicDescription) else ()
    return TopicDescription(
        page.name or "", page.topic_id, page.is_internal, (*before, *map(_described, page.partitions))
    )


def _described(
    each: DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition,
) -> PartitionDescription:
    return PartitionDescription(
        each.partition_index,
        each.leader_id,
        each.leader_epoch,
        each.replica_nodes,
        each.isr_nodes,
        each.eligible_leader_replicas or (),
        each.last_known_elr or (),
        each.offline_replicas,
    )


async def _describe_by_metadata(client: Client, names: Sequence[str]) -> dict[str, TopicDescription | ResponseError]:
    if not names:
        return {name: _from_metadata(topic) for name, topic in (await client.all_topics()).items()}
    outcomes: dict[str, TopicDescription | ResponseError] = {}
    for name in names:
        client.metadata.expire(name)
        try:
            outcomes[name] = _from_metadata((await client.topics([name]))[name])
        except ResponseError as error:
            outcomes[name] = error
    return outcomes


def _from_metadata(topic: Topic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            each.partition,
            each.leader,
            each.leader_epoch,
            each.replicas,
            each.isr,
            offline_replicas=each.offline_replicas,
        )
        for _, each in sorted(topic.partitions.items())
    )
    return TopicDescription(topic.name, topic.topic_id, topic.is_internal, partitions)


# --- partitions -------------------------------------------------------------------------------------------------------


async def add_partitions(
    client: Client,
    name: str,
    count: int,
    *,
    assignments: Sequence[Sequence[int]] | None = None,
    validate_only: bool = False,
) -> None:
    """Raise the number of a topic's partitions to `count`; `assignments` names the brokers of each new one."""
    brokers = None if assignments is None else tuple(map(_assignment, assignments))
    request = CreatePartitionsRequest(
        topics=(CreatePartitionsRequestCreatePartitionsTopic(name, count, brokers),),
        timeout_ms=client.settings.request_timeout_ms,
        validate_only=validate_only,
    )
    answer = await client.ask("CreatePartitions", always(request), broker="controller")
    client.metadata.expire(name)
    for each in answer.of(CreatePartitionsResponse).results:
        check(answer.peer, "CreatePartitions", each.error_code, f"topic {name}", each.error_message)


def _assignment(brokers: Sequence[int]) -> CreatePartitionsRequestCreatePartitionsAssignment:
    return CreatePartitionsRequestCreatePartitionsAssignment(tuple(brokers))


def _all_well(outcomes: Mapping[str, V | ResponseError]) -> list[V]:
    well: list[V] = []
    for outcome in outcomes.values():
        if isinstance(outcome, ClientError):
            raise outcome
        well.append(outcome)
    return well


def is_unknown(error: ClientError) -> bool:
    """Whether an error says that there is no such topic."""
    return isinstance(error, ResponseError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
