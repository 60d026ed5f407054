"""A world of groups: one group coordinator, its disk, a network and clients, all from a seed.

A run has two parts: *chaos*, in which faults happen (see `faults`), and *calm*, in which every group must settle. After
every step the invariants are checked (see `invariants`). The seed determines everything; `Trace.digest` proves it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

from ottla.broker.coordinators.replay import Replay
from ottla.core.coordinator.contract import Core, Outcome
from ottla.core.groups.admin import DeleteGroup
from ottla.core.groups.assignors.computation import answer, request_of
from ottla.core.groups.modern.target_jobs import ComputeTarget
from ottla.core.groups.offsets.requests import FetchOffsets
from ottla.core.groups.streams.effects import CreateInternalTopics
from ottla.log.partition import Partition
from ottla.testing.disk import VirtualDisk
from ottla.testing.network import InFlightRequest, Network
from ottla.testing.trace import Violation
from ottla.wire.batch import BatchView
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.types.group_classic import GroupMetadataKey, OffsetCommitKey
from ottla.wire.types.group_consumer import ConsumerGroupMetadataKey
from ottla.wire.types.group_streams import StreamsGroupMetadataKey
from ottla.wire.types.offset_commit import OffsetCommitRequest
from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestGroup as _AskedGroup
from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestTopics as _AskedTopic
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.types.sync_group import SyncGroupRequest
from simulation.clients.assignment import read_assignment
from simulation.clients.client import Client
from simulation.coordinator_kinds import CoordinatorKind
from simulation.environment import Environment
from simulation.host import CoordinatorHost, differences
from simulation.invariants import Claims, CommitRegister, LogModel, OffsetKey, commit_codes, commit_writes
from simulation.machine import Machine, MachineWorld
from simulation.renderer import Renderer
from simulation.topics import VirtualTopics
from simulation.virtual_replica import read_log, replay_partition

__all__ = ["Law", "Workload", "World"]

Perform = Callable[[Any, Callable[[Outcome], None]], None]


class Workload(Protocol):
    """A group with its clients, or other clients, that says whether it has converged."""

    @property
    def clients(self) -> Sequence[Client]: ...
    def unconverged(self) -> str | None:
        """Why it has not converged yet; None if it has."""
        ...


class Law(Protocol):
    """An invariant of the log for some groups, beside those for all."""

    def begin(self, records: Sequence[KeyedRecord]) -> None:
        """Start over with the records of a log."""
        ...

    def take(self, records: Sequence[KeyedRecord]) -> None:
        """One more batch. Raises Violation."""
        ...


class _Token:
    """One delivery of a request."""

    __slots__ = ("candidates", "in_flight", "is_answered")

    def __init__(self, in_flight: InFlightRequest) -> None:
        self.in_flight = in_flight
        self.candidates: dict[OffsetKey, set[int | None]] = {}
        """For a reader of offsets: the values that it may find."""
        self.is_answered = False


class World(MachineWorld):
    def __init__(self, seed: int, kind: CoordinatorKind) -> None:
        super().__init__(seed)
        self.environment = Environment(self.random.random)
        if random.Random(f"targets {seed}").random() < 0.3:
            self.environment.world.inline_target_max = 0  # all targets are computed outside the event loop
        self.network = Network(self, self.random)
        self.workloads: list[Workload] = []
        self.laws: list[Law] = []
        self.commits = CommitRegister()
        self.has_late_requests = False
        """Whether requests may overtake each other."""
        self.offsets_expire = False
        """Whether offsets may expire."""
        self._kind = kind
        self._offsets = count(1)
        self.claims = Claims()
        self._renderer = Renderer(self.environment.ids.shorten, self.topics.name_of_id)
        self.performers: dict[type, Perform] = {
            CreateInternalTopics: self._create_topics,
            ComputeTarget: self._compute_target,
        }
        """Class of an effect -> its performer."""
        machine = Machine(self.clock, VirtualDisk(random.Random(self.random.random())))
        self.host = self.node = CoordinatorHost(kind.make_core, kind.topic, self.environment, machine, self)

    # --- what clients and the network need ----------------------------------------------------------------------------

    @property
    def topics(self) -> VirtualTopics:
        return self.environment.topics

    def next_offset(self) -> int:
        return next(self._offsets)

    def check_belief(self, client: Client) -> None:
        if self.has_late_requests:
            return
        for other in [each for workload in self.workloads for each in workload.clients]:
            shared = client.believes_to_own() & other.believes_to_own()
            if not shared or other is client or not other.is_alive or other.group_id != client.group_id:
                continue
            self.hold(
                "owned once",
                not self._log.is_member(other.group_id, other.member_id),
                f"{client.name} and {other.name} both work on {self._renderer.value(shared)}",
            )

    def put_topic(self, name: str, partition_count: int) -> None:
        change = self.topics.put(name, partition_count)
        if self.is_up and self.host.shard.is_loaded:
            self.host.topics_changed(change)

    def delete_topic(self, name: str) -> None:
        for key in self.commits.offset_keys():
            if key[1] == name:
                self.commits.may_vanish(key)
        change = self.topics.delete(name)
        if self.host.shard.is_loaded:
            self.host.topics_changed(change)

    def unconverged(self) -> list[str]:
        """Why workloads have not converged yet."""
        found = [each.unconverged() for each in self.workloads]
        return [each for each in found if each is not None]

    def deliver(self, in_flight: InFlightRequest) -> None:
        """A request arrives."""
        if not self.is_up:
            self.note(f"#{in_flight.number} finds nobody")
            return
        token = _Token(in_flight)
        request = in_flight.request
        if isinstance(request, OffsetCommitRequest):
            self.commits.begin(token, commit_writes(request))
        elif isinstance(request, DeleteGroup):
            self.commits.begin(token, [(key, None) for key in self.commits.offset_keys(request.group_id)])
        self.host.handle(
            request, token, api_version=in_flight.version, client_id=in_flight.sender, client_host="/127.0.0.1"
        )

    # --- the coordinator ----------------------------------------------------------------------------------------------

    def restart(self) -> None:
        self.host.restart()
        self.read_commits()

    def replayed(self, partition: Partition, new_core: Callable[[], Core]) -> None:
        """Rebuild the models from the log: batches that were appended and not written are gone."""
        records = list(read_log(partition))
        self._log = LogModel.of(records)
        for law in self.laws:
            law.begin(records)
        self._shadow = new_core()
        replay_partition(self._shadow, partition)
        self._replay = Replay(self._shadow, self._kind.topic)
        self._is_changed = True

    # --- what leaves the coordinator ----------------------------------------------------------------------------------

    def replied(self, token: _Token, message: Any) -> None:  # noqa: ANN401
        self._answer(token)
        request = token.in_flight.request
        self.note(f"#{token.in_flight.number} <- {self._renderer.message(message) or 'ok'}")
        if isinstance(request, FetchOffsets):
            self._check_read(token, message)
            return
        if isinstance(request, OffsetCommitRequest):
            self.commits.finish(token, commit_codes(message))
        elif isinstance(request, DeleteGroup):
            self.commits.finish(token, lambda key: message.error_code)
        else:
            self._claim(request, message)
        self.network.answer(token.in_flight, message)

    def refused(self, token: _Token, code: ErrorCode, message: str | None) -> None:
        self._answer(token)
        self.note(f"#{token.in_flight.number} <- refused {code.name}")
        self.commits.finish(token, lambda key: code)
        self.network.answer(token.in_flight, Refused(code))

    def _claim(self, request: Any, answer: Any) -> None:  # noqa: ANN401
        """Note the assignments in a response."""
        fault = None
        if isinstance(request, SyncGroupRequest) and answer.error_code == 0:
            owner = request.group_instance_id or request.member_id
            given = read_assignment(bytes(answer.assignment))
            fault = self.claims.take(request.group_id, request.generation_id, owner, given)
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and answer.assignment is not None:
            units = {
                (self.topics.name_of_id(each.topic_id), partition)
                for each in answer.assignment.topic_partitions
                for partition in each.partitions
            }
            owner = request.instance_id or answer.member_id
            fault = self.claims.take(request.group_id, answer.member_epoch, owner, units)
        elif isinstance(request, StreamsGroupHeartbeatRequest) and answer.active_tasks is not None:
            units = {(each.subtopology_id, partition) for each in answer.active_tasks for partition in each.partitions}
            owner = request.instance_id or answer.member_id
            fault = self.claims.take(request.group_id, answer.member_epoch, owner, units)
        self.hold("owned once", fault is None, fault or "")

    def _answer(self, token: _Token) -> None:
        self.hold("answers", not token.is_answered, f"#{token.in_flight.number} is answered twice")
        token.is_answered = True

    def appended(self, batch: BatchView) -> None:
        records = [] if batch.is_control else [self._decoded(each.key, each.value) for each in batch.records()]
        for record in records:
            self.note(f"   record {self._renderer.record(record)}")
            self._note_removal(record)
        try:
            self._log.take(records)
            for law in self.laws:
                law.take(records)
        except Violation as violation:
            self.found(violation)
        self._replay.take(batch)
        self.hold("replay", not self._replay.faults, f"the log has {sorted(self._replay.faults)}")
        self._is_changed = True

    def _note_removal(self, record: KeyedRecord) -> None:
        key = record.key
        if record.value is not None:
            return
        if isinstance(key, GroupMetadataKey):
            self.claims.forget(key.group)
        elif isinstance(key, ConsumerGroupMetadataKey | StreamsGroupMetadataKey):
            self.claims.forget(key.group_id)
        elif isinstance(key, OffsetCommitKey) and self.offsets_expire:
            self.commits.may_vanish((key.group, key.topic, key.partition))

    def _decoded(self, key: Any, value: Any) -> KeyedRecord:  # noqa: ANN401
        return decode_keyed(self._kind.topic, bytes(key), None if value is None else bytes(value))

    def effect(self, effect: Any, done: Callable[[Outcome], None]) -> None:  # noqa: ANN401
        perform = self.performers.get(type(effect))
        if perform is None:
            self.found(Violation("answers", f"nobody performs {type(effect).__name__}"))
            return
        shard = self.host.shard

        def settle(outcome: Outcome) -> None:
            if self.is_up and self.host.shard is shard:
                done(outcome)

        perform(effect, settle)

    def _create_topics(self, effect: CreateInternalTopics, done: Callable[[Outcome], None]) -> None:
        """The controller answers after some time, and may refuse."""

        def create() -> None:
            if not self.is_calm and self.random.random() < 0.2:
                self.note_fault("topics not created")
                done(Outcome(value={each.name: "the controller is busy" for each in effect.topics}))
                return
            for topic in effect.topics:
                if self.topics.by_name(topic.name) is None:
                    self.put_topic(topic.name, topic.partition_count)
            done(Outcome(value={}))

        self.after(self.random.randint(1, 1_500), create)

    def _compute_target(self, effect: ComputeTarget, done: Callable[[Outcome], None]) -> None:
        """The assignor answers after some time, and may fail."""

        def compute() -> None:
            if not self.is_calm and self.random.random() < 0.1:
                self.note_fault("target not computed")
                done(Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, message="the assignor was killed"))
                return
            done(Outcome(value=answer(request_of(effect.choice, effect.parts))))

        self.after(self.random.randint(1, 3_000), compute)

    def lost(self, error: Exception) -> None:
        self.note(f"the shard is lost: {error}")

    def failed(self, call: str, error: Exception) -> None:
        self.found(Violation("failure", f"{call} raised {error!r}"))

    # --- judgement ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check everything that changed since the last check; raises the first violation."""
        if self._is_changed and self.is_up:
            self._is_changed = False
            found = differences(self.host.core.hard_state(), self._shadow.hard_state())
            self.hold("replay", not found, "; ".join(found))
        super().check()

    def check_law(self) -> None:
        """Check the law over the whole log, also compacted."""
        found = self.host.check_law()
        self.hold("replay", not found, "; ".join(found))
        self.check()

    def read_commits(self) -> None:
        """Read back all offsets: each must be the last one that was acknowledged, or a later one."""
        groups: dict[str, dict[str, list[int]]] = {}
        for group_id, topic, partition in self.commits.offset_keys():
            groups.setdefault(group_id, {}).setdefault(topic, []).append(partition)
        for group_id, topics in groups.items():
            asked = tuple(
                _AskedTopic(name=topic, partition_indexes=tuple(partitions)) for topic, partitions in topics.items()
            )
            token = _Token(
                InFlightRequest(0, "reader", 9, FetchOffsets(_AskedGroup(group_id=group_id, topics=asked), False))
            )
            token.candidates = {
                (group_id, topic, partition): self.commits.candidates((group_id, topic, partition))
                for topic, partitions in topics.items()
                for partition in partitions
            }
            self.host.handle(
                token.in_flight.request, token, api_version=9, client_id="reader", client_host="/127.0.0.1"
            )

    def _check_read(self, token: _Token, answer: Any) -> None:  # noqa: ANN401
        for topic in answer.topics:
            for each in topic.partitions:
                key = (answer.group_id, topic.name, each.partition_index)
                found = None if each.committed_offset < 0 else each.committed_offset
                allowed = token.candidates[key]
                self.hold("kept", found in allowed, f"{key} is {found}; it must be one of {sorted(allowed, key=str)}")


class Refused(NamedTuple):
    """A response that is only an error, as clients get it."""

    error_code: int
