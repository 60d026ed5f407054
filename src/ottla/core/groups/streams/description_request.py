"""Whether a member is asked, in the answer to its heartbeat, to describe the topology (KIP-1331).

Any member can be asked; the group's back-off makes it one in a while. The question is put when the heartbeat's records
are committed: one that was lost must not silence the group.
"""

from __future__ import annotations

from typing import Final

from ottla.core.coordinator.contract import Context
from ottla.core.groups.streams.configuration import Status
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.settings import has_description_plugin
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatResponse

__all__ = ["DESCRIPTIONS_FROM_VERSION", "may_request_description", "should_request_description"]

DESCRIPTIONS_FROM_VERSION: Final = 1


def may_request_description(group: StreamsGroup, api_version: int, now_ms: int, *, has_plugin: bool) -> bool:
    """Whether it is worth while to look after the write: not for the many heartbeats of a group that is done."""
    if not has_plugin or api_version < DESCRIPTIONS_FROM_VERSION:
        return False
    if group.topology is None:
        return True
    epoch = group.topology.epoch
    return epoch not in group.description_epochs and not group.back_off.is_active(epoch, now_ms)


def should_request_description(
    group: StreamsGroup,
    response: StreamsGroupHeartbeatResponse,
    context: Context,
    *,
    api_version: int,
    member_epoch: int,
) -> bool:
    """In Kafka's order. Only the last of these changes anything, so whoever fails before leaves the back-off alone."""
    epoch = group.topology.epoch if group.topology is not None else -1
    stored, failed = group.description_epochs
    return (
        api_version >= DESCRIPTIONS_FROM_VERSION
        and has_description_plugin(context.world)
        and member_epoch >= 0
        and response.error_code == 0
        and epoch >= 0
        and stored != epoch
        and failed != epoch
        and all(each.status_code != Status.STALE_TOPOLOGY for each in response.status or ())
        and group.back_off.arm_if_not_active(epoch, context.now_ms, context.world.draw)
    )
