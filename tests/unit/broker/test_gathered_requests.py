"""Requests that gather while one is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.peers.gathered_requests import GatheredRequests
from ottla.broker.peers.peer_connection import PeerError


class Brokers:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []
        self._waiting: list[Callable[[Any], None]] = []

    def send(self, broker_id: int, request: object, versions: tuple[int, int], done: Callable[[Any], None]) -> None:
        self.sent.append((broker_id, request))
        self._waiting.append(done)

    def answer(self, response: object) -> None:
        self._waiting.pop(0)(response)


class Bench:
    def __init__(self) -> None:
        self.brokers = Brokers()
        self.heard: list[tuple[str, Any]] = []
        self._requests: GatheredRequests[str] = GatheredRequests(
            self.brokers, (0, 1), lambda parts: "+".join(parts), lambda part: part[:1]
        )

    def ask(self, broker_id: int, part: str, lane: str | None = None) -> None:
        self._requests.ask(broker_id, part, lambda answer: self.heard.append((part, answer)), lane=lane)


def test_what_comes_while_a_request_is_under_way_goes_together() -> None:
    bench = Bench()
    for part in ("a", "b", "c"):
        bench.ask(1, part)
    assert bench.brokers.sent == [(1, "a")]
    bench.brokers.answer("first")
    assert bench.brokers.sent == [(1, "a"), (1, "b+c")]
    bench.brokers.answer("second")
    assert bench.heard == [("a", "first"), ("b", "second"), ("c", "second")]


def test_brokers_and_lanes_do_not_wait_for_each_other() -> None:
    bench = Bench()
    bench.ask(1, "a")
    bench.ask(2, "b")
    bench.ask(1, "c", lane="other")
    assert bench.brokers.sent == [(1, "a"), (2, "b"), (1, "c")]


def test_no_request_has_a_subject_twice_and_the_order_stays() -> None:
    bench = Bench()
    for part in ("a0", "a1", "b1", "a2", "b2"):
        bench.ask(1, part)
    bench.brokers.answer("")
    assert bench.brokers.sent[1:] == [(1, "a1+b1")]
    bench.brokers.answer("")
    assert bench.brokers.sent[2:] == [(1, "a2+b2")]


def test_after_a_failure_the_next_is_sent() -> None:
    bench = Bench()
    bench.ask(1, "a")
    bench.ask(1, "b")
    failure = PeerError("gone")
    bench.brokers.answer(failure)
    assert bench.heard == [("a", failure)]
    assert bench.brokers.sent == [(1, "a"), (1, "b")]
