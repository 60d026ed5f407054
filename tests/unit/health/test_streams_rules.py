"""Rules about streams groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.health import Severity, Tier
from ottla.health.facts import Configs, Fact, Group, GroupMember, Subtopology, Tasks
from tests.unit.health.story import Case, Story, always, check, group, partition, streams_member, topic

SHAPE = (Subtopology(id="0", source=("lines", "words"), changelog=("totals-log",)),)
LINES = topic("lines", partition(0), partition(1), partition(2))
WORDS = topic("words", *(partition(number) for number in range(4)))
LOG = topic("totals-log", partition(0))
PLUGIN = Configs(resource="broker", name="1", values={"group.streams.topology.description.plugin.class": "memory"})


def totals(state: str = "Stable", epochs: tuple[int, ...] = (0, 0, 0), **rest: object) -> Group:
    members = (streams_member(f"app-{number}", f"0_{number}", topology_epoch=e) for number, e in enumerate(epochs))
    return group("totals", *members, kind="streams", state=state, subtopologies=SHAPE, topology_epoch=0, **rest)


NOT_READY = Case(
    "streams-not-ready",
    always(totals("NotReady")),
    always(totals()),
    before=(LINES, LOG),
    hold=15,
    every=1,
    sentence="totals is not running: source topics missing: words",
    past="totals was not running: source topics missing: words",
    severity=Severity.CRITICAL,
)
CASES = [
    NOT_READY,
    replace(
        NOT_READY,
        before=(LINES, WORDS),
        sentence="totals is not running: internal topics missing: totals-log",
        past="totals was not running: internal topics missing: totals-log",
    ),
    replace(
        NOT_READY,
        before=(LINES, WORDS, LOG),
        sentence="totals is not running: partition counts differ: lines=3, words=4",
        past="totals was not running: partition counts differ: lines=3, words=4",
    ),
    replace(
        NOT_READY,
        before=(),
        sentence="totals is not running: its topics do not match its topology",
        past="totals was not running: its topics do not match its topology",
    ),
    Case(
        "topology-mismatch",
        always(totals(epochs=(0, 1, 0))),
        always(totals()),
        hold=60,
        sentence="1 of 3 members of totals runs a different topology than the group",
        past="1 of 3 members of totals ran a different topology than the group",
        severity=Severity.WARNING,
    ),
    Case(
        "topology-description-missing",
        always(totals(topology_description="not_stored")),
        always(totals(topology_description="available")),
        before=(PLUGIN,),
        hold=120,
        sentence="There is no topology description of totals: not pushed",
        past="There was no topology description of totals: not pushed",
        severity=Severity.NOTICE,
    ),
    Case(
        "topology-description-failed",
        always(totals(topology_description="error")),
        always(totals(topology_description="available")),
        hold=0,
        sentence="There is no topology description of totals: the plugin rejected it",
        past="There was no topology description of totals: the plugin rejected it",
        severity=Severity.WARNING,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opens_holds_and_closes(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_unchanged_group_is_told_once_and_time_does_the_rest(case: Case) -> None:
    story = Story().tell(*case.before, *case.true(0)).at(case.hold)

    assert len(story.open(case.rule)) == 1


def test_a_finding_closes_when_the_group_comes_back_as_one_of_another_type() -> None:
    story = Story().tell(LINES, LOG, totals("NotReady")).at(20)
    assert story.open("streams-not-ready")

    story.tell(group("totals", kind="consumer")).at(60)

    assert story.resolved("streams-not-ready")


def test_without_a_plugin_no_description_is_missed() -> None:
    assert not Story().tell(totals(topology_description="not_stored")).at(300).open("topology-description-missing")


def test_an_epoch_recorded_as_failed_is_a_refusal() -> None:
    story = Story().tell(PLUGIN, totals(topology_description="not_stored", failed_topology_epoch=0)).at(300)

    assert story.open("topology-description-failed")[0].tier is Tier.RECORDS
    assert not story.open("topology-description-missing")


def warming(offset: int, end: int = 1000) -> Group:
    member = GroupMember(
        member="app-1-id", client="app-1", epoch=1, tasks=Tasks(warmup=("0_1",)),
        task_offsets={"0_1": offset}, task_end_offsets={"0_1": end},
    )  # fmt: skip
    return group("totals", member, kind="streams")


def test_a_warm_up_that_stands_still_for_ten_minutes() -> None:
    story = Story().at(0, warming(10)).at(30, warming(20)).at(629.9)
    assert not story.open("warmup-stalled")
    story.at(630)

    [finding] = story.open("warmup-stalled")
    assert finding.sentence == "Warm-up of 0_1 on app-1 is making no progress"
    assert finding.severity is Severity.WARNING
    story.at(640, warming(21)).at(669.9)
    assert story.open("warmup-stalled")
    story.at(670)
    assert story.resolved("warmup-stalled")


def test_a_warm_up_that_loses_ground_makes_no_progress_either() -> None:
    def facts(second: int) -> tuple[Fact, ...]:
        return (warming(10 + second, 1000 + 2 * second),)

    assert Story().during(0, 601, 10, facts).open("warmup-stalled")


def test_without_task_offsets_warm_ups_cannot_be_seen() -> None:
    unseen = {each.rule: each.why for each in Story().tell(totals()).engine.unseen()}

    assert unseen["warmup-stalled"] == "needs task offsets (Kafka 4.4)"
    assert unseen["topology-description-missing"] == "needs StreamsGroupDescribe version 1 (Kafka 4.4)"
    assert "topology-mismatch" not in unseen
