"""A minimal broker with transactions: both coordinators and some partitions, on one machine.

The cores, shards and logs are the product's. The work of a broker's handlers is done here in the same way: before a
producer's first batch in a partition the transaction's coordinator is asked, with a guard that a marker invalidates;
markers go into data partitions directly and into `__consumer_offsets` through the group coordinator; everything of one
turn is written together, and answered when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import Core, Outcome, Producer
from ottla.core.groups.offsets.requests import TransactionalCommit
from ottla.core.txn.messages import AddPartitions, TakeProducerId, VerifyPartitions, WriteMarkers
from ottla.core.txn.transaction import Partition as Part
from ottla.log.errors import LogError
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition
from ottla.log.producer_state import ProducerState, Verification
from ottla.wire.batch import BatchBuilder, BatchView, build_end_txn_marker
from ottla.wire.errors import ErrorCode
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest
from simulation.coordinator_kinds import KINDS
from simulation.environment import Environment
from simulation.host import CoordinatorHost
from simulation.machine import DATA_LOG, Machine

__all__ = ["GROUPS_PART", "ProduceRecords", "TransactionNode"]

GROUPS_PART: Final = Part("__consumer_offsets", 0)
_V2: Final = 2

Answer = Callable[[Any], None]
"""Takes an answer: a message, an ErrorCode, or a reply of a core."""


class ProduceRecords(NamedTuple):
    """A batch of a transaction. The answer is an ErrorCode."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partition: Part
    base_sequence: int
    values: tuple[bytes, ...]
    transaction_version: int


class TransactionNode:
    """`told` is called with each line of the trace; `fault` with failures of a core."""

    def __init__(
        self,
        machine: Machine,
        environment: Environment,
        parts: Sequence[Part],
        told: Callable[[str], None],
        fault: Callable[[str], None],
    ) -> None:
        self.machine = machine
        self.environment = environment
        self.marker_delay: Callable[[Callable[[], None]], None] = lambda call: call()
        """Decides when a marker is written: at once, or later."""
        self.marker_error: Callable[[], ErrorCode] = lambda: ErrorCode.NONE
        self._parts = parts
        self._told = told
        self._fault = fault
        self._producer_ids = 1_000
        self._leader_epochs = {"groups": count(), "transactions": count()}
        self._start()

    def _start(self) -> None:
        self.life = object()
        """Work that began in another life of the process is void."""
        self._after_write: list[Callable[[], None]] = []
        self.data = {part: self.machine.open(TopicPartition(*part), DATA_LOG) for part in self._parts}
        self.groups = self._host("groups")
        self.transactions = self._host("transactions")

    def _host(self, kind: str) -> CoordinatorHost:
        observer = _Observer(self, kind)
        epochs = self._leader_epochs[kind]
        return CoordinatorHost(
            KINDS[kind].make_core, KINDS[kind].topic, self.environment, self.machine, observer, epochs
        )

    def restart(self) -> None:
        """Kill the process and start it again from the disk. Like the controller, it assigns no producer id twice."""
        self.machine.crash()
        self._start()
        self.turn()

    # --- deadlines and turns ------------------------------------------------------------------------------------------

    @property
    def hosts(self) -> tuple[CoordinatorHost, CoordinatorHost]:
        return self.groups, self.transactions

    def next_at_ms(self) -> int | None:
        known = [at_ms for host in self.hosts if (at_ms := host.next_at_ms()) is not None]
        return min(known, default=None)

    def expire(self) -> None:
        for host in self.hosts:
            host.expire()

    def turn(self) -> None:
        """Write and respond until nothing is left to do."""
        while True:
            before = self._progress()
            for host in self.hosts:
                host.turn()
            for partition in self.data.values():
                partition.write()
                partition.update_high_watermark(partition.log_end_offset)
            calls, self._after_write = self._after_write, []
            for call in calls:
                call()
            if not calls and self._progress() == before:
                return

    def _progress(self) -> tuple[int, ...]:
        return tuple(number for host in self.hosts for number in (host.shard.end_offset, host.shard.pending_count))

    # --- requests -----------------------------------------------------------------------------------------------------

    def ask_transactions(self, request: Any, version: int, answer: Answer) -> None:  # noqa: ANN401
        self.transactions.handle(request, answer, api_version=version, client_id="producer", client_host="/127.0.0.1")

    def ask_groups(self, request: Any, version: int, answer: Answer) -> None:  # noqa: ANN401
        self.groups.handle(request, answer, api_version=version, client_id="producer", client_host="/127.0.0.1")

    def produce(self, request: ProduceRecords, answer: Answer) -> None:
        guard = self._guard(self.data[request.partition].producers, request.producer_id, request.producer_epoch)

        def verified(code: ErrorCode) -> None:
            if code:
                answer(code)
            else:
                self._append(request, Verification(guard, request.transaction_version), answer)

        if guard is None:
            verified(ErrorCode.NONE)
        else:
            self._verify(request, request.partition, request.transaction_version, verified)

    def _guard(self, producers: ProducerState, producer_id: int, producer_epoch: int) -> int | None:
        is_open = producers.has_ongoing_transaction(producer_id, producer_epoch)
        return None if is_open else producers.verification_guard(producer_id)

    def _append(self, request: ProduceRecords, verification: Verification, answer: Answer) -> None:
        builder = BatchBuilder()
        for value in request.values:
            builder.append(self.machine.clock.wall_ms(), b"k", value)
        batch = builder.build(
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            base_sequence=request.base_sequence,
            is_transactional=True,
        )
        try:
            self.data[request.partition].stage_as_leader(
                bytearray(batch), 0, self.machine.clock.wall_ms(), verification=verification
            )
        except LogError as error:
            answer(ErrorCode(error.code))
            return
        self._after_write.append(lambda: answer(ErrorCode.NONE))

    def commit_offsets(self, request: TxnOffsetCommitRequest, version: int, answer: Answer) -> None:
        """Like handlers/txn_offset_commit: asks the transaction's coordinator first, then the group's."""
        producers = self.groups.partition.producers
        guard = producers.verification_guard(request.producer_id)
        transaction_version = _V2 if version >= 5 else 0

        def verified(code: ErrorCode) -> None:
            if code:
                answer(code)
            else:
                self.ask_groups(TransactionalCommit(request, guard), version, answer)

        if version < 5 and producers.has_ongoing_transaction(request.producer_id, request.producer_epoch):
            verified(ErrorCode.NONE)
        else:
            self._verify(request, GROUPS_PART, transaction_version, verified)

    def _verify(
        self,
        request: ProduceRecords | TxnOffsetCommitRequest,
        part: Part,
        transaction_version: int,
        verified: Callable[[ErrorCode], None],
    ) -> None:
        producer = (request.transactional_id, request.producer_id, request.producer_epoch, frozenset({part}))
        if transaction_version >= _V2:
            self.ask_transactions(AddPartitions(*producer, _V2), 0, lambda code: verified(ErrorCode(code)))
            return

        def answered(codes: Mapping[Part, ErrorCode] | ErrorCode) -> None:
            verified(codes if isinstance(codes, ErrorCode) else codes[part])

        self.ask_transactions(VerifyPartitions(*producer), 0, answered)

    # --- effects ------------------------------------------------------------------------------------------------------

    def perform(self, effect: Any, done: Callable[[Outcome], None]) -> None:  # noqa: ANN401
        if isinstance(effect, TakeProducerId):
            self._producer_ids += 1
            done(Outcome(value=self._producer_ids))
        elif isinstance(effect, WriteMarkers):
            _MarkerWrite(self, effect, done).begin()
        else:
            self._fault(f"nobody performs {type(effect).__name__}")

    def write_marker(self, effect: WriteMarkers, part: Part, answer: Callable[[ErrorCode], None]) -> None:
        producer = Producer(effect.producer_id, effect.producer_epoch)
        self._told(f"   marker {part.topic}-{part.partition} {tuple(producer)[:2]} commit={effect.is_commit}")
        if part == GROUPS_PART and not self.groups.shard.is_loaded:
            answer(ErrorCode.NOT_COORDINATOR)
        elif part == GROUPS_PART:
            self._tell_groups(effect, producer, answer)
        else:
            self._append_marker(effect, part, answer)

    def _tell_groups(self, effect: WriteMarkers, producer: Producer, answer: Callable[[ErrorCode], None]) -> None:
        self.groups.shard.end_transaction(
            producer,
            answer,
            ErrorCode.NONE,
            committed=effect.is_commit,
            coordinator_epoch=effect.coordinator_epoch,
            transaction_version=effect.transaction_version,
        )

    def _append_marker(self, effect: WriteMarkers, part: Part, answer: Callable[[ErrorCode], None]) -> None:
        marker = build_end_txn_marker(
            committed=effect.is_commit,
            coordinator_epoch=effect.coordinator_epoch,
            producer_id=effect.producer_id,
            producer_epoch=effect.producer_epoch,
            timestamp=self.machine.clock.wall_ms(),
        )
        try:
            self.data[part].stage_as_coordinator(
                bytearray(marker),
                0,
                self.machine.clock.wall_ms(),
                verification=Verification(None, effect.transaction_version),
            )
        except LogError as error:
            answer(ErrorCode(error.code))
            return
        self._after_write.append(lambda: answer(ErrorCode.NONE))

    def failed(self, text: str) -> None:
        self._fault(text)

    def said(self, line: str) -> None:
        self._told(line)


class _MarkerWrite:
    """The markers of one transaction: written when the world allows it, answered together."""

    def __init__(self, node: TransactionNode, effect: WriteMarkers, done: Callable[[Outcome], None]) -> None:
        self._node = node
        self._effect = effect
        self._done = done
        self._life = node.life
        self._answers: dict[Part, ErrorCode] = {}

    def begin(self) -> None:
        for part in self._effect.partitions:
            self._node.marker_delay(lambda part=part: self._write(part))  # type: ignore[misc]

    def _write(self, part: Part) -> None:
        if self._node.life is not self._life:
            return  # the process that requested it is gone
        error = self._node.marker_error()
        if error:
            self._take(part, error)
        else:
            self._node.write_marker(self._effect, part, lambda code: self._take(part, ErrorCode(code)))

    def _take(self, part: Part, code: ErrorCode) -> None:
        self._answers[part] = code
        if len(self._answers) == len(self._effect.partitions):
            self._done(Outcome(value=self._answers))


class _Observer:
    """Observes one of the coordinators. Tokens are functions that take the response."""

    def __init__(self, node: TransactionNode, kind: str) -> None:
        self._node = node
        self._kind = kind

    def replayed(self, partition: Partition, new_core: Callable[[], Core]) -> None:
        pass

    def replied(self, token: Answer, message: Any) -> None:  # noqa: ANN401
        token(message)

    def refused(self, token: Answer, code: ErrorCode, message: str | None) -> None:
        token(code)

    def appended(self, batch: BatchView) -> None:
        self._node.said(f"   {self._kind}: {batch.record_count} records at {batch.base_offset}")

    def effect(self, effect: Any, done: Callable[[Outcome], None]) -> None:  # noqa: ANN401
        self._node.perform(effect, done)

    def lost(self, error: Exception) -> None:
        self._node.said(f"the shard of {self._kind} is lost: {error}")

    def failed(self, call: str, error: Exception) -> None:
        self._node.failed(f"{self._kind}: {call} raised {error!r}")
