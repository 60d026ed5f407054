"""A client without an event loop: the same calls, its connections, and what happens over a fork."""

import asyncio
import os
import socket

import pytest

from ottla.client import EARLIEST, TopicPartition, list_offsets
from ottla.client.address import Address, Peer
from ottla.client.backoff import Deadline
from ottla.client.blocking import BlockingClient, cached_client
from ottla.client.blocking.cache import HELD_MAX, forget
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.client import Client, always
from ottla.client.errors import (
    AuthenticationError,
    BootstrapError,
    ConnectionLostError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
)
from ottla.client.sasl import Plain
from ottla.wire import types
from ottla.wire.types.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.component.client.blocking.threaded import threaded
from tests.component.client.fake import DROP, HOLD, FakeCluster
from tests.component.client.fake_logs import Logs
from tests.unit.client.batches import batch

ORDERS = TopicPartition("orders", 0)


def test_any_call_of_the_other_client_can_be_made():
    logs = Logs(orders=[batch(0, 1, 2)])
    with threaded(FakeCluster(2, {"orders": [2, 1]})) as there:
        for broker in there.cluster.brokers.values():
            broker.on("ListOffsets", logs.list_offsets)
        with there.client() as client:
            listed = client.call(list_offsets, {ORDERS: -1, TopicPartition("orders", 1): EARLIEST})
    assert listed[ORDERS].offset == 3


def test_a_request_is_tried_again():
    with threaded(FakeCluster()) as there:
        there.cluster.broker().on("DescribeCluster", DROP, DescribeClusterResponse(cluster_id="c"))
        with there.client() as client:
            answer = client.ask("DescribeCluster", always(DescribeClusterRequest()))
            assert answer.of(DescribeClusterResponse).cluster_id == "c"


def test_an_error_of_the_call_comes_through():
    refused = pytest.raises(ResponseError, match="topic payments")
    with threaded(FakeCluster(1, {"orders": [1]})) as there, there.client() as client, refused:
        client.call(Client.topics, ["payments"])


def test_a_coroutine_that_waits_is_refused():
    async def waits(client: Client) -> None:
        await asyncio.sleep(0)

    refused = pytest.raises(RuntimeError, match="event loop")
    with threaded(FakeCluster()) as there, there.client() as client, refused:
        client.call(waits)


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(BootstrapError, match=f"cannot connect to 127.0.0.1:{port}: connection refused"):
        BlockingClient(f"127.0.0.1:{port}").__enter__()


def test_somebody_listens_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BootstrapError, match="did not respond to ApiVersions or SASL within"):
            BlockingClient(f"127.0.0.1:{port}", connect_timeout_ms=50).__enter__()


def test_a_wrong_password_is_told():
    with threaded(FakeCluster()) as there:
        broker = there.cluster.broker()
        broker.on("SaslHandshake", types.SaslHandshakeResponse(mechanisms=("PLAIN",)))
        broker.on("SaslAuthenticate", types.SaslAuthenticateResponse(error_code=58, error_message="who are you?"))
        with pytest.raises(AuthenticationError, match=r"who are you\?"):
            there.client(sasl=Plain("alice", "pencil")).__enter__()


def test_an_answer_that_never_comes_ends_the_connection():
    with threaded(FakeCluster()) as there:
        there.cluster.broker().on("DescribeCluster", HOLD)
        late = pytest.raises(RequestTimeoutError, match="did not respond to DescribeCluster")
        with there.client(request_timeout_ms=500) as client, late:
            client.ask("DescribeCluster", always(DescribeClusterRequest()), retry=False)


def test_requests_are_sent_ahead_and_answered_in_order():
    with threaded(FakeCluster()) as there:
        answers = [DescribeClusterResponse(cluster_id=name) for name in ("a", "b", "c")]
        there.cluster.broker().on("DescribeCluster", *answers)
        with there.client() as client:
            connection = client.borrow(client.metadata.brokers[1].peer)
            for _ in answers:
                connection.send(DescribeClusterRequest(), 0)
            assert connection.in_flight == 3
            assert [connection.receive() for _ in answers] == answers
            client.give_back(connection)
            again = client.borrow(connection.peer)
            assert again is connection
            again.shut()


def test_a_connection_with_an_answer_due_is_not_kept():
    with threaded(FakeCluster()) as there:
        there.cluster.broker().on("DescribeCluster", HOLD)
        with there.client() as client:
            connection = client.borrow(client.metadata.brokers[1].peer)
            connection.send(DescribeClusterRequest(), 0)
            client.give_back(connection)
            assert not connection.is_open
            another = client.borrow(connection.peer)
            assert another is not connection
            another.shut()


def test_a_connection_that_the_broker_closed_is_noticed_before_it_is_used():
    with threaded(FakeCluster()) as there, there.client() as client:
        connection = client.borrow(client.metadata.brokers[1].peer)
        there.do(there.cluster.broker().disconnect)
        connection._socket.settimeout(5)
        assert connection._socket.recv(1, socket.MSG_PEEK) == b""
        assert not connection.is_open
        with pytest.raises(ConnectionLostError, match="the broker closed it"):
            connection.send(DescribeClusterRequest(), 0)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"\x00\x00\x00\x08\x00\x00\x00\x63abcd", "correlation id 99"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "it uses TLS"),
        (b"\x7f\xff\xff\xff", "a response of 2147483647 bytes"),
    ],
)
def test_what_is_no_answer_ends_the_connection(answer: bytes, reason: str):
    with threaded(FakeCluster()) as there:
        there.cluster.broker().on("DescribeCluster", answer)
        with there.client() as client:
            connection = client.borrow(client.metadata.brokers[1].peer)
            connection.send(DescribeClusterRequest(), 0)
            with pytest.raises(ProtocolError, match=reason):
                connection.receive()
            assert not connection.is_open


def test_a_call_that_was_interrupted_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    with threaded(FakeCluster()) as there, there.client() as client:
        there.cluster.broker().on("DescribeCluster", DescribeClusterResponse(cluster_id="c"))

        def interrupted(*_: object) -> bytearray:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(BlockingConnection, "_exactly", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.ask("DescribeCluster", always(DescribeClusterRequest()))
        answer = client.ask("DescribeCluster", always(DescribeClusterRequest()))
        assert answer.of(DescribeClusterResponse).cluster_id == "c"


def test_a_throttled_connection_keeps_quiet():
    with threaded(FakeCluster()) as there:
        there.cluster.broker().on("DescribeCluster", DescribeClusterResponse(throttle_time_ms=30))
        with there.client() as client:
            connection = client.borrow(client.metadata.brokers[1].peer)
            patience = Deadline(30)
            connection.send(DescribeClusterRequest(), 0)
            connection.receive()
            connection.send(DescribeClusterRequest(), 0)
            assert patience.passed
            connection.shut()


# --- the cache --------------------------------------------------------------------------------------------------------


class FakeClient:
    """Counts how often it is entered and closed."""

    def __init__(self) -> None:
        self.entered = self.closed = 0

    def __enter__(self) -> "FakeClient":
        self.entered += 1
        return self

    def close(self) -> None:
        self.closed += 1


def test_a_client_is_kept_for_the_next_task():
    made: list[FakeClient] = []

    def make() -> FakeClient:
        made.append(FakeClient())
        return made[-1]

    first = cached_client("kept", make)  # type: ignore[type-var]
    assert cached_client("kept", make) is first  # type: ignore[type-var]
    forget("kept")
    assert made[0].closed == 1
    assert cached_client("kept", make) is not first  # type: ignore[type-var]
    forget("kept")


def test_the_oldest_make_room():
    made = {number: FakeClient() for number in range(HELD_MAX + 1)}
    for number, client in made.items():
        cached_client(("room", number), lambda client=client: client)  # type: ignore[misc]
    assert [each.closed for each in made.values()] == [1] + [0] * HELD_MAX
    for number in made:
        forget(("room", number))


def test_a_child_process_makes_its_own(monkeypatch: pytest.MonkeyPatch):
    parents, childs = FakeClient(), FakeClient()
    cached_client("fork", lambda: parents)  # type: ignore[arg-type, return-value]
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    assert cached_client("fork", lambda: childs) is childs  # type: ignore[comparison-overlap, arg-type, return-value]
    assert parents.closed == 1, "our copy of the socket is closed, the parent's stays open"
    forget("fork")


def test_peers_are_named_in_errors():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        with socket.create_connection(address) as sock:
            connection = BlockingConnection(Peer(address, 7), BlockingClient(str(address)).settings, sock)
            connection.shut()
            with pytest.raises(Exception, match=r"broker 7 \(127\.0\.0\.1:\d+\) was closed"):
                connection.send(DescribeClusterRequest(), 0)
