"""A core for tests: it keeps one number for each name, and does on request whatever a core may do.

Requests are Heartbeats, so that they can come over a connection: the group's id is the name, the member's id is the
verb, the generation the number. Answers have the number where the throttle time is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Producer, Reply, Result, Timer, TopicsChange
from ottla.core.coordinator.records import record, tombstone
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_classic import OffsetCommitKey, OffsetCommitValue
from ottla.wire.types.heartbeat import HeartbeatRequest, HeartbeatResponse

VALUE_VERSION = 4


class Errand(NamedTuple):
    """An effect."""

    name: str
    number: int


def ask(verb: str, name: str = "a", number: int = 0) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=name, generation_id=number, member_id=verb)


def told(number: int) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time_ms=number)


def put(name: str, number: int, padding: str = "") -> KeyedRecord:
    return record(OffsetCommitKey(name, "t", 0), OffsetCommitValue(offset=number, metadata=padding), VALUE_VERSION)


class Ledger:
    """Soft: parked, settlements, changes, is_frail, loads, handled."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.open: dict[int, dict[str, int]] = {}
        self.offsets: list[int] = []
        self.parked: list[Any] = []
        self.settlements: list[tuple[Any, Outcome]] = []
        self.changes: list[TopicsChange] = []
        self.is_frail = False
        self.loads = 0
        self.handled = 0

    # --- requests -----------------------------------------------------------------------------------------------------

    def handle(self, request: HeartbeatRequest, context: Context) -> Result:
        self.handled += 1
        return getattr(self, f"_{request.member_id}")(request.group_id, request.generation_id, context)  # type: ignore[no-any-return]

    def _put(self, name: str, number: int, context: Context) -> Result:
        return Result(records=[put(name, number)], replies=[Reply(context.token, told(number))])

    def _note(self, name: str, number: int, context: Context) -> Result:
        """A record that nobody is answered for."""
        self.parked.append(context.token)
        return Result(records=[put(name, number)])

    def _get(self, name: str, number: int, context: Context) -> Result:
        return Result(replies=[Reply(context.token, told(self.numbers.get(name, -1)))])

    def _drop(self, name: str, number: int, context: Context) -> Result:
        return Result([tombstone(OffsetCommitKey(name, "t", 0))], [Reply(context.token, told(0))])

    def _many(self, name: str, number: int, context: Context) -> Result:
        records = [put(f"{name}{index}", index, "x" * 1000) for index in range(number)]
        return Result(records=records, replies=[Reply(context.token, told(number))], is_atomic=False)

    def _large(self, name: str, number: int, context: Context) -> Result:
        return Result(records=[put(name, 1, "x" * number)], replies=[Reply(context.token, told(1))], after=("large",))

    def _txn(self, name: str, number: int, context: Context) -> Result:
        return Result([put(name, number)], [Reply(context.token, told(number))], producer=Producer(number, 0))

    def _park(self, name: str, number: int, context: Context) -> Result:
        self.parked.append(context.token)
        return NOTHING

    def _free(self, name: str, number: int, context: Context) -> Result:
        parked, self.parked = self.parked, []
        return Result([put(name, number)], [Reply(token, told(number)) for token in (*parked, context.token)])

    def _later(self, name: str, number: int, context: Context) -> Result:
        return Result(timers=[Timer(("ledger", name, context.token), context.now_ms + number)])

    def _never(self, name: str, number: int, context: Context) -> Result:
        return Result(timers=[Timer(("ledger", name, None), None)], replies=[Reply(context.token, told(0))])

    def _errand(self, name: str, number: int, context: Context) -> Result:
        self.parked.append(context.token)
        return Result(records=[put(name, number)], effects=[Errand(name, number)])

    def _after(self, name: str, number: int, context: Context) -> Result:
        self.parked.append(context.token)
        return Result(records=[put(name, number)], after=("after", name))

    def _chain(self, name: str, number: int, context: Context) -> Result:
        """A write whose commit brings another, so many times."""
        self.parked.append(context.token)
        return Result(records=[put(name, number)], after=("chain", name, number))

    def _reject(self, name: str, number: int, context: Context) -> Result:
        raise Reject(ErrorCode(number), "as you wish")

    def _bug(self, name: str, number: int, context: Context) -> Result:
        raise RuntimeError("a mistake")

    def _deny(self, name: str, number: int, context: Context) -> Result:
        self.denied = context.authorize(None, None, name)
        return self._get(name, number, context)

    # --- the rest of a core -------------------------------------------------------------------------------------------

    def replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        if self.is_frail:
            raise RuntimeError("cannot take that over")
        self.offsets.append(offset)
        numbers = self.numbers if producer_id < 0 else self.open.setdefault(producer_id, {})
        if record.value is None:
            numbers.pop(record.key.group, None)
        else:
            numbers[record.key.group] = record.value.offset

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        numbers = self.open.pop(producer_id, {})
        if committed:
            self.numbers.update(numbers)

    def loaded(self, context: Context) -> Result:
        self.loads += 1
        return NOTHING

    def unloaded(self) -> Iterable[Any]:
        parked, self.parked = self.parked, []
        return parked

    def expire(self, key: Any, context: Context) -> Result:
        _, name, token = key
        if name == "bug":
            raise RuntimeError("a mistake")
        after = ("told",) if name == "told" else None
        return Result(records=[put(name, -5)], replies=[Reply(token, told(-5))], after=after)

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:
        if subject[0] == "chain" and subject[2] > 0:
            _, name, number = subject
            return Result(records=[put(name, number - 1)], after=("chain", name, number - 1))
        self.settlements.append((subject, outcome))
        parked, self.parked = self.parked, []
        return Result(replies=[Reply(token, told(outcome.value or -outcome.error)) for token in parked])

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        self.changes.append(change)
        return NOTHING

    def hard_state(self) -> Mapping[Any, Any]:
        return {"numbers": dict(self.numbers), "open": dict(self.open)}
