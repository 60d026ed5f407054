"""Logs of a leader and of a follower that have gone apart, as the epochs of their records."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from hypothesis import strategies as st

_COUNTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=8)


class DivergedLogs(NamedTuple):
    """Records of one epoch at one offset are the same, since an epoch has one leader."""

    follower: list[int]
    leader: list[int]

    @property
    def common(self) -> list[int]:
        """What both logs begin with."""
        pairs = zip(self.follower, self.leader, strict=False)
        return [epoch for epoch, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]

    @property
    def rounds_max(self) -> int:
        """How often the follower may be told to cut its log: once for each epoch that it must lose records of."""
        return len(set(self.follower[len(self.common) :]))


def _written(counts: list[tuple[int, int]]) -> list[int]:
    return [epoch for epoch, count in sorted(counts) for _ in range(count)]


@st.composite
def diverged_logs(draw: st.DrawFn) -> DivergedLogs:
    """They go on in the last common epoch for a while, perhaps, and then in epochs that only one of them has."""
    common = [epoch + 1 for epoch in _written(draw(_COUNTS))]
    last = common[-1] if common else 0
    follower, leader = ([last] * draw(st.integers(0, 3)) if common else [] for _ in range(2))
    follower += [2 * epoch + last + 1 for epoch in _written(draw(_COUNTS))]
    leader += [2 * epoch + last + 2 for epoch in _written(draw(_COUNTS))]
    return DivergedLogs(common + follower, common + leader)
