"""A world of transactions: a broker with both coordinators, and programs that process exactly once.

Invariants, beside those of `invariants` that apply:

===============  =======================================================================================================
never taken back records that a reader of committed data has found stay where they are
exactly once     each number of a program's input, up to the offset that its group has committed, is found once by
                 readers of committed data, in order within a partition, and nothing else is
nothing open     once all programs have stopped, no transaction is open in any partition: readers see all records
===============  =======================================================================================================
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.client.committed import visible
from ottla.core.groups.offsets.requests import FetchOffsets
from ottla.core.txn.transaction import Partition as Part
from ottla.log.partition import Partition
from ottla.log.read import Isolation
from ottla.testing.disk import VirtualDisk
from ottla.testing.network import InFlightRequest, Network
from ottla.testing.trace import Violation
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest
from simulation.clients.producer import INPUT, TransactionalProducer
from simulation.environment import Environment
from simulation.machine import Machine, MachineWorld
from simulation.topics import VirtualTopics
from simulation.transaction_node import ProduceRecords, TransactionNode

__all__ = ["OUTPUTS", "TransactionWorld", "read_committed"]

OUTPUTS: Final = (Part("out", 0), Part("out", 1))


class TransactionWorld(MachineWorld):
    node: TransactionNode

    def __init__(self, seed: int, *, feature_level: int = 2) -> None:
        super().__init__(seed)
        self.environment = Environment(self.random.random)
        self.environment.features["transaction.version"] = feature_level
        self.environment.topics.put(INPUT, 1)
        for part in OUTPUTS:
            self.environment.topics.put(part.topic, len(OUTPUTS))
        self.network = Network(self, self.random)
        self.programs: list[TransactionalProducer] = []
        self._seen: dict[Part, list[bytes]] = {part: [] for part in OUTPUTS}
        machine = Machine(self.clock, VirtualDisk(random.Random(self.random.random())))
        self.node = TransactionNode(machine, self.environment, OUTPUTS, self.note, self._failed)

    def _failed(self, text: str) -> None:
        self.found(Violation("failure", text))

    # --- what clients and the network need ----------------------------------------------------------------------------

    @property
    def topics(self) -> VirtualTopics:
        return self.environment.topics

    def next_offset(self) -> int:
        raise NotImplementedError("programs commit the offsets of their input")

    def check_belief(self, client: Any) -> None:  # noqa: ANN401
        raise NotImplementedError("programs own nothing")

    def deliver(self, in_flight: InFlightRequest) -> None:
        if not self.is_up:
            self.note(f"#{in_flight.number} finds nobody")
            return
        request, version, answer = in_flight.request, in_flight.version, self._answering(in_flight)
        if isinstance(request, ProduceRecords):
            self.node.produce(request, answer)
        elif isinstance(request, TxnOffsetCommitRequest):
            self.node.commit_offsets(request, version, answer)
        elif isinstance(request, FetchOffsets):
            self.node.ask_groups(request, version, answer)
        else:
            self.node.ask_transactions(request, version, answer)

    def _answering(self, in_flight: InFlightRequest) -> Callable[[Any], None]:
        answers: list[Any] = []
        life = self.node.life

        def answer(message: Any) -> None:  # noqa: ANN401
            if self.node.life is not life:
                return
            self.hold("answers", not answers, f"#{in_flight.number} is answered twice")
            answers.append(message)
            self.note(f"#{in_flight.number} <- {_brief(message)}")
            self.network.answer(in_flight, message)

        return answer

    # --- the machine --------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        self.node.restart()
        self.check_committed()
        self.check_law(compacted=False)

    def is_quiet(self) -> bool:
        """Whether every program has ended, and no transaction is open."""
        partitions = [*self.node.data.values(), self.node.groups.partition]
        return all(program.is_idle or not program.is_alive for program in self.programs) and all(
            partition.last_stable_offset == partition.log_end_offset for partition in partitions
        )

    # --- judgement ----------------------------------------------------------------------------------------------------

    def check_committed(self) -> None:
        """Read all committed records: those that were found before must still be there."""
        for part, partition in self.node.data.items():
            found, before = read_committed(partition), self._seen[part]
            self.hold("never taken back", found[: len(before)] == before, f"{part} was {before[-5:]}, now {found[-5:]}")
            self._seen[part] = found

    def check_law(self, *, compacted: bool = True) -> None:
        for host in self.node.hosts:
            found = host.check_law(compacted=compacted)
            self.hold("replay", not found, "; ".join(found))

    def check_exactly_once(self) -> None:
        self.check_committed()
        committed = self._committed_offsets()
        for stream in sorted({program.stream for program in self.programs}):
            wanted = list(range(committed.get(stream, 0)))
            found = [_numbers(values, stream) for values in self._seen.values()]
            self.hold("exactly once", all(each == sorted(each) for each in found), f"{stream} is out of order: {found}")
            total = sorted(number for each in found for number in each)
            detail = f"{stream} was committed up to {len(wanted)}, readers find {total}"
            self.hold("exactly once", total == wanted, detail)
        for name, partition in [*self.node.data.items(), ("__consumer_offsets", self.node.groups.partition)]:
            self.hold(
                "nothing open",
                partition.last_stable_offset == partition.log_end_offset,
                f"{name} is stable up to {partition.last_stable_offset} of {partition.log_end_offset}",
            )
        self.check()

    def _committed_offsets(self) -> dict[str, int]:
        """The committed offsets by stream, from the group coordinator's state."""
        found = {}
        for program in self.programs:
            answers: list[Any] = []
            self.node.ask_groups(program.offsets_request(), 9, answers.append)
            self.node.turn()
            self.hold("exactly once", len(answers) == 1, f"the offset of {program.stream} cannot be read")
            if answers and not isinstance(answers[0], int):
                found[program.stream] = max(0, answers[0].topics[0].partitions[0].committed_offset)
        return found


def _numbers(values: Sequence[bytes], stream: str) -> list[int]:
    prefix = f"{stream}:".encode()
    return [int(value.removeprefix(prefix)) for value in values if value.startswith(prefix)]


def _brief(message: Any) -> str:  # noqa: ANN401
    if isinstance(message, int):
        return ErrorCode(message).name
    return str(message)[:200]


def read_committed(partition: Partition) -> list[bytes]:
    """The values that a reader of committed data finds, in the way of consumers: up to the last stable offset, without
    the batches of aborted transactions, which the index lists with their first offsets."""
    end_offset = partition.last_stable_offset
    aborted = partition.aborted_transactions(0, end_offset)
    batches = visible(
        _stable_batches(partition, end_offset),
        [AbortedTransaction(each.first_offset, each.producer_id) for each in aborted],
    )
    return [bytes(record.value or b"") for batch in batches for record in batch.records()]


def _stable_batches(partition: Partition, end_offset: int) -> list[BatchView]:
    found: list[BatchView] = []
    offset = partition.log_start_offset
    while offset < end_offset:
        region = partition.read(offset, 1 << 20, Isolation.LOG_END, min_one_batch=True)
        if region.file is None:
            break
        data = region.file.handle().read(region.length, region.position)
        batches = [each for each in split_batches(data) if isinstance(each, BatchView)]
        found += [each for each in batches if each.base_offset < end_offset]
        offset = batches[-1].next_offset
    return found
