"""The engine: reopening, ids, JSON, thresholds, what cannot be seen, time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
from msgspec import UNSET

from ottla.health import RULES, Bounds, ChangeType, Engine, Finding, Severity, State, ThresholdError, parse_thresholds
from ottla.health.conditions import Condition
from ottla.health.engine import Pauses
from ottla.health.facts import FACTS, Coverage, Fact, Failed, Group, Tasks, fact_of
from ottla.health.finding import Subject, Tier
from ottla.health.history import History
from ottla.health.rule import Match
from tests.unit.health.story import START_MS, Story, always, group, lag, member, partition, quorum, replica, topic

OFFLINE = topic("orders", partition(0, -1, ()))
HEALTHY = topic("orders", partition(0))
SPECIFIED = [
    "offline-partitions",
    "internal-topic-offline",
    "under-min-isr",
    "under-replicated",
    "node-unreachable",
    "broker-fenced",
    "log-dir-offline",
    "disk-filling",
    "no-controller",
    "quorum-lost",
    "no-majority-margin",
    "voter-lagging",
    "high-watermark-stuck",
    "quorum-leader-changed",
    "election-storm",
    "even-voters",
    "single-voter",
    "features-not-finalised",
    "lag-growing",
    "lag-stuck",
    "lag-near-retention",
    "offset-lost",
    "lag-no-members",
    "epochs-climb",
    "member-churn",
    "member-lost",
    "member-stuck-revoking",
    "member-waiting",
    "static-member-duplicate",
    "streams-not-ready",
    "topology-mismatch",
    "topology-description-missing",
    "topology-description-failed",
    "warmup-stalled",
    "share-stalled-by-record",
    "share-start-not-moving",
    "share-window-full",
    "redelivery-storm",
    "poison-records",
    "rejected-records",
    "lock-expiries",
    "hanging-transaction",
    "auth-failures",
    "refused-requests",
    "open-listener",
    "observer-stale",
]


def test_there_are_46_rules_each_with_its_condition_and_why_it_matters() -> None:
    assert list(RULES) == SPECIFIED
    assert len(RULES) == 46
    assert all(each.condition and each.why for each in RULES.values())


def test_a_finding_that_comes_back_within_ten_minutes_is_the_same() -> None:
    story = Story().during(0, 15, 5, always(OFFLINE)).during(15, 60, 5, always(HEALTHY))
    [first] = story.resolved("offline-partitions")
    story.during(600, 615, 5, always(OFFLINE))

    [again] = story.open("offline-partitions")
    assert (again.id, again.times, again.since_ms) == (first.id, 2, first.since_ms)
    assert again.until_ms is msgspec.UNSET
    assert story.what("offline-partitions") == [ChangeType.OPENED, ChangeType.RESOLVED, ChangeType.REOPENED]
    assert not story.resolved("offline-partitions")


def test_a_finding_that_comes_back_later_is_another() -> None:
    story = Story().during(0, 15, 5, always(OFFLINE)).during(15, 700, 5, always(HEALTHY))
    story.during(700, 715, 5, always(OFFLINE))

    [second] = story.open("offline-partitions")
    [first] = story.resolved("offline-partitions")
    assert (second.times, second.since_ms) == (1, START_MS + 700_000)
    assert first.id != second.id


def test_a_short_relief_does_not_close() -> None:
    story = Story().during(0, 15, 5, always(OFFLINE)).at(20, HEALTHY).during(25, 90, 5, always(OFFLINE))

    assert story.what("offline-partitions") == [ChangeType.OPENED]


def test_sampled_facts_open_nothing_until_a_sample_confirms_them() -> None:
    story = Story().at(0, OFFLINE).at(60)
    assert not story.open("offline-partitions")
    assert story.at(60, OFFLINE).open("offline-partitions")


def test_a_failed_sample_neither_confirms_nor_denies() -> None:
    story = Story().during(0, 15, 5, always(OFFLINE)).during(15, 300, 5, always(Failed(what="topic", error="TIMEOUT")))

    assert story.open("offline-partitions")


def _tale() -> Iterator[tuple[int, Fact]]:
    """Things that open by samples, by time, and both."""
    for second in range(0, 120, 5):
        yield second, OFFLINE if 20 <= second < 60 else HEALTHY
        yield second, quorum(replica(1, fetched=second), epoch=1 + second // 30)
    yield 61, group("billing", member("a", "orders-0", epoch=1), epoch=2)
    yield 300, HEALTHY


def test_findings_do_not_depend_on_how_often_time_is_told() -> None:
    idle, busy = Engine(), Engine()
    told: list[list[tuple[int, ChangeType, str]]] = [[], []]
    now_ms = START_MS
    for second, fact in sorted(_tale(), key=lambda each: each[0]):
        at_ms = START_MS + second * 1000
        for moment in range(now_ms, at_ms, 500):
            told[1] += [(each.at_ms, each.what, each.finding.id) for each in busy.advance(moment)]
        now_ms = at_ms
        for number, engine in enumerate((idle, busy)):
            told[number] += [(each.at_ms, each.what, each.finding.id) for each in engine.take(at_ms, fact)]

    assert [each for each in told[0] if each[1] is not ChangeType.CHANGED] == [
        each for each in told[1] if each[1] is not ChangeType.CHANGED
    ]
    assert idle.findings() == busy.findings()


def test_the_json_form() -> None:
    story = Story().during(0, 15, 5, always(OFFLINE))
    [finding] = story.open("offline-partitions")
    form = json.loads(msgspec.json.encode(finding))

    assert list(form) == [
        "id", "rule", "severity", "state", "subject", "since_ms", "precision_ms", "times", "evidence", "sentence",
        "next", "tier",
    ]  # fmt: skip
    assert (form["severity"], form["state"], form["tier"]) == ("critical", "open", "A")
    assert form["subject"] == {"kind": "topic", "name": "orders"}
    assert form["next"][0]["command"] == "ottla topics describe orders --unhealthy"
    assert form["evidence"]["thresholds"] == {"hold_s": 10, "internal_hold_s": 5}
    assert msgspec.json.decode(msgspec.json.encode(finding), type=Finding) == finding
    story.during(15, 60, 5, always(HEALTHY))
    assert json.loads(msgspec.json.encode(story.resolved("offline-partitions")[0]))["until_ms"] == START_MS + 10_000


def test_times_are_as_exact_as_samples_are_frequent() -> None:
    seldom, often = (
        Story().during(0, 60, pause, always(HEALTHY)).during(60, 120, pause, always(OFFLINE)) for pause in (20, 2)
    )
    assert [each.open("offline-partitions")[0].precision_ms for each in (seldom, often)] == [20_000, 2_000]


def test_records_have_exact_times() -> None:
    """What the records of a group say, does not depend on how often anybody looks."""
    assert RULES["poison-records"].tier is Tier.RECORDS
    condition = Condition(RULES["poison-records"], {}, Subject("group", "g"), 0, 0, 0, pause_ms=5_000)
    [change] = condition.matched(1, Match(subject=Subject("group", "g"), sentence="s", past="p", evidence={}, next=[]))
    assert change.finding.precision_ms is UNSET


def test_records_are_no_samples() -> None:
    """A history of records has no observer that could have stopped, and its times are exact."""
    engine = Engine()
    for second in range(0, 4000, 500):
        engine.take(START_MS + 1000 * second, HEALTHY if second < 1000 else OFFLINE, is_sample=False)
    [offline] = [each for each in engine.findings() if each.rule == "offline-partitions"]
    assert offline.precision_ms is UNSET
    assert "observer-stale" not in {each.rule for each in engine.findings()}
    engine.take(START_MS + 4_000_000, OFFLINE)
    engine.advance(START_MS + 4_100_000)
    assert "observer-stale" in {each.rule for each in engine.findings()}


def test_facts_of_one_round_come_together() -> None:
    pauses = Pauses()
    for at_ms in (0, 100, 5_000, 5_100, 5_300):
        pauses.take(at_ms, "topic")
    assert pauses.before(5_300) == 4_900
    assert pauses.before(6_000) == 0
    pauses.take(5_300, "group")
    assert pauses.before(5_300) == 0


def test_the_most_urgent_comes_first() -> None:
    story = Story().tell(quorum(replica(1))).during(0, 35, 5, always(topic("orders", partition(0, -1, (1,)))))
    story.during(35, 40, 5, always(topic("a", partition(0)), lag("late", 1, 9, start=5)))

    assert [(each.severity, each.rule) for each in story.engine.findings()] == [
        (Severity.CRITICAL, "offline-partitions"),
        (Severity.CRITICAL, "offset-lost"),
        (Severity.WARNING, "under-replicated"),
        (Severity.NOTICE, "single-voter"),
    ]


def test_thresholds_can_be_set_and_are_shown() -> None:
    story = Story(Engine({"offline-partitions.hold_s": 30})).during(0, 30, 5, always(OFFLINE))
    assert not story.open("offline-partitions")
    story.at(30, OFFLINE)

    [finding] = story.open("offline-partitions")
    assert finding.evidence["thresholds"] == {"hold_s": 30, "internal_hold_s": 5}


def test_thresholds_are_read_as_they_are_typed() -> None:
    assert parse_thresholds(["lag-stuck.hold_s=60", "lag-growing.lag = 5e3"]) == {
        "lag-stuck.hold_s": 60,
        "lag-growing.lag": 5000,
    }
    for wrong in ("lag-stuck.hold_s", "lag-stuck.hold_s=long", "lag-stuck.holds=1"):
        with pytest.raises(ThresholdError):
            parse_thresholds([wrong])


def test_a_rule_that_is_muted_must_exist() -> None:
    with pytest.raises(ThresholdError, match='there is no rule "single-voters"'):
        Engine(muted=["single-voters"])


def test_a_threshold_that_no_rule_has_is_named() -> None:
    with pytest.raises(ThresholdError, match=r'"offline-partitions\.holds"; known: .*offline-partitions\.hold_s'):
        Engine({"offline-partitions.holds": 1})


def test_a_finding_whose_numbers_move_is_told_again_but_not_at_every_sample() -> None:
    story = Story().tell(group("billing", member("a", "orders-0")))
    story.during(0, 400, 1, lambda second: (lag("billing", 5, 100 + second),))
    moments = [each.at_ms for each in story.changes if each.finding.rule == "lag-stuck"]

    assert moments == [START_MS + second * 1000 for second in range(300, 400, 10)]
    assert story.open("lag-stuck")[0].evidence["lag"] == 494


def test_what_was_never_sampled_cannot_be_seen_and_is_said_with_the_reason() -> None:
    unseen = {each.rule: each for each in Engine().unseen()}

    assert set(unseen) == set(RULES) - {"observer-stale"}
    assert all(each.why.startswith("needs ") for each in unseen.values())
    assert unseen["member-lost"].needs == ["group", "lag"]
    assert unseen["member-lost"].why == "needs DESCRIBE on groups; needs DESCRIBE on groups and topics"


def test_a_failed_sample_says_why() -> None:
    engine = Engine()
    engine.take(START_MS, Failed(what="quorum", error="CLUSTER_AUTHORIZATION_FAILED"))
    why = {each.rule: each.why for each in engine.unseen()}

    assert why["even-voters"] == ("needs DescribeQuorum: DESCRIBE on the cluster (error: CLUSTER_AUTHORIZATION_FAILED)")


def test_a_cluster_without_groups_is_seen_if_it_is_said_so() -> None:
    engine = Engine()
    engine.take(START_MS, Coverage(what="share_state", visible=True))

    assert "poison-records" not in {each.rule for each in engine.unseen()}


def test_memory_stays_within_its_bounds() -> None:
    engine = Engine(bounds=Bounds(groups=50, topics=50, partitions=100, others=50))
    for number in range(1000):
        now_ms = START_MS + number * 100
        engine.take(now_ms, topic(f"t{number}", partition(0, -1, ())))
        engine.take(now_ms, group(f"g{number}", member("a", "orders-0")))
        engine.take(now_ms, lag(f"g{number}", 1, 9))
    history = engine._history

    sizes = (
        len(history.topics),
        len(history.groups),
        len(history.lags),
        len(history.topic_lags),
        len(history.topics_of),
    )
    assert sizes == (50, 50, 100, 50, 50)
    assert engine.forgotten > 0


def test_resolved_findings_are_kept_within_bounds() -> None:
    story = Story()
    for round_number in range(1300):
        story.tell(lag(f"g{round_number}", 1, 9, start=5)).tell(lag(f"g{round_number}", 9, 9, start=5))
    story.at(60)

    assert len(story.resolved("offset-lost")) == 1000
    assert all(each.state is State.RESOLVED for each in story.resolved("offset-lost"))


def test_a_body_with_members_becomes_a_group() -> None:
    body = {
        "group": "totals", "type": "streams", "state": "Stable", "group_epoch": 3, "assignment_epoch": 3,
        "members": [{"member": "m", "client": "app", "epoch": 3, "tasks": {"active": ["0_1"], "standby": []},
                     "assigned": [{"topic": "t", "topic_id": "x", "partitions": [0, 1]}]}],
    }  # fmt: skip
    fact = fact_of("group", body)

    assert isinstance(fact, Group)
    assert (fact.members[0].tasks, fact.members[0].assigned[0].partitions) == (Tasks(active=("0_1",)), (0, 1))
    assert fact_of("group", msgspec.to_builtins(fact)) == fact


def test_bodies_of_samples_become_facts() -> None:
    body = {"group": "g", "topic": "t", "partition": 3, "committed": 5, "high_watermark": 9, "unknown": 1}

    assert fact_of("lag", body) == FACTS["lag"](group="g", topic="t", partition=3, committed=5, high_watermark=9)
    with pytest.raises(msgspec.ValidationError):
        fact_of("lag", {"group": "g"})
    with pytest.raises(KeyError):
        fact_of("nothing", {})


def test_a_group_has_the_same_fingerprint_in_every_process() -> None:
    """A process keeps the state of the rules for the next one, in which texts have other hashes."""
    one, two = member("a", "orders-0"), member("b", "orders-1", instance="static")
    for members in ((one, two), (two, one)):
        history = History(Bounds())
        history.take(START_MS, group("g", *members, epoch=3))
        seen = history.groups.get("g")
        assert seen is not None
        assert seen.fingerprint == 13053699730733142574
