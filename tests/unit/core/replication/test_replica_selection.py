"""Which replica a consumer reads from."""

from __future__ import annotations

import pytest

from ottla.core.replication.replica_selection import ReadableReplica, replica_in_rack

LEADER = ReadableReplica(1, "a", 100, 0)
BEHIND = ReadableReplica(2, "b", 90, 9)
AHEAD = ReadableReplica(3, "b", 95, 1)
LATER = ReadableReplica(4, "b", 95, 2)


@pytest.mark.parametrize(
    ("rack", "followers", "chosen"),
    [
        ("a", (BEHIND, AHEAD), 1),
        ("b", (BEHIND, AHEAD), 3),
        ("b", (AHEAD, LATER), 4),
        ("b", (), 1),
        ("c", (BEHIND, AHEAD), 1),
        ("", (BEHIND, AHEAD), 1),
    ],
)
def test_the_nearest_that_has_most(rack: str, followers: tuple[ReadableReplica, ...], chosen: int) -> None:
    assert replica_in_rack(rack, LEADER, followers) == chosen
