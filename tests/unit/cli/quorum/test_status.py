"""The line about a quorum: who lags, who holds the high watermark back, elections that were seen."""

from __future__ import annotations

import pytest

from ottla.cli.quorum.status import Elections, Seen, status_json, status_line
from ottla.client.cluster import QuorumDescription, Replica

NOW_MS = 1_000_000


def quorum(ends: dict[int, int], high_watermark: int, *, epoch: int = 5, leader_id: int = 1) -> QuorumDescription:
    voters = tuple(Replica(node_id, None, end, NOW_MS, NOW_MS) for node_id, end in ends.items())
    return QuorumDescription(leader_id, epoch, high_watermark, voters, ())


@pytest.mark.parametrize(
    ("ends", "high_watermark", "nodes"),
    [
        ({1: 100, 2: 100, 3: 100}, 100, []),
        ({1: 100, 2: 100, 3: 40}, 100, []),
        ({1: 100, 2: 90, 3: 40}, 90, [2, 3]),
        ({1: 100, 2: 90, 3: 90, 4: 100, 5: 80}, 90, [2, 3, 5]),
        ({1: 100, 2: -1, 3: -1}, -1, [2, 3]),
    ],
)
def test_the_voters_that_the_high_watermark_waits_for(ends: dict[int, int], high_watermark: int, nodes: list[int]):
    assert status_json(quorum(ends, high_watermark))["high_watermark_held_back_by"] == nodes


def test_a_line_about_voters_that_lag():
    assert status_line(quorum({1: 1100, 2: 1099, 3: 40}, 1099), None) == (
        "leader 1  epoch 5  high watermark 1,099   voters 3/3 healthy (majority 2, margin 1)   "
        "node 2 behind 1 record, 0 s   node 3 behind 1,060 records, 0 s   high watermark held back by nodes 2, 3"
    )


def test_elections_are_counted_by_epochs():
    elections, ends = Elections(), {1: 10, 2: 10, 3: 10}
    assert elections.seen(quorum(ends, 10)) == Seen()
    assert elections.seen(quorum(ends, 10)) == Seen()
    assert elections.seen(quorum(ends, 10, epoch=7, leader_id=2)) == Seen(2, 1, 5)
    seen = elections.seen(quorum(ends, 10, epoch=8, leader_id=3))
    assert seen == Seen(3, 2, 7)
    line = status_line(quorum(ends, 10, epoch=8, leader_id=3), seen)
    assert line.endswith("elections seen: 3 (node 2 led in epoch 7)")
