"""Members of groups: endless rebalances, members that vanish or hang, and members with the same instance id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ottla.health.configs import REBALANCE_TIMEOUT_MS
from ottla.health.facts import Group, GroupMember
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.group_history import WINDOW_MS, EpochBump, GroupHistory, holdings, lacking, surplus
from ottla.health.history import History
from ottla.health.lost_members import Lost
from ottla.health.phrases import consume_since, duration, href, join, plural, word
from ottla.health.rule import Match, RuleContext, rule
from ottla.health.rules.partitions import GROUP_TOPIC, partition_for

REVOKING: Final = frozenset({"consumer", "streams"})
"""Types of groups in which a member must revoke a partition before another member gets it."""


def name_of(member: GroupMember) -> str:
    return member.client or member.member


def _members_step(group: str, text: str) -> NextStep:
    return NextStep(text, f"ottla groups describe {word(group)}", href("groups", group))


@rule(
    "epochs-climb", Severity.WARNING, Tier.SAMPLES, on=["group"], scope=["group"], needs=["group"], persists=True,
    condition="the group epoch rose by 5 or more in 10 min (not counting warm-ups; critical: 10, or no "
    "convergence), while members, subscriptions and partition counts stayed the same",
    why="Partitions move back and forth although no member has changed.",
    limits={"rises": 5, "critical_rises": 10},
)  # fmt: skip
def epochs_climb(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.groups.get(ctx.scope[0])
    bumps = _unprovoked(ctx, group) if group else []
    count = sum(each.by for each in bumps)
    if group is None or count < ctx.limits["rises"]:
        return
    name = group.fact.group
    converged = any(each.converged for each in bumps)
    is_critical = count >= ctx.limits["critical_rises"] or not converged
    yield Match(
        subject=Subject("group", name),
        severity=Severity.CRITICAL if is_critical else Severity.WARNING,
        until_ms=_below_ms(bumps, ctx.limits["rises"]),
        sentence=f"{name} rebalanced {count} times in the last 10 min although no member joined or left",
        past=f"{name} rebalanced {count} times in 10 min although no member joined or left",
        evidence={"rises": count, "converged": converged, "group_epoch": group.fact.group_epoch,
                  "members": len(group.fact.members), "first_ms": bumps[0].at_ms},
        next=[NextStep("see in __consumer_offsets what changed (metadata hash, regex, topology, assignor); look for a "
                   "topic or config that keeps changing", _records(ctx.history, group.fact, bumps[0].at_ms),
                   href("groups", name, "timeline"))],
    )  # fmt: skip


def _records(history: History, group: Group, from_ms: int) -> str:
    """The command that shows the coordinator's records about a group since then."""
    seen = history.topics.get(GROUP_TOPIC)
    place = partition_for(group.group, len(seen.fact.partitions)) if seen else None
    key = "key.group" if group.type == "classic" else "key.groupId"
    return consume_since(GROUP_TOPIC, from_ms, key, group.group, place)


def _unprovoked(ctx: RuleContext, group: GroupHistory) -> list[EpochBump]:
    """The epoch bumps of the window since members, subscriptions or partitions last changed."""
    found: list[EpochBump] = []
    for bump in reversed(group.bumps):
        if (
            bump.at_ms <= ctx.now_ms - WINDOW_MS
            or bump.fingerprint != group.bumps[-1].fingerprint
            or not bump.same_fingerprint
        ):
            break
        if not bump.is_warmup_step:
            found.append(bump)
    return found[::-1]


def _below_ms(bumps: list[EpochBump], wanted: float) -> int:
    total = 0
    for bump in reversed(bumps):
        total += bump.by
        if total >= wanted:
            return bump.at_ms + WINDOW_MS
    return bumps[0].at_ms + WINDOW_MS


@rule(
    "member-churn", Severity.WARNING, Tier.SAMPLES, on=["group"], scope=["group"], needs=["group"], persists=True,
    condition="10 or more member ids in 10 min, and at least twice as many as the group had members at a time",
    why="Members crash, or are removed because they poll too slowly, and rejoin.",
    limits={"ids": 10, "factor": 2},
)  # fmt: skip
def member_churn(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.groups.get(ctx.scope[0])
    if group is None:
        return
    ids = sum(at_ms > ctx.now_ms - WINDOW_MS for at_ms in group.ids.values())
    largest = group.largest(ctx.now_ms)
    if ids < ctx.limits["ids"] or ids < ctx.limits["factor"] * largest:
        return
    name = group.fact.group
    yield Match(
        subject=Subject("group", name),
        again_ms=min(at_ms for at_ms in group.ids.values() if at_ms > ctx.now_ms - WINDOW_MS) + WINDOW_MS,
        sentence=f"Members of {name} keep rejoining ({ids} member ids for {plural(largest, 'member')})",
        past=f"Members of {name} kept rejoining ({ids} member ids for {plural(largest, 'member')})",
        evidence={"ids": ids, "largest": largest},
        next=[_members_step(name, "look for a crash loop, or for polls that exceed max.poll.interval.ms")],
    )  # fmt: skip


@rule(
    "member-lost", Severity.WARNING, Tier.SAMPLES, on=["group", "lag"], scope=["group"], needs=["group", "lag"],
    persists=True,
    condition="a member disappears, and the committed offsets of its partitions had not moved while their end offsets "
    "did: probably for 0.8 of the session timeout, and certainly for 0.3 of it",
    why="It died without leaving the group, and its partitions waited until its session expired.",
)  # fmt: skip
def member_lost(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.groups.get(ctx.scope[0])
    for lost in list(group.lost.values()) if group else ():
        yield _lost(ctx, ctx.scope[0], lost)


def _lost(ctx: RuleContext, group: str, lost: Lost) -> Match:
    end_ms = lost.ended_ms if lost.ended_ms is not None else ctx.now_ms
    still_ms = end_ms - lost.still_since_ms
    partitions = [f"{topic}-{partition}" for topic, partition in lost.held]
    what = f"{lost.client} stopped without leaving the group {group}"
    return Match(
        subject=Subject("group", group, member=lost.member),
        since_ms=lost.still_since_ms,
        precision_ms=lost.precision_ms,
        seen_ms=lost.ended_ms,
        until_ms=lost.ended_ms + 1 if lost.ended_ms is not None else lost.at_ms + WINDOW_MS,
        sentence=f"{what}; no progress on {join(partitions)} for {duration(still_ms)}",
        past=f"{what}; {join(partitions)} made no progress for {duration(still_ms)}",
        evidence={"client": lost.client, "partitions": partitions, "stood_still_ms": still_ms, "left_ms": lost.at_ms},
        next=[
            NextStep(f"read the log of {lost.client}", href=href("groups", group)),
            _session_step(ctx.history, group),
        ],
    )


def _session_step(history: History, group: str) -> NextStep:
    """The session timeout is a config of the group; in classic groups each member has its own."""
    seen = history.groups.get(group)
    if seen is None or seen.fact.type not in REVOKING:
        return NextStep("if this took too long, shorten session.timeout.ms of its members")
    key = f"{seen.fact.type}.session.timeout.ms"
    return NextStep(
        "if this took too long, shorten the session timeout", f"ottla configs get group {word(group)} {key}"
    )


@rule(
    "member-stuck-revoking", Severity.WARNING, Tier.SAMPLES, on=["group"], scope=["group"],
    needs=["group.assignments"], persists=True,
    condition="a member's epoch has been below the assignment epoch for more than 30 s and 3 heartbeats; critical "
    "after half of its rebalance timeout",
    why="Other members wait for what it does not revoke, until it is fenced.",
    limits={"hold_s": 30, "heartbeats": 3, "critical_share": 0.5},
)  # fmt: skip
def member_stuck_revoking(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.groups.get(ctx.scope[0])
    if group is None or group.fact.type not in REVOKING:
        return
    late = [each for each in _present(group.fact) if each.epoch < group.fact.assignment_epoch]
    lack = _by_holding(group.fact, lacking) if late else {}
    for member in late:
        yield _stuck(ctx, group.fact, member, lack)


def _present(fact: Group) -> Iterator[GroupMember]:
    """The members without static members that have left temporarily, whose epoch is -2."""
    return (each for each in fact.members if each.epoch >= 0)


def _by_holding(fact: Group, holdings_of: Callable[[GroupMember], set[str]]) -> dict[str, list[int]]:
    """Partition or task -> which members of the group have, or lack, it."""
    found: dict[str, list[int]] = {}
    for at, member in enumerate(fact.members):
        for holding in holdings_of(member):
            found.setdefault(holding, []).append(at)
    return found


def _names(fact: Group, by_holding: Mapping[str, list[int]], wanted: Iterable[str]) -> list[str]:
    """The names of the members that have, or lack, any of these, in the order of the group."""
    found = {at for each in wanted for at in by_holding.get(each, ())}
    return [name_of(fact.members[at]) for at in sorted(found)]


def _stuck(ctx: RuleContext, fact: Group, member: GroupMember, lack: Mapping[str, list[int]]) -> Match:
    subject = Subject("group", fact.group, member=member.member)
    heartbeat_ms = ctx.history.configs.of_group(fact.group, f"{fact.type}.heartbeat.interval.ms")
    limit_ms = member.rebalance_timeout_ms or REBALANCE_TIMEOUT_MS
    lasted_ms = ctx.lasted_ms(subject)
    critical_ms = round(ctx.limits["critical_share"] * limit_ms)
    kept = sorted(surplus(member))
    waiting = _names(fact, lack, kept)
    revoked = f"{join(kept, 'its old assignment')} for {duration(lasted_ms)}"
    waiters = join(waiting, "no member")
    return Match(
        subject=subject, hold_ms=max(ctx.ms("hold_s"), ctx.limits["heartbeats"] * heartbeat_ms) + 1,
        severity=Severity.CRITICAL if lasted_ms > critical_ms else Severity.WARNING,
        again_ms=ctx.began(subject) + critical_ms + 1,
        tier=Tier.RECORDS if member.state else Tier.SAMPLES,
        sentence=f"{name_of(member)} has not revoked {revoked}; {waiters} {'wait' if len(waiting) > 1 else 'waits'}",
        past=f"{name_of(member)} did not revoke {revoked}; {waiters} waited",
        evidence={"client": member.client, "kept": kept, "waiting": waiting, "lasted_ms": lasted_ms,
                  "rebalance_timeout_ms": limit_ms},
        next=[_members_step(fact.group, f"check its poll loop or state flush; it is fenced in "
                            f"{duration(max(0, limit_ms - lasted_ms))}")],
    )  # fmt: skip


@rule(
    "member-waiting", Severity.NOTICE, Tier.SAMPLES, on=["group"], scope=["group"], needs=["group.assignments"],
    persists=True,
    condition="a member has lacked partitions or tasks of its target assignment for more than 30 s",
    why="Another member still holds what it waits for, or no member does.",
    limits={"hold_s": 30},
)  # fmt: skip
def member_waiting(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.groups.get(ctx.scope[0])
    if group is None or group.fact.type not in REVOKING:
        return
    waiting = [(each, wanted) for each in _present(group.fact) if (wanted := sorted(lacking(each)))]
    held_by = _by_holding(group.fact, holdings) if waiting else {}
    for member, wanted in waiting:
        holders = _names(group.fact, held_by, wanted)
        held = f"{join(wanted)}, held by {join(holders, 'no member')}"
        yield Match(
            subject=Subject("group", group.fact.group, member=member.member), hold_ms=ctx.ms("hold_s") + 1,
            sentence=f"{name_of(member)} is waiting for {held}",
            past=f"{name_of(member)} waited for {held}",
            evidence={"client": member.client, "wanted": wanted, "holders": holders},
            next=[_members_step(group.fact.group, f"check {join(holders, 'the coordinator: no member holds them')}")],
        )  # fmt: skip


@rule(
    "static-member-duplicate", Severity.WARNING, Tier.SAMPLES, on=["group"], scope=["group"], needs=["group"],
    persists=True,
    condition="a group.instance.id changed its member id 3 times or more in 10 min",
    why="Two processes keep removing each other from the group.",
    limits={"changes": 3},
)  # fmt: skip
def static_member_duplicate(ctx: RuleContext) -> Iterator[Match]:
    group = ctx.history.groups.get(ctx.scope[0])
    for instance in list(group.instances) if group else ():
        changes = group.instance_changes(instance, ctx.now_ms) if group else []
        if len(changes) < ctx.limits["changes"]:
            continue
        name = ctx.scope[0]
        yield Match(
            subject=Subject("group", name, member=instance),
            until_ms=changes[-int(ctx.limits["changes"])] + WINDOW_MS,
            sentence=f"Two processes use group.instance.id {instance} in {name}",
            past=f"Two processes used group.instance.id {instance} in {name}",
            evidence={"instance": instance, "changes": len(changes)},
            next=[_members_step(name, "give each process its own group.instance.id")],
        )
