"""Finds the partition that a request names, and its leader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ottla.broker.network.authorization import Access
from ottla.broker.network.request import Request
from ottla.broker.replicas.replicas import Replica, Replicas
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.uuids import NO_ID
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode

NO_EPOCH = -1


class Leader(NamedTuple):
    """The leader of a partition, as this node knows it."""

    leader_id: int = -1
    leader_epoch: int = -1


class Endpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


class _Topics(Access, Protocol):
    """What there is, and who may have to do with it."""

    @property
    def image(self) -> MetadataImage: ...


def topic_name(image: MetadataImage, name: str, topic_id: bytes, *, by_id: bool) -> str:
    """The name of a topic that was given by name or by id; Reject if there is none."""
    topic = image.topic_by_id(topic_id) if by_id and topic_id != NO_ID else None
    if by_id:
        if topic is None:
            raise Reject(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic.name
    if image.topic(name) is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return name


def check_access(node: Access, request: Request, operation: Operation, topic: str) -> None:
    if not node.authorize(request, operation, ResourceType.TOPIC, topic):
        raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def permitted_topic(
    node: _Topics, request: Request, operation: Operation, name: str, topic_id: bytes | None = None
) -> str:
    """The name of a topic, given by name or by id, to which the client may do something; Reject if there is none.

    Who has no right to a name is not told whether there is a topic of that name. An unknown id everybody is told of.
    """
    if topic_id is not None:
        name = topic_name(node.image, "", topic_id, by_id=True)
        check_access(node, request, operation, name)
        return name
    check_access(node, request, operation, name)
    return topic_name(node.image, name, NO_ID, by_id=False)


def led_replica(replicas: Replicas, topic: str, partition: int, current_leader_epoch: int = NO_EPOCH) -> Replica:
    """The replica that this node leads; an epoch other than its own is refused before anything else is."""
    replica = replicas.get(topic, partition)
    if replica is not None:
        check_epoch(replica, current_leader_epoch)
    return replicas.leader(topic, partition)


def readable_replica(replicas: Replicas, topic: str, partition: int, current_leader_epoch: int) -> Replica:
    """A replica on this node, whoever leads it; an epoch other than its leader's is refused."""
    replica = replicas.get(topic, partition)
    if replica is None or replica.is_leader or replica.is_offline:
        return led_replica(replicas, topic, partition, current_leader_epoch)
    check_epoch(replica, current_leader_epoch)
    return replica


def check_epoch(replica: Replica, current_leader_epoch: int) -> None:
    if current_leader_epoch == NO_EPOCH or current_leader_epoch == replica.leader_epoch:
        return
    is_old = current_leader_epoch < replica.leader_epoch
    raise Reject(ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)


def leader_of(image: MetadataImage, topic: str, partition: int) -> Leader:
    found = image.partition(topic, partition)
    return Leader() if found is None else Leader(found.leader, found.leader_epoch)


def endpoints_of(image: MetadataImage, request: Request, leader_ids: Iterable[int]) -> list[Endpoint]:
    """Where the leaders named in an answer are, by the listener of the request."""
    found = []
    for leader_id in sorted(set(leader_ids) - {-1}):
        broker = image.brokers.get(leader_id)
        endpoint = None if broker is None else broker.endpoint(request.connection.peer.listener)
        if broker is not None and endpoint is not None:
            found.append(Endpoint(leader_id, endpoint.host, endpoint.port, broker.rack))
    return found
