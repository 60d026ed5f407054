"""Rules about how groups come forward."""

from __future__ import annotations

import msgspec
import pytest

from ottla.health import Severity
from ottla.health.facts import Fact, Gone, ShareOffsets, Subtopology
from tests.unit.health.story import START_MS, Case, Facts, Story, always, check, group, lag, member, streams_member

BILLING = group("billing", member("billing-1", "orders-0"))


def growing(extra: int = 10, lead: int = 2000) -> Facts:
    """200 records a second come, `extra` a second too few are read."""
    return lambda second: (lag("billing", 200 * second - extra * second, 200 * second + lead),)


CASES = [
    Case(
        "lag-stuck",
        lambda second: (lag("billing", 500, 600 + second),),
        lambda second: (lag("billing", 500 + second, 600 + second),),
        before=(BILLING,),
        hold=300,
        sentence="billing has made no progress on orders-0 for 5 min 00 s (lag 400)",
        past="billing made no progress on orders-0 for 5 min 30 s (lag 430)",
        severity=Severity.WARNING,
        evidence={"member": "billing-1", "committed": 500},
    ),
    Case(
        "lag-growing",
        growing(),
        lambda second: (lag("billing", 200 * second, 200 * second + 2000),),
        before=(BILLING,),
        hold=300,
        sentence="billing is falling behind on orders: 5,000 records (25 s), +600/min",
        past="billing fell behind on orders: 5,300 records (26.5 s), +600/min",
        severity=Severity.WARNING,
        evidence={"lag": 5000, "lag_5_min_ago": 2000, "per_minute": 600},
    ),
    Case(
        "offset-lost",
        always(lag("billing", 500, 9000, start=512)),
        always(lag("billing", 600, 9000, start=512)),
        hold=0,
        sentence="billing has lost 12 records of orders-0",
        past="billing lost 12 records of orders-0",
        severity=Severity.CRITICAL,
    ),
    Case(
        "lag-no-members",
        lambda second: (lag("billing", 500, 600 + second),),
        always(lag("billing", 2000, 2000)),
        before=(group("billing"),),
        hold=600,
        sentence="billing has no members, and its lag is growing",
        past="billing had no members, and its lag grew",
        severity=Severity.NOTICE,
        evidence={"grown": 600},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opens_holds_and_closes(case: Case) -> None:
    check(case)


def test_lag_that_begins_after_a_long_rest_is_not_stuck_at_once() -> None:
    story = Story().tell(BILLING).during(0, 600, 5, always(lag("billing", 500, 500)))
    story.during(600, 895, 5, always(lag("billing", 500, 501)))
    assert not story.open("lag-stuck")
    story.during(895, 905, 5, always(lag("billing", 500, 501)))

    [finding] = story.open("lag-stuck")
    assert finding.since_ms == START_MS + 600_000


@pytest.mark.parametrize("topics", [{"source": ("orders",)}, {"repartition_source": ("orders",)}], ids=str)
def test_the_member_with_the_task_reads_each_kind_of_source_topic(topics: dict[str, tuple[str, ...]]) -> None:
    parts = (Subtopology(id="0", **topics),)
    app = group("app", streams_member("app-1", "0_0"), kind="streams", subtopologies=parts)
    story = Story().tell(app).during(0, 305, 5, always(lag("app", 500, 600)))

    [finding] = story.open("lag-stuck")
    assert finding.evidence["member"] == "app-1"


def test_a_group_without_members_is_not_stuck() -> None:
    story = Story().tell(group("billing")).during(0, 600, 5, always(lag("billing", 500, 600)))

    assert not story.open("lag-stuck")


@pytest.mark.parametrize(("first", "last", "found"), [(100, 999, 0), (100, 1000, 1), (5000, 5990, 0), (5000, 6010, 1)])
def test_lag_must_be_a_thousand_and_a_fifth_more_than_five_minutes_ago(first: int, last: int, found: int) -> None:
    story = Story().during(0, 301, 5, lambda second: (lag("billing", 0, first + (last - first) * second // 300),))

    assert len(story.open("lag-growing")) == found


def test_a_minute_in_which_a_group_keeps_up_breaks_the_trend() -> None:
    def pausing(second: int) -> tuple[Fact, ...]:
        produced = 200 * second + 20_000
        behind = 2000 + 30 * min(second, 150) + 30 * max(0, second - 270)
        return (lag("billing", produced - behind, produced),)

    story = Story().during(0, 400, 5, pausing)

    assert not story.open("lag-growing")


def test_lag_of_all_partitions_of_a_topic_counts_together() -> None:
    def four(second: int) -> tuple[Fact, ...]:
        return tuple(lag("billing", 0, 100 + second, number) for number in range(4))

    [finding] = Story().during(0, 305, 5, four).open("lag-growing")

    assert finding.evidence["lag"] == 4 * 400
    assert finding.subject.topic == "orders"


def test_without_history_the_time_of_the_last_record_read_tells_how_far_behind() -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        return (msgspec.structs.replace(lag("billing", 10, 5000 + 20 * second), committed_ts=START_MS - 60_000),)

    [finding] = Story().during(0, 305, 5, facts).open("lag-growing")

    assert finding.evidence["behind_ms"] == 360_000


def test_share_groups_fall_behind_too() -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        end, left = 100 * second + 5000, 2000 + 50 * second
        return (
            ShareOffsets(group="risk", topic="payments", partition=0, start=end - left, lag=left, high_watermark=end),
        )

    assert Story().during(0, 305, 5, facts).open("lag-growing")[0].subject.name == "risk"


def test_retention_that_overtakes_a_group_within_an_hour() -> None:
    """10 records a second are read, 20 deleted; 32,000 apart at first, so 23,000 apart after 15 min: 2,300 s left."""

    def facts(second: int) -> tuple[Fact, ...]:
        return (lag("billing", 32_000 + 10 * second, 500_000, start=20 * second),)

    story = Story().during(0, 800, 5, facts)
    assert not story.open("lag-near-retention")
    story.during(800, 905, 5, facts)

    [finding] = story.open("lag-near-retention")
    assert finding.sentence == "billing will lose records of orders-0 in about 38 min 20 s"
    assert finding.severity is Severity.CRITICAL
    story.during(905, 1865, 5, always(lag("billing", 499_000, 500_000, start=18_000)))
    assert not story.open("lag-near-retention")


def test_retention_that_needs_more_than_an_hour_is_left_alone() -> None:
    story = Story().during(0, 1000, 5, lambda second: (lag("billing", 60_000, 500_000, start=10 * second),))

    assert not story.open("lag-near-retention")


def test_a_deleted_group_has_no_lag() -> None:
    story = Story().tell(lag("billing", 1, 9, start=5)).at(1, Gone(what="group", name="billing")).at(31)

    assert not story.open("offset-lost")


def test_what_is_no_longer_sampled_is_forgotten_in_time() -> None:
    story = Story().tell(lag("billing", 1, 9, start=5))
    story.during(10, 1000, 10, always(lag("other", 9, 9))).at(1031)

    assert not story.open("offset-lost")
    assert story.resolved("offset-lost")[0].until_ms == START_MS
