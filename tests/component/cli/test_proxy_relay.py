"""The proxy's sockets, with a broker of a few lines behind it, all on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.cli.failure import Failure
from ottla.cli.proxy.address import Address, parse_listen, parse_target
from ottla.cli.proxy.fronts import Front, Fronts
from ottla.cli.proxy.relay import LINGER_S, PIECE_BYTES, Link, Relay
from ottla.explain.exchanges import Exchange, Side
from ottla.wire import frames, types

HOLD_BYTES = 1 << 20
TIME_LIMIT_S = 30
ANY_PORT = Address("127.0.0.1", 0)


class Notes:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.fronts: list[Front] = []
        self.links: list[Link] = []
        self.exchanges: list[Exchange] = []
        self.moved_bytes = {Side.CLIENT: 0, Side.BROKER: 0}
        self.foreign: list[tuple[Side, str]] = []
        self.closed_links: list[Link] = []
        self.refusals: list[str] = []
        self.something = asyncio.Event()

    def front_opened(self, front: Front) -> None:
        self.fronts.append(front)

    def front_missing(self, upstream: Address) -> None:
        raise AssertionError(upstream)

    def connected(self, link: Link, at_ns: int) -> None:
        self.links.append(link)

    def moved(self, link: Link, sender: Side, data: bytes, at_ns: int) -> None:
        self.moved_bytes[sender] += len(data)

    def exchanged(self, link: Link, exchanges: Iterable[Exchange]) -> None:
        self.exchanges += exchanges

    def turned_foreign(self, link: Link, sender: Side, why: str) -> None:
        self.foreign.append((sender, why))

    def closed(self, link: Link, at_ns: int) -> None:
        self.closed_links.append(link)
        self.something.set()

    def refused(self, front: Front, why: str) -> None:
        self.refusals.append(why)
        self.something.set()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[Address]:
    """A server on loopback for the length of a test."""

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    listening = await asyncio.start_server(come, "127.0.0.1", 0)
    async with listening:
        yield Address("127.0.0.1", listening.sockets[0].getsockname()[1])


@asynccontextmanager
async def relayed(upstream: Address, notes: "Notes") -> AsyncIterator[Relay]:
    relay = Relay(ANY_PORT, upstream, notes, hold_bytes=HOLD_BYTES)
    try:
        yield relay
    finally:
        await relay.close()


class Broker:
    """Answers Metadata with its own address, and anything else with an empty ApiVersions answer."""

    port = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while size := await reader.read(4):
            request = frames.read_request(await reader.readexactly(int.from_bytes(size)))
            writer.write(self.answer(request))

    def answer(self, request: frames.Request) -> bytes:
        body: Any = types.ApiVersionsResponse()
        if request.name == "MetadataRequest":
            broker = types.MetadataResponse.MetadataResponseBroker(5, "127.0.0.1", self.port)
            body = types.MetadataResponse(brokers=(broker,))
        return frames.write_response(body, request.version, correlation_id=request.header.correlation_id)


@asynccontextmanager
async def fake_broker() -> AsyncIterator[Address]:
    broker = Broker()
    async with server(broker) as address:
        broker.port = address.port
        yield address


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(address: Address, message: Any, version: int) -> Any:
    async with connected(address) as (reader, writer):
        writer.write(frames.write_request(message, version, correlation_id=3, client_id="me"))
        data = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    key = {"MetadataRequest": 3, "ApiVersionsRequest": 18}[type(message).__name__]
    return frames.read_response(data, key, version).body


def run(body: Callable[[Notes], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIME_LIMIT_S):
            await body(Notes())

    asyncio.run(bounded())


def test_a_client_stays_behind_the_proxy():
    async def body(notes: Notes) -> None:
        async with fake_broker() as at, relayed(Address("localhost", at.port), notes) as relay:
            metadata = await ask(relay.at, types.MetadataRequest(), 12)
            (node,) = metadata.brokers
            assert (node.host, node.port) == notes.fronts[1].at != relay.at
            assert notes.fronts[1].node_id == 5
            again = await ask(notes.fronts[1].at, types.MetadataRequest(), 12)
            assert again == metadata  # one port for the node, whoever asks
            assert [front.upstream.host for front in notes.fronts] == ["localhost", "127.0.0.1"]
        assert [each.first.api for each in notes.exchanges] == ["Metadata", "Metadata"]
        assert [link.node_id for link in notes.links] == [None, 5]
        assert sorted(notes.closed_links) == notes.links

    run(body)


def test_the_address_that_the_user_gave_needs_no_second_port():
    async def body(notes: Notes) -> None:
        async with fake_broker() as at, relayed(at, notes) as relay:
            (node,) = (await ask(relay.at, types.MetadataRequest(), 12)).brokers
            assert (node.host, node.port) == relay.at
            assert len(notes.fronts) == 1

    run(body)


def test_a_broker_that_is_not_there_is_reported():
    async def body(notes: Notes) -> None:
        async with fake_broker() as gone:
            pass
        async with relayed(gone, notes) as relay, connected(relay.at) as (reader, _):
            assert await reader.read() == b""
            assert "refused" in notes.refusals[0].lower() or "connect" in notes.refusals[0].lower()

    run(body)


def test_a_broker_that_resets_a_connection_at_once_is_reported(monkeypatch: pytest.MonkeyPatch):
    connect = asyncio.open_connection

    async def body(notes: Notes) -> None:
        async with fake_broker() as upstream, relayed(upstream, notes) as relay:

            async def to_broker_in_vain(host: str, port: int, **options: Any) -> Any:
                """The system no longer knows the peer of a connection that it has reset."""
                reader, writer = await connect(host, port, **options)
                if port == upstream.port:
                    monkeypatch.setattr(writer, "get_extra_info", lambda _: None)
                return reader, writer

            monkeypatch.setattr(asyncio, "open_connection", to_broker_in_vain)
            async with connected(relay.at) as (reader, _):
                assert await reader.read() == b""
            assert notes.refusals == ["Connection reset by peer"]
            assert not relay.failed.done()

    run(body)


def test_a_slow_reader_slows_the_writer_down():
    """While the client does not read, the broker may write only what sockets and buffers take, not all that it has."""
    offered = 64 << 20
    taken = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        piece = frames.frame(bytes(PIECE_BYTES))
        while taken < offered:
            writer.write(piece)
            await writer.drain()
            taken += len(piece)

    async def body(notes: Notes) -> None:
        async with server(flood) as at, relayed(at, notes) as relay, connected(relay.at) as (reader, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await settled(lambda: taken)
            assert 0 < taken < offered / 2
            assert notes.moved_bytes[Side.BROKER] <= taken + PIECE_BYTES
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            read = 0
            while piece := await reader.read(PIECE_BYTES):
                read += len(piece)
            assert read == taken >= offered

    run(body)


def test_a_client_that_does_not_read_does_not_hold_up_the_end():
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(frames.frame(bytes(PIECE_BYTES)))
            try:
                await writer.drain()
            except ConnectionError:
                return

    async def body(notes: Notes) -> None:
        async with server(flood) as at, relayed(at, notes) as relay, connected(relay.at) as (_, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await settled(lambda: notes.moved_bytes[Side.BROKER])
            async with asyncio.timeout(LINGER_S / 2):
                await relay.close()
            assert len(notes.closed_links) == 1

    run(body)


async def settled(number: Callable[[], int]) -> None:
    """Wait until a number that grows has stood still for many turns of the loop."""
    before, turns = number(), 0
    while turns < 500:
        await asyncio.sleep(0)
        before, turns = number(), turns + 1 if number() == before else 0


def test_what_the_client_says_last_is_answered():
    async def body(notes: Notes) -> None:
        async with fake_broker() as at, relayed(at, notes) as relay, connected(relay.at) as (reader, writer):
            writer.write(frames.write_request(types.ApiVersionsRequest(), 4, correlation_id=1, client_id="me"))
            writer.write_eof()
            assert len(await reader.read()) > 4
            await notes.something.wait()
            assert [each.outcome for each in notes.exchanges] == ["answered"]

    run(body)


def test_tls_passes_and_is_named():
    hello = b"\x16\x03\x01\x00\x01\x00"

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(hello)))

    async def body(notes: Notes) -> None:
        async with server(echo) as at, relayed(at, notes) as relay, connected(relay.at) as (reader, writer):
            writer.write(hello)
            assert await reader.read() == hello
            await notes.something.wait()
        assert [(sender, "TLS" in why) for sender, why in notes.foreign] == [(Side.CLIENT, True), (Side.BROKER, True)]

    run(body)


def test_a_bug_of_ours_is_not_swallowed():
    def broken(link: Link, exchanges: Iterable[Exchange]) -> None:
        raise ZeroDivisionError

    async def body(notes: Notes) -> None:
        notes.exchanged = broken  # type: ignore[method-assign]
        async with fake_broker() as at, relayed(at, notes) as relay, connected(relay.at) as (_, writer):
            writer.write(frames.write_request(types.ApiVersionsRequest(), 4, correlation_id=1, client_id="me"))
            with pytest.raises(ZeroDivisionError):
                await relay.failed

    run(body)


# --- fronts and addresses ---------------------------------------------------------------------------------------------


def unexpected(upstream: Address) -> None:
    raise AssertionError(upstream)


def test_fronts_take_the_next_free_ports():
    opened: list[Front] = []
    fronts = Fronts(ANY_PORT, Address("kafka", 9092), opened.append, unexpected)
    first = fronts.first.at.port
    ports = [fronts.front_of("kafka", 9093 + number, number, "127.0.0.1")[1] for number in range(3)]
    assert ports == sorted(ports)
    assert all(first < port <= first + 64 for port in ports)
    assert fronts.front_of("kafka", 9093, 0, "127.0.0.1") == ("127.0.0.1", ports[0])
    assert len(opened) == 4
    fronts.close()


def test_behind_a_wildcard_the_client_is_told_the_host_it_used():
    fronts = Fronts(Address("0.0.0.0", 0), Address("kafka", 9092), lambda _: None, unexpected)
    assert fronts.front_of("kafka", 9092, 1, "10.1.2.3") == ("10.1.2.3", fronts.first.at.port)
    fronts.close()


def test_the_number_of_fronts_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ottla.cli.proxy.fronts.FRONTS_MAX", 2)
    left_out: list[Address] = []
    fronts = Fronts(ANY_PORT, Address("kafka", 1), lambda _: None, left_out.append)
    assert fronts.front_of("kafka", 2, 2, "127.0.0.1")[0] == "127.0.0.1"
    assert fronts.front_of("kafka", 3, 3, "127.0.0.1") == ("kafka", 3)
    assert left_out == [Address("kafka", 3)]
    fronts.close()


def test_a_port_in_use_is_bad_input():
    fronts = Fronts(ANY_PORT, Address("kafka", 9092), lambda _: None, unexpected)
    with pytest.raises(Failure, match=f"cannot listen on {fronts.first.at}: Address already in use"):
        Fronts(fronts.first.at, Address("kafka", 9092), lambda _: None, unexpected)
    fronts.close()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9092", Address("127.0.0.1", 9092)),
        ("0", Address("127.0.0.1", 0)),
        ("localhost:9092", Address("localhost", 9092)),
        ("0.0.0.0:9092", Address("0.0.0.0", 9092)),
        ("[::1]:9092", Address("::1", 9092)),
    ],
)
def test_where_to_listen(text: str, address: Address):
    assert parse_listen(text) == address


def test_where_the_cluster_is():
    assert parse_target("kafka.example:9092") == Address("kafka.example", 9092)
    assert str(parse_target("[::1]:9092")) == "[::1]:9092"


@pytest.mark.parametrize("text", ["kafka", "9092", ":9092", "kafka:", "kafka:0", "kafka:65536", "kafka:http", "[::1]"])
def test_a_target_without_a_port_is_refused(text: str):
    with pytest.raises(Failure, match="port"):
        parse_target(text)


@pytest.mark.parametrize("text", ["", "kafka", "kafka:", "-1", "65536", "٣"])
def test_a_place_to_listen_without_a_port_is_refused(text: str):
    with pytest.raises(Failure, match="port"):
        parse_listen(text)
