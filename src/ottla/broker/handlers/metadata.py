"""Metadata (3): brokers, topics, partitions and their leaders, with addresses for the request's listener.

Versions 0 to 13. An empty list of topics means all of them in version 0 and none from 1 on; null means all. From 12 on
topics can be named by id; then names are ignored. Missing topics are created before the response, if client and broker
allow it: Apache Kafka answers UNKNOWN_TOPIC_OR_PARTITION first and creates them in the meantime. If no controller is
found within a second, that is the answer here, too. Topics that were deleted within the last half second are not
created. The controller's id is that of a live broker: clients send admin requests there, and it forwards them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.broker.controller.channel import SEARCH_MS
from ottla.broker.coordinators import internal_topics
from ottla.broker.network.authorization import NOT_ASKED, cluster_operations, topic_operations
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import NO_LEADER, PartitionImage, TopicImage
from ottla.core.metadata.topic_names import INTERNAL_TOPICS, check_topic_name
from ottla.core.metadata.uuids import NO_ID
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.types.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseMetadataResponseBroker,
    MetadataResponseMetadataResponsePartition,
    MetadataResponseMetadataResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 3
VERSIONS: Final = (0, 13)

_Broker = MetadataResponseMetadataResponseBroker
_Partition = MetadataResponseMetadataResponsePartition
_Topic = MetadataResponseMetadataResponseTopic

_CLUSTER_OPERATIONS_IN: Final = range(8, 11)
_IDS_FROM: Final = 12
_LISTENER_NOT_FOUND_FROM: Final = 6
_CREATE_VERSION: Final = 7


def handle(node: Cluster, request: Request) -> Answer:
    body: MetadataRequest = request.body
    _check(request, body)
    if body.topics is None or (request.version == 0 and not body.topics):
        return _all(node, request)
    ids = [topic.topic_id for topic in body.topics if topic.topic_id != NO_ID]
    if ids:
        return _response(node, request, [_by_id(node, request, topic_id) for topic_id in dict.fromkeys(ids)])
    names = list(dict.fromkeys(topic.name or "" for topic in body.topics))
    missing = _creatable(node, request, names)
    if missing:
        return _create(node, request, names, missing)
    return _response(node, request, [_by_name(node, request, name) for name in names])


def refuse(request: Request, code: int, message: str | None) -> MetadataResponse:
    # A name may be null in requests from 10 on, in responses from 12 on.
    topics = tuple(_Topic(code, topic.name or "", topic.topic_id) for topic in request.body.topics or ())
    return MetadataResponse(topics=topics, error_code=code)


def _check(request: Request, body: MetadataRequest) -> None:
    if request.version >= _IDS_FROM:
        return
    for topic in body.topics or ():
        if topic.name is None or topic.topic_id != NO_ID:
            raise Reject(ErrorCode.INVALID_REQUEST, f"Version {request.version} supports only topic names.")


# --- topics -----------------------------------------------------------------------------------------------------------


def _all(node: Cluster, request: Request) -> Answer:
    visible = [topic for topic in node.image.topics_by_name.values() if _may_see(node, request, topic.name)]
    if request.body.include_topic_authorized_operations or request.charge is not None:
        return _response(node, request, [_described(node, request, topic) for topic in visible])
    return node.encoded_topics.answer(
        (request.version, request.connection.peer.listener),
        visible,
        lambda topic: _described(node, request, topic),
        lambda: _response(node, request, []),
    )


def _by_id(node: Cluster, request: Request, topic_id: bytes) -> _Topic:
    topic = node.image.topic_by_id(topic_id)
    if topic is None:
        return _Topic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    if not _may_see(node, request, topic.name):
        return _Topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id)
    return _described(node, request, topic)


def _by_name(node: Cluster, request: Request, name: str) -> _Topic:
    if not _may_see(node, request, name):
        return _Topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    topic = node.image.topic(name)
    if topic is not None:
        return _described(node, request, topic)
    if _creates(node, request) and not _may_create(node, request, name):
        return _Topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, is_internal=name in INTERNAL_TOPICS)
    operations = _topic_operations(node, request, name)
    return _Topic(missing_code(name), name, is_internal=name in INTERNAL_TOPICS, topic_authorized_operations=operations)


def missing_code(name: str) -> ErrorCode:
    """The error for a topic that does not exist."""
    try:
        check_topic_name(name)
    except Reject as reject:
        return reject.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _described(node: Cluster, request: Request, topic: TopicImage) -> _Topic:
    return _Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(node, request, topic.partitions[number]) for number in sorted(topic.partitions)),
        topic_authorized_operations=_topic_operations(node, request, topic.name),
    )


def _topic_operations(node: Cluster, request: Request, name: str) -> int:
    if not request.body.include_topic_authorized_operations:
        return NOT_ASKED
    return topic_operations(node, request, name)


def _partition(node: Cluster, request: Request, partition: PartitionImage) -> _Partition:
    listener = request.connection.peer.listener
    leader_id, code = leader_of(node, partition, listener)
    if code == ErrorCode.LISTENER_NOT_FOUND and request.version < _LISTENER_NOT_FOUND_FROM:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    return _Partition(
        error_code=code,
        partition_index=partition.partition_id,
        leader_id=leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline_replicas(node, partition, listener),
    )


def leader_of(node: Cluster, partition: PartitionImage, listener: str) -> tuple[int, ErrorCode]:
    """The leader, if it is alive and has a listener of that name; else -1 and the error."""
    leader = node.image.brokers.get(partition.leader)
    if leader is None or leader.fenced:
        return NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE
    if leader.endpoint(listener) is None:
        return NO_LEADER, ErrorCode.LISTENER_NOT_FOUND
    return partition.leader, ErrorCode.NONE


def offline_replicas(node: Cluster, partition: PartitionImage, listener: str) -> tuple[int, ...]:
    """Replicas whose broker is not alive, or whose directory has failed."""
    return tuple(
        broker_id
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=True)
        if (broker := node.image.brokers.get(broker_id)) is None
        or broker.fenced
        or broker.endpoint(listener) is None
        or not broker.has_online_dir(directory)
    )


def _may_see(node: Cluster, request: Request, name: str) -> bool:
    return node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name)


# --- creating missing ones --------------------------------------------------------------------------------------------


def _creatable(node: Cluster, request: Request, names: Iterable[str]) -> list[str]:
    """The missing topics that may be created."""
    if not _creates(node, request):
        return []
    return [
        name
        for name in names
        if node.image.topic(name) is None
        and name not in node.deleted_topics
        and missing_code(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        and _may_see(node, request, name)
        and _may_create(node, request, name)
    ]


def _creates(node: Cluster, request: Request) -> bool:
    """Whether missing topics are created."""
    return bool(request.body.allow_auto_topic_creation and node.settings["auto.create.topics.enable"])


def _may_create(node: Cluster, request: Request, name: str) -> bool:
    return node.authorize(request, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME) or node.authorize(
        request, Operation.CREATE, ResourceType.TOPIC, name
    )


def _create(node: Cluster, request: Request, names: list[str], missing: list[str]) -> DelayedResponse:
    """Create missing topics, then describe all. One that could not be created is still missing, so clients retry."""
    later = DelayedResponse()

    def created(reply: CreateTopicsResponse) -> None:
        later.complete(_response(node, request, [_by_name(node, request, name) for name in names]))

    kind = CreateTopicsRequest
    wanted = tuple(
        node.internal_topics.creatable(internal_topics.ALL[name])
        if name in internal_topics.ALL
        else kind.CreatableTopic(name, num_partitions=-1, replication_factor=-1)
        for name in missing
    )
    node.controller_channel.send(kind(topics=wanted), _CREATE_VERSION, created, client=request, search_ms=SEARCH_MS)
    return later


# --- the whole answer -------------------------------------------------------------------------------------------------


def _response(node: Cluster, request: Request, topics: list[_Topic]) -> MetadataResponse:
    brokers = living_brokers(node, request.connection.peer.listener)
    return MetadataResponse(
        brokers=tuple(_Broker(*broker) for broker in brokers),
        cluster_id=node.cluster_id,
        controller_id=_controller(node, [broker[0] for broker in brokers]),
        topics=tuple(topics),
        cluster_authorized_operations=_cluster_operations(node, request),
    )


def living_brokers(node: Cluster, listener: str) -> list[tuple[int, str, int, str | None]]:
    """Id, host, port and rack of the live brokers with a listener of that name."""
    found = []
    for broker in node.image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None and not broker.fenced:
            found.append((broker.broker_id, endpoint.host, endpoint.port, broker.rack))
    return found


def _controller(node: Cluster, broker_ids: list[int]) -> int:
    if node.node_id in broker_ids:
        return node.node_id
    return broker_ids[0] if broker_ids else -1


def _cluster_operations(node: Cluster, request: Request) -> int:
    if request.version not in _CLUSTER_OPERATIONS_IN or not request.body.include_cluster_authorized_operations:
        return NOT_ASKED
    return cluster_operations(node, request)
