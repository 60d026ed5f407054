"""The messages that are measured, as plain values in the order of the wire.

A content is a dict from field name to value; structs are dicts, arrays are lists, uuids are 16 bytes. `variant` changes
the numbers that change in real traffic (epochs, offsets, intervals), so that no codec meets the same message twice in a
row. Names stay as they are: a cluster's topics and members do not change from one message to the next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Content = dict[str, Any]

VARIANTS = 8

_random = Random(20261115)
_RECORDS_1_KIB = [_random.randbytes(1024) for _ in range(100)]
_RECORDS_16_KIB = [_random.randbytes(16 * 1024) for _ in range(VARIANTS)]
_TOPIC_IDS = [_random.randbytes(16) for _ in range(100)]
_MEMBER_ID = "Xn3zGYq5QrKNzyVbGp1oJg"


def metadata_response(version: int, variant: int) -> Content:
    """10 brokers, 100 topics of 10 partitions with 3 replicas each; 45 KB."""
    return {
        "throttle_time_ms": 0,
        "brokers": [
            {"node_id": node, "host": f"broker-{node}.kafka.example", "port": 9092, "rack": f"zone-{node % 3}"}
            for node in range(1, 11)
        ],
        "cluster_id": "4L6g3nShT-eMCtK--X86sw",
        "controller_id": 1 + variant % 10,
        "topics": [_metadata_topic(version, variant, number) for number in range(100)],
    }


def _metadata_topic(version: int, variant: int, number: int) -> Content:
    topic: Content = {"error_code": 0, "name": f"orders-{number:03d}"}
    if version >= 10:
        topic["topic_id"] = _TOPIC_IDS[number]
    topic |= {"is_internal": False, "partitions": [_metadata_partition(version, variant, p) for p in range(10)]}
    if version >= 8:
        topic["topic_authorized_operations"] = -(2**31)
    return topic


def _metadata_partition(version: int, variant: int, index: int) -> Content:
    replicas = [1 + (index + variant + step) % 10 for step in range(3)]
    partition: Content = {"error_code": 0, "partition_index": index, "leader_id": replicas[0]}
    if version >= 7:
        partition["leader_epoch"] = 7 + variant
    return partition | {"replica_nodes": replicas, "isr_nodes": replicas, "offline_replicas": []}


def fetch_response(version: int, variant: int) -> Content:
    """10 topics of 10 partitions with 1 KiB of records each."""
    return {
        "throttle_time_ms": 0,
        "error_code": 0,
        "session_id": 1_234_567 + variant,
        "responses": [
            {
                **({"topic_id": _TOPIC_IDS[number]} if version >= 13 else {"topic": f"orders-{number:03d}"}),
                "partitions": [_fetch_partition(variant, number, index) for index in range(10)],
            }
            for number in range(10)
        ],
    }


def _fetch_partition(variant: int, number: int, index: int) -> Content:
    high_watermark = 1_000_000 * (number + 1) + 1_000 * index + variant
    return {
        "partition_index": index,
        "error_code": 0,
        "high_watermark": high_watermark,
        "last_stable_offset": high_watermark,
        "log_start_offset": 0,
        "aborted_transactions": None,
        "preferred_read_replica": -1,
        "records": _RECORDS_1_KIB[10 * number + index],
    }


def consumer_heartbeat_steady(version: int, variant: int) -> Content:
    """The heartbeat of a member that has nothing new to say."""
    return {
        "group_id": "payments",
        "member_id": _MEMBER_ID,
        "member_epoch": 40 + variant,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": None,
    }


def consumer_heartbeat_join(version: int, variant: int) -> Content:
    """The first heartbeat of a member, with all that the group must know of it."""
    return consumer_heartbeat_steady(version, variant) | {
        "member_epoch": 0,
        "rack_id": "zone-1",
        "rebalance_timeout_ms": 300_000 + variant,
        "subscribed_topic_names": ["orders", "payments", "shipments"],
        "server_assignor": "uniform",
        "topic_partitions": [],
    }


def streams_heartbeat_many(version: int, variant: int) -> Content:
    """Three lists of 50 subtopologies with 10 partitions each."""
    return _streams_heartbeat(variant, subtopologies=50, partitions=10)


def streams_heartbeat_few(version: int, variant: int) -> Content:
    """Three lists of one subtopology with 50 partitions."""
    return _streams_heartbeat(variant, subtopologies=1, partitions=50)


def _streams_heartbeat(variant: int, subtopologies: int, partitions: int) -> Content:
    tasks = [
        {"subtopology_id": str(number), "partitions": list(range(variant, variant + partitions))}
        for number in range(subtopologies)
    ]
    return {
        "throttle_time_ms": 0,
        "error_code": 0,
        "error_message": None,
        "member_id": _MEMBER_ID,
        "member_epoch": 12 + variant,
        "heartbeat_interval_ms": 5000,
        "acceptable_recovery_lag_legacy": 10_000,
        "task_offset_interval_ms": 60_000,
        "status": [],
        "active_tasks": tasks,
        "standby_tasks": tasks,
        "warmup_tasks": tasks,
        "endpoint_information_epoch": variant,
        "partitions_by_user_endpoint": None,
    }


def produce_request(version: int, variant: int) -> Content:
    """One batch of 16 KiB for one partition."""
    return {
        "transactional_id": None,
        "acks": -1,
        "timeout_ms": 30_000 + variant,
        "topic_data": [{"name": "orders", "partition_data": [{"index": variant, "records": _RECORDS_16_KIB[variant]}]}],
    }


@dataclass(frozen=True)
class Message:
    """What is measured: a message in one version, and what it holds. aiokafka has it up to `aiokafka_version`."""

    title: str
    name: str
    version: int
    content: Callable[[int, int], Content]
    aiokafka_version: int | None = None

    @property
    def versions(self) -> tuple[int, ...]:
        return (self.version,) if self.aiokafka_version is None else (self.version, self.aiokafka_version)


MESSAGES = (
    Message("10 brokers, 100 topics x 10 partitions", "MetadataResponse", 12, metadata_response, 5),
    Message("100 partitions x 1 KiB", "FetchResponse", 13, fetch_response, 11),
    Message("steady", "ConsumerGroupHeartbeatRequest", 1, consumer_heartbeat_steady),
    Message("join", "ConsumerGroupHeartbeatRequest", 1, consumer_heartbeat_join),
    Message("3 x 50 tasks of 10", "StreamsGroupHeartbeatResponse", 0, streams_heartbeat_many),
    Message("3 x 1 task of 50", "StreamsGroupHeartbeatResponse", 0, streams_heartbeat_few),
    Message("16 KiB", "ProduceRequest", 9, produce_request, 8),
)
