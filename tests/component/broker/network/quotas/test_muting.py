"""A connection that pauses: what it asked is answered, what it sends meanwhile waits in the socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.broker.network.quotas.charges import Meter
from ottla.broker.network.quotas.quotas import Quotas
from ottla.broker.network.quotas.rates import Windows
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.metadata.client_quotas import CLIENT_ID
from ottla.wire.types import HeartbeatResponse
from tests.component.broker.connection_bench import Bench


class MutedBench(Bench):
    """A bench whose time is moved by the test."""

    @property
    def is_reading(self) -> bool:
        return self.fd in self.loop.readers

    def advance(self, ms: int) -> None:
        self.owner.now_ms += ms
        self.loop.timers[-1].callback()


def answer(node: Any, request: Request) -> HeartbeatResponse:
    return HeartbeatResponse()


def muting(pause_ms: int) -> Callable[[Any, Request], Answer]:
    """A handler whose requests are followed by a pause."""

    def handle(node: Any, request: Request) -> HeartbeatResponse:
        request.connection.mute(pause_ms)
        return HeartbeatResponse(pause_ms)

    return handle


@pytest.fixture
def bench() -> Iterator[Callable[..., MutedBench]]:
    opened: list[MutedBench] = []

    def opener(handle: Callable[[Any, Request], Answer]) -> MutedBench:
        opened.append(MutedBench(handle))
        return opened[-1]

    yield opener
    for each in opened:
        each.connection.close("the test is over")
        each.client.close()


Opener = Callable[..., MutedBench]


def test_it_answers_at_once_and_then_does_not_read(bench: Opener) -> None:
    at = bench(muting(500))
    at.send(1)
    assert at.answers(1) == [1]
    assert at.connection.is_muted
    assert not at.is_reading
    assert at.loop.timers[-1].seconds == 0.5


def test_what_came_with_the_request_waits(bench: Opener) -> None:
    at = bench(muting(500))
    at.send(1, 2)
    assert at.answers(1) == [1]
    assert at.is_silent()
    at.advance(500)
    assert at.answers(1) == [2]


def test_what_comes_meanwhile_waits_in_the_socket(bench: Opener) -> None:
    at = bench(muting(500))
    at.send(1)
    at.send(2)
    assert at.answers(1) == [1]
    assert at.connection.is_idle
    at.advance(500)
    assert at.is_reading
    at.turn()
    assert at.answers(1) == [2]


def test_it_is_muted_to_the_last_of_several_moments(bench: Opener) -> None:
    at = bench(answer)
    at.connection.mute(500)
    at.connection.mute(900)
    at.connection.mute(100)
    at.connection.flush()
    assert len(at.loop.timers) == 1
    at.advance(500)
    assert at.loop.timers[-1].seconds == pytest.approx(0.4)
    assert not at.is_reading
    at.advance(400)
    assert at.is_reading


def test_an_answer_that_is_due_leaves_all_the_same(bench: Opener) -> None:
    later = DelayedResponse()
    at = bench(lambda node, request: later)
    at.send(1)
    at.connection.mute(500)
    later.complete(HeartbeatResponse())
    assert at.answers(1) == [1]
    assert at.connection.is_muted


def test_closing_forgets_the_mute(bench: Opener) -> None:
    at = bench(muting(500))
    at.send(1)
    at.connection.close("gone")
    assert at.loop.timers[-1].is_cancelled
    at.loop.timers[-1].callback()  # comes too late
    at.connection.mute(500)
    assert not at.connection.is_muted


def test_a_node_that_stops_does_not_wait_for_the_pause(bench: Opener) -> None:
    at = bench(muting(500_000))
    at.send(1, 2)
    at.connection.drain()
    assert at.answers(1) == [1]
    assert at.connection.is_closed
    assert at.loop.timers[-1].is_cancelled


def test_a_long_pause_is_not_idleness(bench: Opener) -> None:
    at = bench(muting(700_000))
    at.send(1)
    waited = [at.connection.is_waiting]
    at.advance(700_000)
    waited.append(at.connection.is_waiting)
    assert waited == [True, False]
    assert at.connection.last_active_ms == at.owner.now_ms


def test_while_there_are_quotas_requests_are_looked_at_one_by_one(bench: Opener) -> None:
    """The second of two requests that came together pays for the first."""
    at = bench(answer)
    quotas = Quotas(Windows(), Windows())
    quotas.follow({((CLIENT_ID, None),): {"request_percentage": 1e-9}})
    ticks = iter(range(10**6))
    at.connection._dispatch.meter = Meter(quotas, at.owner.monotonic_ms, lambda: next(ticks))
    at.send(1, 2, 3)
    at.answers(1)
    assert at.is_silent()
    assert at.connection._muted_until_ms == 1000


def test_without_quotas_requests_carry_no_charge(bench: Opener) -> None:
    seen = []

    def handle(node: Any, request: Request) -> HeartbeatResponse:
        seen.append(request.charge)
        return HeartbeatResponse()

    at = bench(handle)
    at.send(1)
    assert seen == [None]
