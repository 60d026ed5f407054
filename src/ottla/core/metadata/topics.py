"""CreateTopics and DeleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ottla.core.metadata import configs
from ottla.core.metadata.checks import charge, check_single, check_size, check_values
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT, TOPIC
from ottla.core.metadata.partitions import check_assignments, new_partition_records, new_partitions
from ottla.core.metadata.placement import draw_from, place
from ottla.core.metadata.topic_image import TopicImage
from ottla.core.metadata.topic_names import METADATA_TOPIC, check_topic_name, has_collision_chars
from ottla.core.metadata.uuids import NO_ID, draw
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import RemoveTopicRecord, TopicRecord
from ottla.wire.types.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicConfigs,
    CreateTopicsResponseCreatableTopicResult,
)
from ottla.wire.types.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
)

PARTITIONS_PER_REQUEST_MAX = 10_000
_DISABLED_FROM_VERSION = 3

_Wanted = CreateTopicsRequestCreatableTopic
_Created = CreateTopicsResponseCreatableTopicResult
_Deleted = DeleteTopicsResponseDeletableTopicResult
_Shown = CreateTopicsResponseCreatableTopicConfigs


# --- creation


def create_topics(state: ControllerState, request: CreateTopicsRequest, context: Context) -> Result:
    """CreateTopics: each topic is created or refused on its own; what is created is one batch."""
    _check_total(state, request.topics)
    counts = Counter(topic.name for topic in request.topics)
    records: list[Versioned] = []
    by_name = {topic.name: topic for topic in request.topics}
    shown = _ShownConfigs(state)
    results = tuple(_create(state, topic, counts[name], context, records, shown) for name, topic in by_name.items())
    reply = CreateTopicsResponse(topics=results)
    return Result(() if request.validate_only else tuple(records), reply)


def _check_total(state: ControllerState, topics: Iterable[_Wanted]) -> None:
    total = sum(len(topic.assignments) or _partition_count(state, topic) for topic in topics)
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise Reject(
            ErrorCode.POLICY_VIOLATION,
            f"{total} partitions are more than the {PARTITIONS_PER_REQUEST_MAX} that one request may create.",
        )


def _partition_count(state: ControllerState, topic: _Wanted) -> int:
    return state.settings.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _create(
    state: ControllerState,
    topic: _Wanted,
    count: int,
    context: Context,
    records: list[Versioned],
    shown: _ShownConfigs,
) -> _Created:
    try:
        check_single(count)
        _check_creatable(state, topic, context)
        config_records = _config_records(state, topic)
        replicas = _replicas(state, topic, context)
        charge(context, len(replicas))
        topic_id = draw(context.new_uuid, state.image.topics_by_id.keys())
        new = [
            Versioned(TopicRecord(topic.name, topic_id), 0),
            *config_records,
            *new_partition_records(state, topic_id, new_partitions(state, replicas, 0)),
        ]
        check_size(len(records) + len(new))
    except Reject as reject:
        return _Created(topic.name, error_code=reject.code, error_message=reject.message)
    records += new
    return _created(topic, topic_id, replicas, context, shown)


def _check_creatable(state: ControllerState, topic: _Wanted, context: Context) -> None:
    if topic.name == METADATA_TOPIC:
        raise Reject(ErrorCode.INVALID_REQUEST, f"{METADATA_TOPIC} is the cluster's own.")
    if not _may(context, Operation.CREATE, topic.name):
        raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic.name in state.image.topics_by_name:
        raise Reject(ErrorCode.TOPIC_ALREADY_EXISTS, f"There is a topic '{topic.name}' already.")
    check_topic_name(topic.name)
    colliding = state.image.collisions(topic.name) if has_collision_chars(topic.name) else frozenset()
    if colliding:
        raise Reject(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic.name}' collides with topic '{min(colliding)}': metrics write dots as underscores.",
        )


def _config_records(state: ControllerState, topic: _Wanted) -> list[Versioned]:
    check_values(((config.name, config.value) for config in topic.configs), ErrorCode.INVALID_CONFIG)
    values = {config.name: config.value for config in topic.configs}
    return configs.change_records(state, TOPIC, topic.name, values, is_new=True) if values else []


def _replicas(state: ControllerState, topic: _Wanted, context: Context) -> list[list[int]]:
    if topic.assignments:
        return _assigned(state, topic)
    if topic.replication_factor == 0 or topic.replication_factor < -1:
        raise Reject(
            ErrorCode.INVALID_REPLICATION_FACTOR, "There must be at least one replica; -1 stands for the default."
        )
    if topic.num_partitions == 0 or topic.num_partitions < -1:
        raise Reject(ErrorCode.INVALID_PARTITIONS, "There must be at least one partition; -1 stands for the default.")
    factor = topic.replication_factor
    factor = state.settings.default_replication_factor if factor == -1 else factor
    brokers = state.image.brokers.values()
    return place(brokers, _partition_count(state, topic), factor, draw_from(context.new_uuid))


def _assigned(state: ControllerState, topic: _Wanted) -> list[list[int]]:
    if topic.replication_factor != -1 or topic.num_partitions != -1:
        raise Reject(
            ErrorCode.INVALID_REQUEST,
            "With an assignment, the number of partitions and the replication factor must both be -1.",
        )
    by_number = {assignment.partition_index: list(assignment.broker_ids) for assignment in topic.assignments}
    if len(by_number) != len(topic.assignments):
        raise Reject(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned twice.")
    check_assignments(state, [list(assignment.broker_ids) for assignment in topic.assignments], None)
    if set(by_number) != set(range(len(by_number))):
        raise Reject(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 on, without a gap.")
    return [by_number[number] for number in range(len(by_number))]


class _ShownConfigs:
    """The settings that a new topic has, as the answer tells them. Topics of one request mostly have the same."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._known: dict[frozenset[tuple[str, str]], tuple[_Shown, ...]] = {}

    def of(self, topic: _Wanted) -> tuple[_Shown, ...]:
        own = {config.name: config.value or "" for config in topic.configs}
        key = frozenset(own.items())
        if key not in self._known:
            self._known[key] = self._look_up(own)
        return self._known[key]

    def _look_up(self, own: dict[str, str]) -> tuple[_Shown, ...]:
        state, image = self._state, self._state.image
        effective = state.rules.topic_configs(
            own, image.configs(BROKER, str(state.settings.node_id)), image.configs(BROKER, CLUSTER_DEFAULT)
        )
        return tuple(
            _Shown(
                each.name, None if each.is_sensitive else each.value, each.is_read_only, each.source, each.is_sensitive
            )
            for each in sorted(effective, key=lambda each: each.name)
        )


def _created(
    topic: _Wanted, topic_id: bytes, replicas: list[list[int]], context: Context, shown: _ShownConfigs
) -> _Created:
    if not context.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        hidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return _Created(topic.name, topic_id, error_message=None, topic_config_error_code=hidden)
    return _Created(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=shown.of(topic),
    )


def _may(context: Context, operation: Operation, topic_name: str) -> bool:
    """Whether the principal may do it to all topics, or to this one."""
    return context.authorize(operation, ResourceType.CLUSTER, CLUSTER_NAME) or context.authorize(
        operation, ResourceType.TOPIC, topic_name
    )


# --- deletion

_Asked = tuple[str | None, bytes]
"""A topic as a request names it: by name, or by id with None for a name."""


def delete_topics(state: ControllerState, request: DeleteTopicsRequest, context: Context) -> Result:
    """DeleteTopics: by name or by id, each on its own."""
    if not state.settings.delete_topic_enable:
        if context.api_version < _DISABLED_FROM_VERSION:
            raise Reject(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled: delete.topic.enable=false.")
        raise Reject(ErrorCode.TOPIC_DELETION_DISABLED)
    counts = Counter(asked_topics(request))
    times_found = Counter(topic.topic_id for asked in counts if (topic := _find(state, asked)) is not None)
    records: list[Versioned] = []
    results = []
    for asked, count in counts.items():
        try:
            topic = _deletable(state, asked, count, context)
            check_single(times_found[topic.topic_id])  # by its name and by its id
            charge(context, len(topic.partitions))
            check_size(len(records) + 1)
        except Reject as reject:
            name, topic_id = asked
            if reject.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                name = _shown_name(state, asked, context)
            results.append(_Deleted(name, topic_id, reject.code, reject.message))
        else:
            records.append(Versioned(RemoveTopicRecord(topic.topic_id), 0))
            results.append(_Deleted(topic.name, topic.topic_id))
    return Result(tuple(records), DeleteTopicsResponse(responses=tuple(results)))


def asked_topics(request: DeleteTopicsRequest) -> list[_Asked]:
    """The topics a request names; up to version 5 only names can be given."""
    names: list[_Asked] = [(name, NO_ID) for name in request.topic_names]
    return names + [(topic.name, topic.topic_id) for topic in request.topics]


def _find(state: ControllerState, asked: _Asked) -> TopicImage | None:
    name, topic_id = asked
    return state.image.topic_by_id(topic_id) if name is None else state.image.topic(name)


def _shown_name(state: ControllerState, asked: _Asked, context: Context) -> str | None:
    """The name of a topic that somebody may not delete: as asked for, or that of its id for those who may see it."""
    name, topic_id = asked
    topic = state.image.topic_by_id(topic_id)
    if name is None and topic is not None and context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return topic.name
    return name


def _deletable(state: ControllerState, asked: _Asked, count: int, context: Context) -> TopicImage:
    """The topic, if the request names it rightly and the principal may delete it."""
    name, topic_id = asked
    if name is None and topic_id == NO_ID:
        raise Reject(ErrorCode.INVALID_REQUEST, "Neither a name nor an id is given.")
    if name is not None and topic_id != NO_ID:
        raise Reject(ErrorCode.INVALID_REQUEST, "Both a name and an id are given.")
    check_single(count)
    topic = _find(state, asked)
    if topic is None and name is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_ID)
    known_name = topic.name if topic is not None else name or ""
    if not _may(context, Operation.DELETE, known_name):
        # Whether it exists is nobody's business who may not even see it.
        is_visible = context.authorize(Operation.DESCRIBE, ResourceType.TOPIC, known_name)
        if topic is not None or not is_visible:
            raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic
