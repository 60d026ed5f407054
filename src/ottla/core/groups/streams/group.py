"""A streams group: its state, how records change it, and what every kind of group can be asked.

Five epochs. The *group epoch* grows with every change of what an assignment depends on: members, topics, the topology's
validity, settings. The *assignment epoch* is the group epoch that the stored target was computed for. The *member
epoch* is the target that a member has reached. The *topology epoch* is the version of the topology. The *endpoint
information epoch* is the version of the map of who answers interactive queries.

The state follows from the rest; the first that is so:

============  =================================================================================
Empty         no members
NotReady      no topology, or it has not been found valid against the topics
Assigning     the group epoch is ahead of the assignment epoch: a new target is due
Reconciling   some member is not stable at the assignment epoch
Stable        otherwise
============  =================================================================================

NotReady comes before Assigning: members of a group that lost a source topic give up everything, and the state tells
why.

Soft, beside those of every modern group: `configured` (the topology against the topics, as of the last refresh),
`endpoint_epoch` and `endpoints`, `shutdown_member_id`, `progress` (see `assignment`), `back_off`, `calls`, and members'
soft fields.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from ottla.core.coordinator.contract import Context, Topics
from ottla.core.groups.modern.group import ModernGroup, Readers
from ottla.core.groups.streams import records
from ottla.core.groups.streams.assignment import Candidate, Progress
from ottla.core.groups.streams.back_off import BackOff
from ottla.core.groups.streams.configuration import Configured, configure
from ottla.core.groups.streams.description_epochs import UNCERTAIN, Calls, DescriptionEpochs
from ottla.core.groups.streams.effects import DeleteDescription
from ottla.core.groups.streams.members import StreamsGroupMember
from ottla.core.groups.streams.reconciliation import Holders
from ottla.core.groups.streams.settings import StreamsGroupSettings, has_description_plugin, read_settings
from ottla.core.groups.streams.tasks import NO_TASKS, Task, Tasks
from ottla.core.groups.streams.topology import Topology, required_topics, subtopology_by_source
from ottla.core.groups.table import Claim, CommitCheck, ExpiryRule, GroupKind, Preparation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_streams import (
    StreamsGroupMetadataValue,
)

__all__ = ["StreamsGroup"]

log = logging.getLogger(__name__)

_FENCED_COMMITS_FROM_VERSION = 9
_JOINS_AGAIN_AT_ONCE = "classic"
"""The family whose clients come back at once when they are refused."""


READERS: Final[Readers[StreamsGroupMember, StreamsGroupSettings, Tasks]] = Readers(
    settings=read_settings,
    new_member=StreamsGroupMember,
    with_metadata=lambda member, metadata: replace(member, metadata=metadata),
    with_current=lambda member, value: replace(member, current=records.current_of(value)),
    target=records.target_of,
    no_target=NO_TASKS,
)


class StreamsGroup(ModernGroup[StreamsGroupMember, StreamsGroupSettings, Tasks]):
    kind = GroupKind.STREAMS
    protocol_type = "streams"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, READERS)
        self.validated_topology_epoch = 0
        self.last_assignment_configs: Mapping[str, str] = {}
        self.description_epochs = DescriptionEpochs()
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.topology: Topology | None = None
        self.required_topics: frozenset[str] = frozenset()
        self.subtopology_by_source: dict[str, str] = {}
        self._active: dict[Task, str] = {}
        self._standby: dict[Task, set[str]] = {}
        self._warmup: dict[Task, set[str]] = {}
        self.holders = Holders(self._active, self._standby, self._warmup)

        self.configured: Configured | None = None
        self.endpoint_epoch = 0
        self.endpoints: Any = None
        self.shutdown_member_id: str | None = None
        self.progress: Progress | None = None
        self.back_off = BackOff()
        """Of asking for the topology's description."""
        self.calls = Calls()

    # --- questions ----------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        return self.topology is not None and self.topology.epoch == self.validated_topology_epoch

    @property
    def is_described(self) -> bool:
        """Whether the plugin holds the description of the topology, as far as the group knows."""
        return self.topology is not None and self.description_epochs.stored == self.topology.epoch >= 0

    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if not self.is_ready:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        has_arrived = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return "Stable" if has_arrived else "Reconciling"

    def candidates(self) -> dict[str, Candidate]:
        """Members as an assignor sees them."""
        return {
            each.member_id: Candidate(each.metadata, self.targets.get(each.member_id), each.report)
            for each in self.members.values()
        }

    def configuration(self, topics: Topics) -> Configured | None:
        """The topology against the topics of now; None without a topology."""
        if self.topology is not None and (self.configured is None or self.refresh_due):
            self.configured = configure(self.topology, topics)
            self.refresh_due = False
        return self.configured

    def subscribed_topics(self) -> frozenset[str]:
        """All that the topology reads or writes."""
        return self.required_topics

    def is_subscribed_to(self, topic: str) -> bool:
        """An empty group is subscribed to nothing, so that its offsets can expire."""
        return bool(self.members) and topic in self.subtopology_by_source

    def expiry(self, context: Context) -> ExpiryRule:
        return ExpiryRule(lambda committed_at_ms: committed_at_ms, self.is_subscribed_to)

    def check_offset_delete(self) -> None:
        """Which topics are in use is asked for each."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.current.member_epoch:
            raise Reject(ErrorCode.STALE_MEMBER_EPOCH)

    def check_commit(self, claim: Claim, context: Context) -> CommitCheck | None:
        if claim.generation < 0 and not self.members:
            return None
        if claim.is_transactional and claim.member_id == "" and claim.generation == -1 and claim.instance_id is None:
            return None
        member = self.member(claim.member_id)
        if not claim.is_transactional and context.api_version < _FENCED_COMMITS_FROM_VERSION:
            raise Reject(
                ErrorCode.UNSUPPORTED_VERSION, "members of streams groups commit offsets with version 9 or later"
            )
        stale = ErrorCode.ILLEGAL_GENERATION if claim.is_transactional else ErrorCode.STALE_MEMBER_EPOCH
        if claim.generation > member.current.member_epoch:
            raise Reject(stale, f"the member is at epoch {member.current.member_epoch}, not at {claim.generation}")
        if claim.generation == member.current.member_epoch:
            return None
        return self._task_check(member, claim.generation, stale)

    def _task_check(self, member: StreamsGroupMember, member_epoch: int, stale: ErrorCode) -> CommitCheck:
        """A member that is behind may commit for active tasks that it has had since then."""
        assigned, pending = member.current.assigned.active, member.current.pending.active

        def check(topic: str, topic_id: bytes, partition: int) -> None:
            task = (self.subtopology_by_source.get(topic, ""), partition)
            since = assigned.get(task, pending.get(task))
            if since is None or member_epoch < since:
                raise Reject(stale, f"partition {partition} of {topic} was not with the member at epoch {member_epoch}")

        return check

    # --- soft state that answers depend on ----------------------------------------------------------------------------

    def raise_endpoint_epoch(self) -> None:
        """Who answers interactive queries has changed, or is about to."""
        self.endpoint_epoch += 1
        self.changed()

    def request_shutdown(self, member_id: str) -> None:
        """A member asks the whole application to stop. The first one is remembered."""
        if self.shutdown_member_id is None:
            self.shutdown_member_id = member_id
            self.changed()

    # --- records ------------------------------------------------------------------------------------------------------

    def group_record(self, **changed: Any) -> KeyedRecord:  # noqa: ANN401 - arguments of records.group_record
        """The group's own record with what changes in it; all else is carried on."""
        return records.group_record(
            **{
                "group_id": self.group_id,
                "epoch": self.group_epoch,
                "metadata_hash": self.metadata_hash,
                "validated_topology_epoch": self.validated_topology_epoch,
                "configs": self.last_assignment_configs,
                "descriptions": self.description_epochs,
                **changed,
            }
        )

    def description_records(self, epochs: DescriptionEpochs) -> Sequence[KeyedRecord]:
        """What notes these epochs of the description, if they are not noted already."""
        return () if epochs == self.description_epochs else (self.group_record(descriptions=epochs),)

    def before_removal(self, family: str, context: Context) -> Preparation | None:
        """A description that the plugin may hold goes first. While that fails, those who try it all the time are told
        to wait without the plugin being asked."""
        if not self.description_epochs.may_be_held or not has_description_plugin(context.world):
            return None
        if family == _JOINS_AGAIN_AT_ONCE and self.back_off.is_active(UNCERTAIN, context.now_ms):
            raise Reject(ErrorCode.REBALANCE_IN_PROGRESS)
        marked = self.description_records(self.description_epochs.marked())
        effect = DeleteDescription(family, self.group_id, self.calls.last_push)
        return Preparation(marked, effect, self.calls.begin_delete)

    def prepared(self, effect: Any, context: Context) -> Sequence[KeyedRecord]:  # noqa: ANN401
        self.back_off.clear_all()
        epochs = self.description_epochs
        return self.description_records(epochs.cleared() if self.calls.is_delete_last(effect.last_push) else epochs)

    def not_prepared(self, family: str, effect: Any, context: Context) -> None:  # noqa: ANN401
        if family == _JOINS_AGAIN_AT_ONCE:
            self.back_off.arm_if_not_active(UNCERTAIN, context.now_ms, context.world.draw)

    def tombstones(self) -> Sequence[KeyedRecord]:
        group_id, members = self.group_id, list(self.members)
        targets = dict.fromkeys([*members, *self.targets])
        return [
            *(records.current_tombstone(group_id, each) for each in members),
            *(records.target_tombstone(group_id, each) for each in targets),
            records.assignment_epoch_tombstone(group_id),
            *(records.member_tombstone(group_id, each) for each in members),
            records.group_tombstone(group_id),
            records.topology_tombstone(group_id),
        ]

    # --- replay: the only changes of hard state -----------------------------------------------------------------------

    def replay_group(self, key: Any, value: StreamsGroupMetadataValue) -> None:  # noqa: ANN401
        super().replay_group(key, value)
        self.validated_topology_epoch = value.validated_topology_epoch
        self.last_assignment_configs = records.configs_of(value)
        self.description_epochs = DescriptionEpochs(
            value.stored_description_topology_epoch, value.failed_description_topology_epoch
        )

    def replay_topology(self, key: Any, topology: Topology | None) -> None:  # noqa: ANN401
        self.topology = topology
        self.required_topics = required_topics(topology) if topology is not None else frozenset()
        self.subtopology_by_source = subtopology_by_source(topology) if topology is not None else {}
        self.configured = None

    def _member_changed(self, old: StreamsGroupMember | None, new: StreamsGroupMember | None) -> None:
        if old is not None:
            self._unindex(old)
        if new is not None:
            self._index(new)
            if new.metadata.instance_id is not None:
                self.static_members[new.metadata.instance_id] = new.member_id
        elif old is not None:
            self._forget(old)

    def _forget(self, member: StreamsGroupMember) -> None:
        """The member is gone."""
        if not member.current.assigned.is_nothing or member.member_id in self.targets:
            log.warning("member %s of %s is removed while it has tasks", member.member_id, self.group_id)
            self.targets.pop(member.member_id, None)
        instance_id = member.metadata.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]
        if not self.members:
            self.shutdown_member_id = None

    def _index(self, member: StreamsGroupMember) -> None:
        process_id = member.metadata.process_id
        for held in (member.current.assigned, member.current.pending):
            self._active.update(dict.fromkeys(held.active, process_id))
            for index, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
                for task in tasks:
                    index.setdefault(task, set()).add(process_id)

    def _unindex(self, member: StreamsGroupMember) -> None:
        process_id = member.metadata.process_id
        for held in (member.current.assigned, member.current.pending):
            for task in held.active:
                if self._active.get(task) == process_id:
                    del self._active[task]
            for index, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
                for task in tasks:
                    _discard(index, task, process_id)

    # --- inspection ---------------------------------------------------------------------------------------------------

    def hard_state(self) -> Any:  # noqa: ANN401
        return {
            "epoch": self.group_epoch,
            "metadata_hash": self.metadata_hash,
            "validated_topology_epoch": self.validated_topology_epoch,
            "configs": dict(self.last_assignment_configs),
            "descriptions": self.description_epochs,
            "assignment_epoch": self.assignment_epoch,
            "assigned_at_ms": self.assigned_at_ms,
            "topology": self.topology,
            "targets": dict(self.targets),
            "members": {member_id: (member.metadata, member.current) for member_id, member in self.members.items()},
            "static_members": dict(self.static_members),
            "active": dict(self._active),
            "standby": {task: frozenset(processes) for task, processes in self._standby.items()},
            "warmup": {task: frozenset(processes) for task, processes in self._warmup.items()},
        }


def _discard(index: dict[Task, set[str]], task: Task, process_id: str) -> None:
    processes = index.get(task)
    if processes is not None:
        processes.discard(process_id)
        if not processes:
            del index[task]
