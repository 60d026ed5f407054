"""The page of metrics, and requests as lines."""

from __future__ import annotations

from ottla.broker.telemetry.metrics import RequestCount
from ottla.broker.telemetry.request_log import described, outcome
from ottla.wire.types import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    MetadataResponse,
    ProduceRequest,
)


def test_quantiles_are_bounds_that_so_many_did_not_exceed():
    counted = RequestCount()
    counted.count = 100
    counted.buckets[1] = 90  # up to 1 ms
    counted.buckets[5] = 9  # up to 20 ms
    counted.buckets[-1] = 1  # longer than any bound
    assert [counted.quantile_ms(quantile) for quantile in (0.5, 0.9, 0.95, 0.99, 1.0)] == [1, 1, 20, 20, 30_000]


# --- requests as lines ------------------------------------------------------------------------------------------------

ORDERS = bytes(15) + b"\x01"


def name_of(topic_id: bytes) -> str | None:
    return "orders" if topic_id == ORDERS else None


def test_requests_name_their_topics_and_partitions():
    data = tuple(ProduceRequest.PartitionProduceData(index, b"") for index in (0, 2))
    request = ProduceRequest(topic_data=(ProduceRequest.TopicProduceData("", ORDERS, data),))
    assert described(request, name_of) == ["orders[0,2]"]
    topics = tuple(FetchRequest.FetchTopic(f"t{number}", partitions=()) for number in range(5))
    assert described(FetchRequest(topics=topics), name_of) == ["t0", "t1", "t2", "and 2 more"]
    many = FetchRequest.FetchTopic("big", partitions=tuple(FetchRequest.FetchPartition(n) for n in range(9)))
    assert described(FetchRequest(topics=(many,)), name_of) == ["big[0,1,2,…]"]


def test_names_of_settings_are_no_topics():
    config = CreateTopicsRequest.CreatableTopicConfig("retention.ms", "1")
    topic = CreateTopicsRequest.CreatableTopic("orders", 1, 1, configs=(config,))
    assert described(CreateTopicsRequest((topic,)), name_of) == ["orders"]
    state = DeleteTopicsRequest.DeleteTopicState(None, bytes(15) + b"\x09")
    assert described(DeleteTopicsRequest((state,)), name_of) == ["AAAAAAAAAAAAAAAAAAAACQ"]
    assert described(InitProducerIdRequest("payments", 1), name_of) == ["payments"]
    assert described(None, name_of) == []


def test_answers_name_their_errors():
    assert outcome(MetadataResponse()) == "ok"
    assert outcome(None) == "no response expected"
    kind = CreateTopicsResponse.CreatableTopicResult
    failed = CreateTopicsResponse(topics=(kind("a", error_code=36), kind("b", error_code=0), kind("c", error_code=999)))
    assert outcome(failed) == "TOPIC_ALREADY_EXISTS,999"
