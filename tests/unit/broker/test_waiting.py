"""Parked requests: woken by keys, ended by deadlines, bounded."""

from __future__ import annotations

from ottla.broker.loop.waiting import Waiter, Waiting


class Asked:
    """Counts how it was asked, and is answered when told so or when its time is over."""

    def __init__(self, *, ready: bool = False) -> None:
        self.ready = ready
        self.calls: list[bool] = []

    def __call__(self, expired: bool) -> bool:
        self.calls.append(expired)
        return self.ready or expired


def test_a_waiter_is_asked_when_one_of_its_keys_moves() -> None:
    waiting, asked = Waiting(), Asked()
    waiting.park(Waiter(asked, ("a", "b"), deadline_at_ms=100))
    waiting.wake("c")
    assert asked.calls == []
    waiting.wake("b")
    assert asked.calls == [False]
    assert len(waiting) == 1


def test_an_answered_waiter_leaves_all_its_places() -> None:
    waiting, asked = Waiting(), Asked(ready=True)
    waiting.park(Waiter(asked, ("a", "b"), deadline_at_ms=100))
    waiting.wake("a")
    waiting.wake("b")
    waiting.expire(1_000)
    assert asked.calls == [False]
    assert (len(waiting), waiting.next_deadline()) == (0, None)


def test_the_deadline_answers_once() -> None:
    waiting, asked = Waiting(), Asked()
    waiting.park(Waiter(asked, ("a",), deadline_at_ms=100))
    waiting.expire(99)
    assert asked.calls == []
    assert waiting.next_deadline() == 100
    waiting.expire(100)
    waiting.wake("a")
    assert asked.calls == [True]


def test_deadlines_come_in_their_order() -> None:
    waiting, ended = Waiting(), []

    def parked(name: str, at_ms: int) -> None:
        def attempt(expired: bool) -> bool:
            ended.append(name)
            return expired

        waiting.park(Waiter(attempt, (), at_ms))

    parked("late", 30)
    parked("early", 10)
    parked("middle", 20)
    waiting.expire(25)
    assert ended == ["early", "middle"]
    assert waiting.next_deadline() == 30


def test_a_removed_waiter_is_not_asked_again() -> None:
    waiting, asked = Waiting(), Asked(ready=True)
    waiter = Waiter(asked, ("a",), deadline_at_ms=100)
    waiting.park(waiter)
    waiting.remove(waiter)
    waiting.remove(waiter)
    waiting.wake("a")
    waiting.expire(200)
    assert asked.calls == []
    assert len(waiting) == 0


def test_waking_may_park_and_remove_others() -> None:
    waiting, second = Waiting(), Asked(ready=True)
    other = Waiter(second, ("a",), deadline_at_ms=100)

    def removes_the_other(_expired: bool) -> bool:
        waiting.remove(other)
        waiting.park(Waiter(Asked(), ("a",), deadline_at_ms=200))
        return True

    waiting.park(Waiter(removes_the_other, ("a",), deadline_at_ms=100))
    waiting.park(other)
    waiting.wake("a")
    assert second.calls == []
    assert len(waiting) == 1


def test_there_is_a_bound() -> None:
    waiting = Waiting(waiters_max=2)
    assert [waiting.park(Waiter(Asked(), (), 100)) for _ in range(3)] == [True, True, False]


def test_answers_long_before_their_deadline_leave_nothing_behind() -> None:
    waiting = Waiting()
    for _ in range(10_000):
        waiting.park(Waiter(Asked(ready=True), ("a",), deadline_at_ms=1 << 40))
        waiting.wake("a")
    assert len(waiting._deadlines) < 100
