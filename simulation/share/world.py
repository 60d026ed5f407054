"""A world of one share group. Its invariants are in `deliveries`, and the state must equal its replayed log."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ottla import wire
from ottla.broker.network.send_queue import FileSpan
from ottla.core.share.partition.events import Acknowledgement, AcquiredRange
from ottla.core.share.state.kept import Key
from ottla.log.partition import Partition
from ottla.testing.disk import VirtualDisk
from ottla.testing.network import InFlightRequest, Network
from ottla.testing.trace import Violation
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.types.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.types.share_fetch import ShareFetchResponse
from simulation.environment import Environment
from simulation.machine import Machine, MachineWorld
from simulation.share.deliveries import Deliveries, PendingAcknowledgements
from simulation.share.member import Call, ShareMember
from simulation.share.node import TOPIC, ShareConnection, ShareMachine, StateLog
from simulation.topics import VirtualTopics
from simulation.virtual_replica import read_log

__all__ = ["GROUP", "ShareWorld"]

GROUP: Final = "g"


class ShareWorld(MachineWorld):
    node: ShareMachine

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        chance = self.random
        self.environment = Environment(chance.random)
        self.lock_ms = chance.choice((2_000, 5_000, 15_000))
        self.limit = chance.choice((2, 3, 5, 10))
        self._set_up(chance)
        self.partition_count = chance.randint(1, 3)
        self.environment.topics.put(TOPIC, self.partition_count)
        self.network = Network(self, chance)
        self.members: list[ShareMember] = []
        self._deliveries = [Deliveries(f"{TOPIC}-{number}") for number in range(self.partition_count)]
        self._deleted_below = [0] * self.partition_count
        """By partition: a kill may restore deleted records, which need not be delivered."""
        self._uninitialized = set(range(self.partition_count))
        self._state_epoch = 1
        machine = Machine(self.clock, VirtualDisk(random.Random(chance.random())))
        log = StateLog(self._state_begun, self._state_appended, self._failed)
        self.node = ShareMachine(machine, self.environment, self.partition_count, log, self.after)
        self._begin()

    def _set_up(self, chance: random.Random) -> None:
        group = {
            "share.record.lock.duration.ms": self.lock_ms,
            "share.delivery.count.limit": self.limit,
            "share.partition.max.record.locks": chance.choice((100, 200, 2_000)),
            "share.auto.offset.reset": chance.choice(("earliest", "latest")),
        }
        for name, value in group.items():
            self.environment.set_for_group(GROUP, name, str(value))
        settings = self.environment.settings
        settings.set("group.share.min.record.lock.duration.ms", "1000")
        settings.set("share.coordinator.snapshot.update.records.per.snapshot", str(chance.choice((0, 3, 20, 500))))
        settings.set("share.coordinator.state.topic.prune.interval.ms", "5000")
        settings.set("share.coordinator.cold.partition.snapshot.interval.ms", "20000")

    # --- what members and the network need ----------------------------------------------------------------------------

    @property
    def topics(self) -> VirtualTopics:
        return self.environment.topics

    @property
    def topic_id(self) -> bytes:
        topic = self.topics.by_name(TOPIC)
        assert topic is not None
        return topic.topic_id

    def led_by(self, broker: int) -> Sequence[int]:
        """The partitions with state that a broker leads: a group assigns no others."""
        if self._uninitialized:
            return []
        return [number for number, leader in self.node.leaders.items() if leader == broker]

    def next_offset(self) -> int:
        raise NotImplementedError("share groups commit no offsets")

    def check_belief(self, client: Any) -> None:  # noqa: ANN401
        raise NotImplementedError("members of share groups own nothing")

    def hang_up(self, broker: int, connection: ShareConnection, delay_ms: int) -> None:
        life = self.node.life

        def notice() -> None:
            if self.node.life is not life:
                return
            if self.node.brokers[broker].disconnect(connection):
                for each in self._deliveries:
                    each.slack += 1
            self._released(connection.member_id)

        self.after(delay_ms, notice)

    def _released(self, member_id: str) -> None:
        for each in self._deliveries:
            each.released(member_id)

    def deliver(self, in_flight: InFlightRequest) -> None:
        if not self.is_up:
            self.note(f"#{in_flight.number} finds nobody")
            return
        call: Call = in_flight.request
        name = type(call.body).__name__
        body = wire.decode(name, call.version, wire.encode(call.body, call.version))
        asked = {
            number: PendingAcknowledgements.of(in_flight.number, body.member_id, each)
            for number, each in _acknowledged(body)
        }
        for number, each in asked.items():
            self.note(f"   {body.member_id} epoch {body.share_session_epoch} says of {number}: {each.types}")
            self._deliveries[number].asked(each)
        until_ms = self.now_ms() + self.lock_ms
        life = self.node.life

        def answer(message: Any) -> None:  # noqa: ANN401
            if self.node.life is life:
                self._answered(call, asked, message, until_ms)
                self.network.answer(in_flight, message)

        self.node.brokers[call.broker].ask(call.connection, body, call.version, answer)

    def _answered(self, call: Call, asked: dict[int, PendingAcknowledgements], message: Any, until_ms: int) -> None:  # noqa: ANN401
        self.note(f"   {call.body.member_id} epoch {call.body.share_session_epoch} <- {_brief(message)}")
        if message.error_code:
            return
        if call.body.share_session_epoch == -1:
            self._released(call.body.member_id)
        for topic in message.responses:
            for each in topic.partitions:
                self._take(call, each, asked.get(each.partition_index), until_ms)

    def _take(self, call: Call, answer: Any, asked: PendingAcknowledgements | None, until_ms: int) -> None:  # noqa: ANN401
        number = answer.partition_index
        is_fetch = isinstance(answer, ShareFetchResponse.PartitionData)
        deliveries = self._deliveries[number]
        try:
            if is_fetch and answer.acquired_records:
                self._check_records(answer)
                led = self.node.brokers[call.broker].leader.get(Key(GROUP, self.topic_id, number))
                ranges = [AcquiredRange(*_range(each)) for each in answer.acquired_records]
                deliveries.delivered(call.body.member_id, ranges, led, until_ms, self.now_ms())
            if asked is not None:
                code = answer.acknowledge_error_code if is_fetch else answer.error_code
                deliveries.answered(asked, ErrorCode(code))
        except Violation as violation:
            self.found(violation)

    def _check_records(self, answer: Any) -> None:  # noqa: ANN401
        """The batches of a response hold all acquired records, and no offset is listed twice."""
        span: FileSpan = answer.records
        batches = [each for each in split_batches(span.read(len(span))) if isinstance(each, BatchView)]
        known = {record.offset for batch in batches for record in batch.records()}
        listed = [
            offset for each in answer.acquired_records for offset in range(each.first_offset, each.last_offset + 1)
        ]
        self.hold("records", listed == sorted(set(listed)), f"listed is {listed}")
        self.hold("records", known.issuperset(listed), f"acquired {listed}, sent {sorted(known)}")

    # --- the state ----------------------------------------------------------------------------------------------------

    def _state_begun(self, partition: Partition) -> None:
        records = [record for record in read_log(partition) if record.key.group_id == GROUP]
        for number, deliveries in enumerate(self._deliveries):
            deliveries.begin_state(each for each in records if each.key.partition == number)

    def _state_appended(self, batch: BatchView) -> None:
        for record in _keyed(batch):
            self.note(f"   {TOPIC}-{record.key.partition} {_brief_state(record.value)}")
            self._deliveries[record.key.partition].take_state(record)

    def _begin(self) -> None:
        """Initialize the state of partitions that have none, repeatedly, as the group's coordinator does."""
        if not self._uninitialized or not self.is_up:
            return

        def answered(answer: Any) -> None:  # noqa: ANN401
            self._uninitialized -= {each.partition for each in answer.results[0].partitions if not each.error_code}
            if self._uninitialized:
                self.after(500, self._begin)

        self.node.brokers[0].persist(self._initialization(dict.fromkeys(sorted(self._uninitialized), -1)), answered)

    def alter(self) -> None:
        """Move the start offset of the group back or ahead. Earlier acknowledgements no longer count.

        It is tried once: a request may succeed and be answered with an error, so it must not be repeated later."""
        self._state_epoch += 1
        partitions = enumerate(self.node.data)
        starts = {
            number: self.random.randint(each.log_start_offset, each.log_end_offset) for number, each in partitions
        }
        body = self._initialization(starts)
        brokers = self.node.brokers

        def answered(_: Any) -> None:  # noqa: ANN401
            for broker in brokers:
                broker.leader.drop(GROUP)

        brokers[0].ask_state(body, answered)

    def _initialization(self, starts: dict[int, int]) -> InitializeShareGroupStateRequest:
        request = InitializeShareGroupStateRequest
        partitions = tuple(request.PartitionData(number, self._state_epoch, start) for number, start in starts.items())
        return request(GROUP, (request.InitializeStateData(self.topic_id, partitions),))

    def _failed(self, text: str) -> None:
        self.found(Violation("failure", text))

    # --- the machine --------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        self.node.restart()
        self.check_law()
        self._begin()

    def is_quiet(self) -> bool:
        """Whether the group has finished all records."""
        return all(self._is_finished(number) for number in range(self.partition_count))

    def _is_finished(self, number: int) -> bool:
        leader = self.node.leaders[number]
        if leader is None:
            return False
        led = self.node.brokers[leader].leader.get(Key(GROUP, self.topic_id, number))
        return led is not None and led.core.window.start >= self.node.data[number].log_end_offset

    def produce(self) -> None:
        number = self.random.randrange(self.partition_count)
        size = self.random.choice((1, 1, 3, 10, 30))
        self.node.produce(number, [b"v%d" % index for index in range(size)])

    def delete_records(self) -> None:
        number = self.random.randrange(self.partition_count)
        partition = self.node.data[number]
        offset = self.random.randint(partition.log_start_offset, partition.high_watermark)
        if offset > partition.log_start_offset:
            self.note_fault("records deleted", f"of {number} below {offset}")
            partition.delete_records(offset)
            self._deleted_below[number] = max(offset, self._deleted_below[number])

    # --- judgement ----------------------------------------------------------------------------------------------------

    def check_law(self) -> None:
        found = self.node.state.check_law(compacted=False)
        self.hold("replay", not found, "; ".join(found))

    def check_ends(self) -> None:
        for number, deliveries in enumerate(self._deliveries):
            partition = self.node.data[number]
            left = deliveries.unended(self._deleted_below[number], partition.log_end_offset, self.limit)
            self.hold("ends", not left, f"of {TOPIC}-{number}, nothing has become of {left}")


def _acknowledged(body: Any) -> Iterator[tuple[int, list[Acknowledgement]]]:  # noqa: ANN401
    """The acknowledgements in a request, by partition."""
    for topic in body.topics:
        for each in topic.partitions:
            if each.acknowledgement_batches:
                batches = each.acknowledgement_batches
                yield (
                    each.partition_index,
                    [Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types) for one in batches],
                )


def _range(acquired: Any) -> tuple[int, int, int]:  # noqa: ANN401
    return acquired.first_offset, acquired.last_offset, acquired.delivery_count


def _keyed(batch: BatchView) -> list[KeyedRecord]:
    return [
        decode_keyed("__share_group_state", bytes(record.key or b""), None if value is None else bytes(value))
        for record in batch.records()
        for value in (record.value,)
    ]


def _brief(message: Any) -> str:  # noqa: ANN401
    if message.error_code:
        return ErrorCode(message.error_code).name
    told = []
    for topic in message.responses:
        for each in topic.partitions:
            acquired = [_range(one) for one in getattr(each, "acquired_records", ())]
            told.append(
                f"{each.partition_index}: {each.error_code}/{getattr(each, 'acknowledge_error_code', 0)} {acquired}"
            )
    return "; ".join(told) or "nothing"


def _brief_state(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return "is deleted"
    batches = [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in value.state_batches
    ]
    return f"leader epoch {value.leader_epoch} start {value.start_offset} {batches}"
