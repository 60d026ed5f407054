"""Random conversations with consumer groups (KIP-848), with ottla and Apache Kafka at once: not one field may differ.

Members join, own what they are told to own or are late with it, say wrong things, leave and come back; somebody
commits, looks and deletes. Assignments are worked out at once, so that nothing depends on the clock; and
by ranges, since with `uniform` who gets which partition depends on the order of a hash table.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.wire import types
from tests.component.broker.raw_client import READY_ATTEMPTS
from tests.interop.groups.brokers import new_node
from tests.interop.groups.conversation import ONE_THREAD, Conversation, Side
from tests.interop.node.brokers import APACHE, OTTLA, wanted

COUNT = int(os.environ.get("CONVERSATIONS", "30"))
SEED = int(os.environ.get("CONVERSATION_SEED", "1"))
STEPS = 80
MEMBERS = ("ana", "bea", "cia", "dot")
STATIC = "dot"
PARTITIONS = {"a": 3, "b": 2}
LEAVING, LEAVING_FOR_A_WHILE = -1, -2
SETTINGS = {"group_consumer_assignment_interval_ms": 0}

Owned = dict[str, tuple[int, ...]]
"""Partitions by the end of their topic's name."""


@pytest.fixture(scope="module")
def sides(apache_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], tuple[Side, Side]]]:
    if set(wanted()) != {OTTLA, APACHE}:
        pytest.skip("this takes both brokers at once")
    with (
        new_node(OTTLA, tmp_path_factory.mktemp("ottla"), **SETTINGS) as ottla,
        new_node(APACHE, tmp_path_factory.mktemp("apache"), **SETTINGS, **ONE_THREAD) as apache,
    ):
        yield lambda: (Side(OTTLA, ottla.bootstrap_servers), Side(APACHE, apache.bootstrap_servers))


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_both_say_the_same(sides: Callable[[], tuple[Side, Side]], seed: int):
    both = sides()
    try:
        Talk(both, seed, f"{seed}-{os.getpid()}").run()
    finally:
        for side in both:
            side.close()


class Member:
    """What a member knows: its epoch, what it owns, and what it was told to own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_in = False
        """Whether the coordinator knows it, whatever it thinks itself."""
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.epoch = 0
        self.owned: Owned = {}
        self.told: Owned = {}

    @property
    def instance_id(self) -> str | None:
        return f"static-{self.name}" if self.name == STATIC else None


class Talk:
    """One random conversation about one group."""

    def __init__(self, both: tuple[Side, Side], seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.both = both
        self.name = name
        self.group = f"talk-{name}"
        self.says = Conversation(*both)
        self.says.log.append(f"seed {seed}")
        self.members = {each: Member(each) for each in MEMBERS}

    def topic(self, end: str) -> str:
        return f"{self.name}-{end}"

    def run(self) -> None:
        for side in self.both:
            side.own = self.group
            for end, count in PARTITIONS.items():
                side.create_topic(self.topic(end), count)
            self._wait_for_coordinator(side)
        actions = [*self.weighted()]
        for _ in range(STEPS):
            self.random.choice(actions)()
        for member in self.members.values():
            self.beat(member, LEAVING)
        self.describe()
        self.delete()

    def weighted(self) -> Iterator[Callable[[], object]]:
        yield from [self.heartbeat] * 14
        yield from [self.join] * 4
        yield from [self.commit] * 2
        yield from [self.fetch] * 2
        yield from [self.describe] * 2
        yield from (self.leave, self.list_groups, self.delete, self.delete_offsets, self.wrong_heartbeat)

    def _wait_for_coordinator(self, side: Side) -> None:
        for _ in range(READY_ATTEMPTS):
            answer = side.client.ask(types.FindCoordinatorRequest(coordinator_keys=(self.group,)), 6)
            beat = types.HeartbeatRequest(self.group, 1, "nobody")
            if not answer.coordinators[0].error_code and side.client.ask(beat, 4).error_code == 25:
                return
        raise AssertionError("no coordinator")

    def some_member(self) -> Member:
        return self.members[self.random.choice(MEMBERS)]

    # --- heartbeats -------------------------------------------------------------------------------------------------

    def join(self) -> None:
        """A first heartbeat, or a further one that changes the subscription."""
        member = self.some_member()
        # Nobody subscribes to nothing: Apache Kafka may give such a member partitions (`empty-subscription`).
        names = self.random.choice([("a",), ("b",), ("a", "b"), ("a", "b"), ("a", "missing"), ("missing",)])
        assignor = "range" if member.epoch == 0 or self.random.random() < 0.9 else "nonsense"
        if member.epoch > 0 and self.random.random() < 0.6:
            self.beat(member, member.epoch, names=names, assignor=assignor)
            return
        member.forget()
        self.beat(member, 0, names=names, assignor=assignor, owned={})

    def heartbeat(self) -> None:
        """A steady one; mostly the member has done what it was told meanwhile, sometimes it is late."""
        member = self.some_member()
        if self.random.random() < 0.7:
            member.owned = member.told
        says_all = self.random.random() < 0.6
        self.beat(member, member.epoch, owned=member.owned if says_all else None)

    def wrong_heartbeat(self) -> None:
        member = self.some_member()
        epoch = self.random.choice([member.epoch + 1, member.epoch - 1, 99, -3])
        owned = self.random.choice([None, {}, {"a": (0, 1, 2)}, member.owned])
        self.beat(member, epoch, owned=owned)

    def leave(self) -> None:
        member = self.some_member()
        self.beat(member, LEAVING_FOR_A_WHILE if member.instance_id and self.random.random() < 0.6 else LEAVING)

    def beat(
        self,
        member: Member,
        epoch: int,
        *,
        names: tuple[str, ...] | None = None,
        assignor: str | None = None,
        owned: Owned | None = None,
    ) -> None:
        is_first = epoch == 0
        if is_first and member.is_in:
            self.beat(member, LEAVING)  # a second join is answered in another way (`consumer-tells-again`)
        if is_first:
            names = names if names is not None else ("a",)
            assignor = assignor or "range"
            owned = {} if owned is None else owned
        version = self.random.choice([0, 1])

        def build(side: Side) -> object:
            kind = types.ConsumerGroupHeartbeatRequest
            return kind(
                self.group,
                member.name,
                epoch,
                member.instance_id,
                None,
                60_000 if is_first else -1,
                None if names is None else tuple(self.topic(each) for each in names),
                None,
                assignor,
                None
                if owned is None
                else tuple(
                    kind.TopicPartitions(side.topic_id(f"id of {self.topic(end)}"), indexes)
                    for end, indexes in sorted(owned.items())
                ),
            )

        self.note(member, self.says.say(member.name, version, build))

    def note(self, member: Member, answer: Any) -> None:
        if answer.error_code in (25, 69, 82, 110):  # unknown, fenced: it has to begin anew
            member.is_in = member.is_in and answer.error_code in (82, 110)
            member.forget()
        if answer.error_code:
            return
        member.is_in = answer.member_epoch >= 0  # who is away for a while comes back with a first join
        if not member.is_in:
            member.forget()
            return
        member.epoch = answer.member_epoch
        if answer.assignment is not None:
            ours = self.both[0]
            ends = {wire_id: end for end in PARTITIONS for wire_id in [ours.topic_id(f"id of {self.topic(end)}")]}
            member.told = {
                ends[each.topic_id]: tuple(sorted(each.partitions)) for each in answer.assignment.topic_partitions
            }

    # --- others -----------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        member = self.some_member()
        epoch = member.epoch + self.random.choice([0, 0, 0, 0, -1, 1])
        name, epoch = self.random.choice([(member.name, epoch)] * 4 + [("", -1), ("nobody", 1)])
        version = self.random.choice([2, 5, 8, 9, 9, 10])
        topic, index = self.topic(self.random.choice([*PARTITIONS])), self.random.randint(0, 1)

        def build(side: Side) -> object:
            kind = types.OffsetCommitRequest
            places = (kind.OffsetCommitRequestPartition(index, 7, -1, "note"),)
            named = topic if version < 10 else ""
            topic_id = side.topic_id(f"id of {topic}") if version >= 10 else bytes(16)
            return kind(self.group, epoch, name, topics=(kind.OffsetCommitRequestTopic(named, topic_id, places),))

        self.says.say(member.name, version, build)

    def fetch(self) -> None:
        member = self.some_member()
        epoch = member.epoch + self.random.choice([0, 0, 0, -1, 1])
        asked = self.random.choice([(None, -1), (member.name, epoch), (member.name, epoch), ("nobody", 1)])
        kind = types.OffsetFetchRequest
        group = kind.OffsetFetchRequestGroup(self.group, *asked, None)
        self.says.say(member.name, 9, lambda side: kind(groups=(group,), require_stable=True))

    def describe(self) -> None:
        version = self.random.choice([0, 1])
        ids = (self.group, f"{self.group}-other")
        self.says.say("admin", version, lambda side: types.ConsumerGroupDescribeRequest(ids))
        if self.random.random() < 0.3:
            old = self.random.choice([5, 6])
            self.says.say("admin", old, lambda side: types.DescribeGroupsRequest(ids))

    def list_groups(self) -> None:
        states = self.random.choice([("Stable",), ("assigning", "RECONCILING"), (), ("Empty",)])
        kinds = self.random.choice([(), ("consumer",), ("Classic",)])
        self.says.say("admin", 5, lambda side: types.ListGroupsRequest(states, kinds))

    def delete(self) -> None:
        self.says.say("admin", 2, lambda side: types.DeleteGroupsRequest((self.group,)))
        (gone,) = self.both[0].client.ask(types.ConsumerGroupDescribeRequest((self.group,)), 0).groups
        if gone.error_code:
            for member in self.members.values():
                member.is_in = False
                member.forget()

    def delete_offsets(self) -> None:
        kind = types.OffsetDeleteRequest
        topic = self.topic(self.random.choice([*PARTITIONS]))
        places = kind.OffsetDeleteRequestTopic(topic, (kind.OffsetDeleteRequestPartition(0),))
        self.says.say("admin", 0, lambda side: kind(self.group, (places,)))
