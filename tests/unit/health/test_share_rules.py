"""Rules about share groups."""

from __future__ import annotations

import pytest

from ottla.health import ChangeType, Severity, Tier
from ottla.health.facts import Configs, Coverage, Fact, ShareMetrics, ShareOffsets, ShareState, ShareWindow, StateBatch
from tests.unit.health.story import START_MS, Case, Facts, Story, always, check, group, member, topic

AVAILABLE, ACCEPTED, ARCHIVED = 0, 2, 4
LOCKS = Configs(resource="group", name="risk", values={"share.record.lock.duration.ms": "5000"})
WORKERS = group("risk", member("worker-1"), kind="share")


def offsets(start: int, lag: int = 100, number: int = 0) -> ShareOffsets:
    return ShareOffsets(group="risk", topic="pay", partition=number, start=start, lag=lag, high_watermark=start + lag)


def update(*batches: tuple[int, int, int, int], start: int | None = None, snapshot: bool = False) -> ShareState:
    """Batches are (first, last, state, delivery count)."""
    states = tuple(StateBatch(first=a, last=b, state=state, count=count) for a, b, state, count in batches)
    record = "ShareSnapshot" if snapshot else "ShareUpdate"
    return ShareState(group="risk", topic="pay", partition=0, record=record, start=start, batches=states)


def window(start: int, end: int, count: int | None = None) -> ShareWindow:
    return ShareWindow(group="risk", topic="pay", partition=0, start=start, end=end, first_count=count)


CASES = [
    Case(
        "share-stalled-by-record",
        always(offsets(40)),
        always(offsets(41)),
        before=(LOCKS, update((40, 40, AVAILABLE, 4), start=40)),
        hold=10,
        every=2,
        sentence="pay-0 is held up by record 40 (delivery 4 of 5)",
        past="pay-0 was held up by record 40 (delivery 4 of 5)",
        severity=Severity.WARNING,
    ),
    Case(
        "share-stalled-by-record",
        always(window(40, 90, 5), offsets(40)),
        always(window(40, 90, 1), offsets(40)),
        before=(LOCKS,),
        hold=10,
        every=2,
        sentence="pay-0 is held up by record 40 (delivery 5 of 5)",
        past="pay-0 was held up by record 40 (delivery 5 of 5)",
        severity=Severity.WARNING,
    ),
    Case(
        "share-start-not-moving",
        always(offsets(40)),
        always(offsets(40, lag=0)),
        before=(WORKERS,),
        hold=300,
        sentence="risk has completed no record of pay-0 since 2026-09-21 14:13:20 UTC",
        past="risk completed no record of pay-0 for 5 min 30 s",
        severity=Severity.WARNING,
    ),
    Case(
        "share-window-full",
        always(window(100, 100 + 1899)),
        always(window(100, 100 + 1898)),
        before=(LOCKS,),
        hold=10,
        every=2,
        sentence="The in-flight window of pay-0 is full (1,900 records): no new records are delivered",
        past="The in-flight window of pay-0 was full (1,900 records): no new records were delivered",
        severity=Severity.WARNING,
    ),
    Case(
        "share-window-full",
        always(offsets(100)),
        always(update(start=201)),
        before=(LOCKS, update((100, 2099, AVAILABLE, 1), start=100, snapshot=True)),
        hold=10,
        every=2,
        sentence="The in-flight window of pay-0 is full (2,000 records): no new records are delivered",
        past="The in-flight window of pay-0 was full (2,000 records): no new records were delivered",
        severity=Severity.WARNING,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opens_holds_and_closes(case: Case) -> None:
    check(case)


def test_a_record_delivered_less_often_is_not_blamed() -> None:
    story = Story().tell(LOCKS, WORKERS, update((40, 40, AVAILABLE, 3), start=40))
    story.during(0, 301, 5, always(offsets(40)))

    assert not story.open("share-stalled-by-record")
    assert story.open("share-start-not-moving")


def test_a_window_that_waits_for_a_record_is_said_once() -> None:
    story = Story().tell(LOCKS, WORKERS, update((40, 40, AVAILABLE, 4), start=40))
    story.during(0, 400, 5, always(offsets(40)))

    assert story.open("share-stalled-by-record")
    assert not story.open("share-start-not-moving")


def released(redelivered: int, first: int = 1000) -> Facts:
    """So many redeliveries end every two seconds, among ten deliveries."""

    def facts(second: int) -> tuple[Fact, ...]:
        at = first + 10 * second
        if not redelivered:
            return (update((at, at + 9, ACCEPTED, 1), start=at),)
        return (
            update((at, at + redelivered - 1, ACCEPTED, 2), (at + redelivered, at + 9, ACCEPTED, 1), start=at),
        )  # fmt: skip

    return facts


def test_a_storm_opens_at_the_second_hot_bucket_and_dates_from_the_first() -> None:
    story = Story().tell(update(start=0, snapshot=True)).during(0, 20, 2, released(0)).during(20, 44, 2, released(6))
    assert not story.open("redelivery-storm")
    story.at(45)  # the second bucket is over, and what is written late has had its time

    [finding] = story.open("redelivery-storm")
    assert finding.since_ms == START_MS + 20_000
    assert finding.sentence == "Share group risk is redelivering 30 % of its records (60 in the last minute)"
    assert (finding.severity, finding.tier) == (Severity.CRITICAL, Tier.RECORDS)
    assert finding.evidence["peak_percent"] == 60
    assert finding.evidence["worst"] == ["pay-0"]


def test_a_storm_ends_with_its_last_hot_bucket() -> None:
    story = Story().tell(update(start=0, snapshot=True)).during(0, 50, 2, released(6)).during(50, 94, 2, released(1))
    assert story.open("redelivery-storm")
    story.at(95)

    [resolved] = story.resolved("redelivery-storm")
    assert (resolved.since_ms, resolved.until_ms) == (START_MS, START_MS + 50_000)
    assert story.what("redelivery-storm") == [ChangeType.OPENED, ChangeType.RESOLVED]


def test_a_storm_after_which_nothing_is_delivered_ends_by_time() -> None:
    story = Story().tell(update(start=0, snapshot=True)).during(0, 30, 2, released(6)).at(35).at(80)

    assert story.resolved("redelivery-storm")[0].until_ms == START_MS + 30_000


@pytest.mark.parametrize(
    ("first", "again", "found"), [(0, 19, 0), (0, 20, 1), (46, 20, 1), (47, 20, 0), (70, 30, 1), (71, 29, 0)]
)
def test_a_hot_bucket_has_twenty_redeliveries_and_three_tenths_of_all(first: int, again: int, found: int) -> None:
    counts = {10: (0, 0), 20: (first + again, again), 30: (2 * (first + again), 2 * again)}
    story = Story().at(5, metrics())
    for second, (delivered, redelivered) in counts.items():
        story.at(second, metrics(delivered=delivered, redelivered=redelivered))

    assert len(story.at(45).open("redelivery-storm")) == found


def test_one_hot_bucket_in_a_minute_is_no_storm() -> None:
    story = Story().tell(update(start=0, snapshot=True))
    for start in (0, 80, 160):
        story.during(start, start + 10, 2, released(6)).during(start + 10, start + 80, 2, released(0))

    assert not story.open("redelivery-storm")


def test_a_snapshot_repeats_what_was_written_and_counts_nothing_twice() -> None:
    facts = update((0, 99, AVAILABLE, 2), start=0)
    again = update((0, 99, AVAILABLE, 2), start=0, snapshot=True)
    story = Story().tell(facts).during(2, 90, 2, always(again))

    assert not story.open("redelivery-storm")


def metrics(**counts: int) -> ShareMetrics:
    return ShareMetrics(group="risk", node=1, **counts)


def test_counters_of_an_ottla_broker_show_every_delivery() -> None:
    story = Story().during(0, 46, 5, lambda second: (metrics(delivered=50 * second, redelivered=20 * second),))

    [finding] = story.open("redelivery-storm")
    assert (finding.tier, finding.evidence["peak_percent"]) == (Tier.OTTLA, 40)


def test_records_that_were_given_up_are_listed() -> None:
    story = Story().tell(update(start=0, snapshot=True), topic("pay"))
    story.at(1, update((7, 9, ARCHIVED, 5), start=0)).at(2, update((20, 20, ARCHIVED, 5)))

    [finding] = story.open("poison-records")
    assert finding.sentence == "4 records of risk were archived after 5 deliveries: pay-0 7–9, 20"
    assert finding.severity is Severity.WARNING
    assert finding.evidence["records"] == [["pay", 0, 7], ["pay", 0, 8], ["pay", 0, 9], ["pay", 0, 20]]
    story.at(902 + 29.9)
    assert story.open("poison-records")
    story.at(902 + 30)
    [resolved] = story.resolved("poison-records")
    assert (resolved.since_ms, resolved.until_ms) == (START_MS + 1000, START_MS + 2000)


def test_what_a_first_snapshot_holds_has_not_just_happened() -> None:
    story = Story().tell(update((7, 9, ARCHIVED, 5), (10, 12, ARCHIVED, 1), start=0, snapshot=True))

    assert not story.open("poison-records")
    assert not story.open("rejected-records")


def test_the_limit_is_the_groups_own() -> None:
    limit = Configs(resource="group", name="risk", values={"share.delivery.count.limit": "3"})
    story = Story().tell(limit, update((7, 7, ARCHIVED, 3), start=0))

    [finding] = story.open("poison-records")
    assert finding.evidence["limit"] == 3
    assert finding.sentence.startswith("1 record of risk was archived after 3 deliveries")


def test_archived_below_the_limit_was_rejected_or_a_gap() -> None:
    story = Story().at(1, update((7, 9, ARCHIVED, 1), start=0))

    [finding] = story.open("rejected-records")
    assert (finding.sentence, finding.severity) == ("3 records of risk were rejected or were gaps", Severity.NOTICE)
    assert not story.open("poison-records")
    story.at(901 + 30)
    assert story.resolved("rejected-records")


def test_one_record_is_not_many() -> None:
    assert Story().at(1, update((7, 7, ARCHIVED, 1), start=0)).open("rejected-records")[0].sentence == (
        "1 record of risk was rejected or was a gap"
    )
    counted = Story().at(0, metrics()).at(5, metrics(rejected=1))
    assert counted.open("rejected-records")[0].sentence == "1 record of risk was rejected"


def test_an_ottla_broker_tells_rejects_from_gaps() -> None:
    story = Story().at(0, metrics()).at(5, metrics(rejected=2)).at(6, update((7, 9, ARCHIVED, 1), start=0))

    [finding] = story.open("rejected-records")
    assert (finding.sentence, finding.tier) == ("2 records of risk were rejected", Tier.OTTLA)


def expiring(per_second: float, delivered: int = 10) -> Facts:
    return lambda second: (metrics(lock_expiries=round(per_second * second), delivered=delivered * second),)


def test_locks_that_expire() -> None:
    story = Story().during(0, 15, 5, expiring(0.6))
    assert not story.open("lock-expiries")
    story.during(15, 61, 5, expiring(0.6))

    [finding] = story.open("lock-expiries")
    assert finding.sentence == "Workers of risk exceed the lock duration (30 s): 36 locks expired in the last minute"
    assert finding.severity is Severity.WARNING
    story.during(65, 160, 5, lambda second: (metrics(lock_expiries=36, delivered=10 * second),))
    assert not story.open("lock-expiries")


@pytest.mark.parametrize(("count", "found"), [(9, 0), (10, 1)])
def test_a_few_locks_may_expire(count: int, found: int) -> None:
    story = Story().at(0, metrics()).at(30, metrics(lock_expiries=count, delivered=20))

    assert len(story.open("lock-expiries")) == found


def test_few_of_many_locks_may_expire() -> None:
    assert not Story().during(0, 120, 5, expiring(0.5)).open("lock-expiries")  # exactly 5 %


def test_a_counter_that_falls_belongs_to_a_broker_that_began_anew() -> None:
    story = Story().at(0, metrics(delivered=1000, lock_expiries=900)).at(10, metrics(delivered=5, lock_expiries=1))

    assert not story.open("lock-expiries")


def test_topics_of_the_state_topic_are_named_by_their_ids() -> None:
    record = ShareState(
        group="risk", topic_id="id-pay", partition=0, batches=(StateBatch(first=7, last=7, state=ARCHIVED, count=5),)
    )

    assert Story().tell(topic("pay"), record).open("poison-records")[0].evidence["records"] == [["pay", 0, 7]]


def test_without_the_state_topic_it_is_said_what_cannot_be_seen() -> None:
    story = Story().tell(offsets(40), Coverage(what="share_state", visible=False, why="User:ana may not READ it"))

    unseen = {each.rule: each.why for each in story.engine.unseen()}
    assert unseen["poison-records"] == unseen["redelivery-storm"] == "User:ana may not READ it"
    assert unseen["lock-expiries"] == "needs the metrics of an ottla broker"
    assert "lag-growing" not in unseen
