"""Parked requests: woken by keys, ended by deadlines, bounded."""

from __future__ import annotations

from ottla.broker.loop.delayed_operations import DelayedOperation, DelayedOperations


class Attempt:
    """Records its calls; succeeds when `ready` is set or the deadline has passed."""

    def __init__(self, *, ready: bool = False) -> None:
        self.ready = ready
        self.calls: list[bool] = []

    def __call__(self, expired: bool) -> bool:
        self.calls.append(expired)
        return self.ready or expired


def test_an_operation_is_tried_when_one_of_its_keys_is_woken() -> None:
    delayed, attempt = DelayedOperations(), Attempt()
    delayed.park(DelayedOperation(attempt, ("a", "b"), deadline_at_ms=100))
    delayed.wake("c")
    assert attempt.calls == []
    delayed.wake("b")
    assert attempt.calls == [False]
    assert len(delayed) == 1


def test_an_answered_operation_leaves_all_its_keys() -> None:
    delayed, attempt = DelayedOperations(), Attempt(ready=True)
    delayed.park(DelayedOperation(attempt, ("a", "b"), deadline_at_ms=100))
    delayed.wake("a")
    delayed.wake("b")
    delayed.expire(1_000)
    assert attempt.calls == [False]
    assert (len(delayed), delayed.next_deadline()) == (0, None)


def test_the_deadline_answers_once() -> None:
    delayed, attempt = DelayedOperations(), Attempt()
    delayed.park(DelayedOperation(attempt, ("a",), deadline_at_ms=100))
    delayed.expire(99)
    assert attempt.calls == []
    assert delayed.next_deadline() == 100
    delayed.expire(100)
    delayed.wake("a")
    assert attempt.calls == [True]


def test_deadlines_come_in_their_order() -> None:
    delayed, ended = DelayedOperations(), []

    def parked(name: str, at_ms: int) -> None:
        def attempt(expired: bool) -> bool:
            ended.append(name)
            return expired

        delayed.park(DelayedOperation(attempt, (), at_ms))

    parked("late", 30)
    parked("early", 10)
    parked("middle", 20)
    delayed.expire(25)
    assert ended == ["early", "middle"]
    assert delayed.next_deadline() == 30


def test_a_removed_operation_is_not_tried_again() -> None:
    delayed, attempt = DelayedOperations(), Attempt(ready=True)
    operation = DelayedOperation(attempt, ("a",), deadline_at_ms=100)
    delayed.park(operation)
    delayed.remove(operation)
    delayed.remove(operation)
    delayed.wake("a")
    delayed.expire(200)
    assert attempt.calls == []
    assert len(delayed) == 0


def test_waking_may_park_and_remove_others() -> None:
    delayed, second = DelayedOperations(), Attempt(ready=True)
    other = DelayedOperation(second, ("a",), deadline_at_ms=100)

    def removes_the_other(_expired: bool) -> bool:
        delayed.remove(other)
        delayed.park(DelayedOperation(Attempt(), ("a",), deadline_at_ms=200))
        return True

    delayed.park(DelayedOperation(removes_the_other, ("a",), deadline_at_ms=100))
    delayed.park(other)
    delayed.wake("a")
    assert second.calls == []
    assert len(delayed) == 1


def test_there_is_a_bound() -> None:
    delayed = DelayedOperations(operations_max=2)
    assert [delayed.park(DelayedOperation(Attempt(), (), 100)) for _ in range(3)] == [True, True, False]


def test_answers_long_before_their_deadline_leave_nothing_behind() -> None:
    delayed = DelayedOperations()
    for _ in range(10_000):
        delayed.park(DelayedOperation(Attempt(ready=True), ("a",), deadline_at_ms=1 << 40))
        delayed.wake("a")
    assert len(delayed._deadlines) < 100
