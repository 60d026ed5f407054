"""The state of a cluster as Prometheus metrics: groups of all kinds, partitions, the quorum, and every finding.

Theory of operation. An observer feeds `ClusterState`; a scrape only writes down what is there, and asks the cluster
nothing. A kind of sample that could not be taken for a while is left out, since an old lag is worse than none:
`ottla_exporter_probe_age_seconds` tells how old each kind is. The number of series is bounded. Those about the whole
cluster, findings, groups and topics come first, those about single partitions last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import UNSET

from ottla.health.facts import Group, Tasks
from ottla.health.finding import Finding
from ottla.health.lag_history import lag_of
from ottla.health.quorum import healthy_voters, leader_now_ms, leader_of
from ottla.observe.cluster_state import ClusterState
from ottla.wire.exposition import Labels, Sample, exposition
from ottla.wire.lag import lag_ms

__all__ = ["ABOUT", "SERIES_MAX", "Exporter"]

SERIES_MAX: Final = 50_000
STALE_INTERVALS: Final = 3
STALE_S_MIN: Final = 15.0
SECOND_MS: Final = 1_000

ABOUT: Final = {
    "ottla_cluster_up": "Whether a broker of the cluster answered the last probe.",
    "ottla_cluster_brokers": "Brokers that are registered.",
    "ottla_broker_up": "Whether the broker answered the last probe.",
    "ottla_broker_fenced": "Whether the controller has fenced the broker.",
    "ottla_quorum_leader": "Node id of the quorum's leader; -1 if there is none.",
    "ottla_quorum_leader_epoch": "Epoch of the quorum's leader. It rises with every election.",
    "ottla_quorum_high_watermark": "Committed end of the metadata log.",
    "ottla_quorum_voters_healthy": "Voters that fetched in the last 5 s, the leader included.",
    "ottla_quorum_replica_lag_records": "Metadata records that a replica has not fetched yet.",
    "ottla_quorum_replica_lag_seconds": "Time since a replica had all that the leader had.",
    "ottla_topic_partitions": "Partitions of the topic.",
    "ottla_topic_offline_partitions": "Partitions without a leader.",
    "ottla_topic_under_replicated_partitions": "Partitions with fewer replicas in sync than assigned.",
    "ottla_topic_under_min_isr_partitions": "Partitions with fewer replicas in sync than min.insync.replicas.",
    "ottla_group_state": "1 for the state that the group is in.",
    "ottla_group_members": "Members of the group.",
    "ottla_group_epoch": "Epoch of the group. It rises with every rebalance. Classic groups do not report one.",
    "ottla_group_assignment_epoch": "Epoch of the group's target assignment.",
    "ottla_group_topic_lag_records": "Records of the topic that the group has not processed.",
    "ottla_group_topic_lag_seconds": "How long the oldest of these records has been waiting.",
    "ottla_group_partition_lag_records": "Records of the partition that the group has not processed.",
    "ottla_group_partition_lag_seconds": "How long the oldest of these records has been waiting.",
    "ottla_group_partition_offset": "Committed offset of the group; of a share group its start offset.",
    "ottla_streams_tasks": "Tasks of the streams group that members have.",
    "ottla_streams_topology_epoch": "Epoch of the streams group's topology.",
    "ottla_share_deliveries_total": "Records delivered to the share group (ottla brokers only).",
    "ottla_share_redeliveries_total": "Records delivered more than once (ottla brokers only).",
    "ottla_share_acknowledgements_total": "Records acknowledged, by type (ottla brokers only).",
    "ottla_share_lock_expiries_total": "Acquisition locks that expired (ottla brokers only).",
    "ottla_finding": "1 for every open finding of ottla health.",
    "ottla_exporter_probe_age_seconds": "Time since samples of this kind were last taken.",
    "ottla_exporter_series_left_out": "Series that were left out because there are too many.",
}
"""What every metric means, by its name."""


class Exporter:
    """Writes the page of metrics. `probed_ms` gives when each kind of sample was last taken without an error."""

    def __init__(
        self,
        state: ClusterState,
        probed_ms: Callable[[], Mapping[str, int]],
        intervals_s: Mapping[str, float],
        series_max: int = SERIES_MAX,
    ) -> None:
        self._state = state
        self._probed_ms = probed_ms
        self._intervals_s = intervals_s
        self._series_max = series_max

    def page(self, now_ms: int) -> str:
        kept: list[Sample] = []
        left_out = 0
        for sample in self._samples(now_ms):
            if len(kept) < self._series_max:
                kept.append(sample)
            else:
                left_out += 1
        kept.append(("ottla_exporter_series_left_out", {}, left_out))
        return exposition(kept, ABOUT)

    def _samples(self, now_ms: int) -> Iterator[Sample]:
        ages_s = {kind: (now_ms - at_ms) / SECOND_MS for kind, at_ms in sorted(self._probed_ms().items())}
        fresh = {kind for kind, age_s in ages_s.items() if age_s <= self._longest_s(kind)}
        yield "ottla_cluster_up", {}, float("cluster" in fresh)
        for kind, age_s in ages_s.items():
            yield "ottla_exporter_probe_age_seconds", {"kind": kind}, age_s
        for finding in self._state.findings:
            if finding.is_open:
                yield "ottla_finding", _finding_labels(finding), 1
        if "cluster" in fresh:
            yield from _cluster(self._state)
        if "quorum" in fresh:
            yield from _quorum(self._state)
        if "topic" in fresh:
            yield from _topics(self._state)
        if "group" in fresh:
            yield from _groups(self._state)
        if "share_metrics" in fresh:
            yield from _share_metrics(self._state)
        lags = list(_lags(self._state, now_ms, fresh))
        yield from _by_topic(lags)
        for lag in lags:
            yield from lag.samples()

    def _longest_s(self, kind: str) -> float:
        return max(STALE_INTERVALS * self._intervals_s.get(kind, 0.0), STALE_S_MIN)


def _finding_labels(finding: Finding) -> Labels:
    subject = finding.subject
    where = {"topic": subject.topic, "partition": subject.partition, "member": subject.member}
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "kind": subject.kind,
        "subject": subject.name,
        **{name: value for name, value in where.items() if value is not UNSET},
    }


# --- the cluster ------------------------------------------------------------------------------------------------------


def _cluster(state: ClusterState) -> Iterator[Sample]:
    if state.cluster is None:
        return
    brokers = state.cluster.fact.brokers
    yield "ottla_cluster_brokers", {}, len(brokers)
    for broker in brokers:
        labels = {"node": broker.id}
        if broker.reachable is not None:
            yield "ottla_broker_up", labels, broker.reachable
        if broker.fenced is not None:
            yield "ottla_broker_fenced", labels, broker.fenced


def _quorum(state: ClusterState) -> Iterator[Sample]:
    if state.quorum is None:
        return
    fact = state.quorum.fact
    yield "ottla_quorum_leader", {}, fact.leader
    yield "ottla_quorum_leader_epoch", {}, fact.leader_epoch
    if fact.high_watermark is not None:
        yield "ottla_quorum_high_watermark", {}, fact.high_watermark
    healthy = healthy_voters(fact)
    if healthy is not None:
        yield "ottla_quorum_voters_healthy", {}, len(healthy)
    leader, now_ms = leader_of(fact), leader_now_ms(fact)
    for replica in fact.replicas:
        labels = {"node": replica.id, "role": replica.role}
        if leader is not None and leader.log_end is not None and replica.log_end is not None:
            yield "ottla_quorum_replica_lag_records", labels, max(0, leader.log_end - replica.log_end)
        if now_ms is not None and replica.last_caught_up_ts is not None and replica.last_caught_up_ts >= 0:
            yield "ottla_quorum_replica_lag_seconds", labels, max(0, now_ms - replica.last_caught_up_ts) / SECOND_MS


def _topics(state: ClusterState) -> Iterator[Sample]:
    configs = state.evaluator.engine.configs
    for name, seen in state.topics.items():
        partitions = seen.fact.partitions
        minimum = configs.of_topic(name, "min.insync.replicas")
        labels = {"topic": name}
        yield "ottla_topic_partitions", labels, len(partitions)
        yield "ottla_topic_offline_partitions", labels, sum(each.leader < 0 for each in partitions)
        short = sum(len(each.isr) < len(each.replicas) for each in partitions)
        yield "ottla_topic_under_replicated_partitions", labels, short
        under = sum(len(each.isr) < each.required_isr(minimum) for each in partitions)
        yield "ottla_topic_under_min_isr_partitions", labels, under


# --- groups -----------------------------------------------------------------------------------------------------------


def _groups(state: ClusterState) -> Iterator[Sample]:
    for name, seen in state.groups.items():
        fact = seen.fact
        labels = {"group": name, "type": fact.type}
        yield "ottla_group_state", {**labels, "state": fact.state}, 1
        yield "ottla_group_members", labels, len(fact.members)
        if fact.type != "classic":  # coordinators do not tell the generation of classic groups
            yield "ottla_group_epoch", labels, fact.group_epoch
            yield "ottla_group_assignment_epoch", labels, fact.assignment_epoch
        if fact.type == "streams":
            yield from _streams(name, fact)


def _streams(name: str, fact: Group) -> Iterator[Sample]:
    tasks = [each.tasks or Tasks() for each in fact.members]
    yield "ottla_streams_tasks", {"group": name, "role": "active"}, sum(len(each.active) for each in tasks)
    yield "ottla_streams_tasks", {"group": name, "role": "standby"}, sum(len(each.standby) for each in tasks)
    yield "ottla_streams_tasks", {"group": name, "role": "warmup"}, sum(len(each.warmup) for each in tasks)
    if fact.topology_epoch is not None:
        yield "ottla_streams_topology_epoch", {"group": name}, fact.topology_epoch


def _share_metrics(state: ClusterState) -> Iterator[Sample]:
    for _, fact in state.all_share_metrics():
        if state.group(fact.group) is None:
            continue
        labels = {"group": fact.group, "node": fact.node}
        yield "ottla_share_deliveries_total", labels, fact.delivered
        yield "ottla_share_redeliveries_total", labels, fact.redelivered
        yield "ottla_share_lock_expiries_total", labels, fact.lock_expiries
        for kind, count in (("accept", fact.accepted), ("release", fact.released), ("reject", fact.rejected)):
            yield "ottla_share_acknowledgements_total", {**labels, "type": kind}, count


# --- lag --------------------------------------------------------------------------------------------------------------


class _PartitionLag(NamedTuple):
    """How far a group is behind in one partition; None is not known."""

    labels: Labels
    offset: int | None
    records: int | None
    seconds: float | None

    def samples(self) -> Iterator[Sample]:
        for name, value in (("offset", self.offset), ("lag_records", self.records), ("lag_seconds", self.seconds)):
            if value is not None:
                yield f"ottla_group_partition_{name}", self.labels, value


def _lags(state: ClusterState, now_ms: int, fresh: set[str]) -> Iterator[_PartitionLag]:
    def seconds(records: int | None, since_ms: int | None) -> float | None:
        ms = lag_ms(records, since_ms, now_ms)
        return None if ms is None else ms / SECOND_MS

    for name, seen in state.groups.items():
        group = {"group": name, "type": seen.fact.type}
        if "lag" in fresh:
            for (topic, partition), (_, lag) in sorted(state.lags(name).items()):
                labels = {**group, "topic": topic, "partition": partition}
                records = lag_of(lag)
                yield _PartitionLag(labels, lag.committed, records, seconds(records, lag.committed_ts))
        if "share_offsets" in fresh:
            for (topic, partition), (_, share) in sorted(state.share_offsets(name).items()):
                labels = {**group, "topic": topic, "partition": partition}
                yield _PartitionLag(labels, share.start, share.lag, seconds(share.lag, share.start_ts))


def _by_topic(lags: list[_PartitionLag]) -> Iterator[Sample]:
    """The sum of the records and the longest of the times, where all partitions of a topic are known."""
    by_topic: dict[tuple[object, object], list[_PartitionLag]] = {}
    for lag in lags:
        by_topic.setdefault((lag.labels["group"], lag.labels["topic"]), []).append(lag)
    for found in by_topic.values():
        labels = {name: found[0].labels[name] for name in ("group", "type", "topic")}
        records = [each.records for each in found if each.records is not None]
        seconds = [each.seconds for each in found if each.seconds is not None]
        if len(records) == len(found):
            yield "ottla_group_topic_lag_records", labels, sum(records)
        if len(seconds) == len(found):
            yield "ottla_group_topic_lag_seconds", labels, max(seconds)
