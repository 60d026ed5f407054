"""Trees: every byte has its place, what is inside is opened, and half a message goes as far as it goes."""

from typing import Any

import pytest

from ottla import wire
from ottla.explain.as_json import body_json, tree_json
from ottla.explain.dissect import Dissection, dissect, dissect_batches, dissect_message
from ottla.explain.guess import Wrapping, guess
from ottla.explain.open_fields import OPENINGS
from ottla.explain.redact import RULES
from ottla.explain.tree import NOTHING, Node
from ottla.wire import frames, keyed, types
from ottla.wire.batch import (
    Compression,
    ControlRecordType,
    Record,
    build_batch,
    build_control_batch,
    build_end_txn_marker,
)
from tests.unit.explain import packets as made
from tests.unit.wire import batch_vectors, message_vectors

BARE = Wrapping(False, "nothing")
REQUEST, RESPONSE = Wrapping(True, "request header"), Wrapping(True, "response header")


def found(data: bytes) -> Dissection:
    verdict = guess(data)
    assert verdict.best is not None
    return dissect(data, verdict.best.name, verdict.best.version, verdict.best.wrapping)


def node_at(root: Node, path: str) -> Node:
    """The node at "Topics.[0].Name"."""
    for name in path.split("."):
        child = root.child(name)
        assert child is not None, f"{name} is not in {[node.name for node in root.children]}"
        root = child
    return root


def is_plain(name: str) -> bool:
    """Whether nothing in the message is opened or withheld, so that its JSON must be that of the codec."""
    return name not in RULES and name not in OPENINGS


PLAIN = [
    pytest.param(vector, id=f"{vector['name']} v{vector['version']}")
    for name, cases in message_vectors.vectors().items()
    for vector in cases
    if vector["case"] == "dense" and is_plain(name)
]


@pytest.mark.parametrize("vector", PLAIN)
def test_the_tree_says_what_kafka_says_and_covers_every_byte(vector: dict[str, Any]):
    data = message_vectors.raw(vector)
    root, error = dissect_message(vector["name"], vector["version"], data)
    assert error is None
    assert (root.start, root.end) == (0, len(data))
    has_records = any(node.type.startswith("records") for node in root.walk())
    if not has_records:  # the golden records are no batches
        assert body_json(root) == vector["json"]
    for node in root.walk():
        at = node.start
        for child in node.children:
            if child.kind != "derived" and not child.layer:
                assert node.start <= child.start >= at
                assert child.end <= node.end
                at = child.end


def test_size_and_header_stand_before_the_body():
    data = made.metadata_request(7, "orders")
    taken_apart = found(data)
    size, header, body = taken_apart.nodes
    assert (size.name, size.value, size.start, size.end) == ("Size", len(data) - 4, 0, 4)
    assert node_at(header, "CorrelationId").value == 7
    assert (header.start, header.end, body.start, body.end) == (4, body.start, 17, len(data))
    assert node_at(body, "Topics.[0].Name").value == "orders"
    assert taken_apart.rest_bytes == 0


def test_half_a_message_says_where_it_breaks():
    data = made.metadata_request(7, "orders", "payments")
    taken_apart = dissect(data[:50], "MetadataRequest", 12, REQUEST)
    assert taken_apart.error is not None
    assert taken_apart.error.path == "MetadataRequest.Topics[1].TopicId"
    assert taken_apart.error.byte_offset is not None
    assert 17 < taken_apart.error.byte_offset <= 50
    assert taken_apart.rest_bytes == 50 - max(node.end for node in taken_apart.nodes)
    assert "incomplete" in taken_apart.nodes[-1].note


def test_half_a_header_is_told_too():
    taken_apart = dissect(made.metadata_request(7)[:9], "MetadataRequest", 12, REQUEST)
    assert taken_apart.error is not None
    assert taken_apart.error.path.startswith("RequestHeader")
    assert [node.name for node in taken_apart.nodes] == ["Size", "RequestHeader"]


@pytest.mark.parametrize("name", sorted(name for name in message_vectors.vectors() if keyed.framing(name)))
def test_records_of_internal_topics_behind_their_type_or_version(name: str):
    [vector] = [v for v in message_vectors.vectors()[name] if v["case"] == "dense"][:1]
    form = {"type16": "type", "version16": "version", "frame-varints": "frame"}[keyed.framing(name) or ""]
    data = bytes.fromhex(vector["framedHex"])
    taken_apart = dissect(data, name, vector["version"], Wrapping(False, form))  # type: ignore[arg-type]
    assert taken_apart.error is None
    assert taken_apart.nodes[-1].end == len(data)
    labels = {"type": ["RecordType"], "version": ["Version"], "frame": ["FrameVersion", "RecordType", "Version"]}
    assert [node.name for node in taken_apart.nodes[:-1]] == labels[form]


def test_unknown_tagged_fields_have_their_place():
    message = types.HeartbeatRequest(group_id="g", unknown_tags={7: b"abc"})
    root, _ = dissect_message("HeartbeatRequest", 4, wire.encode(message, 4))
    assert node_at(root, "tag7").value == b"abc"


def test_tree_json_has_places_values_and_names_of_errors():
    [_, _, body] = found(made.heartbeat_response(1, 27)).nodes
    tree = tree_json(body)
    error = next(field for field in tree["fields"] if field["name"] == "ErrorCode")
    assert error == {
        "name": "ErrorCode",
        "type": "int16",
        "start": 13,
        "end": 15,
        "value": 27,
        "error": "REBALANCE_IN_PROGRESS",
    }


# --- record batches ---------------------------------------------------------------------------------------------------


RECORDS = [
    Record(number, 1_700_000_000_000 + number, b"k%d" % number, b"v" * number, (("h", b"x"),)) for number in range(3)
]


def fetch_response(records: bytes, topic_id: bytes = bytes(16)) -> bytes:
    partition = types.FetchResponse.PartitionData(records=records)
    topic = types.FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=(partition,))
    return frames.write_response(types.FetchResponse(responses=(topic,)), 13, correlation_id=1)


def records_node(data: bytes) -> Node:
    taken_apart = dissect(data, "FetchResponse", 13, RESPONSE)
    return node_at(taken_apart.nodes[-1], "Responses.[0].Partitions.[0].Records")


@pytest.mark.parametrize("compression", Compression)
def test_batches_inside_messages_are_opened(compression: Compression):
    node = records_node(fetch_response(build_batch(RECORDS, compression=compression)))
    [batch] = node.children
    assert node_at(batch, "RecordCount").value == 3
    assert node_at(batch, "Crc").note == "fits"
    opened = node_at(batch, "Records").children
    assert [node_at(record, "Offset").value for record in opened] == [0, 1, 2]
    assert [node_at(record, "Timestamp").value for record in opened] == [r.timestamp for r in RECORDS]
    assert [node_at(record, "Key").value for record in opened] == [r.key for r in RECORDS]
    assert [node_at(record, "Value").value for record in opened] == [r.value for r in RECORDS]
    assert node_at(opened[0], "Headers.[0].Key").value == "h"
    assert {record.layer for record in opened} == {"" if compression is Compression.NONE else "decompressed"}


def test_fields_of_a_batch_lie_where_their_bytes_are():
    data = fetch_response(build_batch(RECORDS))
    [batch] = records_node(data).children
    for node in batch.walk():
        if node.name == "Key" and node.type == "bytes?":
            assert data[node.start : node.end] == node.value
        if node.name == "ProducerId":
            assert int.from_bytes(data[node.start : node.end], "big", signed=True) == node.value


def test_a_wrong_checksum_is_told_and_the_batch_opened_all_the_same():
    raw = bytearray(build_batch(RECORDS))
    raw[20] ^= 1
    [batch] = records_node(fetch_response(bytes(raw))).children
    assert "wrong checksum" in batch.note
    assert len(node_at(batch, "Records").children) == 3


def test_a_cut_last_batch_is_named():
    raw = build_batch(RECORDS)
    node = records_node(fetch_response(raw + raw[:33]))
    assert [child.name for child in node.children] == ["Batch", "Rest"]
    assert "the first 33 bytes of a batch that is cut off" in node.children[1].note


def test_damaged_records_end_their_batch_and_not_the_message():
    raw = bytearray(build_batch(RECORDS))
    raw[61] = 0x7E
    node = records_node(fetch_response(bytes(raw) + build_batch(RECORDS)))
    broken, whole = node.children
    assert "incomplete" in node_at(broken, "Records").note
    assert len(node_at(whole, "Records").children) == 3


def test_all_golden_batches_are_opened():
    for vector in batch_vectors.good():
        nodes = list(dissect_batches(batch_vectors.raw(vector)))
        opened = [node_at(node, "Records").children for node in nodes if node.name == "Batch"]
        assert [len(records) for records in opened] == [len(batch["records"]) for batch in vector["batches"]], vector[
            "name"
        ]


def test_damaged_golden_batches_never_raise():
    for vector in [*batch_vectors.damaged(refused=True), *batch_vectors.damaged(refused=False)]:
        for node in dissect_batches(batch_vectors.raw(vector)):
            assert node.end <= len(batch_vectors.raw(vector))


# --- records of internal topics ---------------------------------------------------------------------------------------


def offset_commit() -> Record:
    key = types.OffsetCommitKey(group="orders-app", topic="orders", partition=3)
    value = types.OffsetCommitValue(offset=42, leader_epoch=1, metadata="", commit_timestamp=1_700_000_000_000)
    return Record(0, 1_700_000_000_000, keyed.encode_framed(key, 0), keyed.encode_framed(value, 3))


@pytest.mark.parametrize("topic", ["__consumer_offsets", None], ids=["topic known", "by content"])
def test_committed_offsets_are_decoded(topic: str | None):
    tombstone = Record(1, 1_700_000_000_000, offset_commit().key, None)
    [batch] = dissect_batches(build_batch([offset_commit(), tombstone]), topic)
    first, second = node_at(batch, "Records").children
    assert first.note == "OffsetCommit"
    assert node_at(first, "Key.group").value == "orders-app"
    assert node_at(first, "Value.offset").value == 42
    assert node_at(first, "Value").holds == "OffsetCommitValue v3"
    assert second.note == "OffsetCommit, tombstone"


@pytest.mark.parametrize("topic", [topic for topic in keyed.FAMILIES if keyed.record_types(topic, "coordinator-key")])
def test_every_record_type_of_the_coordinators_is_decoded(topic: str):
    values = keyed.record_types(topic, "coordinator-value")
    for record_type, key_name in keyed.record_types(topic, "coordinator-key").items():
        key, value = (golden_framed(name) for name in (key_name, values[record_type]))
        [batch] = dissect_batches(build_batch([Record(0, 0, key, value)]), topic)
        [record] = node_at(batch, "Records").children
        assert node_at(record, "Key").holds.startswith(f"{key_name} v")
        assert node_at(record, "Value").holds.startswith(f"{values[record_type]} v")
        assert node_at(record, "Value").value is NOTHING


@pytest.mark.parametrize("topic", [topic for topic in keyed.FAMILIES if keyed.record_types(topic, "metadata")])
def test_every_metadata_record_is_decoded(topic: str):
    for name in keyed.record_types(topic, "metadata").values():
        [batch] = dissect_batches(build_batch([Record(0, 0, None, golden_framed(name))]), topic)
        [record] = node_at(batch, "Records").children
        assert record.note == name
        assert node_at(record, "Value").holds.startswith(f"{name} v")


def golden_framed(name: str) -> bytes:
    return next(bytes.fromhex(v["framedHex"]) for v in message_vectors.vectors()[name] if v["case"] == "dense")


def test_the_metadata_topic_is_known_by_its_id():
    record = Record(0, 0, None, golden_framed("TopicRecord"))
    data = fetch_response(build_batch([record]), bytes(15) + b"\x01")
    [opened] = node_at(records_node(data).children[0], "Records").children
    assert opened.note == "TopicRecord"


def test_user_data_is_not_taken_for_records_of_an_internal_topic():
    [batch] = dissect_batches(build_batch([Record(0, 0, b"\x00\x01key", b'{"total": 3}')]))
    [record] = node_at(batch, "Records").children
    assert node_at(record, "Value").value == b'{"total": 3}'


def test_control_records_are_opened():
    marker = build_end_txn_marker(committed=True, coordinator_epoch=9, producer_id=1, producer_epoch=0, timestamp=0)
    [batch] = dissect_batches(marker)
    [record] = node_at(batch, "Records").children
    assert record.note == "COMMIT"
    assert node_at(record, "Value.CoordinatorEpoch").value == 9
    leader = types.LeaderChangeMessage(leader_id=5)
    change = build_control_batch(
        [(ControlRecordType.LEADER_CHANGE, leader)], base_offset=0, timestamp=0, partition_leader_epoch=1
    )
    [batch] = dissect_batches(change)
    [record] = node_at(batch, "Records").children
    assert (record.note, node_at(record, "Value.LeaderId").value) == ("LEADER_CHANGE", 5)


# --- fields that hold something ---------------------------------------------------------------------------------------


def subscription() -> bytes:
    return keyed.encode_framed(types.ConsumerProtocolSubscription(topics=("orders",), rack_id="r1"), 3)


def join(protocol_type: str, metadata: bytes) -> Node:
    protocol = types.JoinGroupRequest.JoinGroupRequestProtocol("range", metadata)
    request = types.JoinGroupRequest(group_id="g", protocol_type=protocol_type, protocols=(protocol,))
    root, _ = dissect_message("JoinGroupRequest", 9, wire.encode(request, 9))
    return node_at(root, "Protocols.[0].Metadata")


def test_a_consumers_subscription_is_opened():
    node = join("consumer", subscription())
    assert node.holds == "ConsumerProtocolSubscription v3"
    assert node_at(node, "Topics.[0]").value == "orders"
    assert node_at(node, "RackId").value == "r1"
    assert node.children[-1].end == node.end


@pytest.mark.parametrize(("protocol_type", "metadata"), [("connect", subscription()), ("consumer", b"\x00\x01??")])
def test_other_protocols_stay_closed(protocol_type: str, metadata: bytes):
    assert join(protocol_type, metadata).value == metadata


def test_an_assignment_is_opened():
    part = types.ConsumerProtocolAssignment.TopicPartition("orders", (0, 2))
    raw = keyed.encode_framed(types.ConsumerProtocolAssignment(assigned_partitions=(part,)), 0)
    response = types.SyncGroupResponse(assignment=raw)
    root, _ = dissect_message("SyncGroupResponse", 3, wire.encode(response, 3))
    assert node_at(root, "Assignment.AssignedPartitions.[0].Topic").value == "orders"


def test_what_streams_puts_into_a_subscription_is_opened():
    info = types.SubscriptionInfoData(version=11, latest_supported_version=11, user_end_point=b"app:8080")
    raw = keyed.encode_framed(types.ConsumerProtocolSubscription(topics=("in",), user_data=wire.encode(info, 11)), 1)
    protocol = types.JoinGroupRequest.JoinGroupRequestProtocol("stream", raw)
    request = types.JoinGroupRequest(protocol_type="consumer", protocols=(protocol,))
    root, _ = dissect_message("JoinGroupRequest", 9, wire.encode(request, 9))
    data = node_at(root, "Protocols.[0].Metadata.UserData")
    assert data.holds == "SubscriptionInfoData v11"
    assert node_at(data, "userEndPoint").value == b"app:8080"


def test_every_opening_names_a_field_that_exists():
    for name, openings in OPENINGS.items():
        cases = message_vectors.vectors()[name]
        for opening in openings:
            hits = 0
            for vector in cases:
                root, _ = dissect_message(name, vector["version"], message_vectors.raw(vector))
                hits += sum(1 for _ in root.find(opening.path))
            assert hits, (name, opening.path)


def test_a_request_inside_an_envelope_is_opened():
    inner = made.metadata_request(5, "orders", client_id="admin")[4:]
    principal = keyed.encode_framed(types.DefaultPrincipalData(type="User", name="alice"), 0)
    envelope = types.EnvelopeRequest(
        request_data=inner, request_principal=principal, client_host_address=b"\x0a\0\0\x01"
    )
    root, _ = dissect_message("EnvelopeRequest", 0, wire.encode(envelope, 0))
    data = node_at(root, "RequestData")
    assert data.holds == "MetadataRequest v12"
    assert node_at(data, "Header.ClientId").value == "admin"
    assert node_at(data, "MetadataRequest.Topics.[0].Name").value == "orders"
    assert node_at(root, "RequestPrincipal.Name").value == "alice"
    assert node_at(root, "ClientHostAddress").note == "10.0.0.1"
