"""What single nodes say of the cluster, each asked by itself: no routing, and no second attempts."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Unpack

from ottla.client.address import Peer, parse_address
from ottla.client.blocking.connection import open_blocking
from ottla.client.cluster import QUORUM_REQUEST, QuorumDescription, read_quorum
from ottla.client.errors import ClientError
from ottla.client.settings import Changes, ClientSettings
from ottla.client.versions import api_of, choose_version
from ottla.wire.types.describe_cluster import DescribeClusterRequest
from ottla.wire.types.metadata import MetadataRequest

__all__ = ["PartitionView", "ask", "partitions", "quorum", "unfenced"]

PATIENCE_MS: Final = 1000


class PartitionView(NamedTuple):
    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


def quorum(address: str, **login: Unpack[Changes]) -> QuorumDescription | None:
    """The quorum as a controller sees it that leads it; None if it does not lead, or does not answer."""
    try:
        return read_quorum(Peer(parse_address(address)), ask(address, QUORUM_REQUEST, **login))
    except ClientError:
        return None


def unfenced(address: str) -> set[int] | None:
    """The brokers that serve, as one of them sees it; None if it does not answer."""
    try:
        body = ask(address, DescribeClusterRequest())
    except ClientError:
        return None
    return None if body.error_code else {each.broker_id for each in body.brokers}


def partitions(address: str) -> list[PartitionView] | None:
    """All partitions as a broker sees them; None if it does not answer."""
    try:
        body = ask(address, MetadataRequest(None))
    except ClientError:
        return None
    return [
        PartitionView(topic.name, each.partition_index, each.leader_id, each.replica_nodes, each.isr_nodes)
        for topic in body.topics
        for each in topic.partitions
    ]


def ask(address: str, request: object, *, patience_ms: int = PATIENCE_MS, **login: Unpack[Changes]) -> Any:  # noqa: ANN401 - any response
    """Send one request to one node. ClientError if there is no answer."""
    peer = Peer(parse_address(address))
    login["connect_timeout_ms"] = login["request_timeout_ms"] = patience_ms
    settings = ClientSettings.of(**login)
    connection = open_blocking(peer, settings)
    try:
        connection.send(request, choose_version(api_of(type(request)), connection.versions, peer))
        return connection.receive()
    finally:
        connection.shut()
