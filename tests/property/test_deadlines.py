"""Deadlines beside a plain dictionary that is searched each time."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.core.coordinator.deadlines import Deadlines

KEYS = st.integers(0, 12)
TIMES = st.integers(0, 40)


class DeadlinesMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.deadlines = Deadlines()
        self.model: dict[int, int] = {}

    @rule(key=KEYS, at_ms=TIMES)
    def set(self, key: int, at_ms: int) -> None:
        earliest_ms = self.deadlines.next_at_ms()
        may_be_earlier = self.deadlines.set(key, at_ms)
        self.model[key] = at_ms
        if not may_be_earlier:
            assert earliest_ms is not None
            assert earliest_ms <= at_ms

    @rule(key=KEYS)
    def cancel(self, key: int) -> None:
        self.deadlines.cancel(key)
        self.model.pop(key, None)

    @rule(keys=st.integers(60, 200), at_ms=TIMES)
    def set_and_cancel_many(self, keys: int, at_ms: int) -> None:
        """So many that what is left of them is cleared away."""
        for key in range(100, 100 + keys):
            self.deadlines.set(key, at_ms)
        for key in range(100, 100 + keys):
            self.deadlines.cancel(key)
        assert len(self.deadlines._heap) <= 4 * len(self.model) + 64 + 1

    @rule(now_ms=TIMES)
    def take(self, now_ms: int) -> None:
        due = []
        while (key := self.deadlines.take_due(now_ms)) is not None:
            assert isinstance(key, int)
            due.append(key)
        expected = sorted(at_ms for at_ms in self.model.values() if at_ms <= now_ms)
        assert [self.model.pop(key) for key in due] == expected, "all that are due, in the order of time"

    @invariant()
    def agrees(self) -> None:
        assert len(self.deadlines) == len(self.model)
        assert all(self.deadlines.get(key) == at_ms and key in self.deadlines for key, at_ms in self.model.items())
        assert self.deadlines.next_at_ms() == min(self.model.values(), default=None)


TestDeadlines = DeadlinesMachine.TestCase
TestDeadlines.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
