"""What a streams group knows of the plugin that keeps its topology's description: two epochs in its record.

`stored` is the epoch that the plugin holds, `NONE` if it holds nothing, and `UNCERTAIN` while it may hold something or
nothing. UNCERTAIN is committed before each call that changes the plugin, so that a crash at any moment heals: whoever
looks at it next takes it for not stored when it comes to asking, and for stored when it comes to deleting. `failed` is
the last epoch that the plugin has refused for good.

=================  ======================================================================
marked             before a call, and after one that another follows
held               a push went well
refused            a push failed for good; the plugin may still hold something
cleared            a delete went well
=================  ======================================================================

A push and a delete can be asked for at once, if a member comes back while its group is being deleted, or leaves while
its push is under way. The edge lets the plugin work on one after the other, in the order in which they were decided on;
`Calls` tells of each that has ended whether it is the last. So at any time: what is stored is held, and where nothing
is stored nothing is held and no push is under way. A group that is removed leaves nothing behind.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["NONE", "UNCERTAIN", "Calls", "DescriptionEpochs"]

NONE: Final = -1
UNCERTAIN: Final = -2


class DescriptionEpochs(NamedTuple):
    stored: int = NONE
    failed: int = NONE

    @property
    def may_be_held(self) -> bool:
        return self.stored != NONE

    def marked(self) -> DescriptionEpochs:
        return self._replace(stored=UNCERTAIN)

    def held(self, epoch: int) -> DescriptionEpochs:
        return self._replace(stored=max(self.stored, epoch))

    def refused(self, epoch: int) -> DescriptionEpochs:
        return self._replace(failed=max(self.failed, epoch))

    def cleared(self) -> DescriptionEpochs:
        return self._replace(stored=NONE)


class Calls:
    """The calls of the plugin for one group, as they were decided on. Soft: a restart forgets the calls as well."""

    __slots__ = ("deletes", "last_push")

    def __init__(self) -> None:
        self.last_push = 0
        """The number of the push that was decided on last. No two pushes of a coordinator have the same."""
        self.deletes = 0
        """How many deletes were decided on."""

    def begin_push(self, number: int) -> int:
        """Gives what `is_push_last` wants to know."""
        self.last_push = number
        return self.deletes

    def is_push_last(self, begun: int) -> bool:
        """Whether no delete follows a push."""
        return begun == self.deletes

    def begin_delete(self) -> None:
        self.deletes += 1

    def is_delete_last(self, last_push: int) -> bool:
        """Whether no push follows a delete that was decided on after this push."""
        return last_push == self.last_push
