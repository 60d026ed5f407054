"""Rules about the controllers."""

from __future__ import annotations

import pytest

from ottla.health import ChangeType, Engine, Severity
from ottla.health.facts import Cluster, Fact, Failed, Quorum, Replica
from tests.unit.health.story import START_MS, Case, Facts, Story, always, check, quorum, replica


def three(stopped: tuple[int, ...] = (), at: int = 0) -> Facts:
    """Node 1 leads; those that stopped fetched last at that second."""

    def facts(second: int) -> tuple[Fact, ...]:
        return (quorum(*(replica(node, fetched=at if node in stopped else second) for node in (1, 2, 3))),)

    return facts


def lagging(behind: int, records: int) -> Facts:
    def facts(second: int) -> tuple[Fact, ...]:
        slow = replica(2, 1000 - records, fetched=second, caught_up=second - behind)
        return (quorum(replica(1, 1000, fetched=second), slow, replica(3, 1000, fetched=second), watermark=1000),)

    return facts


HEALTHY = three()
CASES = [
    Case(
        "no-controller",
        always(quorum(replica(1), replica(2), leader=-1)),
        HEALTHY,
        hold=5,
        every=1,
        sentence="No active controller since 2026-09-21 14:13:20 UTC: metadata cannot change",
        past="There was no active controller: metadata could not change",
        severity=Severity.CRITICAL,
    ),
    Case(
        "no-controller",
        always(Cluster(controller=-1)),
        always(Cluster(controller=1)),
        hold=5,
        every=1,
        sentence="No active controller since 2026-09-21 14:13:20 UTC: metadata cannot change",
        past="There was no active controller: metadata could not change",
        severity=Severity.CRITICAL,
    ),
    Case(
        "no-controller",
        always(Failed(what="quorum", error="NOT_CONTROLLER")),
        HEALTHY,
        before=tuple(three()(0)),
        hold=5,
        every=1,
        sentence="No active controller since 2026-09-21 14:13:20 UTC: metadata cannot change",
        past="There was no active controller: metadata could not change",
        severity=Severity.CRITICAL,
        evidence={"voters": [1, 2, 3]},
    ),
    Case(
        "no-majority-margin",
        lambda second: (quorum(replica(1, fetched=second), replica(2, fetched=second)),),
        HEALTHY,
        hold=10,
        every=1,
        sentence="2 of 2 voters are healthy: one more failure stops metadata changes",
        past="2 of 2 voters were healthy: one more failure would have stopped metadata changes",
        severity=Severity.WARNING,
    ),
    Case(
        "quorum-lost",
        three((2, 3), at=-100),
        HEALTHY,
        hold=10,
        every=1,
        sentence="1 of 3 voters is healthy: metadata cannot change",
        past="1 of 3 voters was healthy: metadata could not change",
        severity=Severity.CRITICAL,
        evidence={"healthy": [1], "majority": 2},
    ),
    Case(
        "no-majority-margin",
        three((2,), at=-100),
        HEALTHY,
        hold=10,
        every=1,
        sentence="2 of 3 voters are healthy: one more failure stops metadata changes",
        past="2 of 3 voters were healthy: one more failure would have stopped metadata changes",
        severity=Severity.WARNING,
    ),
    Case(
        "voter-lagging",
        lagging(11, 101),
        lagging(10, 101),
        hold=0,
        every=1,
        sentence="Voter 2 is 101 records and 11 s behind",
        past="Voter 2 was 101 records and 11 s behind",
        severity=Severity.WARNING,
    ),
    Case(
        "voter-lagging",
        lagging(61, 101),
        lagging(61, 100),
        hold=0,
        every=1,
        sentence="Voter 2 is 101 records and 1 min 01 s behind",
        past="Voter 2 was 101 records and 1 min 01 s behind",
        severity=Severity.CRITICAL,
    ),
    Case(
        "high-watermark-stuck",
        always(quorum(replica(1, 120), replica(2, 100), replica(3, 100))),
        always(quorum(replica(1, 120), replica(2, 120), replica(3, 100), watermark=120)),
        hold=10,
        every=1,
        sentence="No metadata has been committed since 2026-09-21 14:13:20 UTC; waiting for nodes 2, 3",
        past="No metadata was committed for 16 s; waiting for nodes 2, 3",
        severity=Severity.CRITICAL,
    ),
    Case(
        "even-voters",
        always(quorum(replica(1), replica(2))),
        always(quorum(replica(1), replica(2), replica(3, role="observer"), replica(4))),
        hold=0,
        sentence="2 voters tolerate no more failures than 1",
        past="2 voters tolerated no more failures than 1",
        severity=Severity.NOTICE,
    ),
    Case(
        "single-voter",
        always(quorum(replica(1), replica(2, role="observer"))),
        always(quorum(replica(1), replica(2))),
        hold=0,
        sentence="Node 1 is the only voter: metadata cannot change without it",
        past="Node 1 was the only voter: metadata could not change without it",
        severity=Severity.NOTICE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opens_holds_and_closes(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(("ago", "found"), [(5, 0), (6, 1)])
def test_a_voter_is_healthy_if_it_fetched_within_five_seconds(ago: int, found: int) -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        return (quorum(replica(1, fetched=second), replica(2, fetched=second - ago), replica(3, fetched=second)),)

    assert len(Story().during(0, 20, 1, facts).open("no-majority-margin")) == found


@pytest.mark.parametrize(("behind", "severity"), [(60, Severity.WARNING), (61, Severity.CRITICAL)])
def test_a_minute_behind_is_critical(behind: int, severity: Severity) -> None:
    assert Story().tell(*lagging(behind, 101)(0)).open("voter-lagging")[0].severity is severity


def test_a_single_voter_can_be_left_unsaid() -> None:
    story = Story(Engine(muted=["single-voter"])).tell(quorum(replica(1)))

    assert not story.open("single-voter")


def test_a_watermark_that_creeps_is_not_stuck() -> None:
    def creeping(second: int) -> tuple[Fact, ...]:
        return (quorum(replica(1, 200 + second), watermark=100 + second),)

    assert not Story().during(0, 60, 1, creeping).open("high-watermark-stuck")


def test_an_idle_quorum_is_not_stuck_the_moment_something_is_written() -> None:
    story = Story().during(0, 60, 1, always(quorum(replica(1, 100), replica(2, 100))))
    story.tell(quorum(replica(1, 101), replica(2, 100)))

    assert not story.open("high-watermark-stuck")


def test_a_question_about_the_quorum_that_times_out_says_nothing_of_its_leader() -> None:
    story = Story().tell(quorum(replica(1))).during(1, 60, 1, always(Failed(what="quorum", error="REQUEST_TIMED_OUT")))

    assert not story.open("no-controller")


def test_an_election_is_told_once_with_its_gap() -> None:
    story = Story().at(0, quorum(replica(1), epoch=4)).at(1, quorum(replica(1), epoch=4, leader=-1))
    story.at(3, quorum(replica(1), replica(2), epoch=5, leader=2))

    [finding] = story.open("quorum-leader-changed")
    assert finding.sentence == "Node 2 has led the quorum since 2026-09-21 14:13:23 UTC (epoch 5, 3 s without a leader)"
    assert finding.severity is Severity.NOTICE
    story.during(4, 33, 1, always(quorum(replica(2), epoch=5, leader=2)))
    assert story.open("quorum-leader-changed")
    story.at(34)
    [resolved] = story.resolved("quorum-leader-changed")
    assert (resolved.since_ms, resolved.until_ms) == (START_MS + 3000, START_MS + 3000)


def test_the_first_epoch_seen_is_no_election() -> None:
    assert not Story().tell(quorum(replica(1), epoch=7)).open("quorum-leader-changed")


def test_a_storm_is_three_elections_within_ten_minutes() -> None:
    story = Story()
    for number, second in enumerate((0, 10, 300)):
        story.at(second, quorum(replica(1), epoch=1 + number))
    assert not story.open("election-storm")
    story.at(609, quorum(replica(1), epoch=4))

    [finding] = story.open("election-storm")
    assert (finding.sentence, finding.severity) == ("3 elections in the last 10 min", Severity.WARNING)
    story.at(610 + 29)
    assert story.open("election-storm")
    story.at(610 + 30)
    assert story.what("election-storm") == [ChangeType.OPENED, ChangeType.RESOLVED]


def test_elections_further_apart_are_no_storm() -> None:
    story = Story()
    for number, second in enumerate((0, 10, 300, 610)):
        story.at(second, quorum(replica(1), epoch=1 + number))

    assert not story.open("election-storm")


def test_without_fetch_times_the_health_of_voters_cannot_be_seen() -> None:
    old = Quorum(
        leader=1, leader_epoch=1, high_watermark=5, replicas=(Replica(id=1, log_end=5), Replica(id=2, log_end=5))
    )
    story = Story().during(0, 30, 1, always(old))

    assert not story.open("quorum-lost")
    unseen = {each.rule: each.why for each in story.engine.unseen()}
    assert unseen["quorum-lost"] == "needs DescribeQuorum version 1, which reports fetch times"
    assert "high-watermark-stuck" not in unseen


def test_a_voter_that_never_fetched_from_a_new_leader_lags_from_its_election() -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        never = Replica(id=2, log_end=0, last_fetch_ts=-1, last_caught_up_ts=-1)
        return (Quorum(leader=1, leader_epoch=2, high_watermark=500, replicas=(replica(1, 500, second), never)),)

    story = Story().tell(quorum(replica(1), epoch=1)).during(1, 12, 1, facts)
    assert not story.open("voter-lagging")
    story.during(12, 13, 1, facts)

    assert story.open("voter-lagging")[0].sentence == "Voter 2 is 500 records and 11 s behind"
