"""The persister: reads and writes the state of share partitions, for their leaders and for the group coordinator.

A request that a coordinator cannot serve now is retried: five attempts at most, after 1, 2, 4 and 8 seconds. Requests
about other share partitions do not wait, but those about the same one queue up behind it: a write that overtook another
could move a start offset back, and finished records would be delivered again. For the same reason a request is not
retried once a later one about the same share partition has succeeded. If the last attempt fails, all requests in the
queue fail with it.

UNKNOWN_TOPIC_OR_PARTITION is an answer like any other. Apache Kafka tries it again, since a coordinator elsewhere may
hear of a topic later; here such a coordinator counts as not available (`share_coordinators`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.share.backoff import ATTEMPTS_MAX, pause_ms
from ottla.broker.share.ports import PersisterPorts
from ottla.broker.share.state_samples import StateCounts
from ottla.core.share.state.kept import Key
from ottla.core.share.state.messages import answer_of, form_of, keys_of, part_of, results_of
from ottla.wire.errors import ErrorCode

__all__ = ["Persister"]

_TRIED_AGAIN: Final = frozenset(
    [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]
)

StateRequest = Any
Done = Callable[[Any], None]
AskCoordinators = Callable[[StateRequest, Sequence[Key], Done], None]
"""Asks the share coordinators of share partitions, once."""


class _StateRequest:
    """A request about share partitions, and the results so far."""

    __slots__ = ("_done", "_results", "asked_at_ms", "attempts", "body", "keys", "serial")

    def __init__(self, serial: int, asked_at_ms: int, body: StateRequest, keys: Sequence[Key], done: Done) -> None:
        self.serial = serial
        self.asked_at_ms = asked_at_ms
        self.body = body
        self.keys = list(dict.fromkeys(keys))
        self.attempts = dict.fromkeys(self.keys, 0)
        self._done = done
        self._results: dict[Key, Any] = {}

    def answer(self, answer: Any) -> None:  # noqa: ANN401
        """One response has the results of all share partitions."""
        self._done(answer)

    def take(self, key: Key, result: Any) -> None:  # noqa: ANN401
        self._results[key] = result
        if len(self._results) == len(self.keys):
            self._done(answer_of(self.body, self._results))

    def failure(self, key: Key, code: ErrorCode) -> Any:  # noqa: ANN401
        result = form_of(self.body).partition_result
        return result(partition=key.partition, error_code=code, error_message=code.meaning)


class _RequestQueue:
    """The requests about one share partition, while the first of them is being retried."""

    __slots__ = ("errands", "is_pausing")

    def __init__(self) -> None:
        self.errands: list[_StateRequest] = []
        """Those that must be tried again, and those that came later, in the order in which they came."""
        self.is_pausing = False


class Persister:
    def __init__(self, node: PersisterPorts, ask_coordinators: AskCoordinators) -> None:
        self.counts = StateCounts()
        self._node = node
        self._ask_coordinators = ask_coordinators
        self._serial = 0
        self._under_way: dict[Key, int] = {}
        """How many requests about a share partition are with its coordinator."""
        self._lines: dict[Key, _RequestQueue] = {}

    def ask(self, body: StateRequest, done: Done) -> None:
        """Ask about the state of share partitions of one group; `done` gets the answer, at once or later.

        `body` is any of the five requests. Each of its share partitions has a result of its own.
        """
        self._serial += 1
        keys = keys_of(body)
        request = _StateRequest(self._serial, self._node.clock.monotonic_ms(), body, keys, done)
        if len(keys) == 1 and keys[0] not in self._lines:  # as a rule: a leader writes for one share partition
            self._set_out(request, keys[0])
            self._ask_coordinators(body, keys, partial(self._heard_one, request, keys[0]))
            return
        if not keys:
            done(answer_of(body, {}))
            return
        free = [key for key in request.keys if key not in self._lines]
        for key in request.keys:
            if key in self._lines:
                self._lines[key].errands.append(request)
        if free:
            self._send(request, free)

    def _set_out(self, request: _StateRequest, key: Key) -> None:
        request.attempts[key] += 1
        self._under_way[key] = self._under_way.get(key, 0) + 1

    def _come_back(self, key: Key) -> None:
        self._under_way[key] -= 1
        if not self._under_way[key]:
            del self._under_way[key]

    def _send(self, request: _StateRequest, keys: Sequence[Key]) -> None:
        for key in keys:
            self._set_out(request, key)
        body = request.body if len(keys) == len(request.keys) else part_of(request.body, keys)
        self._ask_coordinators(body, keys, partial(self._heard, request, keys))

    def _heard_one(self, request: _StateRequest, key: Key, answer: Any) -> None:  # noqa: ANN401
        """The response to a request about a single share partition."""
        if key in self._lines or answer.results[0].partitions[0].error_code:
            self._heard(request, (key,), answer)
            return
        self._come_back(key)
        self._count(request)
        request.answer(answer)
        self._go_on(key)

    def _heard(self, request: _StateRequest, keys: Sequence[Key], answer: Any) -> None:  # noqa: ANN401
        results = results_of(request.body.group_id, answer)
        for key in keys:
            self._come_back(key)
            self._settle(request, key, results[key])

    def _settle(self, request: _StateRequest, key: Key, result: Any) -> None:  # noqa: ANN401
        if result.error_code not in _TRIED_AGAIN:
            self._overtake(key, request.serial)
            self._end(request, key, result)
            self._go_on(key)
        elif request.attempts[key] < ATTEMPTS_MAX and self._pause(key, request.attempts[key]):
            self.counts.retries += 1
            insort(self._lines[key].errands, request, key=lambda each: each.serial)
        else:
            self._end(request, key, result)
            self._give_up(key, ErrorCode(result.error_code))

    def _end(self, request: _StateRequest, key: Key, result: Any) -> None:  # noqa: ANN401
        self._count(request)
        if result.error_code:
            self.counts.failures[ErrorCode(result.error_code).name] += 1
        request.take(key, result)

    def _count(self, request: _StateRequest) -> None:
        name = type(request.body).__name__.removesuffix("Request")
        self.counts.asked[name] += 1
        self.counts.took_ms[name] += self._node.clock.monotonic_ms() - request.asked_at_ms

    # --- trying again -------------------------------------------------------------------------------------------------

    def _pause(self, key: Key, attempts: int) -> bool:
        """Retry the first request of the queue after a pause; False if the node stops."""
        line = self._lines.setdefault(key, _RequestQueue())
        if line.is_pausing:
            return True

        def resume(_: bool) -> bool:
            line.is_pausing = False
            self._go_on(key)
            return True

        line.is_pausing = self._node.purgatory.park(
            DelayedOperation(resume, (), self._node.clock.monotonic_ms() + pause_ms(attempts))
        )
        return line.is_pausing

    def _go_on(self, key: Key) -> None:
        """Send the first request of the queue, unless a response is outstanding."""
        line = self._lines.get(key)
        if line is None or line.is_pausing or key in self._under_way:
            return
        if line.errands:
            self._send(line.errands.pop(0), (key,))
        else:
            del self._lines[key]

    def _overtake(self, key: Key, serial: int) -> None:
        """A request has succeeded: an earlier one must not be retried after it."""
        line = self._lines.get(key)
        if line is None:
            return
        late = [each for each in line.errands if each.serial < serial]
        line.errands = [each for each in line.errands if each.serial > serial]
        for each in late:
            self._end(each, key, each.failure(key, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def _give_up(self, key: Key, code: ErrorCode) -> None:
        line = self._lines.pop(key, None)
        for each in line.errands if line is not None else ():
            self._end(each, key, each.failure(key, code))
