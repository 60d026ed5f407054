"""The history of a cluster: it takes facts, and rules read it. It is bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgspec

from ottla.health.cluster_history import ClusterHistory, DiskHistory, QuorumHistory, TopicHistory
from ottla.health.configs import KnownConfigs
from ottla.health.coverage import VisibleKinds
from ottla.health.facts import (
    Cluster,
    Configs,
    Fact,
    Failed,
    Gone,
    Group,
    GroupMember,
    Lag,
    LogDir,
    LoginFailures,
    Quorum,
    Refusals,
    ShareMetrics,
    ShareOffsets,
    ShareState,
    ShareWindow,
    Topic,
    Transaction,
)
from ottla.health.failure_history import FailureHistory
from ottla.health.group_history import GroupHistory
from ottla.health.lag_history import LagHistory, TopicLagHistory, lag_of
from ottla.health.lost_members import LagOf, Vanished
from ottla.health.series import LruDict
from ottla.health.share_history import ShareGroupHistory, SharePartitionHistory

__all__ = ["Bounds", "History", "TransactionHistory"]

FORGET_MS: Final = 900_000
FORGET_TRANSACTION_MS: Final = 200_000
"""Three intervals of the transactions probe, which does not list transactions that have ended."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many entries are kept; the least recently used entry is dropped first."""

    groups: int = 10_000
    topics: int = 20_000
    partitions: int = 100_000
    others: int = 10_000


@dataclass(slots=True)
class TransactionHistory:
    fact: Transaction
    at_ms: int


class History:
    def __init__(self, bounds: Bounds) -> None:
        self.now_ms = 0
        self.newest_ms = 0
        self.sampled_ms = 0
        """When somebody looked last; what records say does not count."""
        self.visible = VisibleKinds()
        self.cluster = ClusterHistory()
        self.quorum = QuorumHistory()
        self.configs = KnownConfigs(bounds.groups + bounds.topics)
        self.groups: LruDict[str, GroupHistory] = LruDict(bounds.groups)
        self.topics: LruDict[str, TopicHistory] = LruDict(bounds.topics)
        self.lags: LruDict[tuple[str, str, int], LagHistory] = LruDict(bounds.partitions)
        self.topic_lags: LruDict[tuple[str, str], TopicLagHistory] = LruDict(bounds.groups)
        self.topics_of: LruDict[str, set[str]] = LruDict(bounds.groups)
        self.share_groups: LruDict[str, ShareGroupHistory] = LruDict(bounds.groups)
        self.share_partitions: LruDict[tuple[str, str, int], SharePartitionHistory] = LruDict(bounds.others)
        self.disks: LruDict[tuple[int, str], DiskHistory] = LruDict(bounds.others)
        self.transactions: LruDict[tuple[str, int], TransactionHistory] = LruDict(bounds.others)
        self.logins: LruDict[tuple[str, str], FailureHistory] = LruDict(bounds.others)
        self.refusals: LruDict[str, FailureHistory] = LruDict(bounds.others)
        self._counted: LruDict[tuple[str, str, str, int], list[int]] = LruDict(bounds.others)
        self.replica_counts: Counter[int] = Counter()
        self._topic_names: LruDict[str, str] = LruDict(bounds.topics)

    @property
    def dropped(self) -> int:
        """How many entries were dropped because a bound was reached."""
        bounded = (self.groups, self.topics, self.lags, self.topic_lags, self.share_groups, self.share_partitions)
        return sum(entries.dropped for entries in bounded)

    def take(self, at_ms: int, fact: Fact) -> Fact:
        """Remembers a fact, and returns it with the topic's name filled in, if only its id was given."""
        self.now_ms = self.newest_ms = at_ms
        self.visible.take(fact)
        if isinstance(fact, ShareState) and fact.topic is None:
            name = self._topic_names.get(fact.topic_id or "") or fact.topic_id
            fact = msgspec.structs.replace(fact, topic=name)
        take = _TAKE.get(type(fact))
        if take is not None:
            take(self, fact)
        return fact

    def _take_cluster(self, fact: Cluster) -> None:
        self.cluster.take(fact)
        self.configs.listed = frozenset(str(each.id) for each in fact.brokers)

    def _take_failed(self, fact: Failed) -> None:
        if fact.unreachable:
            self.cluster.fails(self.now_ms, fact.error)
        elif fact.what == "quorum":
            self.quorum.fails(fact.error)

    def _take_quorum(self, fact: Quorum) -> None:
        self.quorum.take(self.now_ms, fact)

    def _take_configs(self, fact: Configs) -> None:
        self.configs.take(fact)

    def _take_log_dir(self, fact: LogDir) -> None:
        self.disks.touch((fact.node, fact.path), DiskHistory).take(self.now_ms, fact)

    def _take_transaction(self, fact: Transaction) -> None:
        seen = self.transactions.touch((fact.id or "", fact.producer), lambda: TransactionHistory(fact, self.now_ms))
        seen.fact, seen.at_ms = fact, self.now_ms

    def _take_login_failures(self, fact: LoginFailures) -> None:
        new = self._gained((fact.kind, fact.user, fact.address, fact.node), fact.failed)
        self.logins.touch(("user", fact.user), FailureHistory).take(self.now_ms, new, fact.address)
        self.logins.touch(("address", fact.address), FailureHistory).take(self.now_ms, new, fact.user)

    def _take_refusals(self, fact: Refusals) -> None:
        new = self._gained((fact.kind, fact.principal, fact.api, fact.node), fact.refused)
        self.refusals.touch(fact.principal, FailureHistory).take(self.now_ms, new, fact.api)

    def _gained(self, key: tuple[str, str, str, int], count: int) -> int:
        """What a count of a node has grown by; a node that has started anew begins with nothing."""
        counted = self._counted.touch(key, lambda: [count])
        new = count - counted[0] if count >= counted[0] else count
        counted[0] = count
        return new

    def _take_topic(self, fact: Topic) -> None:
        known = self.topics.get(fact.topic)
        if known is not None and known.fact.id != fact.id:
            self._forget_topic(fact.topic)  # it was deleted and created again
        seen = self.topics.touch(fact.topic, TopicHistory)
        self.replica_counts.subtract(node for each in seen.fact.partitions for node in each.replicas)
        self.replica_counts.update(node for each in fact.partitions for node in each.replicas)
        seen.take(self.now_ms, fact)
        if fact.id:
            self._topic_names.touch(fact.id, lambda: fact.topic)

    def _take_group(self, fact: Group) -> None:
        seen = self.groups.touch(fact.group, lambda: GroupHistory(fact))
        for member in seen.take(self.now_ms, fact, self._fingerprint(fact)):
            self._note_vanished(seen, member)
        self._decide_doubts(seen)

    def _fingerprint(self, fact: Group) -> int:
        """A digest of the members, their subscriptions, and the partition counts of the topics. It is the same in every
        process, because another one may go on with this history."""
        members = [
            (each.member, each.instance, each.subscribed, each.topology_epoch)
            for each in sorted(fact.members, key=lambda each: each.member)
        ]
        told = (members, sorted(self._partition_counts(fact)), fact.topology_epoch, fact.metadata_hash)
        return int.from_bytes(blake2b(msgspec.json.encode(told), digest_size=8).digest())

    def _partition_counts(self, fact: Group) -> frozenset[tuple[str, int]]:
        names = {each.topic for member in fact.members for each in member.target or member.assigned}
        names |= {topic for each in fact.subtopologies or () for topic in each.source}
        topics = ((name, self.topics.get(name)) for name in names)
        return frozenset((name, len(topic.fact.partitions)) for name, topic in topics if topic)

    def session_timeout_ms(self, fact: Group) -> int:
        kind = "streams" if fact.type == "streams" else "consumer"
        return self.configs.of_group(fact.group, f"{kind}.session.timeout.ms")

    def _note_vanished(self, seen: GroupHistory, member: GroupMember) -> None:
        held = tuple(sorted(seen.held_before.get(member.member, ())))
        session_ms = self.session_timeout_ms(seen.fact)
        client = member.client or member.member
        reachable_ms = self.cluster.unreachable_ms
        seen.doubts.append(Vanished(member.member, client, held, self.now_ms, session_ms, reachable_ms))

    def _decide_doubts(self, seen: GroupHistory) -> None:
        """Decide for each member that vanished whether it was lost, once the samples of its lag allow that."""
        lag_of = self._lag_of(seen.fact.group)
        for each in [seen.doubts.popleft() for _ in range(len(seen.doubts))]:
            lost = each.lost(lag_of)
            if lost is not None:
                seen.note_lost(lost)
            elif each.is_in_doubt(lag_of):
                seen.doubts.append(each)

    def _lag_of(self, group: str) -> LagOf:
        return lambda tp: self.lags.get((group, *tp))

    def _take_lag(self, fact: Lag) -> None:
        self.lags.touch((fact.group, fact.topic, fact.partition), LagHistory).take(self.now_ms, fact)
        if lag_of(fact) is not None:
            done, end = fact.committed or 0, fact.high_watermark or 0
            self._sums(fact).take(self.now_ms, fact.partition, min(done, end), end, fact.committed_ts)
        group = self.groups.get(fact.group)
        if group is not None and (group.doubts or group.lost):
            self._decide_doubts(group)
            self._end_lost(group)

    def _sums(self, fact: Lag | ShareOffsets) -> TopicLagHistory:
        self.topics_of.touch(fact.group, set).add(fact.topic)
        return self.topic_lags.touch((fact.group, fact.topic), TopicLagHistory)

    def _end_lost(self, group: GroupHistory) -> None:
        """Note which lost members' partitions are consumed again, or have no lag."""
        lag_of = self._lag_of(group.fact.group)
        for lost in group.lost.values():
            lags = [lag_of(each) for each in lost.partitions]
            if lost.ended_ms is None and all(not lag or lag.moved_ms >= lost.at_ms or lag.lag == 0 for lag in lags):
                lost.ended_ms = self.now_ms

    def _take_share_offsets(self, fact: ShareOffsets) -> None:
        self._share_partition(fact).take_offsets(self.now_ms, fact)
        if fact.lag is not None and fact.lag >= 0 and fact.high_watermark is not None:
            done = fact.high_watermark - fact.lag
            self._sums(fact).take(self.now_ms, fact.partition, done, fact.high_watermark, None)

    def _take_share_window(self, fact: ShareWindow) -> None:
        self._share_partition(fact).take_window(self.now_ms, fact)

    def _take_share_state(self, fact: ShareState) -> None:
        group = self.share_groups.touch(fact.group, ShareGroupHistory)
        group.at_ms = self.now_ms
        self._share_partition(fact).take_record(self.now_ms, fact, group)

    def _take_share_metrics(self, fact: ShareMetrics) -> None:
        self.share_groups.touch(fact.group, ShareGroupHistory).take_metrics(self.now_ms, fact)

    def _share_partition(self, fact: ShareOffsets | ShareWindow | ShareState) -> SharePartitionHistory:
        return self.share_partitions.touch((fact.group, fact.topic or "", fact.partition), SharePartitionHistory)

    def _take_gone(self, fact: Gone) -> None:
        if fact.what == "topic":
            self._forget_topic(fact.name)
        elif fact.what == "group":
            self._forget_group(fact.name)
        elif fact.what == "transaction":
            _drop(self.transactions, lambda key, _: key[0] == fact.name)

    def _forget_topic(self, name: str) -> None:
        topic = self.topics.pop(name)
        if topic is not None:
            self.replica_counts.subtract(node for each in topic.fact.partitions for node in each.replicas)
        _drop(self.lags, lambda key, _: key[1] == name)
        _drop(self.topic_lags, lambda key, _: key[1] == name)
        _drop(self.share_partitions, lambda key, _: key[1] == name)

    def _forget_group(self, name: str) -> None:
        self.groups.pop(name)
        self.share_groups.pop(name)
        _drop(self.lags, lambda key, _: key[0] == name)
        _drop(self.topic_lags, lambda key, _: key[0] == name)
        _drop(self.share_partitions, lambda key, _: key[0] == name)

    def sweep(self) -> None:
        """Forget entries that the samples of their kind have not mentioned for a long time."""
        old_ms = self.newest_ms - FORGET_MS
        _drop(self.groups, lambda _, seen: seen.at_ms < old_ms)
        _drop(self.lags, lambda _, seen: seen.at_ms < old_ms)
        _drop(self.topic_lags, lambda _, seen: seen.at_ms < old_ms)
        _drop(self.share_groups, lambda _, seen: seen.at_ms < old_ms)
        _drop(self.share_partitions, lambda _, seen: seen.at_ms < old_ms)
        _drop(self.disks, lambda _, seen: seen.at_ms < old_ms)
        _drop(self.logins, lambda _, seen: seen.at_ms < old_ms)
        _drop(self.transactions, lambda _, seen: seen.at_ms < old_ms + FORGET_MS - FORGET_TRANSACTION_MS)
        for group, names in self.topics_of.items():
            names.intersection_update([name for name in names if (group, name) in self.topic_lags])
            if not names:
                self.topics_of.pop(group)
        for name, topic in self.topics.items():
            if topic.at_ms < old_ms:
                self._forget_topic(name)


_TAKE: Final[Mapping[type[Fact], Callable[[History, Any], None]]] = {
    Cluster: History._take_cluster,
    Failed: History._take_failed,
    Quorum: History._take_quorum,
    Configs: History._take_configs,
    LogDir: History._take_log_dir,
    Transaction: History._take_transaction,
    LoginFailures: History._take_login_failures,
    Refusals: History._take_refusals,
    Topic: History._take_topic,
    Group: History._take_group,
    Lag: History._take_lag,
    ShareOffsets: History._take_share_offsets,
    ShareWindow: History._take_share_window,
    ShareState: History._take_share_state,
    ShareMetrics: History._take_share_metrics,
    Gone: History._take_gone,
}
"""Other facts need no history."""


def _drop(entries: LruDict[K, V], is_over: Callable[[K, V], bool]) -> None:
    for key, entry in entries.items():
        if is_over(key, entry):
            entries.pop(key)
