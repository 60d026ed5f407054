"""Who is closed by the broker's own decision is named in the log, once for each cause, and counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.broker.network.closed_connections import ClosedConnections
from ottla.broker.network.connection import RECEIVE_BYTES, ConnectionLimits, Peer
from ottla.broker.network.memory_pool import MemoryPool
from ottla.broker.network.request import Answer, Close, CloseCause, Request
from ottla.broker.network.send_queue import FileSpan
from ottla.broker.telemetry.log_deduplication import DeduplicationFilter
from ottla.log.disk import OsDisk
from ottla.log.files import Directory, LogFile, LogStorage
from ottla.wire import frames
from ottla.wire.types import ApiVersionsRequest, FetchResponse
from tests.component.broker.connection_bench import FETCH, Bench, answer_at_once, fetch_request, heartbeat
from tests.component.broker.network.quotas.setting import set_quota
from tests.component.broker.raw_client import (
    Closed,
    Connection,
    RunningNode,
    Topic,
    batch,
    produce_request,
    running_node,
)

WHO = "client 'c' at 127.0.0.1 on PLAINTEXT"
UNKNOWN = "a client at 127.0.0.1 on PLAINTEXT"
HEADER = bytes.fromhex("00000001 0001 63")
"""Correlation id and the client id c."""


def counts(closed: ClosedConnections) -> dict[CloseCause, int]:
    return {cause: count for (_, cause), count in closed.counts.items()}


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(answer_at_once)
    with closing(bench.client):
        yield bench
        bench.connection.close("the test is over")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            b"GET / HTTP/1.1\r\n",
            f"{UNKNOWN} was closed: Size at byte 0: a frame of 1195725856 bytes; "
            "at most 104857600 are taken [frame-size]",
        ),
        (
            frames.frame(b"\x7f\xff\x00\x00" + HEADER),
            f"{UNKNOWN} was closed: unknown API key 32767 [api-not-offered]",
        ),
        (frames.frame(b"\x00\x0c"), f"{UNKNOWN} was closed: RequestHeader"),
        (
            frames.frame(b"\x00\x0c\x00\x63" + HEADER + bytes(2)),
            f"{WHO} was closed: Heartbeat v99 is not supported (0 to 4 are) [version-not-served]",
        ),
        (
            frames.frame(b"\x00\x03\x00\x09" + HEADER + bytes(2)),
            f"{WHO} was closed: API key 3 is not available on this listener [api-not-offered]",
        ),
        (frames.frame(b"\x00\x0c\x00\x04" + HEADER + b"\x00\x05"), f"{WHO} was closed: HeartbeatRequest.GroupId"),
    ],
    ids=["size", "key", "header", "version", "api", "body"],
)
def test_a_client_that_sends_no_request_is_named(
    bench: Bench, caplog: pytest.LogCaptureFixture, data: bytes, line: str
) -> None:
    bench.client.sendall(data)
    bench.turn()
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(line)
    assert sum(bench.owner.closed_connections.counts.values()) == 1


def test_a_broken_frame_behind_good_ones_is_of_a_known_client(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.send(1)
    bench.client.sendall(b"\xff\xff\xff\xff")
    bench.turn()
    assert [record.getMessage().startswith(WHO) for record in caplog.records] == [True]


def test_a_client_that_goes_by_itself_is_neither_named_nor_counted(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.send(1)
    bench.client.close()
    bench.turn()
    assert bench.connection.is_closed
    assert not caplog.records
    assert not bench.owner.closed_connections.counts


def test_the_end_of_a_node_names_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_node(tmp_path) as running:
        assert running.client.ask(ApiVersionsRequest(), 0).error_code == 0
    assert not running.node.closed_connections.counts
    assert not caplog.records


def test_names_and_reasons_take_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    reason = Close("no topic\r\nFAKE LINE " + "x" * 10_000, CloseCause.FAILED_PRODUCE)
    ClosedConnections().add(Peer("::1", 1, "PLAINTEXT"), "evil\n\x1b[2J\u202e" + "y" * 10_000, reason)
    [message] = caplog.messages
    assert message.isprintable()
    assert len(message) < 600
    assert r"client 'evil\n\x1b[2J" in message


# --- silence ----------------------------------------------------------------------------------------------------------


def test_an_idle_connection_is_counted_and_not_named(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.send(1)
    bench.connection.close_idle()
    assert counts(bench.owner.closed_connections) == {CloseCause.IDLE: 1}
    assert not caplog.records


def test_who_does_not_finish_its_request_is_named(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.client.sendall(heartbeat(1)[:7])
    bench.turn()
    bench.connection.close_idle()
    assert caplog.messages == [f"{UNKNOWN} was closed: its request was incomplete for too long [unfinished-request]"]


def test_who_does_not_read_its_answers_is_named(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    while bench.fd not in bench.loop.writers:  # until its socket is full
        bench.send(*range(200))
    bench.connection.close_idle()
    assert caplog.messages == [f"{WHO} was closed: it does not read its responses [unread-answers]"]


def test_who_waits_for_memory_is_not_idle() -> None:
    memory_pool = MemoryPool(1)
    size = (2 * RECEIVE_BYTES).to_bytes(4, "big")
    first, second = (Bench(answer_at_once, limits=ConnectionLimits(memory_pool=memory_pool)) for _ in range(2))
    with closing(first.client), closing(second.client):
        for each in (first, second):
            each.client.sendall(size)
            each.turn()
        assert not first.connection.is_waiting, "it may send"
        assert second.connection.is_waiting, "nothing is read from it"
        second.owner.now_ms = 1_000_000
        first.connection.close("gone")
        assert not second.connection.is_waiting
        assert second.connection.last_active_ms == 1_000_000, "its silence begins now"
        second.connection.close("the test is over")


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_file_that_ends_too_soon_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "x.log").write_bytes(bytes(50))
    file = LogFile(Directory(LogStorage(OsDisk()), str(tmp_path)), "x.log")

    def from_file(_node: Any, _request: Request) -> Answer:
        partitions = (FetchResponse.PartitionData(records=FileSpan(file, 10, 100)),)  # type: ignore[arg-type]
        return FetchResponse(responses=(FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions),))

    bench = Bench(from_file, key=FETCH)
    with closing(bench.client):
        bench.client.sendall(frames.write_request(fetch_request(), 4, correlation_id=1, client_id="c"))
        bench.turn()
        assert bench.connection.is_closed
    assert caplog.messages == [
        f"{WHO} was closed: {tmp_path}/x.log ends before position 110 [unsendable-answer]",
    ]


def test_a_failed_write_that_nobody_acknowledges_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_node(tmp_path) as running, closing(running.client.connect("c")) as connection:
        connection.send(produce_request(Topic("nowhere", bytes(16)), {0: batch(b"x")}, acks=0), 9)
        with pytest.raises(Closed):
            connection.receive_bytes()
    assert counts(running.node.closed_connections) == {CloseCause.FAILED_PRODUCE: 1}
    assert caplog.messages == [
        f"{WHO} was closed: produce with acks=0 failed: UNKNOWN_TOPIC_OR_PARTITION [failed-produce]"
    ]


# --- too many ---------------------------------------------------------------------------------------------------------


def is_closed(connection: Connection) -> bool:
    try:
        connection.ask(ApiVersionsRequest(), 0)
    except (Closed, ConnectionError):
        return True
    return False


def told(running: RunningNode, messages: list[str], cause: CloseCause) -> str:
    """Of somebody closed for one cause, as often as it is counted."""
    page = running.node.metrics.page().splitlines()
    assert f'ottla_closed_connections_total{{listener="PLAINTEXT",cause="{cause}"}} {len(messages)}' in page
    assert 'ottla_closed_connections_total{listener="CONTROLLER",cause="idle"} 0' in page
    [message] = set(messages)
    return message


def test_an_address_with_too_many_connections_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_node(tmp_path, max_connections_per_ip=1) as running:
        assert not is_closed(running.client.connection)
        assert is_closed(running.client.connect())
        message = told(running, caplog.messages, CloseCause.CONNECTIONS_PER_IP)
    assert message == f"{UNKNOWN} was closed: too many connections from its address [connections-per-ip]"


def test_an_address_that_opens_connections_too_fast_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_node(tmp_path, ManualClock()) as running:
        set_quota(running.client, "connection_creation_rate", 1.0, ip="127.0.0.1")
        assert is_closed([running.client.connect() for _ in range(15)][-1])
        message = told(running, caplog.messages, CloseCause.CONNECTION_RATE)
    reason = "its address exceeds the connection rate quota"
    assert message == f"{UNKNOWN} was closed: {reason} [connection-rate]"


# --- the log ----------------------------------------------------------------------------------------------------------


def test_a_client_is_named_once_for_each_cause(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(once := DeduplicationFilter())
    closed = ClosedConnections()

    def close(client_id: str, cause: CloseCause, reason: str, port: int = 1) -> None:
        closed.add(Peer("127.0.0.1", port, "PLAINTEXT"), client_id, Close(reason, cause))

    for number in range(1_000):
        close("a", CloseCause.FRAME_SIZE, f"a frame of {number} bytes", port=number)
    close("a", CloseCause.VERSION_NOT_SERVED, "Heartbeat v99 is not served")
    close("b", CloseCause.FRAME_SIZE, "a frame of 7 bytes")
    caplog.handler.removeFilter(once)
    assert [message.partition(" at ")[0] for message in caplog.messages] == ["client 'a'", "client 'a'", "client 'b'"]
    assert closed.counts["PLAINTEXT", CloseCause.FRAME_SIZE] == 1_001
