"""A member of a streams group (KIP-1071): a thread of an application that joins with its topology and gets tasks.

It works like a member of a consumer group, with tasks instead of partitions. Only active tasks have a single owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.core.groups.modern.members import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_MEMBER_EPOCH
from ottla.wire.errors import ErrorCode
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequestTaskIds as TaskIds
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequestTopology as Topology
from simulation.clients.client import ClientPorts, grouped
from simulation.clients.modern_member import ModernMember

__all__ = ["StreamsMember", "Tasks", "topology_of"]

Units = frozenset[tuple[str, int]]
"""Subtopology and partition."""


class Tasks(NamedTuple):
    active: Units = frozenset()
    standby: Units = frozenset()
    warmup: Units = frozenset()

    def exceed(self, other: Tasks) -> bool:
        """Whether one of these tasks is not among the others in the same role."""
        return any(mine - others for mine, others in zip(self, other, strict=True))


def topology_of(group_id: str, source: str, *, has_internal_topics: bool) -> Topology:
    """One subtopology over the source; with internal topics a second one, after a repartitioning, that keeps state."""
    if not has_internal_topics:
        only = StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=(source,))
        return StreamsGroupHeartbeatRequest.Topology(subtopologies=(only,))
    info = StreamsGroupHeartbeatRequest.TopicInfo
    repartition = f"{group_id}-repartition"
    first = StreamsGroupHeartbeatRequest.Subtopology(
        subtopology_id="0", source_topics=(source,), repartition_sink_topics=(repartition,)
    )
    second = StreamsGroupHeartbeatRequest.Subtopology(
        subtopology_id="1",
        repartition_source_topics=(info(name=repartition),),
        state_changelog_topics=(info(name=f"{group_id}-changelog"),),
    )
    return StreamsGroupHeartbeatRequest.Topology(subtopologies=(first, second))


class StreamsMember(ModernMember[Tasks]):
    nothing = Tasks()
    stuck_chance = 0.06

    def __init__(
        self, world: ClientPorts, name: str, group_id: str, source: str, *, has_internal_topics: bool, process_id: str
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.source = source
        self.process_id = process_id
        self.topology = topology_of(group_id, source, has_internal_topics=has_internal_topics)
        self.ended()

    def believes_to_own(self) -> Units:
        return self.owned.active

    def news(self) -> dict[str, Any]:
        """Further fields of the next heartbeat."""
        return {}

    def stop(self) -> None:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
            endpoint_information_epoch=-1,
        )
        self.ask(request, self.version, lambda _: None)
        self.crash()

    def heartbeat(self, told: Tasks | None) -> StreamsGroupHeartbeatRequest:
        is_full = self.epoch == JOIN_GROUP_MEMBER_EPOCH or told is None
        says_tasks = is_full or self.owned != told
        return StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=-1,
            rebalance_timeout_ms=self.rebalance_timeout_ms if is_full else -1,
            topology=self.topology if self.epoch == JOIN_GROUP_MEMBER_EPOCH else None,
            active_tasks=_task_ids(self.owned.active) if says_tasks else None,
            standby_tasks=_task_ids(self.owned.standby) if says_tasks else None,
            warmup_tasks=_task_ids(self.owned.warmup) if says_tasks else None,
            process_id=self.process_id if is_full else None,
            **self.news(),
        )

    def assigned(self, answer: Any) -> Tasks | None:  # noqa: ANN401
        if answer.active_tasks is None:
            return None
        return Tasks(*map(_units, (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)))

    def has_too_much(self) -> bool:
        return self.owned.exceed(self.target)

    def refused(self, code: ErrorCode) -> None:
        if code is ErrorCode.INVALID_REQUEST and self.owned.active:
            # Its task no longer exists, because a topic was replaced by a smaller one: such a thread dies, and the
            # application starts another.
            self.crash()
            self.world.after(1_000, self.start_unless_alive)
        else:
            self.unexpected("StreamsGroupHeartbeat", code)

    def interval_ms(self, answer: Any) -> int:  # noqa: ANN401
        return min(int(answer.heartbeat_interval_ms), self.heartbeat_ms)

    def commit_owned(self) -> None:
        """Commit offsets of the source's partitions, which the first subtopology reads."""
        partitions = sorted(partition for subtopology, partition in self.owned.active if subtopology == "0")
        if self.world.topics.by_name(self.source) is None or not partitions or self.world.random.random() < 0.4:
            return
        self.commit(((self.source, partition) for partition in partitions), self.epoch, 9)


def _units(entries: Iterable[Any]) -> Units:
    return frozenset((each.subtopology_id, partition) for each in entries for partition in each.partitions)


def _task_ids(units: Units) -> tuple[TaskIds, ...]:
    entry = StreamsGroupHeartbeatRequest.TaskIds
    return tuple(entry(subtopology_id=name, partitions=tuple(each)) for name, each in grouped(units).items())
