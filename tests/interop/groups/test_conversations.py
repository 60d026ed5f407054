"""Random conversations about groups with ottla and Apache Kafka at once, in all versions: not one field may differ.

`CONVERSATIONS=500 CONVERSATION_SEED=7 pytest -m interop tests/interop/groups/test_conversations.py` has more of them. A
failure shows the whole conversation.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.wire import types
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import encode_framed
from tests.component.broker.raw_client import READY_ATTEMPTS
from tests.interop.groups.brokers import new_node
from tests.interop.groups.conversation import ONE_THREAD, Conversation, Side
from tests.interop.node.brokers import APACHE, OTTLA, wanted

COUNT = int(os.environ.get("CONVERSATIONS", "30"))
SEED = int(os.environ.get("CONVERSATION_SEED", "1"))
STEPS = 60
KEY_TYPES = (0, 0, 1, 2, 9)
NOTES = ("", "note", None, "x" * 5000)
MEMBERS = 4
SESSION_MS, REBALANCE_MS = 600_000, 1_200_000
"""No timeout ends within a conversation."""
PARTITIONS = 3
SERVED = {
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "SyncGroup": (0, 5),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "OffsetDelete": (0, 0),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "DeleteGroups": (0, 2),
}
"""The versions that both brokers have."""


@pytest.fixture(scope="module")
def sides(apache_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], tuple[Side, Side]]]:
    if set(wanted()) != {OTTLA, APACHE}:
        pytest.skip("this takes both brokers at once")
    with (
        new_node(OTTLA, tmp_path_factory.mktemp("ottla")) as ottla,
        new_node(APACHE, tmp_path_factory.mktemp("apache"), **ONE_THREAD) as apache,
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


def test_every_version_is_talked_about():
    """Both have these; what Apache Kafka 4.3.1 does not have yet cannot be compared."""
    for api, (low, high) in SERVED.items():
        entry = MESSAGES[f"{api}Request"]
        assert entry.low <= low <= high <= entry.high


class Talk:
    """One random conversation about one group."""

    def __init__(self, both: tuple[Side, Side], seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.both = both
        self.group = f"talk-{name}"
        self.topic = f"topic-{name}"
        self.says = Conversation(*both)
        self.says.log.append(f"seed {seed}")
        self.members: dict[str, str] = {}
        """Symbols of the ids of members, by client id."""
        self.using: dict[str, str] = {}
        """As whom each client has asked last."""

    def run(self) -> None:
        for side in self.both:
            side.own = self.group
            side.create_topic(self.topic, PARTITIONS)
            self._wait_for_coordinators(side)
        actions = [*self.weighted()]
        for _ in range(STEPS):
            self.random.choice(actions)()
        self.settle()
        for client_id in sorted(self.members, key=lambda each: self.members[each] == self.says.leader):
            self.leave(client_id)
        self.describe()
        self.delete()

    def weighted(self) -> Iterator[Callable[[], object]]:
        yield from [self.join] * 6
        yield from [self.sync] * 5
        yield from [self.heartbeat] * 3
        yield from [self.commit] * 3
        yield from [self.fetch] * 3
        yield from [self.settle] * 2
        yield from (self.leave, self.describe, self.list_groups, self.delete, self.delete_offsets, self.find)

    def _wait_for_coordinators(self, side: Side) -> None:
        """Who looks for a coordinator of groups or of transactions first makes its topic, for which Apache Kafka needs
        a moment."""
        beat = types.HeartbeatRequest(self.group, 1, "nobody")
        looks = [types.FindCoordinatorRequest(key_type=kind, coordinator_keys=(self.group,)) for kind in (0, 1)]
        for _ in range(READY_ATTEMPTS):
            codes = [side.client.ask(look, 6).coordinators[0].error_code for look in looks]
            if not any(codes) and side.client.ask(beat, 4).error_code == 25:
                return
        raise AssertionError("no coordinators")

    # --- choices --------------------------------------------------------------------------------------------------

    def version(self, api: str, low: int = 0) -> int:
        least, most = SERVED[api]
        return self.random.randint(max(least, low), most)

    def idle_client(self) -> str | None:
        client_ids = [client_id for client_id in self.client_ids() if client_id not in self.says.waiting]
        return self.random.choice(client_ids) if client_ids else None

    def client_ids(self) -> list[str]:
        return [f"app-{number}" for number in range(MEMBERS)]

    def some_id(self, client_id: str) -> str:
        """Mostly the member's own id; sometimes another's, or nobody's.

        Never that of a member whose request is held back: if it joins twice, its first request gets no answer from
        Apache Kafka (`repeated-join`).
        """
        held = {self.using.get(each) for each in self.says.waiting}
        own = self.members.get(client_id, "")
        others = [each for each in self.members.values() if each not in held] + ["nobody", ""]
        return own if own not in held and self.random.random() < 0.85 else self.random.choice(others)

    def some_generation(self) -> int:
        return self.says.generation + self.random.choice([0] * 12 + [-1, 1, -100])

    def instance_id(self, client_id: str) -> str | None:
        return f"static-{client_id}" if self.is_static(client_id) else None

    def is_static(self, client_id: str) -> bool:
        return client_id.endswith("3")

    # --- the classic protocol ---------------------------------------------------------------------------------------

    def join(self, client_id: str | None = None) -> None:
        client_id = client_id or self.idle_client()
        if client_id is None:
            return
        low = 5 if self.is_static(client_id) else 0
        version = self.version("JoinGroup", low)
        member = self.some_id(client_id)
        kind = "consumer" if self.random.random() < 0.96 else self.random.choice(["connect", ""])
        names = self.random.choice([["range"], ["range", "roundrobin"], ["roundrobin", "range"], ["range", "sticky"]])
        if self.random.random() < 0.04:
            names = self.random.choice([[], ["other"]])
        wish = encode_framed(types.ConsumerProtocolSubscription(topics=(self.topic,)), 1)
        protocols = tuple(types.JoinGroupRequest.JoinGroupRequestProtocol(name, wish) for name in names)
        session_ms = SESSION_MS if self.random.random() < 0.97 else 1
        self.ask_join(client_id, version, member, kind, protocols, session_ms)

    def ask_join(
        self, client_id: str, version: int, member: str, kind: str, protocols: Any, session_ms: int = SESSION_MS
    ) -> None:
        self.using[client_id] = member
        instance = self.instance_id(client_id) if version >= 5 else None
        number = self.says.number + 1

        def build(side: Side) -> object:
            return types.JoinGroupRequest(
                self.group,
                session_ms,
                REBALANCE_MS if version >= 1 else -1,
                side.id(member),
                instance,
                kind,
                protocols,
                "because" if version >= 8 else None,
            )

        self.says.say(client_id, version, build)
        self.note_join(client_id, number)

    def note_join(self, client_id: str, number: int) -> None:
        """Ids are named after the step that asked for them, even if the answer comes later."""
        ours = self.both[0]
        self.members.setdefault(client_id, "")
        if f"M{number}" in ours.ids:
            self.members[client_id] = f"M{number}"

    def learn(self) -> None:
        """Which ids have come with answers that were held back, and how far the group is."""
        ours = self.both[0]
        (group,) = ours.client.ask(types.DescribeGroupsRequest((self.group,)), 5).groups
        known = {ours.symbols.get(each.member_id, ""): each.client_id for each in group.members}
        for symbol, client_id in known.items():
            if symbol:
                self.members[client_id] = symbol

    def sync(self, client_id: str | None = None) -> None:
        client_id = client_id or self.idle_client()
        if client_id is None or client_id not in self.members:
            return
        version = self.version("SyncGroup", 3 if self.is_static(client_id) else 0)
        member, generation = self.some_id(client_id), self.some_generation()
        self.using[client_id] = member
        gives = member == self.says.leader or self.random.random() < 0.1
        right = self.random.random() < 0.95
        instance = self.instance_id(client_id) if version >= 3 else None

        def build(side: Side) -> object:
            kind = types.SyncGroupRequest.SyncGroupRequestAssignment
            given = (
                tuple(kind(side.id(each), f"for {each}".encode()) for each in sorted(set(self.members.values())))
                if gives
                else ()
            )
            protocol = ("consumer", "range") if right else ("connect", "other")
            return types.SyncGroupRequest(
                self.group,
                generation,
                side.id(member),
                instance,
                *((None, None) if version < 5 else (protocol[0], None)),
                given,
            )

        # The name of the protocol is left out: which one was chosen depends on who is in the group.
        self.says.say(client_id, version, build)

    def heartbeat(self) -> None:
        client_id = self.idle_client()
        if client_id is None:
            return
        version = self.version("Heartbeat", 3 if self.is_static(client_id) else 0)
        member, generation = self.some_id(client_id), self.some_generation()
        instance = self.instance_id(client_id) if version >= 3 else None
        self.says.say(
            client_id, version, lambda side: types.HeartbeatRequest(self.group, generation, side.id(member), instance)
        )

    def leave(self, client_id: str | None = None) -> None:
        client_id = client_id or self.idle_client()
        if client_id is None or client_id in self.says.waiting:
            return
        version = self.version("LeaveGroup", 3 if self.is_static(client_id) else 0)
        member = self.some_id(client_id)
        if not self.may_leave(member, client_id):
            return
        instance = self.instance_id(client_id)

        def build(side: Side) -> object:
            if version < 3:
                return types.LeaveGroupRequest(self.group, side.id(member))
            kind = types.LeaveGroupRequest.MemberIdentity
            return types.LeaveGroupRequest(self.group, members=(kind(side.id(member), instance),))

        self.says.say(client_id, version, build)

    def may_leave(self, member: str, client_id: str) -> bool:
        """Not a member that was only given an id (`pending-leave`), and not the leader while there are others: which of
        them becomes the leader depends on the order of a hash table at Apache Kafka."""
        is_leader = self.says.leader == member or (not member and self.is_static(client_id))
        may_be_named = member in self.says.joined or member in ("nobody", "")
        return may_be_named and not (is_leader and self.has_others(member))

    def has_others(self, member: str) -> bool:
        """Whether somebody else is in the group, even one whose join is held back and who has no symbol yet."""
        ours = self.both[0]
        (group,) = ours.client.ask(types.DescribeGroupsRequest((self.group,)), 5).groups
        return any(each.member_id != ours.id(member) for each in group.members)

    def settle(self) -> None:
        """Let everybody who is in the group join again and sync, so that it becomes stable."""
        wish = encode_framed(types.ConsumerProtocolSubscription(topics=(self.topic,)), 1)
        protocols = (types.JoinGroupRequest.JoinGroupRequestProtocol("range", wish),)
        self.learn()
        for client_id, member in list(self.members.items()):
            held = {self.using.get(each) for each in self.says.waiting}
            if client_id not in self.says.waiting and (not member or member not in held):
                self.ask_join(client_id, self.version("JoinGroup", 5), member, "consumer", protocols)
        self.learn()
        for client_id in list(self.members):
            if client_id not in self.says.waiting:
                self.sync(client_id)

    # --- offsets ----------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        client_id = self.idle_client()
        if client_id is None:
            return
        version = self.version("OffsetCommit")
        member, generation = self.some_id(client_id), self.some_generation()
        if self.random.random() < 0.3:
            member, generation = "", -1
        names = self.some_topics()
        # Offsets that are all refused make a group at Apache Kafka (`refused-commit`), so there must be one already.
        offset, note = self.random.randint(0, 50), self.random.choice(NOTES if self.says.leader else NOTES[:-1])
        epoch = self.random.choice([-1, 0, 3]) if version >= 6 else -1

        def build(side: Side) -> object:
            kind = types.OffsetCommitRequest
            return kind(
                self.group,
                generation,
                side.id(member),
                topics=tuple(
                    kind.OffsetCommitRequestTopic(
                        name if version < 10 else "",
                        side.topic_id(f"id of {name}") if version >= 10 else bytes(16),
                        tuple(
                            kind.OffsetCommitRequestPartition(index, offset + index, epoch, note) for index in indexes
                        ),
                    )
                    for name, indexes in names
                ),
            )

        self.says.say(client_id, version, build)

    def some_topics(self) -> list[tuple[str, list[int]]]:
        names = [(self.topic, self.random.sample(range(PARTITIONS + 1), self.random.randint(1, PARTITIONS)))]
        if self.random.random() < 0.2:
            names.append((f"{self.topic}-missing", [0]))
        return names

    def fetch(self) -> None:
        client_id = self.idle_client()
        if client_id is None:
            return
        version = self.version("OffsetFetch")
        stable = version >= 7 and self.random.random() < 0.5
        names = self.some_topics() if version < 2 or self.random.random() < 0.6 else None
        member, epoch = (
            (None, -1) if version < 9 or self.random.random() < 0.7 else (self.some_id(client_id), self.says.generation)
        )

        def build(side: Side) -> object:
            kind = types.OffsetFetchRequest
            if version < 8:
                old = None if names is None else tuple(kind.OffsetFetchRequestTopic(n, tuple(i)) for n, i in names)
                return kind(self.group, old, require_stable=stable)
            topics = None
            if names is not None:
                topics = tuple(
                    kind.OffsetFetchRequestTopics(
                        name if version < 10 else "",
                        side.topic_id(f"id of {name}") if version >= 10 else bytes(16),
                        tuple(indexes),
                    )
                    for name, indexes in names
                )
            one = kind.OffsetFetchRequestGroup(self.group, None if member is None else side.id(member), epoch, topics)
            other = kind.OffsetFetchRequestGroup(f"{self.group}-other", topics=topics)
            return kind(groups=(one, other), require_stable=stable)

        self.says.say(client_id, version, build)

    def delete_offsets(self) -> None:
        names = self.some_topics()
        kind = types.OffsetDeleteRequest
        request = kind(
            self.group,
            tuple(
                kind.OffsetDeleteRequestTopic(name, tuple(map(kind.OffsetDeleteRequestPartition, indexes)))
                for name, indexes in names
            ),
        )
        self.admin("OffsetDelete", request)

    # --- administration ---------------------------------------------------------------------------------------------

    def admin(self, api: str, request: object, low: int = 0) -> None:
        self.says.say("admin", self.version(api, low), lambda side: request)

    def describe(self) -> None:
        version = self.version("DescribeGroups")
        request = types.DescribeGroupsRequest(
            (self.group, f"{self.group}-other"), version >= 3 and self.random.random() < 0.3
        )
        self.says.say("admin", version, lambda side: request)

    def list_groups(self) -> None:
        version = self.version("ListGroups", 4)
        states = ("Dead",) if self.random.random() < 0.5 else ("PreparingRebalance", "nonsense")
        self.says.say("admin", version, lambda side: types.ListGroupsRequest(states))

    def delete(self) -> None:
        request = types.DeleteGroupsRequest((self.group, f"{self.group}-other"))
        answer = self.says.say("admin", self.version("DeleteGroups"), lambda side: request)
        if not all(each.error_code for each in answer.results):
            self.says.generation, self.says.leader = 0, ""

    def find(self) -> None:
        version = self.version("FindCoordinator")
        key_type = self.random.choice(KEY_TYPES) if version >= 1 else 0

        def build(side: Side) -> object:
            if version < 4:
                return types.FindCoordinatorRequest(self.group, key_type)
            return types.FindCoordinatorRequest(key_type=key_type, coordinator_keys=(self.group, "x", ""))

        self.says.say("admin", version, build)
