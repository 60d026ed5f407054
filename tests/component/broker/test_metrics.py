"""The page of metrics, and requests as lines."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from ottla.broker.network.web_server import WebServer
from ottla.broker.telemetry.metrics_page import metrics_page
from tests.component.broker.raw_client import batch, running_node

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
