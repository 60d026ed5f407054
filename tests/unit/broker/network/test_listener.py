"""A listener without a node: whom it knows by which address, and whom it sends away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from ottla.broker.network.connection import Connection
from ottla.broker.network.dispatch import Dispatch
from ottla.broker.network.listener import Listener, ListenerLimits, address_limits
from ottla.testing.virtual_loop import VirtualLoop
from tests.unit.broker.network.fake_loop import FakeLoop, FakeOwner

MINUTE_MS = 60_000


class Bench:
    """A listener on a network in memory, whose loop the test plays."""

    def __init__(self, limits: ListenerLimits) -> None:
        self.network, self.loop, self.owner = VirtualLoop(), FakeLoop(), FakeOwner()
        sock = self.network.bind("", 0)
        dispatch = Dispatch(SimpleNamespace(), lambda key, is_unstable: None)
        self.listener = Listener("PLAINTEXT", self.loop, sock, self.owner, dispatch, offered_apis=(), limits=limits)
        self.listener.start()

    def connect(self, address: str = "10.0.0.5") -> Connection | None:
        """A client from this address; None if it was sent away."""
        before = set(self.listener.connections)
        client = self.network.connect(self.listener.address[1])
        client.address = (address, 40_000)
        self.loop.readers[self.listener._sock.fileno()]()
        return next(iter(self.listener.connections.keys() - before), None)


MakeBench = Callable[[ListenerLimits], Bench]


@pytest.fixture
def make_bench() -> Iterator[MakeBench]:
    """Makes benches, and closes their networks at the end."""
    made: list[Bench] = []

    def make(limits: ListenerLimits) -> Bench:
        made.append(Bench(limits))
        return made[-1]

    yield make
    for each in made:
        each.network.close()


@pytest.mark.parametrize(("idle_max_ms", "is_closed"), [(MINUTE_MS, True), (-1, False)])
def test_silence_ends_a_connection_unless_there_is_no_bound(make_bench: MakeBench, idle_max_ms: int, is_closed: bool):
    bench = make_bench(ListenerLimits(idle_max_ms=idle_max_ms))
    connection = bench.connect()
    assert connection is not None
    bench.listener.close_idle(MINUTE_MS)
    assert not connection.is_closed
    bench.listener.close_idle(MINUTE_MS + 1)
    assert connection.is_closed is is_closed


def test_a_client_has_the_same_address_on_a_socket_for_both_kinds(make_bench: MakeBench):
    bench = make_bench(ListenerLimits(connections_per_ip_max=1))
    connection = bench.connect("::ffff:10.0.0.5")
    assert connection is not None
    assert connection.peer.host == "10.0.0.5", "as ACLs name it"
    assert bench.connect("10.0.0.5") is None, "it has its connection"


def test_limits_of_addresses_may_be_written_in_short():
    assert address_limits("[::1]:3,10.0.0.5:4") == {"0:0:0:0:0:0:0:1": 3, "10.0.0.5": 4}
