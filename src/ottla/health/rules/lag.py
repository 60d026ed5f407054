"""Groups that fall behind, make no progress, or lose records before they read them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ottla.health.facts import GroupMember
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.group_history import GroupHistory, pairs
from ottla.health.history import History
from ottla.health.lag_history import LagHistory, TopicLagHistory
from ottla.health.phrases import duration, href, number, plural, word
from ottla.health.rule import Match, RuleContext, rule

MINUTE_MS: Final = 60_000
WINDOWS: Final = 5


SHARE: Final = "share"
STREAMS: Final = "streams"


def holder(history: History, group: str, topic: str, partition: int) -> str | None:
    """The member that reads a partition."""
    seen = history.groups.get(group)
    for member in seen.fact.members if seen else ():
        if seen and _reads(seen, member, topic, partition):
            return member.client or member.member
    return None


def _reads(seen: GroupHistory, member: GroupMember, topic: str, partition: int) -> bool:
    if seen.fact.type == STREAMS:
        return (topic, partition) in seen.fact.read_by_tasks(member)
    return (topic, partition) in (seen.held.get(member.member) or pairs(member.assigned))


def _member_count(history: History, group: str) -> int:
    seen = history.groups.get(group)
    return len(seen.fact.members) if seen else 0


def _type(history: History, group: str) -> str | None:
    seen = history.groups.get(group)
    return seen.fact.type if seen else None


def _offsets(group: str, topic: str, partition: int) -> str:
    return f"ottla groups offsets {word(group)} --topic {word(f'{topic}:{partition}')}"


def _retention(topic: str, text: str) -> NextStep:
    return NextStep(text, f"ottla configs get topic {word(topic)} retention.ms retention.bytes", href("topics", topic))


@rule(
    "lag-growing", Severity.WARNING, Tier.SAMPLES, on=["lag", "share_offsets"], scope=["group", "topic"],
    needs=["lag|share_offsets.lag"],
    condition="a group's lag in a topic is 1,000 or more and 1.2 times that of 5 min ago, and in each of these minutes "
    "less was consumed than produced",
    why="The group will not catch up by itself.",
    limits={"lag": 1000, "factor": 1.2},
)  # fmt: skip
def lag_growing(ctx: RuleContext) -> Iterator[Match]:
    group, topic = ctx.scope
    seen = ctx.history.topic_lags.get((group, topic))
    if seen is None or seen.lag < ctx.limits["lag"]:
        return
    before = seen.lags.at(ctx.now_ms - WINDOWS * MINUTE_MS)
    if before is None or seen.lag < ctx.limits["factor"] * before or not _falls_behind(ctx.now_ms, seen):
        return
    worst = seen.worst_partition()
    behind_ms, is_known = seen.behind_ms(ctx.now_ms)
    behind = duration(behind_ms) if is_known else f"more than {duration(behind_ms)}"
    how_far = f"{number(seen.lag)} records ({behind}), +{number(seen.per_minute(ctx.now_ms))}/min"
    yield Match(
        subject=Subject("group", group, topic=topic),
        sentence=f"{group} is falling behind on {topic}: {how_far}",
        past=f"{group} fell behind on {topic}: {how_far}",
        evidence={"group": group, "topic": topic, "lag": seen.lag, "lag_5_min_ago": round(before),
                  "behind_ms": round(behind_ms), "per_minute": round(seen.per_minute(ctx.now_ms))},
        next=[
            NextStep(_more_hands(ctx.history, group, seen.partition_count), f"ottla groups describe {word(group)}",
                 href("groups", group)),
            NextStep(f"{topic}-{worst} is furthest behind{_read_by(ctx.history, group, topic, worst)}",
                 _offsets(group, topic, worst)),
        ],
    )  # fmt: skip


def _more_hands(history: History, group: str, partition_count: int) -> str:
    """Advice on adding members. In share groups several members may read a partition, in other groups only one."""
    if _type(history, group) == SHARE:
        return "add members"
    if _member_count(history, group) < partition_count:
        return f"add members, up to one for each of {plural(partition_count, 'partition')}"
    return f"make its members faster: there is one for each of {plural(partition_count, 'partition')} already"


def _read_by(history: History, group: str, topic: str, partition: int) -> str:
    if _type(history, group) == SHARE:
        return ""
    return f", assigned to {holder(history, group, topic, partition) or 'no member'}"


def _falls_behind(now_ms: int, seen: TopicLagHistory) -> bool:
    marks = [now_ms - minutes * MINUTE_MS for minutes in range(WINDOWS, -1, -1)]
    return all(
        _grew(seen.consumed.at(start), seen.consumed.at(end)) < _grew(seen.produced.at(start), seen.produced.at(end))
        for start, end in pairwise(marks)
    )


def _grew(before: float | None, after: float | None) -> float:
    return (after or 0) - (before or 0)


@rule(
    "lag-stuck", Severity.WARNING, Tier.SAMPLES, on=["lag"], scope=["group", "topic", "partition"],
    needs=["lag", "group"],
    condition="a group has members and lag, and its committed offset in a partition has not moved for 5 min",
    why="A member hangs, has paused the partition, or does not commit.",
    limits={"hold_s": 300},
)  # fmt: skip
def lag_stuck(ctx: RuleContext) -> Iterator[Match]:
    group, topic, partition = ctx.scope
    seen = ctx.history.lags.get((group, topic, partition))
    if seen is None or seen.waiting_since is None or not _member_count(ctx.history, group):
        return
    still_ms = ctx.now_ms - seen.waiting_since
    if still_ms < ctx.ms("hold_s"):
        return
    who = holder(ctx.history, group, topic, partition)
    progress = f"progress on {topic}-{partition} for {duration(still_ms)} (lag {number(seen.lag or 0)})"
    yield Match(
        subject=Subject("group", group, topic=topic, partition=partition), since_ms=seen.waiting_since,
        sentence=f"{group} has made no {progress}",
        past=f"{group} made no {progress}",
        evidence={"group": group, "topic": topic, "lag": seen.lag, "still_ms": still_ms, "member": who,
                  "committed": seen.fact.committed if seen.fact else None},
        next=[NextStep(f"check member {who}: stuck, paused, or not committing" if who else "no member is assigned "
                       "to it: check their subscriptions", _offsets(group, topic, partition), href("groups", group))],
    )  # fmt: skip


@rule(
    "lag-near-retention", Severity.CRITICAL, Tier.SAMPLES, on=["lag"], scope=["group", "topic", "partition"],
    needs=["lag"],
    condition="at the trend of 15 min, the log start offset passes a group's committed offset within an hour",
    why="Retention is about to delete records that the group has not read.",
    limits={"within_h": 1, "trend_min": 15},
)  # fmt: skip
def lag_near_retention(ctx: RuleContext) -> Iterator[Match]:
    group, topic, partition = ctx.scope
    seen = ctx.history.lags.get((group, topic, partition))
    left_ms = _left_ms(ctx, seen) if seen else None
    if left_ms is None or left_ms > ctx.limits["within_h"] * 60 * MINUTE_MS:
        return
    yield Match(
        subject=Subject("group", group, topic=topic, partition=partition),
        sentence=f"{group} will lose records of {topic}-{partition} in about {duration(left_ms)}",
        past=f"{group} was about to lose records of {topic}-{partition}",
        evidence={"group": group, "topic": topic, "left_ms": round(left_ms), "lag": seen.lag if seen else None},
        next=[_retention(topic, f"raise the retention of {topic} now: time or size, whichever applies")],
    )  # fmt: skip


def _left_ms(ctx: RuleContext, seen: LagHistory) -> float | None:
    fact = seen.fact
    if fact is None or fact.committed is None or fact.log_start is None or fact.committed < fact.log_start:
        return None
    back_ms = round(ctx.limits["trend_min"] * MINUTE_MS)
    deleting, reading = seen.starts.per_ms(ctx.now_ms, back_ms), seen.commits.per_ms(ctx.now_ms, back_ms)
    if not seen.lag or deleting is None or reading is None or deleting <= reading:
        return None
    return (fact.committed - fact.log_start) / (deleting - reading)


@rule(
    "offset-lost", Severity.CRITICAL, Tier.ADMIN, on=["lag"], scope=["group", "topic", "partition"], needs=["lag"],
    condition="a group's committed offset is below the log start offset",
    why="Records were deleted before the group had read them.",
)  # fmt: skip
def offset_lost(ctx: RuleContext) -> Iterator[Match]:
    group, topic, partition = ctx.scope
    seen = ctx.history.lags.get((group, topic, partition))
    fact = seen.fact if seen else None
    if fact is None or fact.committed is None or fact.log_start is None or not 0 <= fact.committed < fact.log_start:
        return
    lost = fact.log_start - fact.committed
    yield Match(
        subject=Subject("group", group, topic=topic, partition=partition),
        sentence=f"{group} has lost {plural(lost, 'record')} of {topic}-{partition}",
        past=f"{group} lost {plural(lost, 'record')} of {topic}-{partition}",
        evidence={"group": group, "topic": topic, "lost": lost, "committed": fact.committed,
                  "log_start": fact.log_start},
        next=[_retention(topic, "raise the retention"), _reset_step(ctx.history, group, topic, partition)],
    )  # fmt: skip


def _reset_step(history: History, group: str, topic: str, partition: int) -> NextStep:
    where = href("groups", group)
    if _type(history, group) == STREAMS:
        return NextStep(
            "reset the application: its state belongs to its offsets", _offsets(group, topic, partition), where
        )
    if _member_count(history, group):
        text = "its members continue according to auto.offset.reset; to choose an offset, stop them and reset the group"
        return NextStep(text, _offsets(group, topic, partition), where)
    command = f"ottla groups reset {word(group)} --to-earliest --topic {word(f'{topic}:{partition}')}"
    return NextStep("preview the reset; --yes instead of --dry-run applies it", f"{command} --dry-run", where)


@rule(
    "lag-no-members", Severity.NOTICE, Tier.SAMPLES, on=["lag"], scope=["group"], needs=["lag", "group"],
    condition="a group is empty, has committed offsets, and its lag has grown for 10 min",
    why="The group is unused, or its members do not start.",
    limits={"hold_s": 600},
)  # fmt: skip
def lag_no_members(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.groups.get(ctx.scope[0])
    if group is None or group.empty_since is None or ctx.now_ms - group.empty_since < ctx.ms("hold_s"):
        return
    name = group.fact.group
    grown = _grown(ctx, name)
    if grown <= 0:
        return
    yield Match(
        subject=Subject("group", name), since_ms=ctx.now_ms - ctx.ms("hold_s"),
        sentence=f"{name} has no members, and its lag is growing",
        past=f"{name} had no members, and its lag grew",
        evidence={"grown": grown, "empty_since_ms": group.empty_since},
        next=[NextStep("start its members", href=href("groups", name)),
              NextStep("or delete the group if it is no longer needed", f"ottla groups delete {word(name)}")],
    )  # fmt: skip


def _grown(ctx: RuleContext, group: str) -> int:
    """By how much the group's lag grew, over all topics that it has read."""
    topics = group_topics(ctx.history, group)
    before = [seen.lags.at(ctx.now_ms - ctx.ms("hold_s")) for seen in topics]
    return round(sum(seen.lag - then for seen, then in zip(topics, before, strict=True) if then is not None))


def group_topics(history: History, group: str) -> list[TopicLagHistory]:
    names = history.topics_of.get(group) or ()
    return [seen for topic in names if (seen := history.topic_lags.get((group, topic)))]
