"""The checks that ShareFetch and ShareAcknowledge begin with, and the lookup of their partitions."""

from __future__ import annotations

from typing import Final

from ottla.broker.network.request import Request
from ottla.broker.share.edge import Edge, Source
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["check_request", "find_source"]

MEMBER_ID_MAX: Final = 36


def check_request(edge: Edge, request: Request) -> None:
    """Reject a request that is not allowed or not supported."""
    body = request.body
    if not edge.share_version():
        raise Reject(ErrorCode.UNSUPPORTED_VERSION)
    if body.group_id is None:
        raise Reject(ErrorCode.INVALID_REQUEST)
    if not edge.authorize(request, Operation.READ, ResourceType.GROUP, body.group_id):
        raise Reject(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not body.member_id or len(body.member_id) > MEMBER_ID_MAX:
        raise Reject(ErrorCode.INVALID_REQUEST)


def find_source(edge: Edge, request: Request, topic_id: bytes, partition: int) -> Source:
    """The partition that a request names, if it may be read and is led here; Reject otherwise."""
    name = edge.topic_name(topic_id)
    if name is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_ID)
    if not edge.authorize(request, Operation.READ, ResourceType.TOPIC, name):
        raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return edge.source(name, partition)
