"""One heartbeat: from the member's epoch to the answer.

The steps, in Kafka's order, since each may refuse and a refused heartbeat changes nothing: find the member and check
its epoch; take over what it tells of itself; settle the topology; hold it against the topics; check the tasks that the
member says it owns; raise the group's epoch if anything has changed that an assignment depends on; compute a target if
one is due; reconcile the member with its target; answer. The epoch also rises for a step of the highly available
assignor (see `assignment`); that of a step is not held up by the assignment interval, it is not made before.

Which epochs are accepted:

===============================  =====================================================================================
0                                always: a join, or the rejoin of a member that was fenced. It keeps its tasks
the member's                     yes
the member's before the last     if all lists of tasks are given and are within what is assigned: an answer was lost
anything else                    no: FENCED_MEMBER_EPOCH
===============================  =====================================================================================

Static members: a join under an instance id that is in use is refused unless its member has left for a while; then the
new member takes over metadata, target and tasks, and the group's epoch rises only if process, rack, tags or topology
differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ottla.core.coordinator.contract import Context, Timer
from ottla.core.groups.modern.members import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.modern.step import HeartbeatStep
from ottla.core.groups.streams import highly_available, records
from ottla.core.groups.streams.assignment import Candidate, is_step, may_go_on, next_report, plan_targets, progress_of
from ottla.core.groups.streams.configuration import Configured, Status, configure
from ottla.core.groups.streams.endpoints import endpoint_map
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.highly_available import Plan
from ottla.core.groups.streams.members import (
    NEW_MEMBER,
    NEW_METADATA,
    Current,
    MemberState,
    Metadata,
    Report,
    StreamsGroupMember,
)
from ottla.core.groups.streams.reconciliation import reconcile
from ottla.core.groups.streams.tasks import NO_TASKS, Tasks, task_lists, tasks_in
from ottla.core.groups.streams.topology import Topology, is_same_topology, topology_of
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

__all__ = [
    "StatusLine",
    "StreamsStep",
    "assigned_at_ms",
    "expected_member",
    "fence",
    "rebalance_key",
    "session_key",
    "target_records",
]

_TaskIds = StreamsGroupHeartbeatResponse.TaskIds
_TAGS_FROM_VERSION: Final = 1
"""Clients before know no status 6, and fail at one."""


class StatusLine(NamedTuple):
    code: Status
    detail: str


def session_key(group_id: str, member_id: str) -> tuple[str, str, str, str]:
    return ("streams", "session", group_id, member_id)


def rebalance_key(group_id: str, member_id: str) -> tuple[str, str, str, str]:
    return ("streams", "rebalance", group_id, member_id)


def expected_member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsGroupMember:
    """The member that a heartbeat or a leave comes from, by its instance id if it has one."""
    if request.instance_id is not None:
        member_id = group.static_members.get(request.instance_id)
        if member_id is None:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has the instance id {request.instance_id}")
        if member_id != request.member_id:
            raise Reject(ErrorCode.FENCED_INSTANCE_ID, f"{request.instance_id} belongs to another member by now")
    return group.member(request.member_id)


class StreamsStep(HeartbeatStep[StreamsGroup]):
    """`statuses` gathers what the member is told of the group."""

    def __init__(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, context: Context) -> None:
        super().__init__(group, context)
        self.request = request
        self.settings = group.settings(context.world)
        self.statuses: list[StatusLine] = []
        self.owned = _owned(request)
        self.member: StreamsGroupMember | None = None
        self.replaced: StreamsGroupMember | None = None
        """A static member whose place this one takes."""
        self.metadata_before: Metadata = NEW_METADATA
        self.before: Current = NEW_MEMBER
        self.report = Report()
        self._must_bump = False
        self._plan: Plan | None = None
        self.is_step_held_back = False
        """Whether there is a step to take that has to wait for the assignment interval."""
        self.topology: Topology
        self.configured: Configured
        self.metadata: Metadata
        self.current: Current

    # --- the member ---------------------------------------------------------------------------------------------------

    def find_member(self) -> None:
        if self.request.member_epoch != 0:
            self._take(expected_member(self.group, self.request))
            self._check_epoch()
            return
        instance_id = self.request.instance_id
        holder = None if instance_id is None else self.group.static_members.get(instance_id)
        if holder is not None:
            self._replace(self.group.members[holder])
        elif (member := self.group.members.get(self.request.member_id)) is not None:
            self._take(member)
        elif len(self.group.members) >= self.settings.max_size:
            raise Reject(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {self.settings.max_size} members already")

    def _take(self, member: StreamsGroupMember) -> None:
        self.member, self.metadata_before, self.before = member, member.metadata, member.current

    def _check_epoch(self) -> None:
        given, current = self.request.member_epoch, self.before
        if given == current.member_epoch:
            return
        is_lost_answer = given == current.previous_member_epoch and given < current.member_epoch
        if is_lost_answer and self.owned is not None and self.owned.is_within(current.assigned):
            return
        raise Reject(ErrorCode.FENCED_MEMBER_EPOCH, f"the member is at epoch {current.member_epoch}, not at {given}")

    def _replace(self, old: StreamsGroupMember) -> None:
        """The new member takes over what the old one had, under its own id and with nothing reached yet."""
        if old.current.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            raise Reject(ErrorCode.UNRELEASED_INSTANCE_ID, f"instance id {self.request.instance_id} is in use")
        group_id, member_id = self.group.group_id, self.request.member_id
        self.replaced = old
        self.metadata_before = old.metadata
        self.before = old.current._replace(member_epoch=0, previous_member_epoch=0)
        self.records += [
            *records.member_tombstones(group_id, old.member_id),
            records.member_record(group_id, member_id, old.metadata),
            records.target_record(group_id, member_id, self.group.target(old.member_id)),
            records.current_record(group_id, member_id, self.before),
        ]
        self.timers += [Timer(key(group_id, old.member_id), None) for key in (session_key, rebalance_key)]

    def update_metadata(self) -> None:
        self.report = next_report(self.member, self.request, self.context.api_version)
        self.metadata = _updated(self.metadata_before, self.request, self.context)
        is_new = self.member is None and self.replaced is None
        if is_new or self.metadata != self.metadata_before:
            self.records.append(records.member_record(self.group.group_id, self.request.member_id, self.metadata))
            is_dynamic = self.metadata.instance_id is None
            self._must_bump = (
                is_new or is_dynamic or _assignment_inputs(self.metadata) != _assignment_inputs(self.metadata_before)
            )

    # --- the topology -------------------------------------------------------------------------------------------------

    def settle_topology(self) -> None:
        known, declared = self.group.topology, self.request.topology
        if known is None:
            self.topology = topology_of(declared) if declared is not None else Topology(-1)
            if declared is not None:
                self.records.append(records.topology_record(self.group.group_id, self.topology))
            return
        self.topology = known
        if (
            declared is not None
            and declared.epoch >= known.epoch
            and not is_same_topology(topology_of(declared), known)
        ):
            raise Reject(ErrorCode.INVALID_REQUEST, "the group has another topology, and it cannot be updated")
        if self.metadata.topology_epoch < known.epoch:
            detail = f"The member's topology epoch {self.metadata.topology_epoch} is behind the group's, {known.epoch}."
            self.statuses.append(StatusLine(Status.STALE_TOPOLOGY, detail))

    def configure(self) -> None:
        configured = self.group.configuration(self.topics)
        self.configured = configure(self.topology, self.topics) if configured is None else configured
        if self.configured.is_ready and self.owned is not None:
            _check_tasks(self.owned, self.configured.task_counts)

    # --- epochs and target --------------------------------------------------------------------------------------------

    def raise_epoch(self) -> None:
        group, configured = self.group, self.configured
        validated = self.topology.epoch if configured.is_ready else -1
        configs = self.settings.assignment_configs
        if not (
            self._must_bump
            or configured.metadata_hash != group.metadata_hash
            or validated != group.validated_topology_epoch
            or configs != group.last_assignment_configs
            or self._has_step()
        ):
            return
        self.group_epoch = group.group_epoch + 1
        self.records.append(
            group.group_record(
                epoch=self.group_epoch,
                metadata_hash=configured.metadata_hash,
                validated_topology_epoch=validated,
                configs=configs,
            )
        )

    def _has_step(self) -> bool:
        """Whether the highly available assignor can go on from the target that there is."""
        group, settings = self.group, self.settings
        if (
            settings.assignor_name != highly_available.NAME
            or group.assignment_epoch < group.group_epoch
            or not self.configured.is_ready
        ):
            return False
        candidates = self._candidates()
        if not may_go_on(group.progress, group.group_epoch, candidates, settings, group.holders):
            return False
        plan = plan_targets(candidates, self.topology, self.configured, settings, group.holders)
        if not is_step(group.targets, plan.targets):
            group.progress = progress_of(plan, group.group_epoch, candidates, settings)
            return False
        self.is_step_held_back = self.assignment_left_ms() > 0
        self._plan = plan
        return not self.is_step_held_back

    def _candidates(self) -> dict[str, Candidate]:
        """All members, this one as it is by now."""
        found = self.group.candidates()
        member_id = self.request.member_id
        known = found.pop(member_id if self.replaced is None else self.replaced.member_id, None)
        return found | {member_id: Candidate(self.metadata, None if known is None else known.previous, self.report)}

    def find_target(self, *, is_delayed: bool) -> tuple[int, Tasks]:
        """Its epoch, and what it gives to the member."""
        group = self.group
        if is_delayed:
            self.statuses.append(StatusLine(Status.ASSIGNMENT_DELAYED, "The group waits for more members to join."))
            return group.assignment_epoch, NO_TASKS
        stored = group.target(self.replaced.member_id if self.replaced is not None else self.request.member_id)
        if group.assignment_epoch >= self.group_epoch:
            return group.assignment_epoch, stored
        if self.assignment_left_ms() > 0:
            self.statuses.append(StatusLine(Status.ASSIGNMENT_DELAYED, "The last assignment was a moment ago."))
            return group.assignment_epoch, stored
        return self.group_epoch, self._new_target()

    def _new_target(self) -> Tasks:
        group, candidates = self.group, self._candidates()
        plan = self._plan
        if plan is None:
            plan = plan_targets(candidates, self.topology, self.configured, self.settings, group.holders)
        group.progress = progress_of(plan, self.group_epoch, candidates, self.settings)
        previous = {member_id: each.previous for member_id, each in candidates.items()}
        at_ms = assigned_at_ms(self.configured, self.context)
        self.records += target_records(group.group_id, previous, plan.targets, self.group_epoch, at_ms)
        return plan.targets[self.request.member_id]

    def reconcile(self, target_epoch: int, target: Tasks) -> None:
        group = self.group
        self.current = reconcile(self.before, target_epoch, target, self.owned, self.metadata.process_id, group.holders)
        if self.current == self.before:
            return
        member_id = self.request.member_id
        self.records.append(records.current_record(group.group_id, member_id, self.current))
        if self.current.state is MemberState.UNREVOKED_TASKS:
            self.watch_revocation(rebalance_key(group.group_id, member_id), self.metadata.rebalance_timeout_ms)
        elif self.before.state is MemberState.UNREVOKED_TASKS:
            self.watch_revocation(rebalance_key(group.group_id, member_id), None)

    # --- the answer ---------------------------------------------------------------------------------------------------

    @property
    def has_new_tasks(self) -> bool:
        """Whether the answer must say what the member has. Kafka does so with a join and a change only, so that a
        member never hears of tasks whose answer was lost; here also if the tasks that it tells of are others, or if its
        last request was repeated."""
        assigned = self.current.assigned
        if self.request.member_epoch == 0 or assigned != self.before.assigned:
            return True
        if self.owned is not None:
            return not self.owned.are_all_of(assigned)
        return self.member is not None and self.member.may_not_have_heard

    @property
    def is_repeated(self) -> bool:
        """Whether the request has the epoch before the member's, so that an answer to it was lost or is still under
        way; or is the join of a known member, which may be a late copy of its first one."""
        if self.request.member_epoch == 0:
            return self.member is not None
        return self.request.member_epoch != self.before.member_epoch

    def endpoint_has_changed(self) -> bool:
        if self.metadata.user_endpoint != self.metadata_before.user_endpoint:
            return True
        return self.metadata.user_endpoint is not None and self.current.assigned != self.before.assigned

    def add_statuses(self) -> None:
        """Those that come after ASSIGNMENT_DELAYED, in Kafka's order."""
        if self.configured.problem is not None:
            self.statuses.append(StatusLine(*self.configured.problem))
        if self.group.shutdown_member_id is not None:
            detail = f"Member {self.group.shutdown_member_id} met a fatal error and asks the whole application to stop."
            self.statuses.append(StatusLine(Status.SHUTDOWN_APPLICATION, detail))
        if self.context.api_version >= _TAGS_FROM_VERSION and self.settings.rack_tags:
            known = {each.key for each in self.metadata.client_tags}
            missing = [tag for tag in self.settings.rack_tags if tag not in known]
            if missing:
                detail = f"The member lacks the client tags {', '.join(missing)}."
                self.statuses.append(StatusLine(Status.MISSING_CLIENT_TAGS, detail))

    def response(self, heartbeat_interval_ms: int) -> StreamsGroupHeartbeatResponse:
        group, assigned = self.group, self.current.assigned
        kind, settings = StreamsGroupHeartbeatResponse, self.settings
        endpoints = None
        if group.endpoint_epoch != self.request.endpoint_information_epoch:
            endpoints = self._endpoints()
        answer = kind(
            member_id=self.request.member_id,
            member_epoch=self.current.member_epoch,
            heartbeat_interval_ms=heartbeat_interval_ms,
            task_offset_interval_ms=settings.task_offset_interval_ms,
            acceptable_recovery_lag=settings.acceptable_recovery_lag,
            status=tuple(kind.Status(int(each.code), each.detail) for each in self.statuses),
            endpoint_information_epoch=group.endpoint_epoch,
            partitions_by_user_endpoint=endpoints,
        )
        if not self.has_new_tasks:
            return answer
        return replace(
            answer,
            active_tasks=task_lists(_TaskIds, assigned.active),
            standby_tasks=task_lists(_TaskIds, assigned.standby),
            warmup_tasks=task_lists(_TaskIds, assigned.warmup),
        )

    def _endpoints(self) -> Any:  # noqa: ANN401
        """Made once for an epoch, unless this very heartbeat has changed it."""
        group = self.group
        if group.endpoints is not None and not self.records and group.endpoints[0] == group.endpoint_epoch:
            return group.endpoints[1]
        members = {each.member_id: (each.metadata, each.current) for each in group.members.values()}
        if self.replaced is not None:
            del members[self.replaced.member_id]
        members[self.request.member_id] = (self.metadata, self.current)
        made = endpoint_map(members.values(), self.topology, self.context.world.topics)
        group.endpoints = (group.endpoint_epoch, made)
        return made


def _owned(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return Tasks(tasks_in(request.active_tasks), tasks_in(request.standby_tasks), tasks_in(request.warmup_tasks))


def _updated(metadata: Metadata, request: StreamsGroupHeartbeatRequest, context: Context) -> Metadata:
    """What a request leaves out stays; on a join a missing endpoint means that there is none."""
    endpoint = metadata.user_endpoint
    if request.user_endpoint is not None:
        endpoint = Metadata.Endpoint(request.user_endpoint.host, request.user_endpoint.port)
    elif request.member_epoch == 0:
        endpoint = None
    tags = metadata.client_tags
    if request.client_tags is not None:
        tags = tuple(
            Metadata.KeyValue(*each) for each in sorted((each.key, each.value) for each in request.client_tags)
        )
    return Metadata(
        instance_id=metadata.instance_id if request.instance_id is None else request.instance_id,
        rack_id=metadata.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=(
            metadata.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        topology_epoch=metadata.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=metadata.process_id if request.process_id is None else request.process_id,
        user_endpoint=endpoint,
        client_tags=tags,
    )


def _assignment_inputs(metadata: Metadata) -> Any:  # noqa: ANN401
    """What of a static member an assignment depends on."""
    return metadata.topology_epoch, metadata.rack_id, metadata.client_tags, metadata.process_id


def _check_tasks(owned: Tasks, task_counts: Mapping[str, int]) -> None:
    for role in owned:
        for subtopology_id, partition in role:
            if not 0 <= partition < task_counts.get(subtopology_id, 0):
                raise Reject(ErrorCode.INVALID_REQUEST, f"there is no task {subtopology_id}_{partition}")


def assigned_at_ms(configured: Configured, context: Context) -> int:
    """When a target was computed, by which the next one is held back. While topics are missing a target gives nobody
    anything, and need hold back none: that is 0."""
    return context.wall_ms if configured.is_ready else 0


def target_records(
    group_id: str, previous: Mapping[str, Tasks | None], targets: Mapping[str, Tasks], epoch: int, at_ms: int
) -> list[KeyedRecord]:
    changed = [
        records.target_record(group_id, member_id, target)
        for member_id, target in sorted(targets.items())
        if previous.get(member_id) != target
    ]
    return [*changed, records.assignment_epoch_record(group_id, epoch, at_ms)]


def fence(group: StreamsGroup, member_id: str) -> list[KeyedRecord]:
    """What removes a member. A new target is left to the next heartbeat of another; where there is none, the assignment
    epoch follows at once, so that the next member need not wait."""
    epoch = group.group_epoch + 1
    gone = [*records.member_tombstones(group.group_id, member_id), group.group_record(epoch=epoch)]
    if len(group.members) == 1:
        gone.append(records.assignment_epoch_record(group.group_id, epoch, 0))
    return gone
