"""Numbers about a node, under the names that dashboards for Kafka look for.

Names are those that Prometheus' JMX exporter makes of Apache Kafka's beans with its usual rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.coordinators.coordinators import Coordinators
    from ottla.broker.descriptions import DescriptionPlugin
    from ottla.broker.network.closed_connections import ClosedConnections
    from ottla.broker.network.listener import Listener
    from ottla.broker.network.quotas.quotas import Quotas
    from ottla.broker.replicas.replicas import Replicas
    from ottla.wire.exposition import Labels, Sample

__all__ = [
    "connection_samples",
    "coordinator_samples",
    "description_samples",
    "partition_samples",
    "process_samples",
    "quota_samples",
    "traffic_samples",
]


def traffic_samples(replicas: Replicas) -> Iterator[Sample]:
    prefix = "kafka_server_brokertopicmetrics"
    for name, total in replicas.totals().items():
        yield f"{prefix}_{name}_total", {}, total
    for topic, totals in replicas.totals_by_topic().items():
        for name, total in totals.items():
            yield f"{prefix}_{name}_total", {"topic": topic}, total


def partition_samples(all_replicas: Replicas) -> Iterator[Sample]:
    replicas = list(all_replicas)
    manager = "kafka_server_replicamanager"
    yield f"{manager}_partitioncount", {}, len(replicas)
    yield f"{manager}_leadercount", {}, sum(each.is_leader for each in replicas)
    yield f"{manager}_offlinereplicacount", {}, sum(each.is_offline for each in replicas)
    led = [each for each in replicas if each.is_leader]
    yield f"{manager}_underreplicatedpartitions", {}, sum(len(each.isr) < len(each.replicas) for each in led)
    yield f"{manager}_underminisrpartitioncount", {}, sum(not each.isr for each in led)
    for replica in replicas:
        if replica.has_log:
            log = replica.log
            labels: Labels = {"topic": replica.topic_partition.topic, "partition": replica.topic_partition.partition}
            yield "kafka_log_log_size", labels, log.size_bytes
            yield "kafka_log_log_numlogsegments", labels, len(log.segments)
            yield "kafka_log_log_logstartoffset", labels, log.log_start_offset
            yield "kafka_log_log_logendoffset", labels, log.log_end_offset


def coordinator_samples(coordinators: Coordinators) -> Iterator[Sample]:
    runtimes = {
        "group": coordinators.groups,
        "transaction": coordinators.transactions,
        "share": coordinators.share_state,
    }
    for kind, runtime in runtimes.items():
        prefix, counts = f"kafka_server_{kind}_coordinator_metrics", runtime.counts
        yield f"{prefix}_num_partitions", {"state": "active"}, len(runtime.shards)
        yield f"{prefix}_num_partitions", {"state": "loading"}, len(runtime.loading)
        yield f"{prefix}_partition_load_time_max", {}, counts.load_ms_max
        yield f"{prefix}_partition_load_time_avg", {}, counts.load_ms_total / max(counts.loads, 1)
        yield f"{prefix}_event_queue_size", {}, sum(shard.pending_count for shard in runtime.shards.values())
        yield f"{prefix}_batches_total", {}, counts.batches
        yield f"{prefix}_records_total", {}, counts.records
        yield f"{prefix}_records_loaded_total", {}, counts.records_loaded
        yield f"{prefix}_partitions_lost_total", {}, counts.lost


def description_samples(descriptions: DescriptionPlugin) -> Iterator[Sample]:
    prefix = "kafka_server_group_coordinator_metrics_streams_group_topology_description"
    for call in ("set", "get", "delete"):
        for outcome in ("success", "error"):
            yield f"{prefix}_{call}_{outcome}_total", {}, descriptions.counts[call, outcome]
    yield f"{prefix}_cleanup_cycle_total", {}, descriptions.check_count()
    yield f"{prefix}_cleanup_eligible_total", {}, descriptions.expired_count


def quota_samples(quotas: Quotas, listeners: Mapping[str, Listener], now_ms: int) -> Iterator[Sample]:
    yield from quotas.samples(now_ms)
    muted = sum(each.is_muted for listener in listeners.values() for each in listener.connections)
    yield "ottla_throttled_connections", {}, muted


def connection_samples(
    listeners: Mapping[str, Listener], closed: ClosedConnections, waiting_count: int
) -> Iterator[Sample]:
    for name, listener in listeners.items():
        yield "kafka_server_socket_server_metrics_connection_count", {"listener": name}, len(listener.connections)
    yield from closed.samples(listeners)
    yield "kafka_server_delayedoperationpurgatory_purgatorysize", {}, waiting_count


def process_samples(started_at: float) -> Iterator[Sample]:
    yield "process_cpu_seconds_total", {}, sum(os.times()[:2])
    yield "process_start_time_seconds", {}, started_at
    yield "process_resident_memory_bytes", {}, _resident_bytes()


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0
