"""Rules about the members of groups."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.health import ChangeType, Severity
from ottla.health.facts import Configs, Fact, Failed, Group, GroupMember, Subtopology, Tasks
from ottla.health.rules import members
from tests.unit.health.story import (
    START_MS,
    Case,
    Story,
    always,
    check,
    group,
    lag,
    member,
    partition,
    streams_member,
    topic,
)


def stuck(epoch: int, **rest: object) -> Group:
    """One member is to give orders-1 to another, and has not yet if its epoch is the old one."""
    held = ("orders-0", "orders-1") if epoch == 1 else ("orders-0",)
    first = member("billing-1", *held, target=("orders-0",), epoch=epoch, **rest)
    second = member("billing-2", target=("orders-1",) if epoch == 1 else (), epoch=2)
    return group("billing", first, second, epoch=2, state="Reconciling")


CASES = [
    Case(
        "member-stuck-revoking",
        always(stuck(1)),
        always(stuck(2)),
        hold=31,
        every=10,
        sentence="billing-1 has not revoked orders-1 for 31 s; billing-2 waits",
        past="billing-1 did not revoke orders-1 for 1 min 31 s; billing-2 waited",
        severity=Severity.WARNING,
        evidence={"kept": ["orders-1"], "waiting": ["billing-2"]},
    ),
    Case(
        "member-waiting",
        always(stuck(1)),
        always(stuck(2)),
        hold=31,
        every=10,
        sentence="billing-2 is waiting for orders-1, held by billing-1",
        past="billing-2 waited for orders-1, held by billing-1",
        severity=Severity.NOTICE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opens_holds_and_closes(case: Case) -> None:
    check(case)


def test_a_large_group_that_rebalances_is_looked_through_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[GroupMember] = []

    def counted(look: Callable[[GroupMember], set[str]]) -> Callable[[GroupMember], set[str]]:
        def looked(each: GroupMember) -> set[str]:
            looked_at.append(each)
            return look(each)

        return looked

    for name in ("holdings", "lacking", "surplus"):
        monkeypatch.setattr(members, name, counted(getattr(members, name)))
    pairs = [(f"orders-{each}", f"orders-{each + 1}") for each in range(0, 100, 2)]
    late = [member(f"late-{one}", one, other, target=(one,), epoch=1) for one, other in pairs]
    others = [member(f"done-{other}", target=(other,), epoch=2) for _, other in pairs]
    rebalancing = group("billing", *late, *others, epoch=2, state="Reconciling")
    story = Story().tell(rebalancing)
    assert len(looked_at) <= 10 * len(rebalancing.members)
    story.at(60, rebalancing)
    assert len(story.open("member-stuck-revoking")) == len(story.open("member-waiting")) == 50


@pytest.mark.parametrize("rule", ["member-stuck-revoking", "member-waiting"])
def test_an_unchanged_group_is_told_once_and_time_does_the_rest(rule: str) -> None:
    story = Story().tell(stuck(1)).at(30)
    assert not story.open(rule)
    story.at(30.001)

    assert len(story.open(rule)) == 1


def test_a_static_member_that_has_left_for_a_while_is_not_stuck() -> None:
    away = member("billing-1", "orders-0", target=("orders-0", "orders-1"), epoch=-2, instance="i-1")
    story = Story().tell(group("billing", away, member("billing-2", epoch=2), epoch=2)).at(600)
    assert not story.open("member-stuck-revoking")
    assert not story.open("member-waiting")


def test_a_long_heartbeat_gives_a_member_longer() -> None:
    slow = Configs(resource="group", name="billing", values={"consumer.heartbeat.interval.ms": "15000"})
    story = Story().tell(slow, stuck(1)).at(45)
    assert not story.open("member-stuck-revoking")
    assert story.at(45.001).open("member-stuck-revoking")


def test_half_of_the_rebalance_time_out_makes_it_critical() -> None:
    story = Story().tell(stuck(1, rebalance_timeout_ms=120_000)).at(60)
    assert story.open("member-stuck-revoking")[0].severity is Severity.WARNING
    story.at(60.001)

    [finding] = story.open("member-stuck-revoking")
    assert finding.severity is Severity.CRITICAL
    assert finding.next[0].text == "check its poll loop or state flush; it is fenced in 59.9 s"
    assert [each.what for each in story.changes if each.finding.rule == finding.rule][-1] is ChangeType.CHANGED


def climbing(second: int, every: int, *, converge: bool = True, members: int = 2) -> Group:
    epoch = 1 + second // every
    done = epoch if converge and second % every else epoch - 1
    return group("billing", *(member(f"m{n}", f"orders-{n}", epoch=done) for n in range(members)), epoch=epoch)


def test_epochs_that_climb_though_nobody_joins_or_leaves() -> None:
    story = Story().during(0, 500, 10, lambda second: (climbing(second, 100),))
    assert not story.open("epochs-climb")
    story.during(500, 510, 10, lambda second: (climbing(second, 100),))

    [finding] = story.open("epochs-climb")
    assert finding.sentence == "billing rebalanced 5 times in the last 10 min although no member joined or left"
    assert (finding.severity, finding.since_ms) == (Severity.WARNING, START_MS + 500_000)
    story.during(510, 700, 10, lambda _: (climbing(510, 100),))
    assert story.open("epochs-climb")
    story.during(700, 729, 10, lambda _: (climbing(510, 100),)).at(729)
    assert story.open("epochs-climb")
    story.at(730)
    assert story.resolved("epochs-climb")[0].until_ms == START_MS + 700_000


def test_ten_rises_are_critical() -> None:
    story = Story().during(0, 550, 5, lambda second: (climbing(second, 50),))

    assert story.open("epochs-climb")[0].severity is Severity.CRITICAL


def test_rises_of_which_none_converges_are_critical() -> None:
    story = Story().during(0, 520, 10, lambda second: (climbing(second, 100, converge=False),))

    assert story.open("epochs-climb")[0].severity is Severity.CRITICAL


def test_rises_with_a_member_more_each_are_the_members_doing() -> None:
    story = Story().during(0, 600, 10, lambda second: (climbing(second, 100, members=1 + second // 100),))

    assert not story.open("epochs-climb")


def test_rises_with_a_partition_more_each_are_the_topics_doing() -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        return topic("orders", *(partition(n) for n in range(1 + second // 100))), climbing(second, 100)

    assert not Story().during(0, 600, 10, facts).open("epochs-climb")


def test_steps_of_warm_ups_do_not_count() -> None:
    """Task 0_1 warms up at the second member, becomes active there, and so on with the next."""

    def facts(second: int) -> tuple[Fact, ...]:
        step = second // 50
        moved = tuple(f"0_{n}" for n in range(step // 2))
        kept = tuple(f"0_{n}" for n in range(step // 2, 8))
        warming = kept[:1] if step % 2 else ()
        targets = Tasks(active=kept), Tasks(active=moved, warmup=warming)
        members = (GroupMember(member=f"m{n}", epoch=1 + step, target_tasks=each) for n, each in enumerate(targets))
        return (group("totals", *members, kind="streams", epoch=1 + step),)

    assert not Story().during(0, 600, 10, facts).open("epochs-climb")


def test_members_that_keep_rejoining() -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        return (group("billing", member("steady", "orders-0"), member(f"crashing-{second // 50}", "orders-1")),)

    story = Story().during(0, 400, 10, facts)
    assert not story.open("member-churn")
    story.during(400, 410, 10, facts)

    [finding] = story.open("member-churn")
    assert finding.sentence == "Members of billing keep rejoining (10 member ids for 2 members)"
    assert finding.severity is Severity.WARNING
    story.during(410, 1100, 10, lambda _: facts(400))
    assert not story.open("member-churn")


def test_many_members_are_no_churn() -> None:
    crowd = group("billing", *(member(f"m{n}", f"orders-{n}") for n in range(30)))

    assert not Story().tell(crowd).open("member-churn")


SESSION = Configs(resource="group", name="billing", values={"consumer.session.timeout.ms": "6000"})
PAIR = group("billing", member("billing-1", "orders-0"), member("billing-2", "orders-1", "orders-2"))
ALONE = group("billing", member("billing-1", "orders-0", "orders-1", "orders-2", epoch=2), epoch=2)


def progress(second: int, dead_from: int, taken_over: int) -> tuple[Fact, ...]:
    """Ten records a second; what the second member holds stands still while nobody reads it."""
    at = dead_from if dead_from <= second < taken_over else second
    return (
        lag("billing", 10 * second, 10 * second + 5, 0),
        lag("billing", 10 * at, 10 * second + 5, 1),
        lag("billing", 10 * at, 10 * second + 5, 2),
    )


LOST = "billing-2 stopped without leaving the group billing"


def test_a_member_that_stops_without_leaving_the_group() -> None:
    story = Story().tell(SESSION, PAIR).during(0, 66, 2, lambda second: progress(second, 60, 68))
    assert not story.open("member-lost")
    story.at(66, *progress(66, 60, 68)).tell(ALONE)

    [finding] = story.open("member-lost")
    assert finding.sentence == LOST + "; no progress on orders-1, orders-2 for 6 s"
    assert finding.precision_ms == 2_000, "the time comes from samples of the lag, not of the group"
    assert (finding.subject.name, finding.subject.member) == ("billing", "billing-2-id")
    story.during(68, 98, 2, lambda second: progress(second, 60, 68))
    assert story.open("member-lost")
    story.at(98.001)
    [resolved] = story.resolved("member-lost")
    assert resolved.sentence == LOST + "; orders-1, orders-2 made no progress for 8 s"
    assert resolved.evidence["stood_still_ms"] == 8000
    assert (resolved.since_ms, resolved.until_ms) == (START_MS + 60_000, START_MS + 68_000)


def test_samples_between_which_it_died_and_was_removed_are_enough() -> None:
    """It dies at 61 s, which shows at 62 s, and is gone at 68 s, when others read its partitions at once."""
    story = Story().tell(SESSION, PAIR).during(0, 68, 2, lambda second: progress(second, 61, 68)).at(68, ALONE)

    [finding] = story.at(69, *progress(69, 61, 68)).open("member-lost")

    assert finding.evidence["partitions"] == ["orders-1", "orders-2"]


def test_a_late_sample_is_enough_if_it_stood_still_after_that() -> None:
    """It dies at 60 s. The samples are late: they show that at 63 and 65 s, and it is gone before the next."""
    story = Story().tell(SESSION, PAIR).during(0, 59, 2, lambda second: progress(second, 60, 66))
    for second in (63, 65):
        story.at(second, *progress(second, 60, 66))

    [finding] = story.at(65.5, ALONE).open("member-lost")

    assert finding.evidence["partitions"] == ["orders-1", "orders-2"]


def test_a_member_that_leaves_after_its_last_commit_is_not_lost() -> None:
    story = Story().tell(SESSION, PAIR).during(0, 66, 2, lambda second: progress(second, 64, 68)).tell(ALONE)

    assert not story.open("member-lost")


def test_in_doubt_the_next_sample_decides() -> None:
    """Samples are so far apart that the commit on leaving, if there was one, has not been seen yet."""
    dead = lag("billing", 50, 99, 1), lag("billing", 50, 99, 2)
    left = lag("billing", 50, 99, 1), lag("billing", 62, 99, 2)
    for after, found in ((dead, 1), (left, 0)):
        story = Story().tell(SESSION, PAIR).at(0, lag("billing", 10, 20, 1), lag("billing", 10, 20, 2))
        story.at(5, lag("billing", 50, 60, 1), lag("billing", 50, 60, 2)).at(9, ALONE)
        assert not story.open("member-lost")
        assert len(story.at(10, *after).open("member-lost")) == found


def test_while_no_node_answers_nobody_is_to_blame_for_not_committing() -> None:
    silent = Failed(what="cluster", error="refused", unreachable=True)
    story = Story().tell(SESSION, PAIR).during(0, 60, 2, lambda second: progress(second, 99, 99))
    story.during(60, 75, 2, always(silent)).at(76, *progress(76, 58, 90)).tell(ALONE).at(78, *progress(78, 58, 90))

    assert not story.open("member-lost")


def test_a_member_of_idle_partitions_is_not_lost() -> None:
    story = Story().tell(SESSION, PAIR).during(0, 66, 2, always(lag("billing", 5, 5, 1), lag("billing", 5, 5, 2)))

    assert not story.tell(ALONE).open("member-lost")


def test_a_static_member_that_comes_back_under_another_id_is_not_lost() -> None:
    before = group("billing", member("old", "orders-1", instance="i-1"))
    after = group("billing", member("new", "orders-1", instance="i-1"))
    story = Story().tell(SESSION, before).during(0, 20, 2, lambda second: (lag("billing", 0, second, 1),))

    assert not story.tell(after).open("member-lost")


def test_a_lost_member_of_a_streams_group_is_known_by_the_topics_of_its_tasks() -> None:
    shape = (Subtopology(id="0", source=("orders",)),)
    both = group("totals", streams_member("a", "0_0"), streams_member("b", "0_1"), kind="streams", subtopologies=shape)
    one = group("totals", streams_member("a", "0_0", "0_1"), kind="streams", epoch=2, subtopologies=shape)
    story = Story().tell(both).during(0, 45, 5, lambda second: (lag("totals", 3, 10 + second, 1),))

    [finding] = story.tell(one).open("member-lost")

    assert finding.evidence["partitions"] == ["orders-1"]


def test_two_processes_with_one_instance_id() -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        return (group("billing", member(f"p{second // 100}", "orders-0", instance="i-1")),)

    story = Story().during(0, 300, 10, facts)
    assert not story.open("static-member-duplicate")
    story.during(300, 310, 10, facts)

    [finding] = story.open("static-member-duplicate")
    assert finding.sentence == "Two processes use group.instance.id i-1 in billing"
    story.at(700 + 29)
    assert story.open("static-member-duplicate")
    story.at(700 + 30)
    assert story.resolved("static-member-duplicate")


def test_a_classic_group_in_a_rebalance_still_holds_what_it_held() -> None:
    before = group("audit", member("a", "orders-0"), kind="classic")
    during = group("audit", member("a"), kind="classic", state="PreparingRebalance")
    after = group("audit", kind="classic", epoch=2)
    story = Story().tell(before).during(0, 60, 5, lambda second: (lag("audit", 3, 10 + second),))

    [finding] = story.tell(during).at(60.5, after).open("member-lost")

    assert finding.evidence["partitions"] == ["orders-0"]
