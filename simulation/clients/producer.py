"""A program that reads, processes and writes exactly once: a transactional producer that commits its input's offsets.

Its input is the endless sequence 0, 1, 2, …; it continues from the offset that its group has committed, writes some of
the numbers, each to a partition that depends on the number, commits the offset after the last one in the same
transaction, and ends the transaction, sometimes with an abort. In any case readers of committed data must find the
numbers from 0 up to the committed offset, each once. It uses both transaction versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.core.groups.offsets.requests import FetchOffsets
from ottla.core.txn.messages import AddPartitions
from ottla.core.txn.transaction import Partition as Part
from ottla.wire.errors import ErrorCode
from ottla.wire.types.end_txn import EndTxnRequest
from ottla.wire.types.init_producer_id import InitProducerIdRequest
from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestGroup as AskedGroup
from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestTopics as AskedTopic
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest
from simulation.clients.client import RETRIED, Client, ClientPorts
from simulation.transaction_node import GROUPS_PART, ProduceRecords

__all__ = ["INPUT", "TransactionalProducer"]

INPUT: Final = "input"
_AGAIN: Final = RETRIED | {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
_COMMIT_CHANCE: Final = 0.85


class TransactionalProducer(Client):
    timeout_ms = 10_000

    def __init__(
        self, world: ClientPorts, name: str, stream: str, outputs: Sequence[Part], transaction_version: int
    ) -> None:
        super().__init__(world, name)
        self.stream = stream
        self.outputs = outputs
        self.version = transaction_version
        self.is_replaced = False
        """Whether another process with the same id has started: this one ends when it notices."""
        self.is_finishing = False
        """Whether it begins no further transaction."""
        self.commit_chance = _COMMIT_CHANCE
        self.ended()

    def ended(self) -> None:
        self.producer_id = self.producer_epoch = -1
        self.position = 0
        self.is_idle = False
        self.committed_count = 0
        self.ended_count = 0
        """Transactions that it has ended itself."""
        self._sequences: dict[Part, int] = {}

    def begin(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=f"x-{self.stream}",
            transaction_timeout_ms=self.timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        self._try(request, 5 if self.version >= 2 else 4, self._initialized)

    def _try(self, request: Any, version: int, then: Callable[[Any], None]) -> None:  # noqa: ANN401
        """Send a request until there is a final response."""

        def answered(answer: Any) -> None:  # noqa: ANN401
            code = ErrorCode.REQUEST_TIMED_OUT if answer is None else _code_of(answer)
            if code in _AGAIN:
                self.after(self.backoff_ms, lambda: self._try(request, version, then))
            elif code is ErrorCode.NONE:
                then(answer)
            else:
                self._start_over(type(request).__name__, code)

        self.ask(request, version, answered)

    def _start_over(self, what: str, code: ErrorCode) -> None:
        """Give up the transaction without knowing its outcome."""
        self.world.note(f"{self.name} got {code.name} from {what}")
        if self.is_replaced:
            self.crash()
        else:
            self.after(self.backoff_ms, self.begin)

    # --- one transaction ----------------------------------------------------------------------------------------------

    def _initialized(self, answer: Any) -> None:  # noqa: ANN401
        self._take_epoch(answer)
        self._try(self.offsets_request(), 9, self._positioned)

    @property
    def group(self) -> str:
        return f"g-{self.stream}"

    def offsets_request(self) -> FetchOffsets:
        asked = AskedGroup(group_id=self.group, topics=(AskedTopic(name=INPUT, partition_indexes=(0,)),))
        return FetchOffsets(asked, True)

    def _take_epoch(self, answer: Any) -> None:  # noqa: ANN401
        if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.producer_epoch):
            self._sequences = {}
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    def _positioned(self, answer: Any) -> None:  # noqa: ANN401
        self.position = max(0, answer.topics[0].partitions[0].committed_offset)
        self._begin_transaction()

    def _begin_transaction(self) -> None:
        self.is_idle = self.is_finishing
        if self.is_finishing:
            return
        self._end_position = self.position + self.world.random.randint(1, 4)
        batches: dict[Part, list[bytes]] = {}
        for number in range(self.position, self._end_position):
            batches.setdefault(self.outputs[number % len(self.outputs)], []).append(f"{self.stream}:{number}".encode())
        if self.version >= 2:
            self._produce(list(batches.items()))
            return
        parts = frozenset(batches) | {GROUPS_PART}
        request = AddPartitions(f"x-{self.stream}", self.producer_id, self.producer_epoch, parts, 0)
        self._try(request, 0, lambda _: self._produce(list(batches.items())))

    def _produce(self, batches: list[tuple[Part, list[bytes]]]) -> None:
        if not batches:
            self._commit_offsets()
            return
        part, values = batches[0]
        sequence = self._sequences.get(part, 0)
        self._sequences[part] = sequence + len(values)
        producer = (f"x-{self.stream}", self.producer_id, self.producer_epoch)
        request = ProduceRecords(*producer, part, sequence, tuple(values), 2 if self.version >= 2 else 0)
        self._try(request, 0, lambda _: self._produce(batches[1:]))

    def _commit_offsets(self) -> None:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            committed_offset=self._end_position, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=f"x-{self.stream}",
            group_id=self.group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=(TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=INPUT, partitions=(partition,)),),
        )
        self._try(request, 5 if self.version >= 2 else 3, lambda _: self._end())

    def _end(self) -> None:
        committed = self.world.random.random() < self.commit_chance
        request = EndTxnRequest(
            transactional_id=f"x-{self.stream}",
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )
        self._try(request, 5 if self.version >= 2 else 3, lambda answer: self._ended(answer, committed))

    def _ended(self, answer: Any, committed: bool) -> None:  # noqa: ANN401
        if self.version >= 2:
            self._take_epoch(answer)
        self.ended_count += 1
        if committed:
            self.position = self._end_position
            self.committed_count += 1
        self.world.note(f"{self.name} has {'committed' if committed else 'aborted'} up to {self._end_position}")
        self.after(self.world.random.randint(0, 300), self._begin_transaction)


def _code_of(answer: Any) -> ErrorCode:  # noqa: ANN401
    """The error of a response, in whichever field it is."""
    if isinstance(answer, int):
        return ErrorCode(answer)
    code = getattr(answer, "error_code", 0)
    for topic in getattr(answer, "topics", ()):
        code = code or next((each.error_code for each in topic.partitions if each.error_code), 0)
    return ErrorCode(code)
