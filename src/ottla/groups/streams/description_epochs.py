"""What a streams group knows of the plugin that keeps its topology's description: two epochs in its record.

`stored` is the epoch that the plugin holds, `NONE` if it holds nothing, and `UNCERTAIN` while it may hold something or
nothing. UNCERTAIN is committed before each call that changes the plugin, so that a crash at any moment heals: whoever
looks at it next takes it for not stored when it comes to asking, and for stored when it comes to deleting. `failed` is
the last epoch that the plugin has refused for good.

=================  ======================================================================
marked             before a call, and after one that another may have overtaken
held               a push went well
refused            a push failed for good; the plugin may still hold something
cleared            a delete went well
=================  ======================================================================

A push and a delete can be under way at once, if a member comes back while its group is being deleted, and nobody knows
in which order the plugin works on them. `Calls` tells of each whether it was alone. So at any time: what is stored is
held, and where nothing is stored nothing is held, unless a push is under way.
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
    """The calls of the plugin for one group. Soft: a restart forgets the calls as well."""

    __slots__ = ("_deletes_ended", "_deletes_under_way", "_pushes")

    def __init__(self) -> None:
        self._pushes = 0
        """The stamp of the last beginning or end of a push."""
        self._deletes_under_way = 0
        self._deletes_ended = 0

    def begin_push(self, stamp: int) -> int:
        """Gives what `end_push` wants to know. No two stamps of a coordinator are the same."""
        self._pushes = stamp
        return self._deletes_ended

    def end_push(self, begun: int, stamp: int) -> bool:
        """Whether no delete was under way meanwhile."""
        self._pushes = stamp
        return not self._deletes_under_way and begun == self._deletes_ended

    @property
    def pushes(self) -> int:
        """What `end_delete` wants to know, when the delete is decided."""
        return self._pushes

    def begin_delete(self) -> None:
        self._deletes_under_way += 1

    def end_delete(self, pushes: int) -> bool:
        """Whether no push has begun or ended since the delete was decided."""
        self._deletes_under_way = max(0, self._deletes_under_way - 1)  # it may have begun with a group that is gone
        self._deletes_ended += 1
        return pushes == self._pushes
