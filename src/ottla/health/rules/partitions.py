"""Partitions without a leader or with too few in-sync replicas."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from ottla.health.cluster_history import TopicHistory
from ottla.health.facts import Partition
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.history import History
from ottla.health.phrases import clock, href, join, nodes, plural, word
from ottla.health.rule import Match, RuleContext, rule

GROUP_TOPIC: Final = "__consumer_offsets"
SHARE_TOPIC: Final = "__share_group_state"
TXN_TOPIC: Final = "__transaction_state"
COORDINATORS: Final = frozenset({GROUP_TOPIC, SHARE_TOPIC, TXN_TOPIC})


@rule(
    "offline-partitions", Severity.CRITICAL, Tier.ADMIN, on=["topic"], scope=["topic"], needs=["topic"],
    condition="a partition has had no leader for 10 s (internal topics: 5 s)",
    why="A partition without a leader can be neither read nor written.",
    limits={"hold_s": 10, "internal_hold_s": 5},
)  # fmt: skip
def offline_partitions(ctx: RuleContext) -> Iterator[Match]:
    topic = ctx.history.topics.get(ctx.scope[0])
    if topic is None or topic.fact.topic in COORDINATORS:
        return
    offline = _offline(ctx, topic, ctx.ms("internal_hold_s" if topic.fact.internal else "hold_s"))
    if offline:
        yield _offline_match(topic, offline)


def _offline(ctx: RuleContext, topic: TopicHistory, hold_ms: int) -> list[Partition]:
    since = topic.offline_since
    return [each for each in topic.fact.partitions if ctx.now_ms - since.get(each.partition, ctx.now_ms + 1) >= hold_ms]


def _offline_match(topic: TopicHistory, offline: list[Partition]) -> Match:
    name = topic.fact.topic
    since = min(topic.offline_since[each.partition] for each in offline)
    could_lead = sorted({node for each in offline for node in _candidates(topic, each)})
    partitions, have = f"{plural(len(offline), 'partition')} of {name}", "has" if len(offline) == 1 else "have"
    return Match(
        subject=Subject("topic", name),
        since_ms=since,
        sentence=f"{partitions} {have} had no leader since {clock(since)}; {nodes(could_lead)} can lead",
        past=f"{partitions} had no leader",
        evidence={"partitions": [each.partition for each in offline], "could_lead": could_lead},
        next=_offline_steps(name, could_lead),
    )


def _candidates(topic: TopicHistory, partition: Partition) -> tuple[int, ...]:
    """The replicas that, as far as is known, have all acknowledged records."""
    return partition.elr or partition.isr or topic.last_isr.get(partition.partition, ()) or partition.replicas


def _offline_steps(topic: str, could_lead: list[int]) -> list[NextStep]:
    return [
        NextStep(
            f"start {nodes(could_lead)}", f"ottla topics describe {word(topic)} --unhealthy", href("topics", topic)
        ),
        NextStep("unclean election only as a last resort: it loses records that the new leader does not have"),
    ]


@rule(
    "internal-topic-offline", Severity.CRITICAL, Tier.ADMIN, on=["topic"], scope=["topic"], needs=["topic"],
    condition="a partition of __consumer_offsets, __share_group_state or __transaction_state has had no leader for 5 s",
    why="Groups and transactions stop while their coordinator's partition is offline.",
    limits={"hold_s": 5},
)  # fmt: skip
def internal_topic_offline(ctx: RuleContext) -> Iterator[Match]:
    topic = ctx.history.topics.get(ctx.scope[0])
    if topic is None or topic.fact.topic not in COORDINATORS:
        return
    offline = _offline(ctx, topic, ctx.ms("hold_s"))
    if not offline:
        return
    base = _offline_match(topic, offline)
    hit = _hit(ctx.history, topic, {each.partition for each in offline})
    (who, what), whose = _who(topic.fact.topic, len(hit)), "its" if len(hit) == 1 else "their"
    yield Match(
        subject=base.subject, since_ms=base.since_ms, evidence={**base.evidence, "hit": hit[:100]},
        sentence=f"{who} cannot {what}: {whose} coordinator's partition is offline",
        past=f"{who} could not {what}: {whose} coordinator's partition was offline",
        next=[*base.next, NextStep(f"affected: {join(hit)}")],
    )  # fmt: skip


def _who(topic: str, count: int) -> tuple[str, str]:
    """Who is affected, and what they cannot do."""
    if topic == TXN_TOPIC:
        return plural(count, "transactional id"), "begin or commit"
    if topic == SHARE_TOPIC:
        return plural(count, "share group"), "fetch or acknowledge"
    return plural(count, "group"), "commit or join"


def _hit(history: History, topic: TopicHistory, offline: Container[int]) -> list[str]:
    """The groups or transactional ids whose coordinator is on one of these partitions."""
    count = len(topic.fact.partitions)
    found = {name for name, key in _keys(history, topic.fact.topic) if partition_for(key, count) in offline}
    return sorted(found)


def _keys(history: History, topic: str) -> Iterator[tuple[str, str]]:
    """The names of what has a coordinator in this topic, each with the key by which the coordinator is found."""
    if topic == GROUP_TOPIC:
        yield from ((each.fact.group, each.fact.group) for each in history.groups.values())
    elif topic == TXN_TOPIC:
        yield from ((each.fact.id, each.fact.id) for each in history.transactions.values() if each.fact.id)
    else:
        for group, name, partition in history.share_partitions:
            read = history.topics.get(name)
            yield group, f"{group}:{read.fact.id if read else name}:{partition}"


def partition_for(key: str, count: int) -> int:
    """The partition whose leader coordinates a key: Java's hash code without its sign, modulo the partition count."""
    value = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % max(1, count)


@rule(
    "under-min-isr", Severity.CRITICAL, Tier.ADMIN, on=["topic"], scope=["topic"], needs=["topic", "configs"],
    condition="fewer replicas than min.insync.replicas have been in sync for 10 s",
    why="Writes with acks=all fail.",
    limits={"hold_s": 10},
)  # fmt: skip
def under_min_isr(ctx: RuleContext) -> Iterator[Match]:
    topic = ctx.history.topics.get(ctx.scope[0])
    if topic is None or "configs" not in ctx.history.visible:
        return
    name = topic.fact.topic
    asked = ctx.history.configs.of_topic(name, "min.insync.replicas")
    for each in topic.fact.partitions:
        wanted = each.required_isr(asked)
        if len(each.isr) >= wanted:
            continue
        missing = sorted(set(each.replicas) - set(each.isr))
        in_sync = f"{len(each.isr)} of {wanted} required replicas in sync"
        yield Match(
            subject=Subject("topic", name, partition=each.partition),
            hold_ms=ctx.ms("hold_s"),
            sentence=f"{name}-{each.partition} rejects acks=all writes: {in_sync}",
            past=f"{name}-{each.partition} rejected acks=all writes: {in_sync}",
            evidence={"isr": list(each.isr), "min_isr": wanted, "missing": missing},
            next=[NextStep(f"bring back {nodes(missing)}", f"ottla topics describe {word(name)} --unhealthy",
                       href("topics", name))],
        )  # fmt: skip


@rule(
    "under-replicated", Severity.WARNING, Tier.ADMIN, on=["topic"], scope=["topic"], needs=["topic"],
    condition="not all replicas of a partition have been in sync for 30 s, and no reassignment is adding one",
    why="Another failure may lose records or stop writes.",
    limits={"hold_s": 30},
)  # fmt: skip
def under_replicated(ctx: RuleContext) -> Iterator[Match]:
    topic = ctx.history.topics.get(ctx.scope[0])
    if topic is None:
        return
    since = {
        partition: at_ms
        for partition, at_ms in topic.under_replicated_since.items()
        if ctx.now_ms - at_ms >= ctx.ms("hold_s")
    }
    if not since:
        return
    name = topic.fact.topic
    missing = {node for each in topic.fact.partitions if each.partition in since for node in _missing(each)}
    partitions = f"{plural(len(since), 'partition')} of {name}"
    yield Match(
        subject=Subject("topic", name), since_ms=min(since.values()),
        sentence=f"{partitions} {'is' if len(since) == 1 else 'are'} under-replicated; not in sync: {nodes(missing)}",
        past=f"{partitions} {'was' if len(since) == 1 else 'were'} under-replicated; not in sync: {nodes(missing)}",
        evidence={"partitions": sorted(since), "missing": sorted(missing)},
        next=[NextStep(f"check {nodes(missing)}: down, lagging, or disk full",
                   f"ottla topics describe {word(name)} --unhealthy", href("nodes"))],
    )  # fmt: skip


def _missing(partition: Partition) -> set[int]:
    return set(partition.replicas) - set(partition.isr)
