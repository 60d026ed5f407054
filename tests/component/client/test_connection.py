"""One connection against a broker of a few lines: order, room, time, and everything that a peer can do wrong."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.client.address import Peer, parse_address
from ottla.client.connection import Connection
from ottla.client.errors import (
    ClosedError,
    ConnectError,
    ConnectionLostError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
    UnsupportedVersionError,
)
from ottla.client.handshake import _is_number, open_connection
from ottla.client.settings import ClientSettings
from ottla.wire import frames, types
from tests.component.client.fake import DROP, HOLD, FakeBroker, FakeCluster
from tests.unit.client.running import run

HEARTBEAT = types.HeartbeatRequest(group_id="g")


@asynccontextmanager
async def connected(**settings: Any) -> AsyncIterator[tuple[FakeBroker, Connection]]:
    async with FakeCluster() as cluster:
        broker = cluster.broker()
        connection = await open_connection(Peer(parse_address(broker.address)), ClientSettings.of(**settings))
        try:
            yield broker, connection
        finally:
            await connection.close()


def echo(request: frames.Request) -> types.HeartbeatResponse:
    """An answer by which the request can be told: the generation as the error code."""
    return types.HeartbeatResponse(error_code=request.body.generation_id)


def heartbeat(number: int) -> types.HeartbeatRequest:
    return types.HeartbeatRequest(group_id="g", generation_id=number)


def test_answers_reach_those_who_asked():
    async def body() -> None:
        async with connected(max_in_flight=3) as (broker, connection):
            broker.on("Heartbeat", echo)
            asked = [connection.request(heartbeat(number), 4) for number in range(20)]
            answers: list[Any] = list(await asyncio.gather(*asked))
            assert [answer.error_code for answer in answers] == list(range(20))
            assert [each.header.client_id for each in broker.requests] == ["ottla"] * 20

    run(body)


def test_requests_are_pipelined_up_to_the_bound():
    async def body() -> None:
        async with connected(max_in_flight=2) as (broker, connection):
            gate = asyncio.Event()

            async def wait(request: frames.Request) -> types.HeartbeatResponse:
                await gate.wait()
                return echo(request)

            broker.on("Heartbeat", wait)
            first = await connection.submit(heartbeat(1), 4)
            second = await connection.submit(heartbeat(2), 4)
            third = asyncio.create_task(connection.submit(heartbeat(3), 4))
            await asyncio.sleep(0)
            assert connection.in_flight == 2
            assert not third.done()
            gate.set()
            assert (await first).error_code == 1
            assert (await second).error_code == 2
            assert (await (await third)).error_code == 3
            assert connection.in_flight == 0

    run(body)


def test_who_goes_away_disturbs_nobody():
    async def body() -> None:
        async with connected(max_in_flight=1) as (broker, connection):
            gate = asyncio.Event()

            async def wait(request: frames.Request) -> types.HeartbeatResponse:
                await gate.wait()
                return echo(request)

            broker.on("Heartbeat", wait)
            gone = asyncio.create_task(connection.request(heartbeat(1), 4))
            await broker.asked.wait()
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            gate.set()
            answer: Any = await connection.request(heartbeat(2), 4)
            assert answer.error_code == 2

    run(body)


def test_silence_ends_the_connection():
    async def body() -> None:
        async with connected(request_timeout_ms=300) as (broker, connection):
            broker.on("Heartbeat", HOLD)
            behind = await connection.submit(heartbeat(1), 4)
            with pytest.raises(RequestTimeoutError, match=r"127\.0\S+ did not respond to Heartbeat v4 within 300 ms"):
                await connection.request(heartbeat(2), 4)
            assert not connection.is_open
            with pytest.raises(RequestTimeoutError):
                await behind

    run(body)


def test_who_cannot_wait_ends_it_for_nobody_else():
    async def body() -> None:
        async with connected() as (broker, connection):
            gate = asyncio.Event()

            async def wait(request: frames.Request) -> types.HeartbeatResponse:
                await gate.wait()
                return echo(request)

            broker.on("Heartbeat", wait)
            with pytest.raises(RequestTimeoutError, match="within 10 ms"):
                await connection.request(heartbeat(1), 4, timeout_ms=10)
            gate.set()
            answer: Any = await connection.request(heartbeat(2), 4)
            assert answer.error_code == 2

    run(body)


def test_what_the_request_lets_the_broker_wait_comes_on_top():
    async def body() -> None:
        async with connected(request_timeout_ms=300) as (broker, connection):
            broker.on("Fetch", HOLD)
            with pytest.raises(RequestTimeoutError, match="within 320 ms"):
                await connection.request(types.FetchRequest(max_wait_ms=20), 12)

    run(body)


def test_waiting_for_room_does_not_end_the_connection():
    async def body() -> None:
        async with connected(max_in_flight=1) as (broker, connection):
            gate = asyncio.Event()

            async def wait(request: frames.Request) -> types.HeartbeatResponse:
                await gate.wait()
                return echo(request)

            broker.on("Heartbeat", wait)
            first = await connection.submit(heartbeat(1), 4)
            with pytest.raises(RequestTimeoutError):
                await connection.request(heartbeat(2), 4, timeout_ms=10)
            gate.set()
            assert (await first).error_code == 1
            assert connection.is_open

    run(body)


def test_a_lost_connection_fails_all_that_waits():
    async def body() -> None:
        async with connected(max_in_flight=2) as (broker, connection):
            broker.on("Heartbeat", echo, HOLD, DROP)
            await connection.request(heartbeat(1), 4)
            asked = [connection.request(heartbeat(number), 4) for number in range(4)]
            errors = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(error) for error in errors] == [ConnectionLostError] * 4
            assert "the broker closed it before it responded to Heartbeat v4" in str(errors[0])
            with pytest.raises(ConnectionLostError):
                await connection.request(heartbeat(9), 4)

    run(body)


def test_a_listener_that_wants_a_login_is_hinted_at():
    async def body() -> None:
        async with connected() as (broker, connection):
            broker.on("Heartbeat", DROP)
            with pytest.raises(ConnectionLostError, match="a SASL listener does that"):
                await connection.request(heartbeat(1), 4)

    run(body)


def test_a_closed_connection_says_so():
    async def body() -> None:
        async with connected() as (broker, connection):
            broker.on("Heartbeat", HOLD)
            waiting = await connection.submit(heartbeat(1), 4)
            await connection.close()
            await connection.close()
            with pytest.raises(ClosedError):
                await waiting
            with pytest.raises(ClosedError):
                await connection.submit(heartbeat(2), 4)

    run(body)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (frames.frame(struct.pack(">i", 999), b"\0" * 8), "correlation id 999 instead of 1 for Heartbeat"),
        (struct.pack(">i", -1), "a response of -1 bytes"),
        (struct.pack(">i", 2_000_000_000), "a response of 2000000000 bytes; the maximum is 104857600"),
        (bytes.fromhex("15030300020250"), "it uses TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n", "a response of 1213486160 bytes"),
    ],
)
def test_bytes_that_are_no_answer_end_the_connection(answer: bytes, reason: str):
    async def body() -> None:
        async with connected() as (broker, connection):
            broker.on("Heartbeat", answer)
            with pytest.raises(ProtocolError, match=reason):
                await connection.request(heartbeat(1), 4)
            assert not connection.is_open

    run(body)


def test_an_answer_to_nothing_ends_the_connection():
    async def body() -> None:
        async with connected() as (broker, connection):
            answer = frames.write_response(types.HeartbeatResponse(), 4, correlation_id=1)
            broker.on("Heartbeat", answer + answer)
            await connection.request(heartbeat(1), 4)
            assert not connection.is_open

    run(body)


def test_a_body_that_cannot_be_read_fails_its_request_alone():
    async def body() -> None:
        async with connected() as (broker, connection):
            broken = frames.frame(struct.pack(">i", 1), b"\0" * 2)
            broker.on("Heartbeat", broken, echo)
            with pytest.raises(ProtocolError, match="HeartbeatResponse v4"):
                await connection.request(heartbeat(1), 4)
            answer: Any = await connection.request(heartbeat(2), 4)
            assert answer.error_code == 2

    run(body)


def test_an_answer_may_come_in_any_pieces():
    async def body() -> None:
        async with connected() as (broker, connection):
            gate = asyncio.Event()

            async def both(request: frames.Request) -> bytes:
                await gate.wait()
                return b""

            broker.on("Heartbeat", both)
            first, second = await connection.submit(heartbeat(1), 4), await connection.submit(heartbeat(2), 4)
            whole = b"".join(
                frames.write_response(types.HeartbeatResponse(error_code=number), 4, correlation_id=number)
                for number in (1, 2)
            )
            for byte in whole:
                connection.data_received(bytes([byte]))
            assert ((await first).error_code, (await second).error_code) == (1, 2)
            gate.set()

    run(body)


def test_a_request_that_does_not_fit_its_version_is_not_sent():
    async def body() -> None:
        async with connected() as (broker, connection):
            request = types.ListGroupsRequest(types_filter=("share",))
            with pytest.raises(
                UnsupportedVersionError,
                match=r"ListGroups v4 cannot be sent to .*: the request cannot be encoded: .*Types",
            ):
                await connection.request(request, 4)
            assert broker.requests == []
            assert connection.is_open
            assert connection.in_flight == 0

    run(body)


def test_a_throttled_client_keeps_quiet():
    async def body() -> None:
        async with connected() as (broker, connection):
            broker.on("Heartbeat", types.HeartbeatResponse(throttle_time_ms=50), types.HeartbeatResponse())
            await connection.request(heartbeat(1), 4)
            began_s = asyncio.get_running_loop().time()
            await connection.request(heartbeat(2), 4)
            assert asyncio.get_running_loop().time() - began_s >= 0.04

    run(body)


def test_what_gets_no_answer_is_only_sent():
    async def body() -> None:
        async with connected() as (broker, connection):
            broker.on("Produce", HOLD)
            broker.on("Heartbeat", echo)
            await connection.post(types.ProduceRequest(acks=0), 9)
            answer: Any = await connection.request(heartbeat(3), 4)
            assert answer.error_code == 3
            assert [each.name for each in broker.requests] == ["ProduceRequest", "HeartbeatRequest"]

    run(body)


def test_what_gets_no_answer_fails_with_its_connection(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        async with connected() as (broker, connection):
            broker.on("Produce", HOLD)
            write = connection._write

            def write_to_a_full_socket(*arguments: Any) -> int:
                connection.pause_writing()
                return write(*arguments)

            monkeypatch.setattr(connection, "_write", write_to_a_full_socket)
            posting = asyncio.create_task(connection.post(types.ProduceRequest(acks=0), 9))
            await broker.was_asked("Produce")
            assert not posting.done()
            broker.disconnect()
            with pytest.raises(ConnectionLostError):
                await posting

    run(body)


def test_nothing_is_written_while_the_peer_does_not_read():
    async def body() -> None:
        async with connected() as (_, connection):
            connection.pause_writing()
            waiting = asyncio.create_task(connection.submit(heartbeat(1), 4))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert connection.in_flight == 0
            connection.resume_writing()
            await waiting
            assert connection.in_flight == 1

    run(body)


# --- the handshake ----------------------------------------------------------------------------------------------------


def test_versions_are_asked_for_first():
    async def body() -> None:
        async with connected(client_id="me") as (broker, connection):
            (asked,) = broker.handshakes
            assert (asked.version, asked.header.client_id) == (4, "me")
            assert asked.body.client_software_name == "ottla"
            assert str(connection.versions[1]) == "v4 to v18"

    run(body)


@pytest.mark.parametrize(("high", "says_versions", "asked"), [(3, True, 3), (0, True, 0), (3, False, 0)])
def test_an_older_broker_is_asked_in_a_version_that_it_has(high: int, says_versions: bool, asked: int):
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker = cluster.broker()
            broker.versions["ApiVersions"] = (0, high)
            cluster.says_versions = says_versions
            connection = await open_connection(Peer(parse_address(broker.address)), ClientSettings())
            assert [each.version for each in broker.handshakes] == [asked]
            assert 1 in connection.versions
            assert broker.connections == 1
            await connection.close()

    run(body)


@pytest.mark.parametrize(
    ("answer", "error", "reason"),
    [
        (types.ApiVersionsResponse(error_code=42), ResponseError, "ApiVersions at .*INVALID_REQUEST"),
        (DROP, ConnectionLostError, "does it use TLS"),
        (b"\x15\x03\x03\x00\x02\x02\x50", ProtocolError, "it uses TLS"),
    ],
)
def test_a_broker_that_cannot_be_used_is_left(answer: Any, error: type[Exception], reason: str):
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker = cluster.broker()
            broker.on("ApiVersions", answer)
            with pytest.raises(error, match=reason):
                await open_connection(Peer(parse_address(broker.address)), ClientSettings())

    run(body)


def test_a_broker_that_says_nothing_is_left_after_a_while():
    async def body() -> None:
        async with FakeCluster() as cluster:
            broker = cluster.broker()
            broker.on("ApiVersions", HOLD)
            with pytest.raises(RequestTimeoutError, match="within 300 ms"):
                await open_connection(Peer(parse_address(broker.address)), ClientSettings.of(connect_timeout_ms=300))

    run(body)


def test_a_broker_that_does_not_speak_tls_is_hinted_at():
    async def body() -> None:
        async with FakeCluster() as cluster:
            tls = ssl.create_default_context()
            with pytest.raises(ConnectError, match="does it use TLS"):
                await open_connection(Peer(parse_address(cluster.broker().address)), ClientSettings.of(tls=tls))

    run(body)


@pytest.mark.parametrize(("host", "is_one"), [("127.0.0.1", True), ("::1", True), ("localhost", False)])
def test_names_may_have_several_addresses(host: str, is_one: bool):
    assert _is_number(host) is is_one


def test_nobody_at_the_address():
    async def body() -> None:
        async with FakeCluster() as cluster:
            address = cluster.broker().address
        with pytest.raises(ConnectError, match=f"cannot connect to {address}: connection refused"):
            await open_connection(Peer(parse_address(address)), ClientSettings())

    run(body)
