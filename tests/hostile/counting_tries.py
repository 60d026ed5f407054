"""Tries of what is counted for clients: rates, and the metrics that they push."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import crc32c
import pytest

from ottla.broker.network import listener
from ottla.broker.network.quotas import limits as limits_module
from ottla.broker.network.quotas import sensors as sensors_module
from ottla.broker.telemetry.clients import instances as instances_module
from ottla.broker.telemetry.clients import points as points_module
from ottla.broker.telemetry.clients import telemetry as telemetry_module
from ottla.broker.telemetry.clients.points import Point, PushError, read_push
from ottla.broker.telemetry.clients.telemetry import Telemetry
from ottla.wire import WireError
from ottla.wire.compress import DEFAULT_MAX_BYTES, Compression, compress, decompress
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from tests.component.broker.quota_requests import alter, entry
from tests.component.broker.raw_client import batch, running_node
from tests.hostile.reaching import reaches
from tests.unit.broker.network.quotas.entities import entity, made
from tests.unit.broker.network.quotas.rates import rates
from tests.unit.broker.telemetry.clients.instance_table import INTEREST, MAX_BYTES, Table


@reaches("quota-sensors")
def the_longest_unused_rate_goes(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sensors_module, "SENSORS_MAX", 3)
    quotas = rates()
    for number in range(10):
        quotas.record("ann", f"c{number}", 1, 0)
    assert len(list(quotas.sensors)) == 3


@reaches("quota-lookups")
def limits_are_looked_up_anew(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits_module, "FOUND_MAX", 3)
    limits = made(entity(client_id=None))
    for number in range(10):
        limits.of("ann", f"c{number}")
        assert len(limits._found) <= 3


@reaches("telemetry-clients")
def the_longest_silent_client_is_forgotten(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(instances_module, "INSTANCES_MAX", 2)
    table = Table()
    for number in range(1, 6):
        table.find(number, connection=number)
    assert len(table.instances) == 2
    assert len(table.left) == 3


def kept(names: int, clients: int) -> tuple[int, int]:
    """Series that are kept and dropped of so many clients with so many names each."""
    telemetry = Telemetry(*(SimpleNamespace() for _ in range(4)))  # type: ignore[arg-type]
    for client in range(clients):
        series = telemetry._series.setdefault(client.to_bytes(16, "big"), {})
        for number in range(names):
            telemetry._keep(series, Point(f"metric.{number}", (), 1.0, is_counter=True, is_delta=False))
    return telemetry._series_count, telemetry.dropped


@reaches("telemetry-series", "telemetry-series-of-one")
def more_series_are_dropped(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(telemetry_module, "SERIES_OF_CLIENT_MAX", 3)
    assert kept(names=5, clients=1) == (3, 2)
    patch.setattr(telemetry_module, "SERIES_MAX", 4)
    assert kept(names=3, clients=2) == (4, 2)


@reaches("telemetry-series-text")
def series_with_long_labels_are_dropped(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(telemetry_module, "SERIES_CHARS_MAX", 12)
    telemetry = Telemetry(*(SimpleNamespace() for _ in range(4)))  # type: ignore[arg-type]
    series: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, bool]] = {}
    for value in ("short", "longer"):
        telemetry._keep(series, Point("name", (("key", value),), 1.0))
    assert [labels for _, labels in series] == [(("key", "short"),)]
    assert telemetry.dropped == 1


@reaches("telemetry-push")
def a_push_does_not_unpack_to_more(_directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(points_module, "PUSH_BYTES_MAX", 1_000)
    with pytest.raises(PushError):
        read_push(Compression.GZIP, compress(Compression.GZIP, bytes(1_001)))


@reaches("telemetry-bytes")
def a_push_has_so_many_bytes(_directory: Path, _patch: pytest.MonkeyPatch) -> None:
    table = Table()
    instance = table.find()
    with pytest.raises(Reject) as rejected:
        table.instances.check_push(
            instance, INTEREST.subscription_id, 0, MAX_BYTES + 1, is_terminating=False, max_bytes=MAX_BYTES, now_ms=0
        )
    assert rejected.value.code is ErrorCode.TELEMETRY_TOO_LARGE


def with_body(sound: bytes, body: bytes) -> bytes:
    """A batch with other records, sound in all else."""
    checked = sound[21:61] + body
    length = (len(checked) + 9).to_bytes(4, "big")
    return sound[:8] + length + sound[12:17] + crc32c.crc32c(checked).to_bytes(4, "big") + checked


@reaches("decompressed")
def a_batch_does_not_unpack_to_more(directory: Path, _patch: pytest.MonkeyPatch) -> None:
    bomb = compress(Compression.ZSTD, bytes(DEFAULT_MAX_BYTES + 1))
    with pytest.raises(WireError, match="more than"):
        decompress(Compression.ZSTD, bomb)
    with running_node(directory) as running:
        topic = running.client.topic(cleanup_policy="compact")  # whose records are looked at
        honest = batch(b"v", keys=[b"k"], compression=Compression.ZSTD)
        assert running.client.produce(topic, honest).error_code == 0
        answer = running.client.produce(topic, with_body(honest, bomb))
        assert answer.error_code == ErrorCode.INVALID_RECORD, answer


@reaches("held-connections")
def connections_that_come_too_fast_are_closed(directory: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(listener, "HELD_MAX", 2)
    with running_node(directory) as running:
        alter(running.client, entry({"ip": "127.0.0.1"}, connection_creation_rate=1.0))
        connections = [running.client.connect() for _ in range(30)]
        own = next(iter(running.node.listeners.values()))
        assert len(own._held) <= 2
        for connection in connections:
            connection.close()
