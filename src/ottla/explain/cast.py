"""The cast of the examples: one cluster, its topics and its clients, the same on every page.

Brokers 1 to 3 and controllers 3001 to 3003 run the cluster. A shop writes the topic `orders`; the consumer group
`orders-app`, the share group `orders-workers` and the Streams application `orders-totals` read it. Ids look like those
of real clients: members of Java clients draw a uuid and print it in base64, classic members get their client id and a
uuid from the broker, producer ids come in blocks of 1000.

Scenes refer to the cast by `$word`; `value` looks a word up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ottla.wire import from_json
from ottla.wire.frames import frame, write_request, write_response
from ottla.wire.keyed import encode_framed

NOW_MS = 1_767_261_600_000
"""2026-01-01 10:00:00 UTC."""

GROUP = "orders-app"
SHARE_GROUP = "orders-workers"
STREAMS_GROUP = "orders-totals"
CLIENT_HOST = "/10.0.4.17"
TOPIC = "orders"
TOPIC_ID = "m0yAeplmTTWyHn60p7yucg"
METADATA_TOPIC = "__cluster_metadata"
ORDER_OFFSET = 4_120
PRODUCER_ID = 4_021

_PLAIN: dict[str, Any] = {
    "now": NOW_MS,
    "half_minute_ago": NOW_MS - 30_000,
    "hour_ago": NOW_MS - 3_600_000,
    "second_ago": NOW_MS - 1_000,
    "tomorrow": NOW_MS + 86_400_000,
    "next_week": NOW_MS + 7 * 86_400_000,
    # the cluster
    "cluster_id": "uH93YxM1SDewSYI__gpglQ",
    "host1": "kafka-1.example.com",
    "host2": "kafka-2.example.com",
    "host3": "kafka-3.example.com",
    "controller1": "controller-1.example.com",
    "controller2": "controller-2.example.com",
    "controller3": "controller-3.example.com",
    "rack1": "eu-west-1a",
    "rack2": "eu-west-1b",
    "rack3": "eu-west-1c",
    "broker_epoch": 1_542,
    "incarnation": "FJ5UuzgOSqefGb1OM4Cahw",
    "dir1": "sOajptZZTfySJA6p2SoXaw",
    "dir2": "963DyzsoT-SX8o4BwLvACg",
    "dir3": "kAvjeCsJTpiCR4EePSbHGA",
    "controller_dir1": "3xeqcjveRGihO-y5czukOw",
    "controller_dir2": "ra4HihYhRsOYXsxCfsr37w",
    "controller_dir3": "fqxx7BISSAqHnDGZRO39kQ",
    "controller_dir4": "yNEdUa2XQnuhxmki61a1kg",
    # topics
    "topic": TOPIC,
    "topic_id": TOPIC_ID,
    "payments": "payments",
    "payments_id": "Qld8KK0vTb2uMSKViJk2Cw",
    "metadata_topic": METADATA_TOPIC,
    "repartition_topic": "orders-totals-by-customer-repartition",
    "changelog_topic": "orders-totals-totals-changelog",
    # groups and their members
    "group": GROUP,
    "share_group": SHARE_GROUP,
    "streams_group": STREAMS_GROUP,
    "member": "UgfF1COGS7iOtiAjGvA_-w",
    "share_member": "OQkVOBBlSBCoNXA0VyaxmQ",
    "share_member2": "NmpI3WdoR0K6ugozztSB7w",
    "streams_member": "XPOfkVz5T_6KQZoLoZY6tQ",
    "process": "c912a866-f195-40ca-a96d-a7eaa367852d",
    "process_id": "yRKoZvGVQMqpbafqo2eFLQ",
    "classic_member": "consumer-orders-app-1-f7d2e1c4-6a0b-4c1f-9d57-2b3a8e40c1d9",
    "classic_member2": "consumer-orders-app-2-0c4bb6ae-93fd-4a7e-8f22-71d5c96e3b08",
    "client": "consumer-orders-app-1",
    "share_client": "consumer-orders-workers-1",
    "streams_client": "orders-totals-c912a866-f195-40ca-a96d-a7eaa367852d-StreamThread-1-consumer",
    "client_host2": "/10.0.4.18",
    # producers and transactions
    "transactional_id": "orders-billing-0",
    # principals and secrets, all invented
    "principal": "User:alice",
    "token_id": "H593S1MyThyZVEUZKNjOgQ",
    "telemetry_client": "mrLC1Gp0QA6EqEONsrifXw",
    "segment_id": "R6rf4EcNTDW9-KxdvHbuxw",
    "acl_id": "620aOXXaR32zPtOQkJUgeQ",
    "zero_id": "AAAAAAAAAAAAAAAAAAAAAA",
}


def value(word: str) -> Any:
    """The value of `$word` in a scene. Raises KeyError for an unknown word."""
    return _PLAIN[word] if word in _PLAIN else _built(word)


@cache
def _built(word: str) -> Any:
    return _BUILT[word]()


# --- bytes that are messages or batches themselves ------------------------------------------------------------------


def _orders_records(first_offset: int) -> list[Any]:
    from ottla.wire.batch import Record

    orders = [
        (b"order-1001", b'{"customer":"c-17","total":42.50}'),
        (b"order-1002", b'{"customer":"c-08","total":7.99}'),
    ]
    return [
        Record(first_offset + index, NOW_MS - 2_000 + 5 * index, key, content, (("source", b"shop"),))
        for index, (key, content) in enumerate(orders)
    ]


def _produced_batch() -> bytes:
    """As a producer sends it: offsets from 0, no leader epoch."""
    from ottla.wire.batch import build_batch

    return build_batch(
        _orders_records(0),
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
    )


def _stored_batch() -> bytes:
    """The same batch as a leader stored it: real offsets and its epoch."""
    from ottla.wire.batch import build_batch

    return build_batch(
        _orders_records(ORDER_OFFSET),
        partition_leader_epoch=5,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
    )


def _snapshot() -> bytes:
    """A whole snapshot of the metadata log: header, records (here one) and footer, each in a batch of its own."""
    from ottla.wire.batch import ControlRecordType, Record, build_batch, build_control_batch
    from ottla.wire.types import FeatureLevelRecord, SnapshotFooterRecord, SnapshotHeaderRecord

    taken_ms = NOW_MS - 3_600_000
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=taken_ms)
    level = encode_framed(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
    parts = (
        build_control_batch(
            [(ControlRecordType.SNAPSHOT_HEADER, header)], base_offset=0, timestamp=taken_ms, partition_leader_epoch=1
        ),
        build_batch([Record(1, taken_ms, None, level)], partition_leader_epoch=1),
        build_control_batch(
            [(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))],
            base_offset=2,
            timestamp=taken_ms,
            partition_leader_epoch=1,
        ),
    )
    return b"".join(parts)


def _subscription() -> bytes:
    fields: dict[str, Any] = {
        "topics": [TOPIC],
        "userData": None,
        "ownedPartitions": [],
        "generationId": -1,
        "rackId": None,
    }
    return encode_framed(from_json("ConsumerProtocolSubscription", 3, fields), 3)


def _assignment(*partitions: int) -> bytes:
    fields: dict[str, Any] = {
        "assignedPartitions": [{"topic": TOPIC, "partitions": list(partitions)}],
        "userData": None,
    }
    return encode_framed(from_json("ConsumerProtocolAssignment", 3, fields), 3)


def _principal() -> bytes:
    fields: dict[str, Any] = {"type": "User", "name": "alice", "tokenAuthenticated": False}
    return encode_framed(from_json("DefaultPrincipalData", 0, fields), 0)


def _without_size(sent: bytes) -> bytes:
    return sent[len(frame()) :]


def _forwarded_request() -> bytes:
    """A client's DeleteTopics request with its header, as a broker puts it into an envelope."""
    fields: dict[str, Any] = {"topics": [{"name": TOPIC, "topicId": _PLAIN["zero_id"]}], "timeoutMs": 30_000}
    message = from_json("DeleteTopicsRequest", 6, fields)
    return _without_size(write_request(message, 6, correlation_id=12, client_id="adminclient-1"))


def _forwarded_response() -> bytes:
    result: dict[str, Any] = {"name": TOPIC, "topicId": TOPIC_ID, "errorCode": 0, "errorMessage": None}
    message = from_json("DeleteTopicsResponse", 6, {"throttleTimeMs": 0, "responses": [result]})
    return _without_size(write_response(message, 6, correlation_id=12))


def _protobuf_field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def _metrics() -> bytes:
    """OpenTelemetry's MetricsData with one counter: four connections so far."""
    point = b"\x19" + (NOW_MS * 1_000_000).to_bytes(8, "little") + b"\x31" + (4).to_bytes(8, "little")
    monotonic_sum = _protobuf_field(1, point) + b"\x10\x02\x18\x01"
    name = b"org.apache.kafka.consumer.connection.creation.total"
    metric = _protobuf_field(1, name) + _protobuf_field(7, monotonic_sum)
    return _protobuf_field(1, _protobuf_field(2, _protobuf_field(2, metric)))


def _producer_snapshot_crc() -> int:
    """The checksum of the example's snapshot file, as a broker computes it: over all that follows it."""
    from ottla.wire.batch import crc32c

    entry = {
        "producerId": PRODUCER_ID,
        "epoch": 0,
        "lastSequence": 1,
        "lastOffset": ORDER_OFFSET + 1,
        "offsetDelta": 1,
        "timestamp": NOW_MS - 1_000,
        "coordinatorEpoch": -1,
        "currentTxnFirstOffset": -1,
    }
    fields: dict[str, Any] = {"crc": 0, "producerEntries": [entry]}
    framed = encode_framed(from_json("ProducerSnapshot", 1, fields), 1)
    return crc32c(framed[6:])  # after the int16 version and the checksum itself


_BUILT: dict[str, Callable[[], Any]] = {
    "produced_batch": _produced_batch,
    "stored_batch": _stored_batch,
    "snapshot": _snapshot,
    "snapshot_size": lambda: len(_snapshot()),
    "subscription": _subscription,
    "producer_snapshot_crc": _producer_snapshot_crc,
    "assignment": lambda: _assignment(0, 1),
    "assignment2": lambda: _assignment(2),
    "principal_data": _principal,
    "forwarded_request": _forwarded_request,
    "forwarded_response": _forwarded_response,
    "client_address": lambda: bytes([10, 0, 4, 17]),
    # RFC 5802's exchange, for user alice; nonces and proofs are invented.
    "scram_first": lambda: b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL",
    "scram_challenge": lambda: b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    "salt": lambda: bytes.fromhex("8f1c53ab0d6e47928be1f04c3a75d269"),
    "salted_password": lambda: bytes.fromhex("4b91d7e2065fca38b1d04e9972c35fa86de01b7c94f2835ae6107b3dc9582f41"),
    "stored_key": lambda: bytes.fromhex("d10f83b25e6a49c7027fb4e8539dac16f8740b2ce5913d6aa2c8457e90f1b36d"),
    "server_key": lambda: bytes.fromhex("6a3ec9074fd1b852e79c20f5a48d136bb37e0fc25a9841d6e8f20c7b5d934a1e"),
    "hmac": lambda: bytes.fromhex(
        "1b7d40e9c2a6583f96e0d47b81cf25a34d8e1f60b97c3a52e4068fd1c75b923e"
        "a05c8e3f7d1946b2f8c30e5a7419d6b82ce7f0435a9d81b6e40f3c728d5a1e97"
    ),
    "metrics": _metrics,
    "endpoint": lambda: b"app-1.example.com:8080",
    "tag_key": lambda: b"zone",
    "tag_value": lambda: b"eu-west-1a",
}
