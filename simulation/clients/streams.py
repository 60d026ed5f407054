"""A member of a streams group (KIP-1071): a thread of an application that joins with its topology and gets tasks.

It works like a member of a consumer group, with tasks instead of partitions. Only active tasks have a single owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ottla.wire.errors import ErrorCode
from ottla.wire.types.offset_commit import OffsetCommitRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequestTaskIds as TaskIds
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequestTopology as Topology
from simulation.clients.client import RETRIED, Client, ClientPorts

__all__ = ["StreamsMember", "Tasks", "topology_of"]

_JOIN: Final = 0
_LEAVE: Final = -1
_FENCED: Final = frozenset((ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND))
_UNRELEASED_RETRY_MS: Final = 1_000
_STUCK_CHANCE: Final = 0.06
"""How likely the application hangs while its heartbeats go on."""

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


class StreamsMember(Client):
    owned: Tasks
    version = 1
    rebalance_timeout_ms = 20_000
    heartbeat_ms = 5_000

    def __init__(
        self, world: ClientPorts, name: str, group_id: str, source: str, *, has_internal_topics: bool, process_id: str
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.source = source
        self.process_id = process_id
        self.topology = topology_of(group_id, source, has_internal_topics=has_internal_topics)
        self.ended()

    def ended(self) -> None:
        self.epoch = _JOIN
        self.target = Tasks()
        self.hold(Tasks())
        self._told: Tasks | None = None
        self._is_asking = False
        self._is_giving_up = False
        self._beats = 0
        self._joined = 0

    def begin(self) -> None:
        self.member_id = f"{self.name}-{self.life}"
        self.beat()

    def has_converged(self) -> bool:
        return self.epoch > 0 and self.owned == self.target and not self._is_giving_up

    def believes_to_own(self) -> Units:
        return self.owned.active

    def hold(self, tasks: Tasks) -> None:
        """Own exactly these tasks."""
        self.owned = tasks

    def news(self) -> dict[str, Any]:
        """Further fields of the next heartbeat."""
        return {}

    def stop(self) -> None:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=_LEAVE, endpoint_information_epoch=-1
        )
        self.ask(request, self.version, lambda _: None)
        self.crash()

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def beat(self) -> None:
        if self._is_asking:
            return
        self._is_asking = True
        self._beats += 1
        is_full = self.epoch == _JOIN or self._told is None
        sent = self.owned
        says_tasks = is_full or sent != self._told
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=-1,
            rebalance_timeout_ms=self.rebalance_timeout_ms if is_full else -1,
            topology=self.topology if self.epoch == _JOIN else None,
            active_tasks=_grouped(sent.active) if says_tasks else None,
            standby_tasks=_grouped(sent.standby) if says_tasks else None,
            warmup_tasks=_grouped(sent.warmup) if says_tasks else None,
            process_id=self.process_id if is_full else None,
            **self.news(),
        )
        self._told = None
        self.ask(request, self.version, lambda answer: self._beaten(answer, sent))

    def _beat_later(self, delay_ms: int) -> None:
        beats = self._beats
        self.after(delay_ms, lambda: self.beat() if self._beats == beats else None)

    def _beaten(self, answer: Any, sent: Tasks) -> None:  # noqa: ANN401
        self._is_asking = False
        code = ErrorCode.REQUEST_TIMED_OUT if answer is None else ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._told = sent
            self._take(answer)
        elif code in _FENCED:
            self._join_anew()
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID:
            self._beat_later(_UNRELEASED_RETRY_MS)
        elif code in RETRIED or code is ErrorCode.REQUEST_TIMED_OUT:
            self._beat_later(self.backoff_ms)
        elif code is ErrorCode.INVALID_REQUEST and self.owned.active:
            # Its task no longer exists, because a topic was replaced by a smaller one: such a thread dies, and the
            # application starts another.
            self.crash()
            self.world.after(1_000, self.start_unless_alive)
        else:
            self.unexpected("StreamsGroupHeartbeat", code)

    def _join_anew(self) -> None:
        self.epoch, self.target, self._told = _JOIN, Tasks(), None
        self.hold(Tasks())
        self._is_giving_up = False
        self._joined += 1
        self._beat_later(self.backoff_ms)

    def _take(self, answer: Any) -> None:  # noqa: ANN401
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.target = Tasks(*map(_units, (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)))
        self._commit()
        if self.owned != self.target and not self._is_giving_up:
            self._reconcile()
        self._beat_later(min(answer.heartbeat_interval_ms, self.heartbeat_ms))

    def _reconcile(self) -> None:
        """Close tasks that are no longer assigned, which takes some time, then open new ones."""
        if not self.owned.exceed(self.target):
            self._own()
            return
        self._is_giving_up = True
        if self.world.random.random() < _STUCK_CHANCE:
            self.world.note(f"{self.name} never closes its tasks, until it is fenced")
            return
        joined = self._joined
        self.after(self.world.random.randint(0, 3_000), lambda: self._own() if self._joined == joined else None)

    def _own(self) -> None:
        self._is_giving_up = False
        self.hold(self.target)
        self.world.check_belief(self)
        self.world.note(f"{self.name} works on {sorted(self.owned.active)} in epoch {self.epoch}")
        self.beat()

    def _commit(self) -> None:
        """Commit offsets of the source's partitions, which the first subtopology reads."""
        topic = self.world.topics.by_name(self.source)
        partitions = sorted(partition for subtopology, partition in self.owned.active if subtopology == "0")
        if topic is None or not partitions or self.world.random.random() < 0.4:
            return
        entries = tuple(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=self.world.next_offset(), committed_metadata=""
            )
            for partition in partitions
        )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=(OffsetCommitRequest.OffsetCommitRequestTopic(name=self.source, partitions=entries),),
        )
        self.ask(request, 9, lambda _: None)


def _units(entries: Iterable[Any]) -> Units:
    return frozenset((each.subtopology_id, partition) for each in entries for partition in each.partitions)


def _grouped(units: Units) -> tuple[TaskIds, ...]:
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(units):
        found.setdefault(subtopology, []).append(partition)
    entry = StreamsGroupHeartbeatRequest.TaskIds
    return tuple(entry(subtopology_id=name, partitions=tuple(each)) for name, each in found.items())
