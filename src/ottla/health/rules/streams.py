"""Streams groups: topologies and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ottla.health.configs import PLUGIN
from ottla.health.facts import Group
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.group_history import GroupHistory
from ottla.health.history import History
from ottla.health.phrases import duration, href, join, number, word
from ottla.health.rule import Match, RuleContext, rule

MISMATCH: Final = "its topics do not match its topology"


def _streams(ctx: RuleContext) -> GroupHistory | None:
    group = ctx.history.groups.get(ctx.scope[0])
    return group if group is not None and group.fact.type == "streams" else None


def _step(group: str, text: str) -> NextStep:
    return NextStep(text, f"ottla streams describe {word(group)}", href("groups", group))


@rule(
    "streams-not-ready", Severity.CRITICAL, Tier.ADMIN, on=["group"], scope=["group"], needs=["group.streams"],
    persists=True, group_type="streams",
    condition="a streams group has been NotReady for 15 s",
    why="No task runs until its topics match the topology.",
    limits={"hold_s": 15},
)  # fmt: skip
def streams_not_ready(ctx: RuleContext) -> Iterator[Match]:
    group = _streams(ctx)
    if group is None or group.fact.state not in {"NotReady", "Not_Ready", "NOT_READY"}:
        return
    name, reason = group.fact.group, _reason(ctx.history, group.fact)
    counts = _uneven(ctx.history, group.fact)
    yield Match(
        subject=Subject("group", name), hold_ms=ctx.ms("hold_s"),
        sentence=f"{name} is not running: {reason}",
        past=f"{name} was not running: {reason}",
        evidence={"reason": reason, "topology_epoch": group.fact.topology_epoch},
        next=[_recount(counts) if counts else _step(name, "create the missing topics")],
    )  # fmt: skip


def _reason(history: History, fact: Group) -> str:
    """The first problem with the topology's topics, as far as topics were seen."""
    parts = fact.subtopologies or ()
    missing = sorted({topic for each in parts for topic in each.source if topic not in history.topics})
    internal = sorted({topic for each in parts for topic in (*each.repartition_source, *each.changelog)
                       if topic not in history.topics})  # fmt: skip
    if not parts or "topic" not in history.visible:
        return MISMATCH
    if missing:
        return f"source topics missing: {join(missing)}"
    if internal:
        return f"internal topics missing: {join(internal)}"
    counts = _uneven(history, fact)
    if counts:
        return "partition counts differ: " + ", ".join(f"{name}={count}" for name, count in sorted(counts.items()))
    return MISMATCH


def _uneven(history: History, fact: Group) -> dict[str, int]:
    """The partition counts of the first subtopology whose topics all exist and have different counts."""
    for part in fact.subtopologies or ():
        seen = {name: history.topics.get(name) for name in part.source}
        counts = {name: len(topic.fact.partitions) for name, topic in seen.items() if topic}
        if len(counts) == len(seen) and len(set(counts.values())) > 1:
            return counts
    return {}


def _recount(topics: Iterable[str]) -> NextStep:
    names = sorted(topics)
    command = f"ottla topics describe {' '.join(map(word, names))}"
    return NextStep(
        "add partitions to the smaller topics until the counts are equal", command, href("topics", names[0])
    )


@rule(
    "topology-mismatch", Severity.WARNING, Tier.ADMIN, on=["group"], scope=["group"], needs=["group.streams"],
    persists=True, group_type="streams",
    condition="members have had another topology epoch than the group for 60 s",
    why="A rollout is incomplete.",
    limits={"hold_s": 60},
)  # fmt: skip
def topology_mismatch(ctx: RuleContext) -> Iterator[Match]:
    group = _streams(ctx)
    if group is None or group.fact.topology_epoch is None:
        return
    members, epoch = group.fact.members, group.fact.topology_epoch
    others = [each for each in members if each.topology_epoch is not None and each.topology_epoch != epoch]
    if not others:
        return
    name = group.fact.group
    which = f"{len(others)} of {len(members)} members of {name}"
    yield Match(
        subject=Subject("group", name), hold_ms=ctx.ms("hold_s"),
        sentence=f"{which} {'runs' if len(others) == 1 else 'run'} a different topology than the group",
        past=f"{which} ran a different topology than the group",
        evidence={"members": [each.member for each in others], "topology_epoch": epoch},
        next=[_step(name, f"finish the rollout: {join(each.client or each.member for each in others)}")],
    )  # fmt: skip


def _undescribed(ctx: RuleContext, group: Group, reason: str, hold_ms: int, tier: Tier) -> Match:
    name = group.group
    return Match(
        subject=Subject("group", name), hold_ms=hold_ms, tier=tier,
        sentence=f"There is no topology description of {name}: {reason}",
        past=f"There was no topology description of {name}: {reason}",
        evidence={"status": group.topology_description, "topology_epoch": group.topology_epoch},
        next=[NextStep("clients from version 4.4 push it if topology.description.push.enabled is set; the plugin logs "
                       "what it rejects", f"ottla streams topology {word(name)}", href("groups", name, "topology"))],
    )  # fmt: skip


@rule(
    "topology-description-missing", Severity.NOTICE, Tier.ADMIN, on=["group"], scope=["group"],
    needs=["group.topology_description"], persists=True, group_type="streams",
    condition="a plugin is set and the group has members, but no topology description has been stored for 2 min",
    why="The console can only draw subtopologies.",
    limits={"hold_s": 120},
)  # fmt: skip
def topology_description_missing(ctx: RuleContext) -> Iterator[Match]:
    group = _streams(ctx)
    if group is None or not group.fact.members or not ctx.history.configs.broker_text(PLUGIN):
        return
    if group.fact.topology_description == "not_stored" and not _has_failed(group.fact):
        yield _undescribed(ctx, group.fact, "not pushed", ctx.ms("hold_s"), Tier.ADMIN)


@rule(
    "topology-description-failed", Severity.WARNING, Tier.ADMIN, on=["group"], scope=["group"],
    needs=["group.topology_description"], persists=True, group_type="streams",
    condition="the topology cannot be described, or its epoch is recorded as failed",
    why="The plugin rejected or lost the description.",
)  # fmt: skip
def topology_description_failed(ctx: RuleContext) -> Iterator[Match]:
    group = _streams(ctx)
    if group is None:
        return
    if _has_failed(group.fact):
        yield _undescribed(ctx, group.fact, "the plugin rejected it", 0, Tier.RECORDS)
    elif group.fact.topology_description == "error":
        yield _undescribed(ctx, group.fact, "the plugin rejected it", 0, Tier.ADMIN)


def _has_failed(fact: Group) -> bool:
    return fact.failed_topology_epoch is not None and fact.failed_topology_epoch == fact.topology_epoch


def _next_stall(ctx: RuleContext) -> int | None:
    group = _streams(ctx)
    due = (each.since_ms + ctx.ms("hold_s") for each in group.warmups.values()) if group else iter(())
    return min((at_ms for at_ms in due if at_ms > ctx.now_ms), default=None)


@rule(
    "warmup-stalled", Severity.WARNING, Tier.SAMPLES, on=["group"], scope=["group"], needs=["group.task_offsets"],
    persists=True, group_type="streams", wake=_next_stall,
    condition="the remaining restore lag of a warm-up task has not shrunk for 10 min",
    why="The task cannot move to its new process.",
    limits={"hold_s": 600},
)  # fmt: skip
def warmup_stalled(ctx: RuleContext) -> Iterator[Match]:
    group = _streams(ctx)
    for (member_id, task), warmup in list(group.warmups.items()) if group else ():
        member = group.member(member_id) if group else None
        if member is None or warmup.gap <= 0 or ctx.now_ms < warmup.since_ms + ctx.ms("hold_s"):
            continue
        name, client = ctx.scope[0], member.client or member_id
        yield Match(
            subject=Subject("group", name, topic=task, member=member_id), since_ms=warmup.since_ms,
            sentence=f"Warm-up of {task} on {client} is making no progress",
            past=f"Warm-up of {task} on {client} made no progress",
            evidence={"task": task, "client": client, "left": warmup.gap,
                      "still_ms": ctx.now_ms - warmup.since_ms},
            next=[NextStep(f"check the restore rate and the size of the changelog: {number(warmup.gap)} records left "
                       f"for {duration(ctx.now_ms - warmup.since_ms)}", f"ottla streams tasks {word(name)}",
                       href("groups", name))],
        )  # fmt: skip
