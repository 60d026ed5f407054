"""What a streams group knows of the plugin that keeps its topology's description: two epochs in its record.

`stored` is the epoch that the plugin holds, `NONE` if it holds nothing, and `UNCERTAIN` while it may hold something or
nothing. UNCERTAIN is committed before each call that changes the plugin, so that a crash at any moment heals: whoever
looks at it next takes it for not stored when it comes to asking, and for stored when it comes to deleting. `failed` is
the last epoch that the plugin has refused for good.

=================  ======================================================================
marked             before a call
held               a push went well; if a delete came between, nobody knows
refused            a push failed for good; the plugin may still hold something
cleared            a delete went well; if a push came between, nobody knows
=================  ======================================================================
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["NONE", "UNCERTAIN", "DescriptionEpochs"]

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
        return self._replace(stored=UNCERTAIN if self.stored == NONE else max(self.stored, epoch))

    def refused(self, epoch: int) -> DescriptionEpochs:
        return self._replace(failed=max(self.failed, epoch))

    def cleared(self, *, is_pushed_since: bool) -> DescriptionEpochs:
        """`is_pushed_since`: whether a push began after the delete was decided. With several deletes at a time that is
        more than what `stored` can tell."""
        is_known = self.stored == NONE or not (is_pushed_since or self.stored >= 0)
        return self._replace(stored=NONE if is_known else UNCERTAIN)
