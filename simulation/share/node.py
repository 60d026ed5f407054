"""Two brokers that lead share partitions, and the coordinator of their state, on one machine.

Leaders, sessions, request handling, the persister, the core, its shard and all logs are the product's. The rest of a
node is done here without an event loop: turns, deadlines, delayed fetches. The brokers reach the coordinator over a
connection of their own that may be slow, as if it were another node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, cast

from ottla.broker.handlers import share_acknowledge, share_fetch
from ottla.broker.loop.delayed_operations import DelayedOperation, DelayedOperations
from ottla.broker.network.request import DelayedResponse, Request
from ottla.broker.replicas.lookup import Endpoint, Leader
from ottla.broker.share.acknowledgements import acknowledge
from ottla.broker.share.delayed_share_fetch import fetch
from ottla.broker.share.edge import Source
from ottla.broker.share.leader import ShareLeader
from ottla.broker.share.persister import Persister
from ottla.core.coordinator.contract import COMMITTED, Core, Outcome
from ottla.core.share.partition.events import DeadLetters
from ottla.core.share.state import PruneLog
from ottla.core.share.state.kept import Key
from ottla.core.share.state.messages import refusal
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.wire.access import Operation, ResourceType
from ottla.wire.batch import BatchBuilder, BatchView
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.share_fetch import ShareFetchRequest
from simulation.coordinator_kinds import KINDS
from simulation.environment import Environment
from simulation.host import CoordinatorHost
from simulation.machine import DATA_LOG, Machine

__all__ = ["BROKERS", "TOPIC", "Broker", "ShareConnection", "ShareMachine", "StateLog"]

BROKERS: Final = 2
TOPIC: Final = "t"
_KIND: Final = KINDS["share state"]

Answer = Callable[[Any], None]


class StateLog(NamedTuple):
    """Observes the records of `__share_group_state`."""

    begun: Callable[[Partition], None]
    appended: Callable[[BatchView], None]
    failed: Callable[[str], None]


class ShareConnection:
    """The connection of a member to one of the brokers."""

    principal = "User:ANONYMOUS"

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.waiting: set[DelayedResponse] = set()
        self.is_open = True


class _Source:
    """A partition while one broker leads it."""

    has_log = True

    def __init__(self, log: Partition, leader_epoch: int) -> None:
        self.topic_partition = log.topic_partition
        self.log = log
        self.leader_epoch = leader_epoch
        self.bytes_out = 0


class ShareMachine:
    """All brokers run on it and are killed together."""

    def __init__(
        self,
        machine: Machine,
        environment: Environment,
        partition_count: int,
        state_log: StateLog,
        later: Callable[[int, Callable[[], None]], None],
    ) -> None:
        self.machine = machine
        self.environment = environment
        self.state_log = state_log
        self.delay: Callable[[], int] = lambda: 0
        """How long a broker's request takes to the coordinator."""
        self.later = later
        """Calls a function after so many milliseconds."""
        self.asked_count = 0
        """How many requests have reached the coordinator."""
        self._partitions = range(partition_count)
        self._state_epochs = count()
        self.leader_epochs = dict.fromkeys(self._partitions, 0)
        self.leaders: dict[int, int | None] = {number: number % BROKERS for number in self._partitions}
        """Partition -> broker; None while there is no leader."""
        self._start()

    def _start(self) -> None:
        self.life = object()
        names = [TopicPartition(TOPIC, number) for number in self._partitions]
        self.data = [self.machine.open(name, DATA_LOG) for name in names]
        self.brokers = [Broker(self) for _ in range(BROKERS)]
        observer = _Observer(self)
        self.state = CoordinatorHost(
            _KIND.make_core, _KIND.topic, self.environment, self.machine, observer, self._state_epochs
        )
        for number in self._partitions:
            self._lead(number, self.leaders[number] or 0)

    def restart(self) -> None:
        self.machine.crash()
        self._start()
        self.turn()

    # --- leadership ---------------------------------------------------------------------------------------------------

    def _lead(self, number: int, broker: int) -> None:
        self.leaders[number] = broker
        self.leader_epochs[number] += 1
        self.data[number].become_leader(self.leader_epochs[number])
        self.brokers[broker].sources[number] = _Source(self.data[number], self.leader_epochs[number])

    def resign(self, number: int) -> None:
        """The partition has no leader until `elect`."""
        broker = self.leaders[number]
        if broker is not None:
            self.leaders[number] = None
            del self.brokers[broker].sources[number]
            self.brokers[broker].leader.follow()
            self.brokers[broker].wake(self.data[number].topic_partition)

    def elect(self, number: int, broker: int) -> None:
        if self.leaders[number] is None:
            self._lead(number, broker)

    # --- data ---------------------------------------------------------------------------------------------------------

    def produce(self, number: int, values: Sequence[bytes]) -> None:
        builder = BatchBuilder()
        now_ms = self.machine.clock.wall_ms()
        for value in values:
            builder.append(now_ms, b"k", value)
        self.data[number].stage_as_leader(
            bytearray(builder.build()),
            self.leader_epochs[number],
            now_ms,
            verification=Verification(),
        )

    # --- turns and deadlines ------------------------------------------------------------------------------------------

    def next_at_ms(self) -> int | None:
        known = [self.state.next_at_ms(), *(each.next_at_ms() for each in self.brokers)]
        return min((at_ms for at_ms in known if at_ms is not None), default=None)

    def expire(self) -> None:
        self.state.expire()
        for broker in self.brokers:
            broker.expire()

    def turn(self) -> None:
        """Write and respond until nothing is left to do."""
        while True:
            before = (self.state.shard.end_offset, self.asked_count)
            self.state.turn()
            self._write()
            woken = [broker.rouse() for broker in self.brokers]
            if not any(woken) and before == (self.state.shard.end_offset, self.asked_count):
                return

    def _write(self) -> None:
        for partition in self.data:
            partition.write()
            if partition.update_high_watermark(partition.log_end_offset):
                for broker in self.brokers:
                    broker.wake(partition.topic_partition)


class Broker:
    """The edge of a `ShareLeader`, and all that a `Persister` needs of a node."""

    def __init__(self, machine: ShareMachine) -> None:
        self._machine = machine
        self._clock = machine.machine.clock
        self._world = machine.environment.world
        self._delayed = DelayedOperations()
        self._woken: dict[Hashable, None] = {}
        self._line_free_at_ms = 0
        self.sources: dict[int, _Source] = {}
        self.clock = self._clock
        self.purgatory = self._delayed
        self.monotonic_ms = self._clock.monotonic_ms
        self.wall_ms = self._clock.wall_ms
        self.persist = Persister(self, lambda body, keys, done: self.ask_state(body, done)).ask
        self.leader = ShareLeader(self)

    # --- requests -----------------------------------------------------------------------------------------------------

    def ask(self, connection: ShareConnection, body: Any, version: int, answer: Answer) -> None:  # noqa: ANN401
        if not connection.is_open:
            return
        is_fetch = isinstance(body, ShareFetchRequest)
        key, handler = (78, share_fetch) if is_fetch else (79, share_acknowledge)
        request = Request(cast(Any, connection), key, version, 0, "member", body, self.monotonic_ms())
        try:
            result = (fetch if is_fetch else acknowledge)(self.leader, request)
        except Reject as reject:
            answer(handler.refuse(request, reject.code, reject.message))
            return
        if not isinstance(result, DelayedResponse):
            answer(result)
            return
        connection.waiting.add(result)

        def deliver(message: Any) -> None:  # noqa: ANN401
            connection.waiting.discard(result)
            answer(message)

        result.deliver_to(deliver)

    def disconnect(self, connection: ShareConnection) -> bool:
        """The connection is closed; returns whether a fetch was dropped with it."""
        given_up = bool(connection.waiting)
        connection.is_open = False
        for later in list(connection.waiting):
            later.cancel()
        connection.waiting.clear()
        self.leader.disconnected(connection)
        return given_up

    def dead_letter(self, key: Key, source: Source, letters: DeadLetters, done: Callable[[], None]) -> None:
        """Groups have no dead-letter queue here."""
        raise AssertionError(letters)

    # --- time and waiting ---------------------------------------------------------------------------------------------

    def next_at_ms(self) -> int | None:
        known = [self._delayed.next_deadline(), self.leader.next_at_ms()]
        return min((at_ms for at_ms in known if at_ms is not None), default=None)

    def expire(self) -> None:
        self.leader.expire()
        self._delayed.expire(self.monotonic_ms())

    def rouse(self) -> bool:
        """Retry delayed fetches whose partitions have changed; returns whether there were any."""
        woken, self._woken = self._woken, {}
        for key in woken:
            self._delayed.wake(key)
        return bool(woken)

    def park(self, delayed: DelayedOperation) -> bool:
        return self._delayed.park(delayed)

    def unpark(self, delayed: DelayedOperation) -> None:
        self._delayed.remove(delayed)

    def wake(self, key: Hashable) -> None:
        self._woken[key] = None

    def due_at(self, at_ms: int) -> None:
        """Nothing to do: the world calls `next_at_ms` when it moves the clock."""

    # --- what a leader looks up ---------------------------------------------------------------------------------------

    @property
    def settings_version(self) -> int:
        return self._world.settings_version

    def setting(self, name: str) -> Any:  # noqa: ANN401
        return self._world.settings[name]

    def group_setting(self, group_id: str, name: str) -> Any:  # noqa: ANN401
        return self._world.group_setting(group_id, name)

    def share_version(self) -> int:
        return self._world.feature("share.version")

    def authorize(self, request: Request, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return True

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._world.topics.by_id(topic_id)
        return None if topic is None else topic.name

    def source(self, topic_name: str, partition: int) -> _Source:
        source = self.sources.get(partition)
        if source is None:
            raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return source

    def leader_of(self, topic_name: str, partition: int) -> Leader:
        leader = self._machine.leaders[partition]
        return Leader(-1 if leader is None else leader, self._machine.leader_epochs[partition])

    def endpoints(self, request: Request, leader_ids: Iterable[int]) -> Iterable[Endpoint]:
        return [Endpoint(number, "127.0.0.1", 9092 + number, None) for number in sorted(set(leader_ids) - {-1})]

    def throttle_ms(self, request: Request) -> int:
        return 0

    # --- the line to the coordinator ----------------------------------------------------------------------------------

    def send(self, call: Callable[[], None]) -> None:
        """Calls are made in order, as on one connection."""
        now_ms, life, machine = self.monotonic_ms(), self._machine.life, self._machine
        at_ms = max(now_ms + machine.delay(), self._line_free_at_ms)
        self._line_free_at_ms = at_ms

        def arrive() -> None:
            if machine.life is life:  # otherwise its process is gone
                call()

        if at_ms == now_ms:
            arrive()
        else:
            machine.later(at_ms - now_ms, arrive)

    def ask_state(self, body: Any, done: Answer) -> None:  # noqa: ANN401
        """Ask the coordinator of the state of all share partitions."""
        self.send(partial(self.tell_state, body, done, partial(refusal, body)))

    def tell_state(self, body: Any, done: Answer, refuse: Callable[..., Any]) -> None:  # noqa: ANN401
        self._machine.asked_count += 1
        self._machine.state.handle(body, _StateToken(done, refuse), client_id="broker", client_host="/127.0.0.1")


class _StateToken(NamedTuple):
    done: Answer
    refuse: Callable[..., Any]


class _Observer:
    """Observes the coordinator."""

    def __init__(self, machine: ShareMachine) -> None:
        self._machine = machine

    def replayed(self, partition: Partition, new_core: Callable[[], Core]) -> None:
        self._machine.state_log.begun(partition)

    def replied(self, token: _StateToken, message: Any) -> None:  # noqa: ANN401
        token.done(message)

    def refused(self, token: _StateToken, code: ErrorCode, message: str | None) -> None:
        token.done(token.refuse(code, message))

    def appended(self, batch: BatchView) -> None:
        self._machine.state_log.appended(batch)

    def effect(self, effect: Any, done: Callable[[Outcome], None]) -> None:  # noqa: ANN401
        if isinstance(effect, PruneLog):
            self._machine.state.partition.delete_records(effect.offset)
            done(COMMITTED)
        else:
            self._machine.state_log.failed(f"nobody performs {type(effect).__name__}")

    def lost(self, error: Exception) -> None:
        pass

    def failed(self, call: str, error: Exception) -> None:
        self._machine.state_log.failed(f"{call} raised {error!r}")
