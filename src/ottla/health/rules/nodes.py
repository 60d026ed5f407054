"""Nodes that do not answer, are fenced, or lose a disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.health.cluster_history import DiskHistory
from ottla.health.facts import Broker, Cluster, LogDir
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.phrases import duration, href, plural, size
from ottla.health.rule import Match, RuleContext, rule

NODES: Final = "ottla nodes"
FAILED: Final = frozenset({"KAFKA_STORAGE_ERROR", "LOG_DIR_NOT_FOUND", "56", "57"})
HOUR_MS: Final = 3_600_000
MOVED_BEFORE_MS: Final = 60_000
"""A new leader may be sampled before its predecessor is seen to be fenced: topics and nodes are sampled separately."""


@rule(
    "node-unreachable", Severity.CRITICAL, Tier.ADMIN, on=["cluster", "failed"], scope=[], needs=["cluster.reachable"],
    condition="a listed node has refused connections or not answered ApiVersions for 5 s",
    why="Clients that need this node wait or fail.",
    limits={"hold_s": 5},
)  # fmt: skip
def node_unreachable(ctx: RuleContext) -> Iterator[Match]:
    cluster = ctx.history.cluster
    for broker in cluster.fact.brokers if cluster.fact else ():
        error = cluster.unreachable or _silence(broker)
        if error is None:
            continue
        yield Match(
            subject=Subject("node", str(broker.id)), hold_ms=ctx.ms("hold_s"),
            sentence=f"Node {broker.id} ({broker.host}:{broker.port}) is unreachable",
            past=f"Node {broker.id} ({broker.host}:{broker.port}) was unreachable",
            evidence={"host": broker.host, "port": broker.port, "error": error},
            next=[NextStep(f"check the process, the network and the listener at {broker.host}:{broker.port} ({error})",
                       NODES, href("nodes", broker.id))],
        )  # fmt: skip


def _silence(broker: Broker) -> str | None:
    return (broker.error or "no response") if broker.reachable is False else None


@rule(
    "broker-fenced", Severity.CRITICAL, Tier.ADMIN, on=["cluster"], scope=[], needs=["cluster.fenced", "topic"],
    condition="a node has been fenced, or has replicas but has not been listed, for 5 s",
    why="Its partitions moved to other leaders or lost an in-sync replica.",
    limits={"hold_s": 5},
)  # fmt: skip
def broker_fenced(ctx: RuleContext) -> Iterator[Match]:
    fact = ctx.history.cluster.fact
    if fact is None or not fact.brokers:
        return
    for node in _fenced(ctx, fact):
        subject = Subject("node", str(node))
        moved, short = _damage(ctx, node, ctx.began(subject) - MOVED_BEFORE_MS)
        damage = f"{plural(moved, 'leader')} moved, {plural(short, 'partition')} under-replicated"
        yield Match(
            subject=subject, hold_ms=ctx.ms("hold_s"),
            sentence=f"Node {node} is fenced; {damage}",
            past=f"Node {node} was fenced; {damage}",
            evidence={"moved": moved, "lost_a_copy": short},
            next=[NextStep(f"restart node {node}; its log says why", NODES, href("nodes", node))],
        )  # fmt: skip


def _fenced(ctx: RuleContext, fact: Cluster) -> list[int]:
    listed = {broker.id for broker in fact.brokers}
    named = {node for node, count in ctx.history.replica_counts.items() if count > 0}
    return sorted({broker.id for broker in fact.brokers if broker.fenced} | (named - listed))


def _damage(ctx: RuleContext, node: int, from_ms: int) -> tuple[int, int]:
    moved = short = 0
    for topic in ctx.history.topics.values():
        moved += sum(each.old_leader == node and each.at_ms >= from_ms for each in topic.moved.values())
        short += sum(node in each.replicas and node not in each.isr for each in topic.fact.partitions)
    return moved, short


@rule(
    "log-dir-offline", Severity.CRITICAL, Tier.ADMIN, on=["log_dirs"], scope=["node", "path"], needs=["log_dirs"],
    condition="DescribeLogDirs answers KAFKA_STORAGE_ERROR or LOG_DIR_NOT_FOUND for a directory",
    why="The replicas in that directory are unavailable on this node until the disk is replaced.",
)  # fmt: skip
def log_dir_offline(ctx: RuleContext) -> Iterator[Match]:
    disk = ctx.history.disks.get((ctx.scope[0], ctx.scope[1]))
    if disk is None or disk.fact is None or disk.fact.error not in FAILED:
        return
    node, path = disk.fact.node, disk.fact.path
    yield Match(
        subject=Subject("log-dir", f"{node}:{path}"),
        sentence=f"Node {node}: log directory {path} is offline",
        past=f"Node {node}: log directory {path} was offline",
        evidence={"node": node, "path": path, "error": disk.fact.error},
        next=[NextStep(f"replace the disk under {path}, then restart node {node}", NODES, href("nodes", node))],
    )  # fmt: skip


@rule(
    "disk-filling", Severity.WARNING, Tier.ADMIN, on=["log_dirs"], scope=["node", "path"], needs=["log_dirs.disk"],
    condition="less than 10 % of a disk is free (critical: 3 %), or at the trend of an hour it is full within 24 h",
    why="A full disk takes its directory, or the node, offline.",
    limits={"usable_percent": 10, "critical_percent": 3, "full_within_h": 24},
)  # fmt: skip
def disk_filling(ctx: RuleContext) -> Iterator[Match]:
    disk = ctx.history.disks.get((ctx.scope[0], ctx.scope[1]))
    if disk is None or disk.fact is None or not disk.fact.total or disk.fact.usable is None:
        return
    percent = 100 * disk.fact.usable / disk.fact.total
    full_ms = _full_in_ms(ctx, disk, disk.fact.usable)
    soon = full_ms is not None and full_ms <= ctx.limits["full_within_h"] * HOUR_MS
    if percent >= ctx.limits["usable_percent"] and not soon:
        return
    is_critical = percent < ctx.limits["critical_percent"]
    yield _filling(disk.fact, disk.fact.usable, full_ms, soon, is_critical)


def _filling(fact: LogDir, usable: int, full_ms: float | None, soon: bool, is_critical: bool) -> Match:
    when = f"full in about {duration(full_ms)}" if full_ms is not None else "no growth in the last hour"
    return Match(
        subject=Subject("log-dir", f"{fact.node}:{fact.path}"),
        severity=Severity.CRITICAL if is_critical else Severity.WARNING,
        tier=Tier.SAMPLES if soon else Tier.ADMIN,
        sentence=f"Node {fact.node} has {size(usable)} free in {fact.path}, {when}",
        past=f"Node {fact.node} had {size(usable)} free in {fact.path}",
        evidence={"node": fact.node, "path": fact.path, "usable_bytes": usable, "total_bytes": fact.total,
                  "full_in_ms": None if full_ms is None else round(full_ms)},
        next=[NextStep("check disk usage", NODES, href("nodes", fact.node)),
              NextStep("shorten the retention of the largest topics, or move partitions to other nodes",
                   "ottla topics list --internal --largest")],
    )  # fmt: skip


def _full_in_ms(ctx: RuleContext, disk: DiskHistory, usable: int) -> float | None:
    slope = disk.usable.per_ms(ctx.now_ms, HOUR_MS)
    return usable / -slope if slope is not None and slope < 0 else None
