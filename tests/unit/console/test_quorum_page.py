"""What the page of the quorum makes of a description: margin, lag, who holds back, elections."""

from __future__ import annotations

import pytest

from ottla.console.pages.quorum import PAGE, quorum_data, sentence
from ottla.health.facts import Coverage, Quorum, Replica
from tests.unit.console.seen import NOW_MS, context_of, loaded, shown, watcher_of


def voter(node_id: int, end: int | None = 100, behind_ms: int = 0) -> Replica:
    return Replica(id=node_id, log_end=end, last_fetch_ts=NOW_MS - behind_ms, last_caught_up_ts=NOW_MS - behind_ms)


def quorum(*voters: Replica, leader: int = 1, epoch: int = 5, high_watermark: int = 100) -> Quorum:
    return Quorum(leader=leader, leader_epoch=epoch, high_watermark=high_watermark, replicas=voters)


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (quorum(voter(1)), "1 of 1 voter is healthy, majority 1: no margin."),
        (quorum(voter(1), voter(2), voter(3)), "3 of 3 voters are healthy, majority 2: 1 more may fail."),
        (
            quorum(voter(1), voter(2), voter(3, behind_ms=48_000)),
            "2 of 3 voters are healthy, majority 2: no margin, one more failure stops metadata changes.",
        ),
        (
            quorum(voter(1), voter(2, behind_ms=6_000), voter(3, behind_ms=48_000)),
            "1 of 3 voters are healthy, majority 2: too few, metadata cannot change.",
        ),
        (
            quorum(Replica(id=1, log_end=5), Replica(id=2, log_end=5)),
            "2 voters, majority 2; this cluster does not report their fetch times.",
        ),
        (
            quorum(voter(1), voter(2), voter(3), leader=-1),
            "The quorum has no leader: metadata cannot change. It has 3 voters, majority 2.",
        ),
    ],
)
def test_the_sentence(fact: Quorum, text: str):
    assert sentence(fact) == text


def test_times_are_differences_on_the_leaders_clock_and_lag_is_known():
    never = Replica(id=3, log_end=None, last_fetch_ts=-1, last_caught_up_ts=-1)
    watching = Replica(id=9, role="observer", log_end=98, last_fetch_ts=NOW_MS - 500, last_caught_up_ts=NOW_MS - 500)
    data = quorum_data(quorum(voter(1), voter(2, 40, 48_000), never, watching), {}, [])
    leader, two, three = data.voters
    assert (leader.role, leader.lag, leader.last_fetch_ms) == ("leader", None, None)
    assert (two.lag, two.caught_up_ms, two.is_healthy) == (60, 48_000, False)
    assert (three.lag, three.last_fetch_ms, three.caught_up_ms) == (None, None, None)
    assert [(each.id, each.lag, each.is_healthy) for each in data.observers] == [(9, 2, None)]
    assert (data.leo, data.margin) == (100, -1)


@pytest.mark.parametrize(
    ("ends", "high_watermark", "held"),
    [
        ((100, 100, 40), 100, []),
        ((100, 90, 40), 90, [2]),
        ((100, 40, 40), 40, [2, 3]),
    ],
)
def test_voters_whose_next_fetch_moves_the_high_watermark(ends: tuple[int, ...], high_watermark: int, held: list[int]):
    voters = [voter(number, end) for number, end in enumerate(ends, 1)]
    data = quorum_data(quorum(*voters, high_watermark=high_watermark), {}, [])
    assert [each.id for each in data.voters if each.holds_back] == held


def test_elections_and_endpoints_that_cannot_be_asked_for():
    watcher = watcher_of(quorum(voter(1), voter(2)), quorum(voter(1), voter(2), leader=2, epoch=7))
    content = loaded(PAGE, context_of(watcher))
    assert [(each.epoch, each.leader, each.gap_ms) for each in content.data.elections] == [(7, 2, 1_000)]
    assert [each.what for each in content.degraded] == ["endpoints"]
    html = shown(PAGE, context_of(watcher))
    assert "has not fetched from this leader" not in html
    assert "without a leader, at most" in html


def test_nodes_that_have_left_have_no_page():
    watcher = watcher_of(
        quorum(voter(1), voter(2)), quorum(voter(1), voter(2), leader=2, epoch=6), quorum(voter(1), leader=1, epoch=7)
    )
    elections = shown(PAGE, context_of(watcher)).partition(">Elections<")[2]
    assert 'href="/nodes/1"' in elections
    assert "/nodes/2" not in elections
    assert 'data-label="leader">2 <span class="badge">has left</span>' in elections


def test_offsets_and_epochs_are_never_shortened():
    end = 123_456_789_012
    html = shown(PAGE, context_of(watcher_of(quorum(voter(1, end), epoch=12_345_678, high_watermark=end))))
    assert "123,456,789,012" in html
    assert "12,345,678" in html


def test_a_cluster_that_does_not_describe_its_quorum():
    refused = Coverage(what="quorum", visible=False, why="needs DescribeQuorum: DESCRIBE on the cluster")
    html = shown(PAGE, context_of(watcher_of(refused)))
    assert "DescribeQuorum is not available: needs DescribeQuorum: DESCRIBE on the cluster" in html
    assert 'href="/nodes"' in html
    assert "No quorum data yet." in shown(PAGE, context_of(watcher_of()))
