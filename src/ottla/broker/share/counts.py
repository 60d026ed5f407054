"""Counts of what became of delivered records, by group, for a bounded number of groups."""

from __future__ import annotations

from typing import Final

from ottla.core.share.partition import Tally

__all__ = ["GROUPS_MAX", "OTHERS", "GroupCounts"]

GROUPS_MAX: Final = 200
"""Groups that are counted by name; those that come later are counted together."""
OTHERS: Final = ""


class GroupCounts:
    def __init__(self, groups_max: int = GROUPS_MAX) -> None:
        self.by_group: dict[str, Tally] = {}
        """`OTHERS` stands for all that have no entry of their own."""
        self._groups_max = groups_max

    def of(self, group_id: str) -> Tally:
        is_new = group_id not in self.by_group and len(self.by_group) < self._groups_max
        return self.by_group.setdefault(group_id if is_new else self.name_of(group_id), Tally())

    def name_of(self, group_id: str) -> str:
        """The name under which a group is counted."""
        return group_id if group_id in self.by_group else OTHERS
