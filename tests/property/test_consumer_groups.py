"""Consumer groups that live through anything: members come, beat, obey or not, leave, crash; topics come and grow; the
coordinator restarts. After each step: no partition has two owners, epochs only grow, nobody owns what he did not ask
for, and a replayed log gives the same state. And when things calm down, every group comes to rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.core.coordinator.contract import Result
from ottla.core.groups.consumer.family import ConsumerFamily
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.members import ConsumerGroupMember
from ottla.core.groups.coordinator import GroupCoordinator
from ottla.core.groups.modern.members import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.table import GroupTable
from ottla.wire.reject import Reject
from ottla.wire.types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.property.coordinator import Coordinator

GROUP = "g"
MEMBERS = [f"m{number}" for number in range(5)]
TOPICS = ["t1", "t2", "u"]
SUBSCRIPTIONS = st.sets(st.sampled_from(TOPICS)).map(sorted).map(tuple)
REGEXES = st.sampled_from([None, "", "t.*", "u"])
ROUNDS_MAX = 12
"""In so many rounds of heartbeats a group must come to rest."""

Owned = dict[bytes, set[int]]


def new_core() -> GroupCoordinator:
    return GroupCoordinator([ConsumerFamily(GroupTable())])


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator(new_core, self.hear_result)
        self.coordinator.environment.settings.set("group.consumer.assignment.interval.ms", "0")
        self.answer: Any = None
        self.epochs: dict[str, int] = {}
        """What each member was last told."""
        self.owned: dict[str, Owned] = {}
        """What each member reads: it drops what was taken, and adds what was given, with its next report."""
        self.told: dict[str, Owned] = {}
        """What each member was last told to own."""
        self.group_epoch = 0

    def hear_result(self, result: Result) -> None:
        if result.replies:
            self.answer = result.replies[-1].message

    # --- members ------------------------------------------------------------------------------------------------------

    def send(self, member_id: str, epoch: int, **fields: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)
        self.answer = None
        try:
            self.coordinator.handle(request)
        except Reject:
            self.forget(member_id)
        else:
            self.hear(member_id, self.answer)

    def hear(self, member_id: str, response: ConsumerGroupHeartbeatResponse) -> None:
        if response.member_epoch < 0:
            self.forget(member_id)
            return
        self.epochs[member_id] = response.member_epoch
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self.told[member_id] = {topic.topic_id: set(topic.partitions) for topic in topics}

    def forget(self, member_id: str) -> None:
        for known in (self.epochs, self.owned, self.told):
            known.pop(member_id, None)

    def report(self, member_id: str) -> tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...]:
        """Do as told, and say so."""
        self.owned[member_id] = self.told.get(member_id, {})
        return tuple(
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id, tuple(sorted(partitions)))
            for topic_id, partitions in self.owned.get(member_id, {}).items()
        )

    @initialize()
    def create_topic(self) -> None:
        self.grow("t1", 3)

    @rule(member_id=st.sampled_from(MEMBERS), names=SUBSCRIPTIONS, regex=REGEXES, is_static=st.booleans())
    def join(self, member_id: str, names: tuple[str, ...], regex: str | None, is_static: bool) -> None:
        instance_id = f"i{member_id}" if is_static else None
        self.forget(member_id)
        self.send(
            member_id,
            0,
            instance_id=instance_id,
            rebalance_timeout_ms=20_000,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            topic_partitions=(),
        )

    @rule(member_id=st.sampled_from(MEMBERS), reports=st.booleans())
    def beat(self, member_id: str, reports: bool) -> None:
        if member_id in self.epochs:
            owned = self.report(member_id) if reports else None
            self.send(member_id, self.epochs[member_id], topic_partitions=owned)

    @rule(member_id=st.sampled_from(MEMBERS))
    def beat_and_lose_the_answer(self, member_id: str) -> None:
        if member_id in self.epochs:
            epoch, told = self.epochs[member_id], self.told.get(member_id, {})
            self.send(member_id, epoch, topic_partitions=self.report(member_id))
            if member_id in self.epochs:
                self.epochs[member_id], self.told[member_id] = epoch, told

    @rule(member_id=st.sampled_from(MEMBERS), names=SUBSCRIPTIONS)
    def resubscribe(self, member_id: str, names: tuple[str, ...]) -> None:
        if member_id in self.epochs:
            self.send(member_id, self.epochs[member_id], subscribed_topic_names=names)

    @rule(member_id=st.sampled_from(MEMBERS), epoch=st.sampled_from([-1, -2]))
    def leave(self, member_id: str, epoch: int) -> None:
        group = self.group()
        member = group.members.get(member_id) if group is not None else None
        if member is not None and (epoch == -1 or member.instance_id is not None):
            self.send(member_id, epoch, instance_id=member.instance_id)

    @rule(by_ms=st.sampled_from([1, 500, 10_001, 20_000, 45_000]))
    def wait(self, by_ms: int) -> None:
        self.coordinator.pass_time(by_ms)

    @rule(name=st.sampled_from(TOPICS), by=st.integers(1, 3))
    def grow(self, name: str, by: int) -> None:
        self.coordinator.grow(name, by, 8)

    @rule(name=st.sampled_from(TOPICS))
    def delete(self, name: str) -> None:
        if self.coordinator.environment.topics.by_name(name) is not None:
            self.coordinator.delete_topic(name)

    @rule()
    def restart(self) -> None:
        self.coordinator.start()

    @rule()
    def calm_down(self) -> None:
        """Everybody who lives beats, and those who are gone expire: the group comes to rest."""
        self.coordinator.pass_time(12_000)
        for _ in range(ROUNDS_MAX):
            for member_id in list(self.epochs):
                self.send(member_id, self.epochs[member_id], topic_partitions=self.report(member_id))
            self.coordinator.pass_time(5_000)
        group = self.group()
        if group is not None and group.members:
            assert group.state_name() == "Stable", group.hard_state()
            self.check_all_is_owned(group)

    def check_all_is_owned(self, group: ConsumerGroup) -> None:
        owned = {
            (topic_id, partition)
            for member in group.members.values()
            for topic_id, partitions in member.assigned.items()
            for partition in partitions
        }
        assert owned == self.coordinator.partitions_of(group.subscribed_topics())

    # --- what must always hold ----------------------------------------------------------------------------------------

    def group(self) -> ConsumerGroup | None:
        group = self.coordinator.core.families["consumer"]._table.get(GROUP)  # type: ignore[attr-defined]
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        group = self.group()
        if group is None:
            return
        seen: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for topic_id, partition in _held(member):
                assert seen.setdefault((topic_id, partition), member.member_id) == member.member_id
                assert group.owner(topic_id, partition) == member.member_id

    @invariant()
    def what_a_member_reads_is_its_own(self) -> None:
        """So no two members read one partition, as long as they do as they are told."""
        group = self.group()
        for member_id, owned in self.owned.items():
            member = group.members.get(member_id) if group is not None else None
            if member is not None:
                reads = {(topic_id, each) for topic_id, partitions in owned.items() for each in partitions}
                assert reads <= set(_held(member))

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.group()
        if group is None:
            return
        assert group.group_epoch >= self.group_epoch
        self.group_epoch = group.group_epoch
        assert group.assignment_epoch <= group.group_epoch
        for member in group.members.values():
            has_left = member.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH
            assert has_left or member.member_epoch <= group.assignment_epoch

    @invariant()
    def a_replayed_log_gives_the_same_state(self) -> None:
        self.coordinator.check_replay()


def _held(member: ConsumerGroupMember) -> list[tuple[bytes, int]]:
    return [
        (topic_id, partition)
        for owned in (member.assigned, member.pending_revocation)
        for topic_id, partitions in owned.items()
        for partition in partitions
    ]


TestConsumerGroups: Callable[[], Any] = Machine.TestCase
TestConsumerGroups.settings = settings(  # type: ignore[attr-defined]
    max_examples=120, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
