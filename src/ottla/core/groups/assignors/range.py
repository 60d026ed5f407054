"""Range: each topic by itself is cut into contiguous blocks, in the order of members.

With n partitions and m subscribers the first n mod m of them get one partition more than n div m. Members with an
instance id come first, in the order of those, the rest in the order of their member ids: so the k-th block of every
topic with as many partitions goes to the same member, and keys of co-partitioned topics meet.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import islice

from ottla.core.groups.assignors.spec import MemberSpec, Target

__all__ = ["assign_range"]

_Ranked = tuple[int, str]
"""The place of a member in the order, and its id."""


def assign_range(members: Sequence[MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Target]:
    targets: dict[str, dict[bytes, tuple[int, ...]]] = {member.member_id: {} for member in members}
    for topic_id, subscribers in _subscribers(members).items():
        _cut(targets, topic_id, partition_counts[topic_id], subscribers)
    return {
        member.member_id: member.target if targets[member.member_id] == member.target else targets[member.member_id]
        for member in members
    }


def _subscribers(members: Sequence[MemberSpec]) -> dict[bytes, list[list[_Ranked]]]:
    """For each topic the lists of its subscribers, each in order: one list for each distinct subscription, so that a
    thousand members with the same ten thousand topics cost ten thousand steps."""
    classes: dict[frozenset[bytes], list[_Ranked]] = {}
    for rank, member in enumerate(sorted(members, key=_place)):
        classes.setdefault(member.topic_ids, []).append((rank, member.member_id))
    topics: dict[bytes, list[list[_Ranked]]] = {}
    for topic_ids, ranked in classes.items():
        for topic_id in topic_ids:
            topics.setdefault(topic_id, []).append(ranked)
    return topics


def _place(member: MemberSpec) -> tuple[bool, str]:
    return (member.instance_id is None, member.instance_id or member.member_id)


def _cut(
    targets: dict[str, dict[bytes, tuple[int, ...]]], topic_id: bytes, count: int, subscribers: list[list[_Ranked]]
) -> None:
    quota, extras = divmod(count, sum(map(len, subscribers)))
    in_order = subscribers[0] if len(subscribers) == 1 else heapq.merge(*subscribers)
    start = 0
    for position, (_, member_id) in enumerate(islice(in_order, min(count, sum(map(len, subscribers))))):
        end = start + quota + (position < extras)
        targets[member_id][topic_id] = tuple(range(start, end))
        start = end
