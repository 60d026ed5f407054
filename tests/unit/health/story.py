"""A virtual clock and facts told along it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.health import RULES, Change, ChangeType, Engine, Finding, Severity
from ottla.health.conditions import CLOSE_MS
from ottla.health.facts import (
    Fact,
    Group,
    GroupMember,
    Lag,
    Partition,
    Quorum,
    Replica,
    Tasks,
    Topic,
    TopicPartitions,
)

START_MS = 1_790_000_000_000  # 2026-09-21 14:13:20 UTC

Facts = Callable[[int], Iterable[Fact]]
"""The facts that are seen at a moment, given as seconds since the start."""


class Story:
    """Tells facts to an engine, and keeps what it answers."""

    def __init__(self, engine: Engine | None = None, start_ms: int = START_MS) -> None:
        self.engine = engine or Engine(muted=["observer-stale"])
        self.now_ms = self.start_ms = start_ms
        self.changes: list[Change] = []

    @property
    def second(self) -> float:
        return (self.now_ms - self.start_ms) / 1000

    def tell(self, *facts: Fact) -> Story:
        for fact in facts:
            self.changes += self.engine.take(self.now_ms, fact)
        return self

    def at(self, second: float, *facts: Fact) -> Story:
        self.now_ms = self.start_ms + round(second * 1000)
        self.changes += self.engine.advance(self.now_ms)
        return self.tell(*facts)

    def during(self, start: int, end: int, every: int, facts: Facts) -> Story:
        """Facts at `start` and then at every interval, up to and without `end`."""
        for second in range(start, end, every):
            self.at(second)
            self.tell(*facts(second))
        return self

    def open(self, rule: str) -> list[Finding]:
        return [each for each in self._findings(rule) if each.is_open]

    def resolved(self, rule: str) -> list[Finding]:
        return [each for each in self._findings(rule) if not each.is_open]

    def _findings(self, rule: str) -> list[Finding]:
        check_name(rule)
        return [each for each in self.engine.findings() if each.rule == rule]

    def what(self, rule: str) -> list[ChangeType]:
        check_name(rule)
        changes = [each for each in self.changes if each.finding.rule == rule]
        return [each.what for each in changes if each.what is not ChangeType.CHANGED]


def check_name(rule: str) -> None:
    """Nothing is ever found under a name that no rule has, so a test that expects no finding would prove nothing."""
    assert rule in RULES, f'there is no rule "{rule}"'


@dataclass(frozen=True)
class Case:
    """A rule whose condition must hold for a time: facts of which it is true, and of which it is not."""

    rule: str
    true: Facts
    false: Facts
    hold: int  # seconds
    sentence: str
    past: str  # the sentence once it is resolved
    severity: Severity
    every: int = 5
    before: tuple[Fact, ...] = ()
    others: tuple[str, ...] = ()  # rules that may speak at the same time
    evidence: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule in (self.rule, *self.others):
            check_name(rule)

    def __str__(self) -> str:
        return self.rule


def check(case: Case) -> None:
    """Opens at its threshold and not a sample before, holds, closes after half a minute and not a sample before."""
    story = Story().tell(*case.before)
    story.during(0, case.hold, case.every, case.true)
    assert not story.open(case.rule), f"{case.rule} opened before {case.hold} s"
    story.at(case.hold).tell(*case.true(case.hold))
    [finding] = story.open(case.rule)
    assert (finding.sentence, finding.severity) == (case.sentence, case.severity)
    assert finding.evidence.items() >= case.evidence.items()
    assert finding.next
    last = _holds(story, case)
    _closes(story, case, last)


def _holds(story: Story, case: Case) -> int:
    last = case.hold + 6 * case.every
    story.during(case.hold + case.every, last + case.every, case.every, case.true)
    assert len(story.open(case.rule)) == 1
    return last


def _closes(story: Story, case: Case, last: int) -> None:
    first_false = last + case.every
    story.during(first_false, first_false + 30, case.every, case.false)
    assert story.open(case.rule), f"{case.rule} closed too early"
    story.at(first_false + CLOSE_MS // 1000)
    assert not story.open(case.rule), f"{case.rule} did not close"
    [resolved] = story.resolved(case.rule)
    until = first_false if RULES[case.rule].persists else last
    assert (resolved.sentence, resolved.until_ms) == (case.past, START_MS + until * 1000)
    assert story.what(case.rule) == [ChangeType.OPENED, ChangeType.RESOLVED]


def always(*facts: Fact) -> Facts:
    return lambda _: facts


def topic(name: str, *partitions: Partition, internal: bool = False) -> Topic:
    return Topic(topic=name, id=f"id-{name}", internal=internal, partitions=partitions)


def partition(number: int, leader: int = 1, isr: tuple[int, ...] = (1, 2, 3), **rest: tuple[int, ...]) -> Partition:
    return Partition(partition=number, leader=leader, replicas=(1, 2, 3), isr=isr, **rest)


def replica(node: int, end: int = 100, fetched: int = 0, caught_up: int | None = None, role: str = "voter") -> Replica:
    """Times are in seconds since the start, on the leader's clock."""
    caught_up = fetched if caught_up is None else caught_up
    return Replica(
        id=node, role=role, log_end=end, last_fetch_ts=START_MS + fetched * 1000,
        last_caught_up_ts=START_MS + caught_up * 1000,
    )  # fmt: skip


def quorum(*replicas: Replica, leader: int = 1, epoch: int = 1, watermark: int = 100) -> Quorum:
    return Quorum(leader=leader, leader_epoch=epoch, high_watermark=watermark, replicas=replicas)


def member(name: str, *held: str, target: tuple[str, ...] | None = None, epoch: int = 1, **rest: object) -> GroupMember:
    """A member of a consumer group that holds partitions, written as `topic-0`."""
    return GroupMember(
        member=f"{name}-id", client=name, epoch=epoch, assigned=_assigned(held),
        target=_assigned(held if target is None else target), **rest,  # type: ignore[arg-type]
    )  # fmt: skip


def _assigned(names: Iterable[str]) -> tuple[TopicPartitions, ...]:
    found: dict[str, list[int]] = {}
    for name in names:
        topic_name, _, number = name.rpartition("-")
        found.setdefault(topic_name, []).append(int(number))
    return tuple(TopicPartitions(topic=name, partitions=tuple(numbers)) for name, numbers in found.items())


def streams_member(name: str, *active: str, target: tuple[str, ...] | None = None, **rest: object) -> GroupMember:
    return GroupMember(
        member=f"{name}-id", client=name, epoch=1, tasks=Tasks(active=active),
        target_tasks=Tasks(active=active if target is None else target), **rest,  # type: ignore[arg-type]
    )  # fmt: skip


def group(name: str, *members: GroupMember, kind: str = "consumer", epoch: int = 1, **rest: object) -> Group:
    state = str(rest.pop("state", "Stable" if members else "Empty"))
    assignment = rest.pop("assignment", epoch)
    return Group(
        group=name, type=kind, state=state, group_epoch=epoch, assignment_epoch=assignment, members=members, **rest,  # type: ignore[arg-type]
    )  # fmt: skip


def lag(name: str, committed: int, end: int, number: int = 0, topic_name: str = "orders", start: int = 0) -> Lag:
    return Lag(
        group=name, topic=topic_name, partition=number, committed=committed, high_watermark=end, log_start=start,
    )  # fmt: skip
