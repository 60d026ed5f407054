"""What the sender of a heartbeat must be allowed to do.

Each family has a `check_heartbeat(request, world, authorize)`: all that can be said of a heartbeat without its group.
As with Apache Kafka, whichever broker is asked says it, before it looks for the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.core.coordinator.contract import Authorize
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["check_group", "check_topics"]


def check_group(group_id: str, authorize: Authorize) -> None:
    """Who sends a heartbeat must be allowed to read the group."""
    if not authorize(Operation.READ, ResourceType.GROUP, group_id):
        raise Reject(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def check_topics(names: Iterable[str], authorize: Authorize) -> None:
    """Who names topics must be allowed to describe all of them."""
    denied = [name for name in names if not authorize(Operation.DESCRIBE, ResourceType.TOPIC, name)]
    if denied:
        raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"not allowed to describe {', '.join(denied[:3])}")
