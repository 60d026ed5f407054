"""Client telemetry (KIP-714): the same answers and tools on both brokers, and what real clients push to either.

Apache Kafka hands pushes to a plugin and offers telemetry only if it has one: here a small Java class that keeps them.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.broker.telemetry.clients.points import points, read_push
from ottla.wire.types.api_versions import ApiVersionsRequest
from ottla.wire.types.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.push_telemetry import PushTelemetryRequest
from tests.component.broker.raw_client import Connection, RawClient
from tests.interop.apache import ApacheKafka, free_ports, tool
from tests.interop.compiling import class_files
from tests.interop.jars import APACHE_KAFKA
from tests.interop.node.brokers import APACHE, Node, wanted
from tests.interop.process import ProgramFailed
from tests.interop.serving import OttlaServe

TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
RECEIVER = Path(__file__).parent.parent / "java" / "receiver" / "TelemetryReceiver.java"
CLIENT_METRICS = 16
TIME_LIMIT_S = 60
ZERO = bytes(16)
OF_LIBRDKAFKA = {
    "org.apache.kafka.producer.connection.creation.total",
    "org.apache.kafka.producer.node.request.latency.avg",
}
OF_JAVA = {
    "org.apache.kafka.producer.record.send.total",
    "org.apache.kafka.producer.request.total",
}


# --- without a receiver: answered, not offered


def ask(connection: Connection, instance_id: bytes = ZERO) -> Any:
    return connection.ask(GetTelemetrySubscriptionsRequest(instance_id), 0)


def push(
    connection: Connection, asked: Any, *, number: int | None = None, codec: int = 0, last: bool = False, size: int = 0
) -> int:
    subscription_id = asked.subscription_id if number is None else number
    request = PushTelemetryRequest(asked.client_instance_id, subscription_id, last, codec, bytes(size))
    return int(connection.ask(request, 0).error_code)


def test_nothing_is_offered_without_a_receiver(client: RawClient):
    assert not {71, 72} & {each.api_key for each in client.ask(ApiVersionsRequest("test", "1"), 4).api_keys}


def test_what_a_client_is_asked_for(client: RawClient):
    asked = ask(client.connect("a"))
    assert asked.error_code == 0
    assert any(asked.client_instance_id)
    assert (asked.push_interval_ms, asked.telemetry_max_bytes, asked.delta_temporality) == (300_000, 1_048_576, True)
    assert (asked.accepted_compression_types, asked.requested_metrics) == ((4, 3, 1, 2), ())


def test_the_number_depends_on_the_client_alone(client: RawClient):
    """Made in the same way by both: a client may change brokers without asking anew."""
    asked = ask(client.connect("a"), bytes.fromhex("963b916f1dd94f4c8d9fa2ce72a39bba"))
    assert asked.subscription_id == -1608926071


def test_who_asks_or_pushes_too_early_is_throttled(client: RawClient):
    connection = client.connect("b")
    asked = ask(connection)
    assert push(connection, asked) == 0
    assert push(connection, asked) == 89
    assert ask(connection, asked.client_instance_id).error_code == 89
    assert push(connection, asked, last=True) == 0
    assert push(connection, asked, last=True) == 42


def test_what_cannot_be_pushed(client: RawClient):
    connection = client.connect("c")
    asked = ask(connection)
    assert push(connection, asked, number=5) == 117
    assert ask(connection, asked.client_instance_id).error_code == 0
    connection = client.connect("d")
    assert push(connection, ask(connection), codec=9) == 76
    connection = client.connect("e")
    assert push(connection, ask(connection), size=1_048_577) == 118
    for reserved in (ZERO, bytes(15) + b"\1"):
        assert client.ask(PushTelemetryRequest(reserved, 5, False, 0, b""), 0).error_code == 42


def test_the_tool_prints_the_same(broker: Node):
    where = ("--bootstrap-server", broker.bootstrap_servers)
    change = ("--name", "s1", "--metrics", "org.apache.kafka.producer.", "--interval", "1000", "--match", "client_id=x")
    assert tool(TOOL, *where, "--alter", *change) == "Altered client metrics config for s1.\n"
    assert tool(TOOL, *where, "--describe", "--name", "s1") == (
        "Client metrics configs for s1 are:\n"
        "  interval.ms=1000\n"
        "  match=client_id=x\n"
        "  metrics=org.apache.kafka.producer.\n"
    )
    assert "s1" in tool(TOOL, *where, "--list").splitlines()
    with pytest.raises(ProgramFailed) as failure:
        tool(TOOL, *where, "--alter", "--name", "s1", "--interval", "1")
    assert "Invalid value 1 for interval.ms, interval must be between 100 and 3600000" in failure.value.output
    assert tool(TOOL, *where, "--delete", "--name", "s1") == "Deleted client metrics config for s1.\n"


# --- with one: real clients


Received = Callable[[], dict[str, float]]


@pytest.fixture(scope="module", params=wanted())
def receiving(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, apache_jars: Path
) -> Iterator[tuple[Node, Received]]:
    """A broker that takes what clients push, and the names and values of it."""
    place = tmp_path_factory.mktemp("receiving")
    if request.param == APACHE:
        yield from _apache(place)
    else:
        yield from _ottla(place)


def _apache(place: Path) -> Iterator[tuple[Node, Received]]:
    folder = place / "pushed"
    folder.mkdir()
    classes = class_files("telemetry-receiver", [RECEIVER], APACHE_KAFKA)
    settings = {"metric.reporters": "TelemetryReceiver", "telemetry.receiver.folder": str(folder)}

    def received() -> dict[str, float]:
        pushes = [path.read_bytes() for path in sorted(folder.glob("*.otlp"))]
        return {each.name: each.value for data in pushes for each in points(read_push(0, data))}

    with ApacheKafka(place / "node", classes=classes, **settings) as node:
        subscribe(node)
        yield node, received


def _ottla(place: Path) -> Iterator[tuple[Node, Received]]:
    (port,) = free_ports(1)
    listener = f"http://127.0.0.1:{port}"
    settings = {"ottla.client.telemetry.enable": "true", "ottla.inspect.listeners": listener}

    seen: dict[str, float] = {}

    def received() -> dict[str, float]:
        view = json.loads(urllib.request.urlopen(f"{listener}/inspect/v1/client-metrics").read())
        seen.update({each["name"]: each["value"] for client in view["clients"] for each in client["values"]})
        return seen

    with OttlaServe(place / "node", **settings) as node:
        subscribe(node)
        yield node, received
        assert "Traceback" not in node.log, node.log


def subscribe(node: Node) -> None:
    kind = IncrementalAlterConfigsRequest
    changes = (kind.AlterableConfig("metrics", 0, "*"), kind.AlterableConfig("interval.ms", 0, "200"))
    client = RawClient.at(node.bootstrap_servers)
    answer = client.ask(kind((kind.AlterConfigsResource(CLIENT_METRICS, "all", changes),)), 1)
    assert answer.responses[0].error_code == 0
    client.close_all()


@pytest.fixture
def receiving_client(receiving: tuple[Node, Received]) -> Iterator[RawClient]:
    client = RawClient.at(receiving[0].bootstrap_servers)
    yield client
    client.close_all()


def test_telemetry_is_offered_with_a_receiver(receiving_client: RawClient):
    shown = receiving_client.ask(ApiVersionsRequest("test", "1"), 4).api_keys
    assert {71, 72} <= {each.api_key for each in shown}


def test_librdkafka_pushes_its_metrics(receiving: tuple[Node, Received], receiving_client: RawClient):
    node, received = receiving
    topic = receiving_client.topic().name
    producer = Producer({"bootstrap.servers": node.bootstrap_servers, "client.id": "rd", "linger.ms": 1})
    deadline = time.monotonic() + TIME_LIMIT_S
    while not received().keys() >= OF_LIBRDKAFKA:
        assert time.monotonic() < deadline, sorted(received())
        producer.produce(topic, b"x")
        producer.poll(0.05)
    assert producer.flush(TIME_LIMIT_S) == 0


def test_a_java_client_pushes_its_metrics(receiving: tuple[Node, Received], receiving_client: RawClient):
    node, received = receiving
    topic = receiving_client.topic().name
    options = ("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "4000")
    where = ("--producer-props", f"bootstrap.servers={node.bootstrap_servers}", "client.id=java")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(tool, PERFORMANCE, *options, *where)
        while not running.done() and not received().keys() >= OF_JAVA:
            time.sleep(0.1)
        running.result(TIME_LIMIT_S)
    assert received().keys() >= OF_JAVA, sorted(received())
