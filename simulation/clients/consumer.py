"""A member of a consumer group (KIP-848)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ottla.core.groups.modern.members import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from simulation.clients.client import ClientPorts, grouped
from simulation.clients.modern_member import ModernMember

__all__ = ["ConsumerMember"]

Owned = frozenset[tuple[bytes, int]]
"""Topic id and partition."""


class ConsumerMember(ModernMember[Owned]):
    nothing = frozenset()
    stuck_chance = 0.02

    def __init__(
        self,
        world: ClientPorts,
        name: str,
        group_id: str,
        topics: tuple[str, ...],
        *,
        instance_id: str | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        always_full: bool = False,
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.topics = topics
        self.instance_id = instance_id
        self.regex = regex
        self.assignor = assignor
        self.always_full = always_full
        self.ended()

    def subscription(self) -> Iterable[str]:
        """The topics that it subscribes to: those that it names, or those that its pattern matches now."""
        if self.regex is None:
            return self.topics
        return [name for name in self.world.topics.names() if re.fullmatch(self.regex, name)]

    def believes_to_own(self) -> Owned:
        return self.owned

    def stop(self) -> None:
        epoch = LEAVE_GROUP_MEMBER_EPOCH if self.instance_id is None else LEAVE_GROUP_STATIC_MEMBER_EPOCH
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, instance_id=self.instance_id, member_epoch=epoch
        )
        self.ask(request, self.version, lambda _: None)
        self.crash()

    def heartbeat(self, told: Owned | None) -> ConsumerGroupHeartbeatRequest:
        is_full = self.epoch == JOIN_GROUP_MEMBER_EPOCH or self.always_full or told is None
        entry = ConsumerGroupHeartbeatRequest.TopicPartitions
        partitions = tuple(entry(topic_id=topic, partitions=tuple(each)) for topic, each in grouped(self.owned).items())
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms if is_full else -1,
            subscribed_topic_names=self.topics if is_full and self.regex is None else None,
            subscribed_topic_regex=self.regex if is_full else None,
            server_assignor=self.assignor if is_full else None,
            topic_partitions=partitions if is_full or self.owned != told else None,
        )

    def assigned(self, answer: Any) -> Owned | None:  # noqa: ANN401
        if answer.assignment is None:
            return None
        topics = answer.assignment.topic_partitions
        return frozenset((each.topic_id, partition) for each in topics for partition in each.partitions)

    def has_too_much(self) -> bool:
        return bool(self.owned - self.target)

    def refused(self, code: ErrorCode) -> None:
        if code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED):
            self.crash()
        else:
            self.unexpected("ConsumerGroupHeartbeat", code)

    def commit_owned(self) -> None:
        if not self.owned or self.world.random.random() < 0.4:
            return
        known = ((self.world.topics.by_id(topic_id), partition) for topic_id, partition in sorted(self.owned))
        named = ((topic.name, partition) for topic, partition in known if topic is not None)
        self.commit(named, self.epoch, 9, self.instance_id)
