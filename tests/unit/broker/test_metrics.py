"""The page of metrics, and requests as lines."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from ottla.broker.network.web_server import WebServer
from ottla.broker.telemetry.metrics import RequestCount
from ottla.broker.telemetry.metrics_page import metrics_page
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
from tests.unit.broker.raw_client import batch, running_node

SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*")(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+')


def test_every_line_of_the_page_is_a_sample_or_says_a_type(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic = running.client.topic(partitions=2)
        running.client.produce(topic, batch(b"a", b"b"))
        running.client.fetch(topic)
        lines = running.node.metrics.page().splitlines()
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(typed) == len(set(typed)), "each name once"
    assert all(SAMPLE.fullmatch(line) for line in lines if not line.startswith("# TYPE "))
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    named = f'{{topic="{topic.name}"}}'
    assert samples["kafka_server_brokertopicmetrics_messagesin_total"] == "2"
    assert samples[f"kafka_server_brokertopicmetrics_messagesin_total{named}"] == "2"
    assert int(samples[f"kafka_server_brokertopicmetrics_bytesout_total{named}"]) > 60
    assert samples["kafka_server_brokertopicmetrics_totalproducerequests_total"] == "1"
    assert samples["kafka_server_replicamanager_partitioncount"] == "2"
    assert samples["kafka_controller_kafkacontroller_activecontrollercount"] == "1"
    assert samples["kafka_controller_kafkacontroller_globaltopiccount"] == "1"
    assert samples[f'kafka_log_log_logendoffset{{topic="{topic.name}",partition="0"}}'] == "2"
    assert samples['kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"}'] == "1"


def test_quantiles_are_bounds_that_so_many_did_not_exceed():
    counted = RequestCount()
    counted.count = 100
    counted.buckets[1] = 90  # up to 1 ms
    counted.buckets[5] = 9  # up to 20 ms
    counted.buckets[-1] = 1  # longer than any bound
    assert [counted.quantile_ms(quantile) for quantile in (0.5, 0.9, 0.95, 0.99, 1.0)] == [1, 1, 20, 20, 30_000]


@pytest.mark.parametrize(
    ("request_line", "status", "has_body"),
    [
        (b"GET /metrics HTTP/1.1", b"200 OK", True),
        (b"GET /?x=1 HTTP/1.0", b"200 OK", True),
        (b"HEAD /metrics HTTP/1.1", b"200 OK", False),
        (b"GET /other HTTP/1.1", b"404 Not Found", False),
        (b"POST /metrics HTTP/1.1", b"405 Method Not Allowed", False),
        (b"nonsense", b"405 Method Not Allowed", False),
    ],
)
def test_the_page_speaks_http(request_line: bytes, status: bytes, has_body: bool):
    async def ask() -> bytes:
        page = WebServer(metrics_page(lambda: "x 1\n"))
        port = await page.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_line + b"\r\nHost: here\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        page.close()
        return answer

    head, _, body = asyncio.run(ask()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status + b"\r\n")
    assert body == (b"x 1\n" if has_body else b"")


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
    assert outcome(None) == "no answer due"
    kind = CreateTopicsResponse.CreatableTopicResult
    failed = CreateTopicsResponse(topics=(kind("a", error_code=36), kind("b", error_code=0), kind("c", error_code=999)))
    assert outcome(failed) == "TOPIC_ALREADY_EXISTS,999"
