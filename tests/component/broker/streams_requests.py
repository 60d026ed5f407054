"""Requests of members of streams groups."""

from __future__ import annotations

from typing import Any

from ottla.wire.types import StreamsGroupHeartbeatRequest

_Request = StreamsGroupHeartbeatRequest


def topology(source: str, *, changelog: str | None = None) -> _Request.Topology:
    configs = (
        _Request.KeyValue("cleanup.policy", "compact"),
        _Request.KeyValue("message.timestamp.type", "CreateTime"),
    )
    changelogs = () if changelog is None else (_Request.TopicInfo(changelog, 0, -1, configs),)
    return _Request.Topology(0, (_Request.Subtopology("0", (source,), state_changelog_topics=changelogs),))


def join(group_id: str, member_id: str, declared: _Request.Topology, **fields: Any) -> _Request:
    nothing: Any = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
    return _Request(
        group_id,
        member_id,
        0,
        -1,
        rebalance_timeout_ms=60_000,
        topology=declared,
        process_id=member_id,
        **nothing,
        **fields,
    )
