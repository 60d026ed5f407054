"""The assignor `simple` of share groups: every partition has its members, balance comes first, and what is can stay.

A partition may have several members, since they share its records. With M members and P partitions each partition is to
have ceil(M / P) of them, and each member its share of these places, give or take one. If all members subscribe to the
same topics, that is so for all partitions together; if not, for each topic with the members that subscribe to it.

A round of it:

1. Members keep what they have and may have, but no more than they are to have. What is shared too much goes first.
2. Partitions with too many members let some go.
3. Partitions with too few take members that lack partitions, in turn. If all of these have the partition already, one
   of them changes places with a member of another partition, which has not.

Racks play no part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import Final

from ottla.core.groups.assignors.spec import MemberSpec, Target

__all__ = ["assign"]

TopicIdPartition = tuple[bytes, int]
"""Topic id and partition."""
_NONE: Final[frozenset[int]] = frozenset()


def assign(members: Sequence[MemberSpec], partitions: Mapping[bytes, frozenset[int]]) -> dict[str, Target]:
    """The target of each member. Where nothing changes, the old one comes back itself."""
    held: list[set[TopicIdPartition]] = [set() for _ in members]
    loads = [0] * len(members)
    for numbers, places in _rounds(members, partitions):
        for number, had in zip(numbers, _Round(members, numbers, places, loads).run(), strict=True):
            held[number] |= had
            loads[number] += len(had)
    return {member.member_id: _target(member, places) for member, places in zip(members, held, strict=True)}


def _rounds(
    members: Sequence[MemberSpec], partitions: Mapping[bytes, frozenset[int]]
) -> list[tuple[list[int], list[TopicIdPartition]]]:
    """Who shares what with whom: numbers of members, and places."""
    by_topic = {
        topic_id: [(topic_id, each) for each in sorted(partitions[topic_id])] for topic_id in sorted(partitions)
    }
    subscriptions = {id(member.topic_ids): member.topic_ids for member in members}
    if len(set(subscriptions.values())) <= 1:
        topic_ids = frozenset().union(*subscriptions.values())
        places = [place for topic_id, places in sorted(by_topic.items()) if topic_id in topic_ids for place in places]
        return [(list(range(len(members))), places)]
    return [
        ([number for number, member in enumerate(members) if topic_id in member.topic_ids], places)
        for topic_id, places in sorted(by_topic.items())
    ]


def _target(member: MemberSpec, places: set[TopicIdPartition]) -> Target:
    topics: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(places):
        topics.setdefault(topic_id, []).append(partition)
    target = {topic_id: tuple(numbers) for topic_id, numbers in topics.items()}
    return member.target if target == member.target else target


class _Round:
    """Members are numbers from 0 on here."""

    def __init__(
        self,
        members: Sequence[MemberSpec],
        numbers: Sequence[int],
        places: Sequence[TopicIdPartition],
        loads: Sequence[int],
    ) -> None:
        self._places = places
        self._sharing = -(-len(numbers) // len(places)) if places else 0
        wanted: dict[bytes, set[int]] = {}
        for topic_id, partition in places:
            wanted.setdefault(topic_id, set()).add(partition)
        self._has = [_kept(members[number].target, wanted) for number in numbers]
        self._wants = self._shares([loads[number] for number in numbers])
        self._members_of: dict[TopicIdPartition, list[int]] = {place: [] for place in places}
        for member, has in enumerate(self._has):
            for place in has:
                self._members_of[place].append(member)

    def _shares(self, loads: Sequence[int]) -> list[int]:
        """How many places each member is to have. One more than others have those with less from elsewhere, and among
        them those that have more already."""
        count = len(self._has)
        if not count:
            return []
        least, more_count = divmod(self._sharing * len(self._places), count)
        order = nsmallest(more_count, range(count), key=lambda each: (loads[each], -len(self._has[each]), each))
        wants = [least] * count
        for member in order:
            wants[member] += 1
        return wants

    def run(self) -> list[set[TopicIdPartition]]:
        self._drop_surplus()
        self._thin_out()
        self._fill()
        return self._has

    def _drop_surplus(self) -> None:
        for member, has in enumerate(self._has):
            surplus = len(has) - self._wants[member]
            if surplus > 0:
                order = sorted(has, key=lambda place: (-len(self._members_of[place]), place))
                for place in order[:surplus]:
                    self._take(member, place)

    def _thin_out(self) -> None:
        for place, members in self._members_of.items():
            for member in members[self._sharing :]:
                self._take(member, place)

    def _fill(self) -> None:
        lacking = deque(each for each, has in enumerate(self._has) if len(has) < self._wants[each])
        short = [place for place, members in self._members_of.items() if len(members) < self._sharing]
        for place in short:
            while len(self._members_of[place]) < self._sharing and self._give_next(place, lacking):
                pass
        for place in short:
            while len(self._members_of[place]) < self._sharing:
                self._change_places(place, lacking)

    def _give_next(self, place: TopicIdPartition, lacking: deque[int]) -> bool:
        """Give a place to the next member in turn that has not got it; False if there is none."""
        for _ in range(len(lacking)):
            member = lacking.popleft()
            is_given = place not in self._has[member]
            if is_given:
                self._give(member, place)
            if len(self._has[member]) < self._wants[member]:
                lacking.append(member)
            if is_given:
                return True
        return False

    def _change_places(self, place: TopicIdPartition, lacking: deque[int]) -> None:
        """All that lack places have this one. So the first of them gets another, from a member that takes this one for
        it. Any other place will do: it has all its members, which this one has not, so one of them is not here."""
        first, here = lacking[0], self._members_of[place]
        there = next(each for each in self._places if each not in self._has[first])
        other = next(each for each in self._members_of[there] if each not in here)
        self._take(other, there)
        self._give(other, place)
        self._give(first, there)
        if len(self._has[first]) >= self._wants[first]:
            lacking.popleft()

    def _give(self, member: int, place: TopicIdPartition) -> None:
        self._has[member].add(place)
        self._members_of[place].append(member)

    def _take(self, member: int, place: TopicIdPartition) -> None:
        self._has[member].discard(place)
        self._members_of[place].remove(member)


def _kept(target: Target, wanted: Mapping[bytes, set[int]]) -> set[TopicIdPartition]:
    """What a member has of that."""
    topic_ids = wanted if len(wanted) < len(target) else target
    return {
        (topic_id, partition)
        for topic_id in topic_ids
        for partition in wanted.get(topic_id, _NONE).intersection(target.get(topic_id, ()))
    }
