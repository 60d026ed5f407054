"""GetTelemetrySubscriptions and PushTelemetry on a node, and what it shows of them."""

import json
import math
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from ottla.broker.loop.clock import ManualClock
from ottla.broker.telemetry.clients import telemetry as module
from ottla.wire.compress import compress
from ottla.wire.errors import ErrorCode
from ottla.wire.types.api_versions import ApiVersionsRequest
from ottla.wire.types.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.push_telemetry import PushTelemetryRequest
from tests.component.broker.raw_client import Connection, RawClient, RunningNode, running_node

CLIENT_METRICS = 16
ZERO = bytes(16)
DELTA, CUMULATIVE = 1, 2


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningNode]:
    with running_node(
        tmp_path,
        ManualClock(),
        ottla_client_telemetry_enable="true",
        ottla_metrics_port=0,
        ottla_inspect_listeners="http://127.0.0.1:0",
    ) as node:
        yield node


def subscribe(client: RawClient, name: str = "all", **configs: object) -> None:
    kind = IncrementalAlterConfigsRequest
    configs.setdefault("metrics", "*")
    configs.setdefault("interval_ms", 1_000)
    changes = tuple(kind.AlterableConfig(key.replace("_", "."), 0, str(value)) for key, value in configs.items())
    answer = client.ask(kind((kind.AlterConfigsResource(CLIENT_METRICS, name, changes),)), 1)
    assert answer.responses[0].error_code == 0, answer


def ask(connection: Connection, instance_id: bytes = ZERO) -> Any:
    return connection.ask(GetTelemetrySubscriptionsRequest(instance_id), 0)


def push(connection: Connection, asked: Any, metrics: bytes = b"", *, codec: int = 0, last: bool = False) -> ErrorCode:
    request = PushTelemetryRequest(asked.client_instance_id, asked.subscription_id, last, codec, metrics)
    return ErrorCode(connection.ask(request, 0).error_code)


def metrics(*values: tuple[str, str, float], temporality: int = DELTA) -> bytes:
    """A push with gauges and sums: kind, name, value."""
    data = MetricsData()
    resource = data.resource_metrics.add()
    group = resource.resource.attributes.add()
    group.key, group.value.string_value = "group_id", "g"
    scope = resource.scope_metrics.add()
    for kind, name, value in values:
        metric = scope.metrics.add()
        metric.name = name
        if kind == "sum":
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, temporality
        point = getattr(metric, kind).data_points.add()
        point.as_double = value
        label = point.attributes.add()
        label.key, label.value.string_value = "topic", "orders"
    return data.SerializeToString()


def page(running: RunningNode) -> dict[str, float]:
    """What the page of metrics says of clients, without the labels that tell which client it is."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{running.node.metrics_port}/metrics").read().decode()
    lines = [line for line in text.splitlines() if line.startswith("ottla_client_")]
    return {line.partition("{")[0].partition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_telemetry_is_offered_only_where_it_is_wanted(running: RunningNode, tmp_path: Path):
    request = ApiVersionsRequest("test", "1")
    assert {71, 72} <= {each.api_key for each in running.client.ask(request, 4).api_keys}
    with running_node(tmp_path / "off") as node:
        assert not {71, 72} & {each.api_key for each in node.client.ask(request, 4).api_keys}
        assert ask(node.client.connection).error_code == 0  # and yet there is an answer


def test_a_client_gets_an_id_and_hears_what_is_wanted(running: RunningNode):
    subscribe(running.client, metrics="org.apache.kafka.producer,org.apache.kafka.consumer", interval_ms=5_000)
    asked = ask(running.client.connection)
    assert asked.error_code == 0
    assert any(asked.client_instance_id)
    assert asked.accepted_compression_types == (4, 3, 1, 2)
    assert (asked.push_interval_ms, asked.telemetry_max_bytes, asked.delta_temporality) == (5_000, 1_048_576, True)
    assert asked.requested_metrics == ("org.apache.kafka.consumer", "org.apache.kafka.producer")


def test_a_client_that_nobody_wants_anything_of(running: RunningNode):
    subscribe(running.client, match="client_id=somebody-else")
    asked = ask(running.client.connection)
    assert (asked.requested_metrics, asked.push_interval_ms) == ((), 300_000)


def test_software_counts_as_the_client_has_said_it(running: RunningNode):
    subscribe(running.client, match="client_software_name=mine,client_software_version=1.2")
    connection = running.client.connect("x")
    assert ask(connection).requested_metrics == ()
    other = running.client.connect("x")
    other.ask(ApiVersionsRequest("mine", "1.2"), 3)
    assert ask(other).requested_metrics == ("*",)


def test_a_push_without_an_id_is_refused(running: RunningNode):
    request = PushTelemetryRequest(ZERO, 0, False, 0, b"")
    assert running.client.ask(request, 0).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_what_is_pushed_is_shown_whatever_packs_it(running: RunningNode, codec: int):
    subscribe(running.client)
    connection = running.client.connect("orders-1")
    asked = ask(connection)
    data = metrics(("gauge", "org.apache.kafka.producer.request.latency.avg", 2.5))
    assert push(connection, asked, bytes(compress(codec, data)), codec=codec) is ErrorCode.NONE
    assert page(running)["ottla_client_producer_request_latency_avg"] == 2.5


def test_the_page_tells_who_has_pushed(running: RunningNode):
    subscribe(running.client)
    connection = running.client.connect("orders-1")
    connection.ask(ApiVersionsRequest("mine", "1.2"), 3)
    push(connection, ask(connection), metrics(("gauge", "org.apache.kafka.a.b", 1)))
    text = urllib.request.urlopen(f"http://127.0.0.1:{running.node.metrics_port}/metrics").read().decode()
    (sample,) = [each for each in text.splitlines() if each.startswith("ottla_client_a_b{")]
    for label in (
        'client_id="orders-1"',
        'client_software_name="mine"',
        'client_software_version="1.2"',
        'group_id="g"',
        'topic="orders"',
    ):
        assert label in sample


def test_differences_are_added_up_and_totals_taken(running: RunningNode):
    subscribe(running.client)
    connection = running.client.connect("orders-1")
    asked = ask(connection)
    for _ in range(3):
        assert push(connection, asked, metrics(("sum", "org.apache.kafka.sent", 5))) is ErrorCode.NONE
        running.advance(1_000)
    assert page(running)["ottla_client_sent_total"] == 15
    push(connection, asked, metrics(("sum", "org.apache.kafka.sent", 5), temporality=CUMULATIVE))
    assert page(running)["ottla_client_sent_total"] == 5


@pytest.mark.parametrize(("key", "shown"), [("1st", "_1st"), ("__name__", "name__"), ("a.b", "a_b"), ("", "_")])
def test_labels_have_names_that_prometheus_reads(running: RunningNode, key: str, shown: str):
    assert f',{shown}="x"' in shown_with(running, key, "x")


def test_no_label_stands_for_another_client(running: RunningNode):
    sample = shown_with(running, "client_id", "somebody-else")
    assert 'client_id="orders-1"' in sample
    assert "somebody-else" not in sample


def shown_with(running: RunningNode, key: str, value: str) -> str:
    """The line of a metric that was pushed with a label."""
    subscribe(running.client)
    connection = running.client.connect("orders-1")
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name = "named"
    point = metric.gauge.data_points.add()
    point.as_double = 1
    label = point.attributes.add()
    label.key, label.value.string_value = key, value
    assert push(connection, ask(connection), data.SerializeToString()) is ErrorCode.NONE
    text = urllib.request.urlopen(f"http://127.0.0.1:{running.node.metrics_port}/metrics").read().decode()
    (sample,) = [each for each in text.splitlines() if each.startswith("ottla_client_named{")]
    return sample


def test_differences_that_add_up_to_no_number_are_not_shown(running: RunningNode):
    subscribe(running.client)
    connection = running.client.connect()
    huge = ("sum", "huge", 1.7e308)
    assert push(connection, ask(connection), metrics(huge, huge, ("gauge", "fine", 1))) is ErrorCode.NONE
    assert page(running)["ottla_client_fine"] == 1
    assert "ottla_client_huge_total" not in page(running)


def test_what_is_no_number_is_not_shown(running: RunningNode):
    subscribe(running.client)
    connection = running.client.connect("orders-1")
    asked = ask(connection)
    push(
        connection, asked, metrics(("gauge", "org.apache.kafka.avg", 1.0), ("gauge", "org.apache.kafka.max", math.inf))
    )
    assert "ottla_client_avg" in page(running)
    assert "ottla_client_max" not in page(running)
    running.advance(1_000)
    push(connection, asked, metrics(("gauge", "org.apache.kafka.avg", math.nan)))
    assert "ottla_client_avg" not in page(running)


@pytest.mark.parametrize(("data", "codec"), [(b"\xff\xff", 0), (b"not zstd", 4), (b"", 3)])
def test_what_cannot_be_read_is_an_invalid_record(running: RunningNode, data: bytes, codec: int):
    connection = running.client.connect("x")
    expected = ErrorCode.INVALID_RECORD if data else ErrorCode.NONE  # nothing is pushed by who has nothing
    assert push(connection, ask(connection), data, codec=codec) is expected


def test_a_small_push_that_unpacks_to_a_large_one_is_refused(running: RunningNode):
    connection = running.client.connect("x")
    bomb = bytes(compress(4, bytes(64 << 20)))
    assert len(bomb) < 1 << 20
    assert push(connection, ask(connection), bomb, codec=4) is ErrorCode.INVALID_RECORD


def test_a_push_that_is_too_large_is_refused(running: RunningNode):
    connection = running.client.connect("x")
    assert push(connection, ask(connection), bytes((1 << 20) + 1)) is ErrorCode.TELEMETRY_TOO_LARGE


def test_a_change_of_subscriptions_is_told_with_the_next_push(running: RunningNode):
    subscribe(running.client)
    connection = running.client.connect("x")
    asked = ask(connection)
    assert push(connection, asked) is ErrorCode.NONE
    subscribe(running.client, metrics="org.apache.kafka.producer")
    assert push(connection, asked) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = ask(connection, asked.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (0, ("org.apache.kafka.producer",))
    assert push(connection, again) is ErrorCode.THROTTLING_QUOTA_EXCEEDED  # it has pushed a moment ago
    running.advance(1_000)
    assert push(connection, again) is ErrorCode.NONE


def test_numbers_go_with_their_client(running: RunningNode):
    subscribe(running.client)
    connection = running.client.connect("x")
    push(connection, ask(connection), metrics(("gauge", "org.apache.kafka.a", 1)))
    assert page(running)["ottla_client_instances"] == 1
    running.advance(60_000)
    left = page(running)
    assert (left["ottla_client_instances"], "ottla_client_a" in left) == (0, False)


def test_only_so_many_series_are_kept(running: RunningNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SERIES_OF_CLIENT_MAX", 10)
    subscribe(running.client)
    connection = running.client.connect("x")
    many = [("gauge", f"org.apache.kafka.m{number}", 1.0) for number in range(25)]
    push(connection, ask(connection), metrics(*many))
    shown = page(running)
    assert sum(name.startswith("ottla_client_m") for name in shown) == 10
    assert shown["ottla_client_points_dropped_total"] == 15


def test_without_telemetry_nothing_is_kept(tmp_path: Path):
    with running_node(tmp_path, ottla_metrics_port=0) as node:
        connection = node.client.connection
        assert push(connection, ask(connection), metrics(("gauge", "org.apache.kafka.a", 1))) is ErrorCode.NONE
        assert "ottla_client_a" not in page(node)


def test_the_inspect_listener_shows_the_clients(running: RunningNode):
    subscribe(running.client)
    connection = running.client.connect("orders-1")
    push(connection, ask(connection), metrics(("gauge", "org.apache.kafka.a", 1)))
    url = f"http://127.0.0.1:{running.node.inspect_port}/inspect/v1/client-metrics"
    view = json.loads(urllib.request.urlopen(url).read())
    (shown,) = view["clients"]
    assert (shown["client_id"], shown["metrics"], shown["interval_ms"]) == ("orders-1", ["*"], 1_000)
    assert shown["values"] == [
        {"name": "org.apache.kafka.a", "labels": {"group_id": "g", "topic": "orders"}, "value": 1.0}
    ]
