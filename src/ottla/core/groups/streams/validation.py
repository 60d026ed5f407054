"""Which heartbeats are refused before any group is looked up: rights, and requests that make no sense."""

from __future__ import annotations

import re
from typing import Final

from ottla.core.coordinator.contract import Authorize, World
from ottla.core.groups.modern.members import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.modern.rights import check_group, check_topics
from ottla.core.groups.streams.settings import check_served
from ottla.core.groups.streams.topology import check_topology, topics_named
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequestTopology as DeclaredTopology

__all__ = ["check_heartbeat", "check_request"]

_INTERNAL_TOPICS: Final = frozenset(("__consumer_offsets", "__share_group_state", "__transaction_state"))
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def check_heartbeat(request: StreamsGroupHeartbeatRequest, world: World, authorize: Authorize) -> None:
    """Whether streams groups are served, and rights. Only members that join name topics."""
    check_served(world)
    check_group(request.group_id, authorize)
    if request.topology is None:
        return
    names = sorted(topics_named(request.topology))
    for name in names:
        if name in _INTERNAL_TOPICS:
            raise Reject(ErrorCode.STREAMS_INVALID_TOPOLOGY, f"{name} belongs to the broker")
    for name in names:
        if not _LEGAL_NAME.fullmatch(name) or name in (".", ".."):
            raise Reject(ErrorCode.STREAMS_INVALID_TOPOLOGY, f"{name[:300]!r} is not a topic's name")
    check_topics(names, authorize)


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """In the order in which Kafka looks."""
    if request.topology is not None:
        _check_patterns(request.topology)
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} is blank")
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and request.instance_id is None:
        raise _invalid("only a member with an instance id can leave for a while")
    elif request.member_epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise _invalid(f"member epoch {request.member_epoch} means nothing")
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is None for each in lists) and any(each is not None for each in lists):
        raise _invalid("of the three lists of tasks all or none must be given")
    if request.member_epoch != 0 and request.topology is not None:
        raise _invalid("a topology comes with a join only")
    _check_tags(request)


def _check_patterns(topology: DeclaredTopology) -> None:
    if any(each.source_topic_regex for each in topology.subtopologies):
        raise _invalid("patterns of source topics are not served")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("a join must have RebalanceTimeoutMs")
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        if tasks is None or len(tasks) > 0:
            raise _invalid("a join must have three empty lists of tasks")
    if request.topology is None:
        raise _invalid("a join must have a topology")
    check_topology(request.topology)


def _check_tags(request: StreamsGroupHeartbeatRequest) -> None:
    keys = [each.key for each in request.client_tags or ()]
    if len(set(keys)) < len(keys):
        raise _invalid("a client tag is given twice")


def _invalid(text: str) -> Reject:
    return Reject(ErrorCode.INVALID_REQUEST, text)
