"""Uniform: everybody gets as many partitions as anybody else, give or take one, and keeps what he has where he can.

Members that all subscribe to the same topics are the usual case and have a quota: `total div members`, and one more for
`total mod members` of them. Who has less is given free partitions; who has more gives up his last ones. Nothing moves
between two members that are within their quotas. Differing subscriptions are `uniform_mixed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ottla.core.groups.assignors.spec import MemberSpec, Target, same_subscription
from ottla.core.groups.assignors.uniform_mixed import assign_mixed

__all__ = ["assign_uniform"]

_Kept = dict[bytes, set[int]]


def assign_uniform(members: Sequence[MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Target]:
    if not members:
        return {}
    if same_subscription(members):
        return _assign_same(members, members[0].topic_ids, partition_counts)
    return assign_mixed(members, partition_counts)


def _assign_same(
    members: Sequence[MemberSpec], topic_ids: frozenset[bytes], partition_counts: Mapping[bytes, int]
) -> dict[str, Target]:
    kept: _Kept = {topic_id: set() for topic_id in topic_ids}
    quotas = _Quotas(sum(partition_counts[topic_id] for topic_id in topic_ids), len(members))
    targets: dict[str, Target] = {}
    wanting: list[tuple[str, int]] = []
    for member in members:
        target, size = _keep(member.target, quotas.most(), kept, partition_counts)
        targets[member.member_id] = target
        if missing := quotas.settle(size):
            wanting.append((member.member_id, missing))
    _hand_out(targets, wanting, _free(kept, partition_counts))
    return targets


class _Quotas:
    """How many partitions the next member may have. Someone who does not fill the extra one leaves it to a later
    member, unless only as many members are left as there are extras."""

    def __init__(self, partition_count: int, member_count: int) -> None:
        self._quota, self._extras = divmod(partition_count, member_count)
        self._members_left = member_count

    def most(self) -> int:
        return self._quota + (self._extras > 0)

    def settle(self, size: int) -> int:
        """A member keeps so many: how many more it is due."""
        takes_extra = self._extras > 0 and (size > self._quota or self._members_left <= self._extras)
        self._extras -= takes_extra
        self._members_left -= 1
        return self._quota + takes_extra - size


def _keep(target: Target, most: int, kept: _Kept, partition_counts: Mapping[bytes, int]) -> tuple[Target, int]:
    """What a member keeps of its target, and how much that is. `kept` is what all have kept so far."""
    left = most
    result: dict[bytes, tuple[int, ...]] = {}
    is_changed = False
    for topic_id, partitions in target.items():
        taken = kept.get(topic_id)
        mine: tuple[int, ...] = ()
        if taken is not None and left:
            mine = partitions
            if len(mine) > left or partitions[-1] >= partition_counts[topic_id] or not taken.isdisjoint(partitions):
                usable = [each for each in partitions if each < partition_counts[topic_id] and each not in taken]
                mine = tuple(usable[:left])
            taken.update(mine)
            left -= len(mine)
        if mine:
            result[topic_id] = mine
        is_changed = is_changed or mine is not partitions
    return (result if is_changed else target), most - left


def _free(kept: _Kept, partition_counts: Mapping[bytes, int]) -> Iterator[tuple[bytes, int]]:
    """What nobody keeps, topic by topic."""
    for topic_id in sorted(kept):
        taken = kept[topic_id]
        if len(taken) < partition_counts[topic_id]:
            for partition in range(partition_counts[topic_id]):
                if partition not in taken:
                    yield topic_id, partition


def _hand_out(
    targets: dict[str, Target], wanting: Sequence[tuple[str, int]], free: Iterator[tuple[bytes, int]]
) -> None:
    for member_id, missing in wanting:
        added: dict[bytes, list[int]] = {}
        for topic_id, partition in _next(free, missing):
            added.setdefault(topic_id, []).append(partition)
        if added:
            targets[member_id] = _with(targets[member_id], added)


def _next(free: Iterator[tuple[bytes, int]], count: int) -> Iterator[tuple[bytes, int]]:
    for _ in range(count):
        yield from (() if (each := next(free, None)) is None else (each,))


def _with(target: Target, added: Mapping[bytes, list[int]]) -> Target:
    result = dict(target)
    for topic_id, partitions in added.items():
        result[topic_id] = tuple(sorted((*result.get(topic_id, ()), *partitions)))
    return result
