"""Share groups that live through anything: members come, beat, lose answers, leave, crash; topics come, grow and go;
administrators change and delete; share coordinators answer late, or not; the coordinator restarts.

After each step: whoever has a partition finds state for it at the share coordinators, epochs only grow, and a replayed
log gives the same state. And when things calm down, everybody is answered, and every partition has its members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.broker.coordinators.core_factory import group_core
from ottla.core.coordinator.contract import COMMITTED, Outcome, Result
from ottla.core.groups.admin import DeleteGroup
from ottla.core.groups.coordinator import GroupCoordinator
from ottla.core.share.group.effects import DeleteState, InitializeState, Refusal
from ottla.core.share.group.group import ShareGroup
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.property.coordinator import Coordinator

GROUP = "g"
MEMBERS = [f"m{number}" for number in range(4)]
TOPICS = ["t1", "t2", "u"]
SUBSCRIPTIONS = st.sets(st.sampled_from(TOPICS), min_size=1).map(sorted).map(tuple)
NOT_ANSWERED = object()
ROUNDS_MAX = 4
"""In so many rounds of heartbeats a group must come to rest."""

Effect = InitializeState | DeleteState


def new_core() -> GroupCoordinator:
    core = group_core()
    assert isinstance(core, GroupCoordinator)
    return core


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[bytes, int], int] = {}
        """What the share coordinators keep: the state epoch by share partition."""
        self.effects: list[Effect] = []
        """Asked for, and not answered. They are done in order."""
        self.epochs: dict[str, int] = {}
        self.assigned: dict[str, Mapping[bytes, Sequence[int]]] = {}
        """What members were last told."""
        self.answers: dict[int, Any] = {}
        self.group_epoch = 0
        self.coordinator = Coordinator(new_core, self.hear_result)

    def hear_result(self, result: Result) -> None:
        for reply in result.replies:
            assert self.answers[reply.token] is NOT_ANSWERED, "somebody is answered twice"
            self.answers[reply.token] = reply.message
        self.effects += result.effects
        if result.after is not None:
            self.settled(result.after, COMMITTED)

    def settled(self, subject: Any, outcome: Outcome) -> None:
        self.coordinator.apply(self.coordinator.core.settled(subject, outcome, self.coordinator.context()))

    def ask(self, request: Any) -> Any:
        """The answer; NOT_ANSWERED if it is still to come; None if the request was refused."""
        token = len(self.answers)
        self.answers[token] = NOT_ANSWERED
        try:
            self.coordinator.handle(request, token)
        except Reject as reject:
            self.answers[token] = reject
            return None
        return self.answers[token]

    # --- members ------------------------------------------------------------------------------------------------------

    def send(self, member_id: str, epoch: int, data: st.DataObject | None = None, **fields: Any) -> None:
        """Share coordinators answer at once, in part or wholly, or not before the member is answered."""
        answer = self.ask(ShareGroupHeartbeatRequest(GROUP, member_id, epoch, **fields))
        token = len(self.answers) - 1
        if answer is NOT_ANSWERED:
            how = "all" if data is None else data.draw(st.sampled_from(["all", "some", "late"]))
            if how == "all":
                self.settle_all()
            elif how == "some":
                assert data is not None
                self.settle_in_part(data)
            self.coordinator.pass_time(
                1_000 if self.answers[token] is NOT_ANSWERED else 0
            )  # nobody waits longer than that
            answer = self.answers[token]
        self.hear(member_id, answer)

    def hear(self, member_id: str, answer: ShareGroupHeartbeatResponse | None) -> None:
        if answer is None or answer.member_epoch < 0:
            self.epochs.pop(member_id, None)
            self.assigned.pop(member_id, None)
            return
        self.epochs[member_id] = answer.member_epoch
        if answer.assignment is not None:
            self.assigned[member_id] = {
                each.topic_id: tuple(each.partitions) for each in answer.assignment.topic_partitions
            }

    @initialize()
    def create_topic(self) -> None:
        self.grow("t1", 2)

    @rule(member_id=st.sampled_from(MEMBERS), names=SUBSCRIPTIONS, data=st.data())
    def join(self, member_id: str, names: tuple[str, ...], data: st.DataObject) -> None:
        self.send(member_id, 0, data, subscribed_topic_names=names)

    @rule(member_id=st.sampled_from(MEMBERS), names=SUBSCRIPTIONS)
    def join_without_waiting(self, member_id: str, names: tuple[str, ...]) -> None:
        """Others go on while it waits; it is never told."""
        self.ask(ShareGroupHeartbeatRequest(GROUP, member_id, 0, subscribed_topic_names=names))

    @precondition(lambda self: self.epochs)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        member_id = self.member(data)
        self.send(member_id, self.epochs[member_id], data)

    @precondition(lambda self: self.epochs)
    @rule(data=st.data(), names=SUBSCRIPTIONS)
    def resubscribe(self, data: st.DataObject, names: tuple[str, ...]) -> None:
        member_id = self.member(data)
        self.send(member_id, self.epochs[member_id], data, subscribed_topic_names=names)

    @precondition(lambda self: self.epochs)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.send(self.member(data), -1)

    @precondition(lambda self: self.epochs)
    @rule()
    def leave_all(self) -> None:
        for member_id in sorted(self.epochs):
            self.send(member_id, -1)

    def member(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.epochs)))

    @rule(by_ms=st.sampled_from([1, 500, 1_000, 30_000, 45_000]))
    def wait(self, by_ms: int) -> None:
        self.coordinator.pass_time(by_ms)

    # --- topics -------------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(TOPICS), by=st.integers(1, 2))
    def grow(self, name: str, by: int) -> None:
        self.coordinator.grow(name, by, 6)

    @rule(name=st.sampled_from(TOPICS))
    def delete_topic(self, name: str) -> None:
        topic = self.coordinator.environment.topics.by_name(name)
        if topic is not None:
            self.kept = {key: epoch for key, epoch in self.kept.items() if key[0] != topic.topic_id}
            self.coordinator.delete_topic(name)

    # --- share coordinators -------------------------------------------------------------------------------------------

    @precondition(lambda self: self.effects)
    @rule()
    def settle(self) -> None:
        effect = self.effects.pop(0)
        self.end(effect, self.do(effect, {(each[0], each[1]) for each in effect.partitions}))

    @precondition(lambda self: self.effects)
    @rule(data=st.data())
    def settle_in_part(self, data: st.DataObject) -> None:
        """Some are refused; with some of these, the answer was lost and not the work."""
        effect = self.effects.pop(0)
        keys = [(each[0], each[1]) for each in effect.partitions]
        refused = data.draw(st.sets(st.sampled_from(keys), min_size=1))
        done = data.draw(st.sets(st.sampled_from(sorted(refused))))
        refusals = self.do(effect, (set(keys) - refused) | done)
        self.end(effect, refusals | dict.fromkeys(refused, Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)))

    def do(self, effect: Effect, keys: set[tuple[bytes, int]]) -> dict[tuple[bytes, int], Refusal]:
        """What a share coordinator does; and what it refuses, for the topic is gone."""
        refusals = {}
        for key in sorted(keys):
            topic = self.coordinator.environment.topics.by_id(key[0])
            if topic is None or key[1] >= topic.partition_count:
                refusals[key] = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif isinstance(effect, DeleteState):
                self.kept.pop(key, None)
            elif effect.state_epoch < self.kept.get(key, 0):
                refusals[key] = Refusal(ErrorCode.FENCED_STATE_EPOCH)
            else:
                self.kept[key] = effect.state_epoch
        return refusals

    def end(self, effect: Effect, refusals: Mapping[tuple[bytes, int], Refusal]) -> None:
        outcome = COMMITTED
        if refusals:
            first = next(iter(refusals.values()))
            outcome = Outcome(first.code, dict(refusals), first.message)
        self.settled(effect, outcome)

    @rule(is_done=st.booleans())
    def restart(self, is_done: bool) -> None:
        """The share coordinators may have done by then what nobody hears of."""
        for effect in self.effects if is_done else ():
            self.do(effect, {(each[0], each[1]) for each in effect.partitions})
        self.effects, self.answers = [], {}
        self.coordinator.start()

    # --- administrators -----------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(TOPICS), partition=st.integers(0, 3))
    def alter(self, name: str, partition: int) -> None:
        kind = AlterShareGroupOffsetsRequest
        entry = kind.AlterShareGroupOffsetsRequestPartition(partition, 5)
        self.ask(kind(GROUP, (kind.AlterShareGroupOffsetsRequestTopic(name, (entry,)),)))

    @rule(names=SUBSCRIPTIONS)
    def delete_offsets(self, names: tuple[str, ...]) -> None:
        kind = DeleteShareGroupOffsetsRequest
        self.ask(kind(GROUP, tuple(map(kind.DeleteShareGroupOffsetsRequestTopic, names))))

    @rule()
    def delete_group(self) -> None:
        self.ask(DeleteGroup(GROUP))

    # --- rest ---------------------------------------------------------------------------------------------------------

    @rule()
    def calm_down(self) -> None:
        """Everything is answered and everybody beats; those who are gone expire: the group comes to rest."""
        self.settle_all()
        self.coordinator.pass_time(45_000 - 10_000)
        for _ in range(ROUNDS_MAX):
            self.beat_all()
        assert NOT_ANSWERED not in self.answers.values()
        if not self.group().is_empty:
            epoch = self.group().group_epoch
            self.beat_all()
            assert self.group().group_epoch == epoch
            self.check_rest(self.group())

    def beat_all(self) -> None:
        for member_id in sorted(self.epochs):
            # With its topics, as a client does that may have missed an answer.
            member = self.group().members.get(member_id)
            names = () if member is None else tuple(sorted(member.names))
            self.send(member_id, self.epochs[member_id], subscribed_topic_names=names)
            self.settle_all()
        self.coordinator.pass_time(5_000)

    def settle_all(self) -> None:
        self.coordinator.pass_time(0)
        while self.effects:
            self.settle()

    def check_rest(self, group: ShareGroup) -> None:
        assert group.group_epoch == group.assignment_epoch
        assert not group.state_topics.initializing
        topics = self.coordinator.environment.topics
        found = set()
        for member_id, member in group.members.items():
            assert dict(member.assigned) == dict(group.target(member_id)) == dict(self.assigned[member_id])
            assert all(topics.by_id(topic_id).name in member.names for topic_id in member.assigned)  # type: ignore[union-attr]
            found |= {(topic_id, each) for topic_id, partitions in member.assigned.items() for each in partitions}
        assert found == self.coordinator.partitions_of(group.subscribed_topics())

    # --- what must always hold ----------------------------------------------------------------------------------------

    def group(self) -> ShareGroup:
        group = self.coordinator.core.families["share"]._table.get(GROUP)  # type: ignore[attr-defined]
        return group if isinstance(group, ShareGroup) else ShareGroup(GROUP)

    @invariant()
    def what_counts_as_initialized_has_state(self) -> None:
        """So whoever is given a partition can fetch it. A deletion that is under way takes its marks first."""
        for topic_id, topic in self.group().state_topics.initialized.items():
            for partition in topic.partitions:
                assert (topic_id, partition) in self.kept

    @invariant()
    def members_have_what_has_state(self) -> None:
        group, topics = self.group(), self.coordinator.environment.topics
        initialized = group.state_topics.initialized
        for member in group.members.values():
            for topic_id, partitions in member.assigned.items():
                if topics.by_id(topic_id) is not None:
                    assert initialized[topic_id].partitions >= set(partitions)

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.group()
        if group.group_epoch == 1:
            self.group_epoch = 1  # another group, perhaps
        assert group.group_epoch >= self.group_epoch
        self.group_epoch = group.group_epoch
        assert group.assignment_epoch <= group.group_epoch
        assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())

    @invariant()
    def a_replayed_log_gives_the_same_state(self) -> None:
        self.coordinator.check_replay()


TestShareGroups: Callable[[], Any] = Machine.TestCase
TestShareGroups.settings = settings(  # type: ignore[attr-defined]
    max_examples=120, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
