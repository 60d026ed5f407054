"""What an assignor is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Assignor", "MemberSpec", "Target", "same_subscription"]

Target = Mapping[bytes, tuple[int, ...]]
"""Topic id -> partitions, ascending. Topics without partitions are left out."""


class MemberSpec(NamedTuple):
    """One member as an assignor sees it."""

    member_id: str
    instance_id: str | None
    topic_ids: frozenset[bytes]
    """The existing topics it subscribes to. Members with the same subscription share one object."""
    target: Target
    """What it was to own until now."""


Assignor = Callable[[Sequence[MemberSpec], Mapping[bytes, int]], dict[str, Target]]
"""Members, partitions by topic id -> target by member id. Where nothing changes, the old target comes back itself."""


def same_subscription(members: Sequence[MemberSpec]) -> bool:
    first = members[0].topic_ids
    return all(member.topic_ids is first or member.topic_ids == first for member in members)
