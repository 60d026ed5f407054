"""Frames of the traffic as text: no secrets, no records, and nothing that takes long to write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla import wire
from ottla.broker.network.request import Encoded, Peer
from ottla.broker.telemetry.traffic import RECORD_BYTES_MAX, Frame
from ottla.broker.telemetry.traffic_text import BODY_BYTES_MAX, HEX_BYTES_MAX, TrafficText
from ottla.wire import types
from ottla.wire.batch import Record, build_batch
from ottla.wire.types import (
    DescribeGroupsRequest,
    FetchRequest,
    FetchResponse,
    ListGroupsRequest,
    MetadataResponse,
    ProduceRequest,
)
from tests.unit.broker.telemetry.watched import Line, Watched, frames
from tests.unit.explain.secrets import CASES, Case, leaks

TOPIC_ID = b"i" * 16
RECORDS = build_batch([Record(0, 0, b"the-key", b"the-value", headers=(("the-header", b"x"),))] * 3)


def shown(body: Any, version: int, size_bytes: int = 100, name: str = "") -> Line:
    name = name or type(body).__name__
    frame = Frame(0, name, version, 7, "app", "User:ann", Peer("h", 1, "L"), body, size_bytes, 0, None)
    line: Line = json.loads(TrafficText(1, {TOPIC_ID: "orders"}.get).frame(frame))
    return line


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} v{case.version}")
def test_secrets_are_in_no_line(case: Case):
    watched = Watched()
    viewer = watched.watch()
    if case.name.endswith("Request"):
        watched.ask(case.message, case.version)
    else:
        asked: Any = getattr(types, case.name.replace("Response", "Request"))()
        watched.answer(watched.ask(asked, case.version), case.message)
    text = (viewer.take() or b"").decode()
    assert case.name.removesuffix("Request").removesuffix("Response") in text
    assert leaks(text) == []
    assert shown(case.message, case.version).get("body_hex") is None


def produce(records: bytes | memoryview) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData(0, records)
    topic = ProduceRequest.TopicProduceData(topic_id=TOPIC_ID, partition_data=(partition,))
    return ProduceRequest(acks=-1, timeout_ms=1, topic_data=(topic,))


class Place:
    """Records in a file, of which only the size is known."""

    def __len__(self) -> int:
        return 500


def test_records_are_told_by_their_batches():
    watched = Watched()
    viewer = watched.watch()
    watched.ask(produce(memoryview(RECORDS)), 13, size_bytes=len(RECORDS) + 40)
    (line,) = frames(viewer)
    assert (line["record_bytes_left_out"], line["text"]) == (len(RECORDS), "topic orders  3 records")
    (batch,) = line["body"]["topicData"][0]["partitionData"][0]["records"]
    assert (batch["recordCount"], batch["producerId"]) == (3, -1)
    for word in ("the-key", "the-value", "the-header", "dGhl"):
        assert word not in json.dumps(line)


def fetched(records: Any) -> FetchResponse:
    partition = FetchResponse.PartitionData(high_watermark=9, records=records)
    return FetchResponse(responses=(FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(partition,)),))


def test_records_in_files_stay_there():
    watched = Watched()
    viewer = watched.watch()
    watched.exchange(FetchRequest(), fetched(Place()), 17)
    line = frames(viewer)[1]
    assert (line["record_bytes_left_out"], line["text"]) == (500, "topic orders")
    partition = line["body"]["responses"][0]["partitions"][0]
    assert (partition["highWatermark"], partition["records"]) == (9, None)


def test_many_records_are_not_kept():
    watched = Watched()
    viewer = watched.watch()
    request = produce(bytes(RECORD_BYTES_MAX + 1))
    watched.ask(request, 13, size_bytes=RECORD_BYTES_MAX + 41)
    (line,) = frames(viewer)
    assert line["record_bytes_left_out"] == RECORD_BYTES_MAX + 1
    assert line["body"]["topicData"][0]["partitionData"][0]["records"] is None


def test_a_large_message_has_no_body():
    names = tuple(f"group-{number:05}" for number in range(3_000))
    line = shown(DescribeGroupsRequest(groups=names), 5, size_bytes=BODY_BYTES_MAX + 1)
    assert (line["body"], line["body_left_out"], line["text"]) == (None, "larger than 32 KiB", "")
    assert "body_hex" not in line


def test_bytes_of_small_messages_without_secrets():
    body = DescribeGroupsRequest(groups=("g",))
    line = shown(body, 5)
    assert bytes.fromhex(line["body_hex"]) == wire.encode(body, 5)
    assert line["text"] == "group g"
    assert "body_hex" not in shown(DescribeGroupsRequest(groups=("g" * HEX_BYTES_MAX,)), 5, HEX_BYTES_MAX + 20)


def test_a_message_without_fields_has_an_empty_body():
    line = shown(ListGroupsRequest(), 0)
    assert (line["body"], line["body_hex"]) == ({}, "")


def test_an_answer_that_was_encoded_before_is_read_again():
    topic = MetadataResponse.MetadataResponseTopic(name="orders", topic_id=TOPIC_ID)
    data = wire.encode(MetadataResponse(topics=(topic,)), 13)
    line = shown(Encoded(data), 13, name="MetadataResponse")
    assert (line["topics"], line["body"]["topics"][0]["name"]) == (["orders"], "orders")


def test_a_request_in_an_unknown_version_has_no_body():
    line = shown(None, 4, name="ApiVersionsRequest")
    assert (line["api"], line["body"]) == ("ApiVersions", None)
    assert "body_left_out" not in line
