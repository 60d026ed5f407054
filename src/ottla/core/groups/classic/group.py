"""A classic group: its members and their votes, and what any kind of group can be asked.

Soft fields: everything but `stored`, see the package. `members` and what goes with them run ahead of `stored` while a
rebalance is under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.core.coordinator.partitioner import java_hash
from ottla.core.coordinator.records import tombstone
from ottla.core.groups.classic.member import ClassicGroupMember, Protocol, Terms
from ottla.core.groups.classic.states import GroupState, is_step
from ottla.core.groups.classic.subscriptions import SubscribedTopics
from ottla.core.groups.table import Claim, ExpiryRule, GroupKind, HoldsNothingElsewhere
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.group_classic import GroupMetadataKey, GroupMetadataValue

if TYPE_CHECKING:
    from ottla.core.coordinator.contract import Context
    from ottla.wire.keyed import KeyedRecord

__all__ = ["CONSUMER", "PENDING_MEMBERS_MAX", "ClassicGroup", "InitialDelay", "simple_group"]

PENDING_MEMBERS_MAX: Final = 10_000
"""Clients that ask for ids and never come back must not fill the memory: the oldest ids are forgotten then."""
CONSUMER: Final = "consumer"
"""The protocol type of consumers, whose metadata the broker can read."""


def _place_in_hash_map(name: str) -> int:
    """Among equal votes Apache Kafka takes what comes first in a Java HashMap of 16 buckets: sticky before range,
    range before roundrobin, that before cooperative-sticky (measured with 4.3.1)."""
    hashed = java_hash(name)
    return (hashed ^ (hashed & 0xFFFFFFFF) >> 16) & 15


class InitialDelay:
    """The first rebalance of a group waits for more members: `delay_ms` at a time, `remaining_ms` more at most."""

    __slots__ = ("delay_ms", "has_grown", "remaining_ms")

    def __init__(self, delay_ms: int, rebalance_timeout_ms: int) -> None:
        self.delay_ms = delay_ms
        self.remaining_ms = max(rebalance_timeout_ms - delay_ms, 0)
        self.has_grown = False
        """Whether a member has come since the last look."""

    def extend(self, step_ms: int) -> bool:
        """Wait once more if somebody has come and there is time."""
        if not self.has_grown or not self.remaining_ms:
            return False
        self.has_grown = False
        passed_ms, self.delay_ms = self.delay_ms, min(step_ms, self.remaining_ms)
        self.remaining_ms = max(self.remaining_ms - passed_ms, 0)
        return True


class ClassicGroup(HoldsNothingElsewhere):
    def __init__(self, group_id: str, since_ms: int | None = None) -> None:
        self.group_id = group_id
        self.stored: GroupMetadataValue | None = None
        """Hard state: the last record. None for a group that has only offsets."""
        self.writing: GroupMetadataValue | None = None
        """A record that this group has decided on and that replay is about to bring."""
        self.state = GroupState.EMPTY
        self.since_ms = since_ms
        """When it came into this state, by the clock of records; None if nobody knows."""
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicGroupMember] = {}
        self.statics: dict[str, str] = {}
        """Instance id -> member id."""
        self.pending_members: dict[str, None] = {}
        """Ids that were given out and did not come back yet, oldest first. They hold up a rebalance."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that owe a SyncGroup."""
        self.parked_join_count = 0
        self.initial_delay: InitialDelay | None = None
        """While the first rebalance after Empty is prepared."""
        self.is_assignment_pending = False
        """Whether the leader's assignment was handed in. The next rebalance takes this back."""
        self._supporters: Counter[str] = Counter()
        """How many members know a protocol."""
        self._subscribed: SubscribedTopics | None = None
        """None before the first generation, and for other than consumers."""

    def __repr__(self) -> str:
        return (
            f"ClassicGroup({self.group_id!r}, {self.state}, generation={self.generation}, {len(self.members)} members)"
        )

    @classmethod
    def of_members(
        cls,
        group_id: str,
        generation: int,
        protocol_type: str,
        members: Iterable[ClassicGroupMember],
        since_ms: int | None,
    ) -> ClassicGroup:
        """A stable group: the first member leads, and the protocol is the one that they would choose."""
        group = cls(group_id, since_ms)
        group.state = GroupState.STABLE
        group.generation = generation
        for member in members:
            group.add(member, protocol_type)
        group.protocol_name = group.select_protocol()
        group.note_subscriptions()
        return group

    # --- members ------------------------------------------------------------------------------------------------------

    def add(self, member: ClassicGroupMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.member_id
        self._count(member.protocols, 1)
        self.parked_join_count += member.join is not None
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicGroupMember | None:
        """Take out a member or a pending one; if it led, the longest-standing one does."""
        member = self.members.pop(member_id, None)
        self.pending_members.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        if member is None:
            return None
        self._count(member.protocols, -1)
        self.parked_join_count -= member.join is not None
        if member.instance_id is not None and self.statics.get(member.instance_id) == member_id:
            del self.statics[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def add_pending(self, member_id: str) -> str | None:
        """Note an id that is given out; gives the oldest one if there are too many now, to be taken out."""
        self.pending_members[member_id] = None
        return next(iter(self.pending_members)) if len(self.pending_members) > PENDING_MEMBERS_MAX else None

    def rename(self, member: ClassicGroupMember, new_id: str) -> None:
        """A static member comes back under a new id, and takes the place of the old one. Requests that are parked
        under the old id must have been answered."""
        old_id, member.member_id = member.member_id, new_id
        self.members = {new_id if key == old_id else key: each for key, each in self.members.items()}
        if member.instance_id is not None:
            self.statics[member.instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(new_id)

    def change_terms(self, member: ClassicGroupMember, terms: Terms) -> None:
        self._count(member.protocols, -1)
        member.terms = terms
        self._count(member.protocols, 1)

    def _count(self, protocols: Iterable[Protocol], by: int) -> None:
        for name, _ in protocols:
            self._supporters[name] += by
            if not self._supporters[name]:
                del self._supporters[name]

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    @property
    def have_all_joined(self) -> bool:
        return len(self.members) == self.parked_join_count and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """What the slowest member asks for."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicGroupMember:
        """The member that somebody claims to be."""
        if instance_id is not None:
            owner = self.statics.get(instance_id)
            if owner is not None and owner != member_id:
                raise Reject(ErrorCode.FENCED_INSTANCE_ID)
            if owner is None:
                raise Reject(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # --- protocols ----------------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether somebody with these protocols can be a member."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        return protocol_type == self.protocol_type and any(self._is_supported(name) for name in names)

    def _is_supported(self, name: str) -> bool:
        return self._supporters[name] == len(self.members)

    def select_protocol(self) -> str | None:
        """Each member votes for its first protocol of those that all know; most votes win."""
        candidates = {name for name in self._supporters if self._is_supported(name)}
        votes = Counter(vote for each in self.members.values() if (vote := each.vote(candidates)) is not None)
        most = max(votes.values(), default=0)
        return min((name for name, count in votes.items() if count == most), key=_place_in_hash_map, default=None)

    def note_subscriptions(self) -> None:
        """Remember what the members of a new generation subscribe to."""
        self._subscribed = None
        if self.uses_consumer_protocol:
            self._subscribed = SubscribedTopics(each.metadata(self.protocol_name) for each in self.members.values())

    # --- states -------------------------------------------------------------------------------------------------------

    def move_to(self, state: GroupState, wall_ms: int) -> None:
        assert is_step(self.state, state), f"{self}: no step to {state}"
        self.state = state
        self.since_ms = wall_ms

    @property
    def is_simple(self) -> bool:
        """Whether it is there for its offsets alone, and any kind of group may take its place."""
        return self.is_empty and not self.protocol_type and not self.pending_members

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER

    # --- what any kind of group can be asked --------------------------------------------------------------------------

    @property
    def kind(self) -> GroupKind:
        return GroupKind.CLASSIC

    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    def check_commit(self, claim: Claim, context: Context) -> None:
        """Whoever is not a member may commit while nobody is. A commit renews the session."""
        if claim.generation < 0 and self.is_empty:
            return
        if claim.generation >= 0 or claim.member_id or claim.instance_id is not None:
            member = self.check_member(claim.member_id, claim.instance_id)
            if claim.generation != self.generation:
                raise Reject(ErrorCode.ILLEGAL_GENERATION)
            self._check_commit_state(member, claim, context.now_ms)
        elif not claim.is_transactional:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID)

    def _check_commit_state(self, member: ClassicGroupMember, claim: Claim, now_ms: int) -> None:
        if claim.is_transactional:  # old clients send neither member nor generation with those, so no state is held to
            return
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise Reject(ErrorCode.REBALANCE_IN_PROGRESS)
        member.renew(now_ms)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may: members are not asked for in the classic protocol, and franz-go sends its generation here."""

    def check_delete(self) -> None:
        if not self.is_empty:
            raise Reject(ErrorCode.NON_EMPTY_GROUP)

    def check_offset_delete(self) -> None:
        """With consumers, single topics decide; what others use is not known."""
        if not self.is_empty and not self.uses_consumer_protocol:
            raise Reject(ErrorCode.NON_EMPTY_GROUP)

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """None if they are not known."""
        return None if self._subscribed is None else self._subscribed.topics

    def is_subscribed_to(self, topic: str) -> bool:
        topics = self.subscribed_topics
        return self.uses_consumer_protocol if topics is None else topic in topics

    def expiry(self, context: Context) -> ExpiryRule | None:
        if not self.protocol_type:
            return ExpiryRule(_committed_at, self.is_subscribed_to)
        if self.is_empty:
            since_ms = self.since_ms
            return ExpiryRule(_committed_at if since_ms is None else lambda _: since_ms, self.is_subscribed_to)
        if self.state is GroupState.STABLE and self.subscribed_topics is not None:
            return ExpiryRule(_committed_at, self.is_subscribed_to)
        return None

    def tombstones(self) -> Sequence[KeyedRecord]:
        return (tombstone(GroupMetadataKey(self.group_id)),)

    def hard_state(self) -> Any:  # noqa: ANN401
        return self.stored


def _committed_at(commit_time_ms: int) -> int:
    return commit_time_ms


def simple_group(group_id: str) -> ClassicGroup:
    """A group that has only offsets."""
    return ClassicGroup(group_id)
