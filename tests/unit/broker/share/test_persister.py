"""The persister: what is tried again, how often, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ottla.broker.loop.delayed_operations import DelayedOperation, DelayedOperations
from ottla.broker.share.persister import Persister
from ottla.core.share.state.kept import Key
from ottla.core.share.state.messages import answer_of, form_of, keys_of
from ottla.wire.errors import ErrorCode
from tests.unit.broker.share_state_requests import codes, read, write

TOPIC_ID = bytes([7]) * 16
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Coordinator:
    """A node whose share coordinators answer when they are told to."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.is_serving = True
        self.asked: list[tuple[Any, Callable[[Any], None]]] = []
        self._delayed = DelayedOperations()
        self.clock = self.purgatory = self

    def ask(self, body: Any, keys: Sequence[Key], done: Callable[[Any], None]) -> None:
        self.asked.append((body, done))

    def monotonic_ms(self) -> int:
        return self.now_ms

    def park(self, delayed: DelayedOperation) -> bool:
        return self.is_serving and self._delayed.park(delayed)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self._delayed.expire(self.now_ms)

    def answer(self, code: int = 0, **by_partition: int) -> Any:
        """Answer the oldest request; `p1=16` is for one partition."""
        body, done = self.asked.pop(0)
        result = form_of(body).partition_result
        done(
            answer_of(
                body,
                {
                    key: result(partition=key.partition, error_code=by_partition.get(f"p{key.partition}", code))
                    for key in keys_of(body)
                },
            )
        )
        return body


class Bench:
    def __init__(self) -> None:
        self.coordinator = Coordinator()
        self.persister = Persister(self.coordinator, self.coordinator.ask)
        self.heard: list[tuple[str, dict[int, int]]] = []

    def ask(self, name: str, body: Any = None) -> None:
        body = body or write(TOPIC_ID, start=len(name))
        self.persister.ask(body, lambda answer: self.heard.append((name, codes(answer))))

    @property
    def starts(self) -> list[int]:
        """What lies with the coordinator, told apart by start offsets."""
        return [body.topics[0].partitions[0].start_offset for body, _ in self.coordinator.asked]


def test_an_answer_goes_through() -> None:
    bench = Bench()
    bench.ask("a")
    bench.coordinator.answer()
    assert bench.heard == [("a", {0: 0})]


def test_requests_that_nothing_holds_up_do_not_wait_for_each_other() -> None:
    bench = Bench()
    bench.ask("a")
    bench.ask("bb")
    assert bench.starts == [1, 2]


def test_errors_for_good_are_not_tried_again() -> None:
    for code in (3, 42, 74, 124, -1, 69):
        bench = Bench()
        bench.ask("a")
        bench.coordinator.answer(code)
        assert bench.heard == [("a", {0: code})]


def test_five_attempts_with_growing_pauses() -> None:
    for code in (14, 15, 16):
        bench = Bench()
        bench.ask("a")
        for pause_ms in (1_000, 2_000, 4_000, 8_000):
            bench.coordinator.answer(code)
            bench.coordinator.advance(pause_ms - 1)
            assert bench.starts == []
            bench.coordinator.advance(1)
            assert bench.starts == [1]
        assert bench.heard == []
        bench.coordinator.answer(code)
        assert bench.heard == [("a", {0: code})]


def test_later_requests_queue_up_behind_one_that_is_tried_again() -> None:
    bench = Bench()
    bench.ask("a")
    bench.coordinator.answer(16)
    bench.ask("bb")
    bench.ask("ccc", read(TOPIC_ID))
    assert bench.starts == []
    bench.coordinator.advance(1_000)
    assert bench.starts == [1]
    bench.coordinator.answer()
    assert bench.starts == [2]
    bench.coordinator.answer()
    bench.coordinator.answer()
    assert bench.heard == [("a", {0: 0}), ("bb", {0: 0}), ("ccc", {0: 0})]
    bench.ask("dddd")
    bench.ask("eeeee")
    assert bench.starts == [4, 5]


def test_others_do_not_wait() -> None:
    bench = Bench()
    bench.ask("a")
    bench.coordinator.answer(16)
    bench.ask("other partition", write(TOPIC_ID, partitions=(1,)))
    bench.ask("other group", write(TOPIC_ID, group="h"))
    bench.coordinator.answer()
    bench.coordinator.answer()
    assert [name for name, _ in bench.heard] == ["other partition", "other group"]


def test_all_that_fail_together_are_tried_again_in_their_order() -> None:
    bench = Bench()
    bench.ask("a")
    bench.ask("bb")
    bench.coordinator.answer(16)
    bench.coordinator.answer(16)
    bench.coordinator.advance(1_000)
    assert bench.starts == [1]
    bench.coordinator.answer()
    assert bench.starts == [2]


def test_nothing_comes_after_what_overtook_it() -> None:
    """A start offset must never go back."""
    bench = Bench()
    bench.ask("a")
    bench.ask("bb")
    bench.coordinator.answer(15)
    bench.coordinator.answer(0)
    assert bench.heard == [("a", {0: NOT_AVAILABLE}), ("bb", {0: 0})]
    bench.coordinator.advance(60_000)
    assert bench.starts == []
    bench.ask("ccc")
    assert bench.starts == [3]


def test_no_attempt_as_long_as_a_later_request_is_under_way() -> None:
    bench = Bench()
    bench.ask("a")
    bench.ask("bb")
    bench.coordinator.answer(15)
    bench.coordinator.advance(1_000)
    assert bench.starts == [2]
    bench.coordinator.answer(15)
    bench.coordinator.advance(1_000)
    assert bench.starts == [1]


def test_whoever_waits_behind_a_hopeless_one_fails_with_it() -> None:
    bench = Bench()
    bench.ask("a")
    bench.coordinator.answer(16)
    bench.ask("bb")
    bench.ask("ccc", read(TOPIC_ID))
    for pause_ms in (1_000, 2_000, 4_000, 8_000):
        bench.coordinator.advance(pause_ms)
        bench.coordinator.answer(16)
    assert bench.heard == [("a", {0: 16}), ("bb", {0: 16}), ("ccc", {0: 16})]
    bench.ask("dddd")
    assert bench.starts == [4]


def test_partitions_of_a_request_are_tried_again_by_themselves() -> None:
    bench = Bench()
    bench.ask("a", write(TOPIC_ID, partitions=(0, 1, 2)))
    bench.coordinator.answer(0, p1=16, p2=42)
    assert bench.heard == []
    bench.coordinator.advance(1_000)
    again = bench.coordinator.answer()
    assert [key.partition for key in keys_of(again)] == [1]
    assert bench.heard == [("a", {0: 0, 1: 0, 2: 42})]


def test_a_node_that_stops_tries_nothing_again() -> None:
    bench = Bench()
    bench.ask("a")
    bench.coordinator.is_serving = False
    bench.coordinator.answer(16)
    assert bench.heard == [("a", {0: 16})]


def test_nothing_asked() -> None:
    bench = Bench()
    answers: list[Any] = []
    bench.persister.ask(type(read(TOPIC_ID))("g"), answers.append)
    bench.persister.ask(read(TOPIC_ID, group=""), answers.append)
    assert [answer.results for answer in answers] == [(), ()]


def test_what_is_asked_is_counted() -> None:
    bench = Bench()
    bench.ask("a", write(TOPIC_ID, partitions=(0, 1)))
    bench.coordinator.answer(0, p1=16)
    bench.coordinator.advance(1_000)
    bench.coordinator.answer(74)
    bench.ask("bb", read(TOPIC_ID))
    bench.coordinator.answer()
    counts = bench.persister.counts
    assert counts.asked == {"WriteShareGroupState": 2, "ReadShareGroupState": 1}
    assert counts.took_ms == {"WriteShareGroupState": 1_000, "ReadShareGroupState": 0}
    assert (counts.retries, counts.failures) == (1, {"FENCED_LEADER_EPOCH": 1})
