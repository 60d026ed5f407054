"""Uniform for members that subscribe to different topics.

First everybody keeps what he still subscribes to. Then the free partitions are given away, topics with the most
partitions per subscriber first, each partition to the subscriber who has the least. At last partitions move, topic by
topic, from the owner who has the most to the subscriber who has the least, as long as the two differ by more than one;
moving in one topic may open a chance in another, so the topics are gone through again, at most 16 times. That bounds
the time; the result is balanced in all but constructed cases.

Subscribers of a topic are many and the same for most topics, so they are ranked once for each distinct set of them: a
heap by load, whose entries are put right when they come up.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.core.groups.assignors.spec import MemberSpec, Target

__all__ = ["assign_mixed"]

ROUNDS_MAX: Final = 16


def assign_mixed(members: Sequence[MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Target]:
    draft = _Draft(members, partition_counts)
    topics = draft.topics_in_order()
    for topic_id in topics:
        draft.give_free(topic_id)
    _balance(draft, [topic_id for topic_id in topics if len(draft.rankings[topic_id].subscribers) > 1])
    return draft.targets()


def _balance(draft: _Draft, topics: Sequence[bytes]) -> None:
    last_moved = -1
    for _ in range(ROUNDS_MAX):
        for index, topic_id in enumerate(topics):
            if index == last_moved:
                return  # once around without a move
            if draft.even_out(topic_id):
                last_moved = index
        if last_moved == -1:
            return


class _Ranking:
    """The subscribers of some topics, the least loaded first. Entries of the heap whose load has grown since are put
    right when they come up; for a load that falls there is a second entry."""

    def __init__(self, subscribers: Sequence[int], loads: list[int]) -> None:
        self.subscribers = subscribers
        self.move_count = 0
        """How many moves the heap knows of."""
        self._loads = loads
        self._heap: list[tuple[int, int]] = []
        self.rebuild(0)

    def rebuild(self, move_count: int) -> None:
        self.move_count = move_count
        self._heap = [(self._loads[member], member) for member in self.subscribers]
        heapq.heapify(self._heap)

    def least(self) -> int:
        heap, loads = self._heap, self._loads
        while heap[0][0] != loads[heap[0][1]]:
            member = heap[0][1]
            heapq.heapreplace(heap, (loads[member], member))
        return heap[0][1]

    def has_fallen(self, member: int, move_count: int) -> None:
        self.move_count = move_count
        heapq.heappush(self._heap, (self._loads[member], member))


class _Draft:
    """An assignment in the making. Members are numbers here: their place in the order given."""

    def __init__(self, members: Sequence[MemberSpec], partition_counts: Mapping[bytes, int]) -> None:
        self._members = members
        self._counts = partition_counts
        self._loads = [0] * len(members)
        self._move_count = 0
        self._changed: set[int] = set()
        self._owned: list[dict[bytes, set[int]]] = []
        """By member, then topic."""
        self._owners: dict[bytes, dict[int, int]] = {}
        """By topic, then partition."""
        self.rankings = self._rank()
        for number, member in enumerate(members):
            self._owned.append({})
            self._keep(number, member)
        for ranking in set(self.rankings.values()):
            ranking.rebuild(0)

    def _rank(self) -> dict[bytes, _Ranking]:
        classes: dict[frozenset[bytes], list[int]] = {}
        for number, member in enumerate(self._members):
            classes.setdefault(member.topic_ids, []).append(number)
        by_topic: dict[bytes, list[int]] = {}
        for index, topic_ids in enumerate(classes):
            for topic_id in topic_ids:
                by_topic.setdefault(topic_id, []).append(index)
        subscribers = list(classes.values())
        rankings: dict[tuple[int, ...], _Ranking] = {}
        result = {}
        for topic_id, indexes in by_topic.items():
            key = tuple(indexes)
            if key not in rankings:
                rankings[key] = _Ranking([each for index in indexes for each in subscribers[index]], self._loads)
            result[topic_id] = rankings[key]
        return result

    def _keep(self, number: int, member: MemberSpec) -> None:
        for topic_id, partitions in member.target.items():
            if topic_id not in member.topic_ids:
                self._changed.add(number)
                continue
            owners = self._owners.setdefault(topic_id, {})
            for partition in partitions:
                if partition >= self._counts[topic_id] or partition in owners:
                    self._changed.add(number)
                else:
                    self._put(topic_id, partition, number)

    def _put(self, topic_id: bytes, partition: int, number: int) -> None:
        self._owners[topic_id][partition] = number
        self._owned[number].setdefault(topic_id, set()).add(partition)
        self._loads[number] += 1

    def topics_in_order(self) -> list[bytes]:
        return sorted(self.rankings, key=self._place)

    def _place(self, topic_id: bytes) -> tuple[float, int, bytes]:
        subscriber_count = len(self.rankings[topic_id].subscribers)
        return (-self._counts[topic_id] / subscriber_count, subscriber_count, topic_id)

    def give_free(self, topic_id: bytes) -> None:
        owners = self._owners.setdefault(topic_id, {})
        if len(owners) == self._counts[topic_id]:
            return
        ranking = self.rankings[topic_id]
        for partition in range(self._counts[topic_id]):
            if partition not in owners:
                number = ranking.least()
                self._put(topic_id, partition, number)
                self._changed.add(number)

    def even_out(self, topic_id: bytes) -> bool:
        """Move partitions of a topic while that makes loads more even. Whether any moved."""
        loads, ranking = self._loads, self.rankings[topic_id]
        givers = [(-loads[number], number) for number in set(self._owners[topic_id].values())]
        heapq.heapify(givers)
        if ranking.move_count != self._move_count:
            ranking.rebuild(self._move_count)
        has_moved = False
        while givers:
            giver, taker = givers[0][1], ranking.least()
            if loads[giver] - loads[taker] <= 1:
                break
            self._move(topic_id, giver, taker)
            ranking.has_fallen(giver, self._move_count)
            has_moved = True
            if topic_id in self._owned[giver]:
                heapq.heapreplace(givers, (-loads[giver], giver))
            else:
                heapq.heappop(givers)
        return has_moved

    def _move(self, topic_id: bytes, giver: int, taker: int) -> None:
        mine = self._owned[giver][topic_id]
        partition = max(mine)
        mine.remove(partition)
        if not mine:
            del self._owned[giver][topic_id]
        self._loads[giver] -= 1
        self._move_count += 1
        self._put(topic_id, partition, taker)
        self._changed.update((giver, taker))

    def targets(self) -> dict[str, Target]:
        return {
            member.member_id: self._target(number) if number in self._changed else member.target
            for number, member in enumerate(self._members)
        }

    def _target(self, number: int) -> Target:
        return {topic_id: tuple(sorted(partitions)) for topic_id, partitions in self._owned[number].items()}
