"""A transaction coordinator without a node: its log is a list, its effects are performed when a test says so.

Records go through bytes, as on a real node. `check_law` holds the state against what the log, and the compacted log,
gives.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from ottla.core.coordinator.contract import COMMITTED, Context, Outcome, Result, World
from ottla.core.coordinator.deadlines import Deadlines
from ottla.core.coordinator.records import encode_record
from ottla.core.txn.coordinator import TransactionCoordinator
from ottla.core.txn.messages import AddPartitions, TakeProducerId, VerifyPartitions, WriteMarkers
from ottla.core.txn.transaction import EPOCH_MAX, Partition, Transaction, to_record
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.reject import Reject
from ottla.wire.types.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NOW_MS = 1_800_000_000_000
COORDINATOR_EPOCH = 7
SETTINGS = {
    "transaction.max.timeout.ms": 900_000,
    "transaction.two.phase.commit.enable": False,
    "transactional.id.expiration.ms": 604_800_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 3_600_000,
}
T0, T1 = Partition("orders", 0), Partition("orders", 1)


class Driver:
    def __init__(
        self, level: int = 2, *, is_led_here: Callable[[str, int], bool] = lambda topic, partition: True
    ) -> None:
        self.level = level
        self.settings: dict[str, Any] = dict(SETTINGS)
        self.elapsed_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.replies: dict[int, Any] = {}
        self.effects: list[Any] = []
        self.deadlines = Deadlines()
        self.next_producer_id = 1000
        self.performs = True
        """Whether effects are performed at once, successfully."""
        self.markers: list[WriteMarkers] = []
        self.append_error: ErrorCode | None = None
        self._token = 0
        self._is_led_here = is_led_here
        self.world = World(
            settings=self.settings,
            group_setting=lambda group_id, name: None,
            topics=None,  # type: ignore[arg-type]
            feature=lambda name: self.level if name == "transaction.version" else 0,
            new_uuid=lambda: bytes(16),
            draw=lambda: 0.0,
        )
        self.core = TransactionCoordinator(COORDINATOR_EPOCH, is_led_here)
        self.apply(self.core.loaded(self.context()))

    def context(self, token: int | None = None, version: int = 0) -> Context:
        return Context(self.elapsed_ms, NOW_MS + self.elapsed_ms, self.world, token, version)

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self, request: Any, version: int = 0) -> Any:
        """The answer, or the token of a request that is not answered yet."""
        self._token += 1
        token = self._token
        try:
            self.apply(self.core.handle(request, self.context(token, version)))
        except Reject as reject:
            return reject.code
        return self.replies.get(token, token)

    def init(self, name: str = "a", *, version: int = 5, timeout_ms: int = 60_000, **given: Any) -> Any:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms, **given)
        return self.ask(request, version)

    def begun(self, name: str = "a", **given: Any) -> tuple[int, int]:
        """The producer id and epoch of a producer that is let in."""
        answer = self.init(name, **given)
        assert isinstance(answer, InitProducerIdResponse)
        assert answer.error_code == 0, answer
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: tuple[int, int], *partitions: Partition, name: str = "a", client_version: int = 2) -> Any:
        return self.ask(AddPartitions(name, *producer, frozenset(partitions or (T0,)), client_version))

    def verify(self, producer: tuple[int, int], *partitions: Partition, name: str = "a") -> Any:
        return self.ask(VerifyPartitions(name, *producer, frozenset(partitions or (T0,))))

    def end(self, producer: tuple[int, int], committed: bool, *, name: str = "a", version: int = 5) -> Any:
        """(error, producer id, epoch), or the token of a request that waits."""
        answer = self.ask(EndTxnRequest(name, *producer, committed), version)
        return self.ended(answer)

    @staticmethod
    def ended(answer: Any) -> Any:
        if isinstance(answer, EndTxnResponse):
            return ErrorCode(answer.error_code), answer.producer_id, answer.producer_epoch
        return answer

    def reply(self, token: int) -> Any:
        return self.ended(self.replies.get(token))

    # --- doing --------------------------------------------------------------------------------------------------------

    def apply(self, result: Result) -> None:
        if result.records and self.append_error is not None:
            self._fail(result, self.append_error)
            return
        for record in result.records:
            self._append(record)
        for timer in result.timers:
            assert timer.at_ms is not None
            self.deadlines.set(timer.key, timer.at_ms)
        for reply in result.replies:
            assert reply.token not in self.replies, "answered twice"
            self.replies[reply.token] = reply.message
        if result.after is not None:
            self.settle(result.after, COMMITTED)
        for effect in result.effects:
            self.effects.append(effect)
            if self.performs:
                self.perform()

    def _fail(self, result: Result, error: ErrorCode) -> None:
        for reply in result.replies:
            self.replies[reply.token] = error
        if result.after is not None:
            self.settle(result.after, Outcome(error))

    def exhausted(self, name: str = "a") -> tuple[int, int]:
        """A producer that has the last epoch there is."""
        producer_id, _ = self.begun(name)
        last = msgspec.structs.replace(self.known(name), producer_epoch=EPOCH_MAX - 1)
        self._append(to_record(last, self.level))
        return producer_id, EPOCH_MAX - 1

    def _append(self, record: KeyedRecord) -> None:
        key, value = encode_record(record)
        self.log.append((key, value))
        self.core.replay(record, len(self.log) - 1, -1, -1)

    def perform(self, error: ErrorCode = ErrorCode.NONE, **codes: ErrorCode) -> None:
        """Perform the oldest effect. `codes` by partition, as orders0=..."""
        effect = self.effects.pop(0)
        if isinstance(effect, TakeProducerId):
            self.next_producer_id += not error
            self.settle(effect, Outcome(error, None if error else self.next_producer_id - 1))
            return
        self.markers.append(effect)
        if error:
            self.settle(effect, Outcome(error))
            return
        answers = {each: codes.get(f"{each.topic}{each.partition}", ErrorCode.NONE) for each in effect.partitions}
        self.settle(effect, Outcome(value=answers))

    def settle(self, subject: Any, outcome: Outcome) -> None:
        self.apply(self.core.settled(subject, outcome, self.context()))

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass, and see to every deadline at its time."""
        until_ms = self.elapsed_ms + elapsed_ms
        while (at_ms := self.deadlines.next_at_ms()) is not None and at_ms <= until_ms:
            self.elapsed_ms = max(self.elapsed_ms, at_ms)
            if (key := self.deadlines.take_due(self.elapsed_ms)) is not None:
                self.apply(self.core.expire(key, self.context()))
        self.elapsed_ms = until_ms

    def restart(self) -> None:
        """A new coordinator takes over what the log tells."""
        self.core = self._replayed(self.log)
        self.deadlines, self.effects = Deadlines(), []
        self.apply(self.core.loaded(self.context()))

    # --- looking ------------------------------------------------------------------------------------------------------

    def known(self, name: str = "a") -> Transaction:
        return self.core.transactions[name]

    def state(self, name: str = "a") -> str:
        return self.known(name).state.shown

    def states(self, name: str = "a") -> list[str]:
        """The states that the log tells, in order."""
        told = self._replayed([])
        found = []
        for record in self._decoded(self.log):
            told.replay(record, 0, -1, -1)
            if record.key.transactional_id == name:
                found.append(told.transactions[name].state.shown if name in told.transactions else "gone")
        return found

    def check_law(self) -> None:
        live = self.core.hard_state()
        assert live == self._replayed(self.log).hard_state()
        compacted = list({key: (key, value) for key, value in self.log}.values())
        assert live == self._replayed(compacted).hard_state()

    def _replayed(self, log: list[tuple[bytes, bytes | None]]) -> TransactionCoordinator:
        core = TransactionCoordinator(COORDINATOR_EPOCH, self._is_led_here)
        for offset, record in enumerate(self._decoded(log)):
            core.replay(record, offset, -1, -1)
        return core

    @staticmethod
    def _decoded(log: list[tuple[bytes, bytes | None]]) -> list[KeyedRecord]:
        return [decode_keyed("__transaction_state", key, value) for key, value in log]


DAY_MS = 86_400_000


def abort_seldom(driver: Driver) -> None:
    """Spare the test a look every ten seconds of a week."""
    driver.settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = 100 * DAY_MS
    driver.deadlines.set(("abort",), 100 * DAY_MS)
