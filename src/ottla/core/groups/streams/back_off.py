"""How long a streams group is not asked again for the description of its topology.

Each time a group is asked at the same topology epoch, or a push fails for now, it is left alone for twice as long:
30 s, 60 s, and so on to an hour. Another epoch begins anew. Nothing of it is kept: a group that moves to another
coordinator is asked at once.

The delays are spread by up to a fifth, so that groups that began together do not stay together.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import Final, NamedTuple

__all__ = ["BackOff"]

FIRST_MS: Final = 30_000
LONGEST_MS: Final = 3_600_000
_DOUBLINGS_MAX: Final = log2(LONGEST_MS / FIRST_MS)
_SPREAD: Final = 0.2

Draw = Callable[[], float]
"""A random number from 0 to 1."""


class _Entry(NamedTuple):
    topology_epoch: int
    attempts: int
    until_ms: int


def _delay_ms(attempts: int, draw: Draw) -> int:
    factor = 1 - _SPREAD + 2 * _SPREAD * draw()
    return min(round(FIRST_MS * 2 ** min(attempts, _DOUBLINGS_MAX) * factor), LONGEST_MS)


class BackOff:
    """Of one group."""

    __slots__ = ("_entry",)

    def __init__(self) -> None:
        self._entry: _Entry | None = None

    def is_active(self, topology_epoch: int, now_ms: int) -> bool:
        entry = self._entry
        return entry is not None and entry.topology_epoch == topology_epoch and now_ms < entry.until_ms

    def arm_if_not_active(self, topology_epoch: int, now_ms: int, draw: Draw) -> bool:
        """Begin to wait, in one step with the question whether somebody does already. A time that has passed at the
        same epoch counts for how long the next one is."""
        if self.is_active(topology_epoch, now_ms):
            return False
        self._arm(topology_epoch, now_ms, draw)
        return True

    def arm_or_extend(self, topology_epoch: int, now_ms: int, draw: Draw) -> None:
        """Wait from now on, unless a later epoch is waited for."""
        if self._entry is None or self._entry.topology_epoch <= topology_epoch:
            self._arm(topology_epoch, now_ms, draw)

    def _arm(self, topology_epoch: int, now_ms: int, draw: Draw) -> None:
        entry = self._entry
        attempts = entry.attempts + 1 if entry is not None and entry.topology_epoch == topology_epoch else 0
        self._entry = _Entry(topology_epoch, attempts, now_ms + _delay_ms(attempts, draw))

    def clear(self, topology_epoch: int) -> None:
        """Forget a wait of exactly this epoch."""
        if self._entry is not None and self._entry.topology_epoch == topology_epoch:
            self._entry = None

    def clear_all(self) -> None:
        self._entry = None
