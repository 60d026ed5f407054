"""Which kinds of facts are visible in a cluster, and the reasons why others are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ottla.health.facts import Cluster, Coverage, Fact, Failed, Group, LogDir, Quorum, ShareOffsets

__all__ = ["NEEDS", "Unseen", "VisibleKinds"]

NEEDS: Final[dict[str, str]] = {
    "cluster": "needs DescribeCluster",
    "cluster.fenced": "needs DescribeCluster version 2, or node lists and topics",
    "cluster.reachable": "needs a connection to every node",
    "cluster.features": "needs ApiVersions from every node",
    "configs": "needs DESCRIBE_CONFIGS on the cluster, topics and groups",
    "group": "needs DESCRIBE on groups",
    "group.assignments": "needs consumer or streams groups",
    "group.streams": "needs StreamsGroupDescribe (Kafka 4.1)",
    "group.task_offsets": "needs task offsets (Kafka 4.4)",
    "group.topology_description": "needs StreamsGroupDescribe version 1 (Kafka 4.4)",
    "lag": "needs DESCRIBE on groups and topics",
    "log_dirs": "needs DescribeLogDirs: DESCRIBE on the cluster",
    "log_dirs.disk": "needs DescribeLogDirs version 4, which reports disk sizes",
    "login_failures": "needs the inspect listener of an ottla broker",
    "quorum": "needs DescribeQuorum: DESCRIBE on the cluster",
    "quorum.fetch_times": "needs DescribeQuorum version 1, which reports fetch times",
    "refusals": "needs the inspect listener of an ottla broker",
    "share_metrics": "needs the metrics of an ottla broker",
    "share_offsets": "needs DescribeShareGroupOffsets: DESCRIBE on share groups",
    "share_offsets.lag": "needs DescribeShareGroupOffsets version 1 (Kafka 4.2)",
    "share_state": "needs READ on __share_group_state",
    "share_window": "needs the inspect listener of an ottla broker",
    "topic": "needs DESCRIBE on topics",
    "transactions": "needs ListTransactions: DESCRIBE on transactional ids",
}
"""For each thing that a rule may need, how a user makes it visible."""


class Unseen(msgspec.Struct, frozen=True):
    """A rule that cannot be checked in this cluster, and why."""

    rule: str
    needs: list[str]
    why: str


class VisibleKinds:
    """Which of the things in NEEDS are visible, and why others are not."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._why: dict[str, str] = {}

    def take(self, fact: Fact) -> None:
        if isinstance(fact, Coverage):
            self._told(fact)
        elif isinstance(fact, Failed):
            self._why[fact.what] = f"{NEEDS.get(fact.what, fact.what)} (error: {fact.error})"
        else:
            self._seen.update((fact.kind, *_facets(fact)))

    def _told(self, fact: Coverage) -> None:
        if fact.visible:
            self._seen.add(fact.what)
            return
        self._seen.discard(fact.what)
        self._why[fact.what] = fact.why or NEEDS.get(fact.what, fact.what)

    def __contains__(self, what: str) -> bool:
        return what in self._seen

    def why_not(self, what: str) -> str:
        return self._why.get(what) or self._why.get(what.partition(".")[0]) or NEEDS.get(what, what)


def _facets(fact: Fact) -> Iterator[str]:
    match fact:
        case Cluster():
            yield from _cluster_facets(fact)
        case Group():
            yield from _group_facets(fact)
        case Quorum() if any((each.last_fetch_ts or -1) >= 0 for each in fact.replicas):
            yield "quorum.fetch_times"
        case LogDir() if fact.total is not None and fact.usable is not None:
            yield "log_dirs.disk"
        case ShareOffsets() if fact.lag is not None:
            yield "share_offsets.lag"
        case _:
            return


def _cluster_facets(fact: Cluster) -> Iterator[str]:
    if any(broker.reachable is not None for broker in fact.brokers):
        yield "cluster.reachable"
    if fact.brokers:
        yield "cluster.fenced"
    if fact.finalized is not None:
        yield "cluster.features"


def _group_facets(fact: Group) -> Iterator[str]:
    if fact.type in {"consumer", "streams"}:
        yield "group.assignments"
    if fact.type == "streams":
        yield "group.streams"
        if fact.topology_description not in {None, "not_supported"}:
            yield "group.topology_description"
        if any(member.task_offsets is not None for member in fact.members):
            yield "group.task_offsets"
