"""Numbers about a node, under the names that dashboards for Kafka look for.

Counting must cost next to nothing, so the parts of the node keep plain integers (a replica its bytes, `Metrics` the
requests), and a page of them is written only when somebody asks. Names are those that Prometheus' JMX exporter makes of
Apache Kafka's beans with its usual rules.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.network.dispatch import Api
from ottla.broker.network.request import Request

if TYPE_CHECKING:
    from ottla.broker.node import Node

__all__ = ["Metrics", "RequestCount"]

_BOUNDS_MS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_RUNNING: Final = 3  # BrokerState

Labels = dict[str, object]
Sample = tuple[str, Labels, float]


class RequestCount:
    """Requests of one API in one version."""

    __slots__ = ("answer_bytes", "buckets", "count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0
        self.answer_bytes = 0
        self.buckets = [0] * (len(_BOUNDS_MS) + 1)

    def quantile_ms(self, quantile: float) -> int:
        """A time that so many of the requests did not exceed, to the next bound."""
        wanted = quantile * self.count
        index = next((at for at, sum_ in enumerate(accumulate(self.buckets)) if sum_ >= wanted), 0)
        return _BOUNDS_MS[min(index, len(_BOUNDS_MS) - 1)]


class Metrics:
    """Counts requests, and tells everything that is known of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.requests: dict[tuple[str, int], RequestCount] = {}
        self.errors: dict[tuple[str, int], int] = {}
        self.started_at = time.time()

    def answered(self, request: Request, api: Api, answer: Any, size_bytes: int) -> None:  # noqa: ANN401
        key = (api.name, request.version)
        counted = self.requests.get(key)
        if counted is None:
            counted = self.requests[key] = RequestCount()
        took_ms = self._node.monotonic_ms() - request.received_at_ms
        counted.count += 1
        counted.total_ms += took_ms
        counted.answer_bytes += size_bytes
        counted.buckets[bisect_left(_BOUNDS_MS, took_ms)] += 1
        code = getattr(answer, "error_code", 0)
        if code:
            self.errors[api.name, code] = self.errors.get((api.name, code), 0) + 1

    # --- the page -----------------------------------------------------------------------------------------------------

    def page(self) -> str:
        """All samples in Prometheus' text format."""
        by_name: dict[str, list[Sample]] = {}
        for sample in self._samples():
            by_name.setdefault(sample[0], []).append(sample)
        lines: list[str] = []
        for name, samples in by_name.items():
            if name.endswith("_total"):
                lines.append(f"# TYPE {name} counter")
            elif name.endswith("_bucket"):
                lines.append(f"# TYPE {name.removesuffix('_bucket')} histogram")
            elif f"{name.rpartition('_')[0]}_bucket" not in by_name:
                lines.append(f"# TYPE {name} gauge")
            lines += [f"{name}{_labels(labels)} {_number(value)}" for _, labels, value in samples]
        return "\n".join(lines) + "\n"

    def _samples(self) -> Iterator[Sample]:
        yield from self._traffic()
        yield from self._request_times()
        yield from self._partitions()
        yield from self._cluster()
        yield from self._coordinators()
        yield from self._node.share_samples()
        yield from self._node.telemetry_samples()
        yield from self._quotas()
        yield from self._descriptions()
        yield from self._connections()
        yield from self._process()

    def _traffic(self) -> Iterator[Sample]:
        prefix = "kafka_server_brokertopicmetrics"
        replicas = self._node.replicas
        for name, total in replicas.totals().items():
            yield f"{prefix}_{name}_total", {}, total
        for topic, totals in replicas.totals_by_topic().items():
            for name, total in totals.items():
                yield f"{prefix}_{name}_total", {"topic": topic}, total
        for name, api in (("totalproducerequests", "Produce"), ("totalfetchrequests", "Fetch")):
            yield f"{prefix}_{name}_total", {}, sum(each.count for key, each in self.requests.items() if key[0] == api)

    def _request_times(self) -> Iterator[Sample]:
        prefix = "kafka_network_requestmetrics"
        for (name, version), counted in sorted(self.requests.items()):
            labels: Labels = {"request": name, "version": version}
            yield f"{prefix}_requests_total", labels, counted.count
            yield f"{prefix}_totaltimems_count", labels, counted.count
            yield f"{prefix}_totaltimems_sum", labels, counted.total_ms
            yield f"{prefix}_responsebytes_total", labels, counted.answer_bytes
            for quantile in _QUANTILES:
                yield f"{prefix}_totaltimems", {**labels, "quantile": quantile}, counted.quantile_ms(quantile)
        for (name, code), total in sorted(self.errors.items()):
            yield f"{prefix}_errors_total", {"request": name, "error": _error_name(code)}, total

    def _partitions(self) -> Iterator[Sample]:
        replicas = list(self._node.replicas)
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
                labels: Labels = {
                    "topic": replica.topic_partition.topic,
                    "partition": replica.topic_partition.partition,
                }
                yield "kafka_log_log_size", labels, log.size_bytes
                yield "kafka_log_log_numlogsegments", labels, len(log.segments)
                yield "kafka_log_log_logstartoffset", labels, log.log_start_offset
                yield "kafka_log_log_logendoffset", labels, log.log_end_offset

    def _cluster(self) -> Iterator[Sample]:
        node, prefix = self._node, "kafka_controller_kafkacontroller"
        image, quorum = node.image, node.metadata.quorum
        leaderless = sum(partition.leader < 0 for _, partition in image.partitions())
        yield "kafka_server_kafkaserver_brokerstate", {}, _RUNNING
        yield f"{prefix}_activecontrollercount", {}, int(quorum.is_leader)
        yield f"{prefix}_activebrokercount", {}, sum(not each.fenced for each in image.brokers.values())
        yield f"{prefix}_fencedbrokercount", {}, sum(each.fenced for each in image.brokers.values())
        yield f"{prefix}_globaltopiccount", {}, len(image.topics_by_id)
        yield f"{prefix}_globalpartitioncount", {}, sum(len(each.partitions) for each in image.topics_by_id.values())
        yield f"{prefix}_offlinepartitionscount", {}, leaderless
        yield "kafka_server_raft_metrics_current_epoch", {}, quorum.epoch
        yield "kafka_server_raft_metrics_current_leader", {}, quorum.leader_id
        yield "kafka_server_raft_metrics_high_watermark", {}, quorum.high_watermark
        yield "kafka_server_raft_metrics_log_end_offset", {}, quorum.log_end_offset

    def _coordinators(self) -> Iterator[Sample]:
        node = self._node
        for kind, runtime in (("group", node.groups), ("transaction", node.transactions), ("share", node.share_state)):
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

    def _descriptions(self) -> Iterator[Sample]:
        descriptions = self._node.descriptions
        if descriptions is None:
            return
        prefix = "kafka_server_group_coordinator_metrics_streams_group_topology_description"
        for call in ("set", "get", "delete"):
            for outcome in ("success", "error"):
                yield f"{prefix}_{call}_{outcome}_total", {}, descriptions.counts[call, outcome]
        yield f"{prefix}_cleanup_cycle_total", {}, descriptions.check_count()
        yield f"{prefix}_cleanup_eligible_total", {}, descriptions.expired_count

    def _quotas(self) -> Iterator[Sample]:
        yield from self._node.quotas.samples(self._node.monotonic_ms())
        muted = sum(each.is_muted for listener in self._node.listeners.values() for each in listener.connections)
        yield "ottla_throttled_connections", {}, muted

    def _connections(self) -> Iterator[Sample]:
        for name, listener in self._node.listeners.items():
            yield "kafka_server_socket_server_metrics_connection_count", {"listener": name}, len(listener.connections)
        yield from self._node.closed_connections.samples(self._node.listeners)
        yield "kafka_server_delayedoperationpurgatory_purgatorysize", {}, len(self._node.waiting)

    def _process(self) -> Iterator[Sample]:
        times = time.process_time()
        yield "process_cpu_seconds_total", {}, times
        yield "process_start_time_seconds", {}, self.started_at
        yield "process_resident_memory_bytes", {}, _resident_bytes()


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(str(value))}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _error_name(code: int) -> str:
    from ottla.wire.errors import ErrorCode

    return ErrorCode(code).name if code in _known_codes(ErrorCode) else str(code)


def _known_codes(codes: Iterable[int]) -> set[int]:
    return set(codes)


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            import os

            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0
