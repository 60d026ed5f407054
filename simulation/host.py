"""One coordinator with its log on a virtual disk: a broker around a shard, without sockets and without an event loop.

A host works in *turns*, as a broker does: the core decides about all requests, then `turn` writes the batch, moves the
high watermark and releases responses, until nothing is left to do. `restart` is a kill: only the disk remains.
`check_law` compares the live core with one that replays the log, and with one that replays the compacted log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, Protocol, cast

from ottla.broker.coordinators.core_factory import CorePartition
from ottla.broker.coordinators.counts import RuntimeCounts
from ottla.broker.coordinators.partition_writer import ReplicaWriter
from ottla.broker.coordinators.shard import Shard
from ottla.broker.replicas.replicas import Replica
from ottla.core.coordinator.contract import Core, Outcome, TopicsChange
from ottla.log.errors import StorageError
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition
from ottla.wire.batch import BatchView
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from simulation.coordinator_kinds import MakeCore
from simulation.environment import Environment
from simulation.machine import COORDINATOR_LOG, Machine
from simulation.virtual_replica import VirtualReplica, compact_fully, replay_partition

__all__ = ["CoordinatorHost", "Observer", "differences"]

_WRITE_TIMEOUT_MS: Final = 5_000
"""The default of offsets.commit.timeout.ms."""


class Observer(Protocol):
    """Observes a host."""

    def replayed(self, partition: Partition, new_core: Callable[[], Core]) -> None:
        """A new core has replayed the log, and has not decided anything yet. `new_core` makes others like it."""
        ...

    def replied(self, token: Any, message: Any) -> None: ...  # noqa: ANN401
    def refused(self, token: Any, code: ErrorCode, message: str | None) -> None: ...  # noqa: ANN401
    def appended(self, batch: BatchView) -> None: ...
    def effect(self, effect: Any, done: Callable[[Outcome], None]) -> None: ...  # noqa: ANN401
    def lost(self, error: Exception) -> None: ...
    def failed(self, call: str, error: Exception) -> None:
        """The core has raised an unexpected exception: a bug."""
        ...


class _WatchedCore:
    """Passes every call on to a core and reports exceptions, which a shard would only log."""

    def __init__(self, core: Core, failed: Callable[[str, Exception], None]) -> None:
        self.core = core
        self._failed = failed

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a core has
        found = getattr(self.core, name)
        return self._watched(name, found) if callable(found) else found

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:  # noqa: ANN401
            try:
                return call(*arguments)
            except Reject:
                raise
            except Exception as error:
                self._failed(name, error)
                raise

        return watched


class CoordinatorHost:
    """A coordinator of one partition. `make_core` makes an empty core, at each start.

    `leader_epochs` gives a higher epoch for each start; a new host for an old log continues the old epochs.
    """

    def __init__(
        self,
        make_core: MakeCore,
        topic: str,
        environment: Environment,
        machine: Machine,
        observer: Observer,
        leader_epochs: Iterator[int] | None = None,
    ) -> None:
        self.environment = environment
        self.machine = machine
        self.clock = machine.clock
        self.is_held = False
        """Whether the high watermark is held back."""
        self._make_core = make_core
        self._observer = observer
        self._topic_partition = TopicPartition(topic, 0)
        self._is_lost = False
        self._leader_epochs = leader_epochs or count()
        self._leader_epoch = 0
        self.start()

    # --- starting and stopping ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover the log from the disk, and load it."""
        self.partition = self.machine.open(self._topic_partition, COORDINATOR_LOG)
        self.load()

    def load(self) -> None:
        """Make the shard from the present log."""
        self._is_lost = False
        self.is_held = False
        self._leader_epoch = next(self._leader_epochs)
        self.partition.become_leader(self._leader_epoch)
        self.partition.update_high_watermark(self.partition.log_end_offset)
        core = self._replayed(self.partition)
        self.replica = VirtualReplica(self.partition, self._leader_epoch, self.clock, self._observer.appended)
        writer = ReplicaWriter(cast(Replica, self.replica), self._leader_epoch, self.clock.wall_ms, RuntimeCounts())
        self.core = core
        watched = cast(Core, _WatchedCore(core, self._observer.failed))
        self.shard = Shard(watched, writer, self.environment.world, self, write_timeout_ms=_WRITE_TIMEOUT_MS)
        self._observer.replayed(self.partition, self.new_core)
        self.shard.start()
        self.turn()

    def new_core(self) -> Core:
        """An empty core of this coordinator."""
        settings = self.environment.world.settings
        return self._make_core(CorePartition(0, self._leader_epoch, lambda topic, partition: True, settings))

    def restart(self) -> None:
        """The process is killed; another starts with the disk that remains."""
        self.machine.crash()
        self.start()

    def unload(self) -> None:
        """Leadership moves away; waiting requests get NOT_COORDINATOR."""
        self.shard.unload()

    # --- what comes in ------------------------------------------------------------------------------------------------

    def handle(self, request: Any, token: Any, **context: Any) -> None:  # noqa: ANN401
        """Pass a request to the core, without ending the turn."""
        if not self.shard.is_loaded:
            self._observer.refused(token, ErrorCode.NOT_COORDINATOR, None)
            return
        self.shard.handle(request, self.shard.context(token=token, **context))

    def topics_changed(self, change: TopicsChange) -> None:
        self.shard.tell(lambda context: self.core.topics_changed(change, context))

    def next_at_ms(self) -> int | None:
        return self.shard.next_at_ms() if self.shard.is_loaded else None

    def expire(self) -> None:
        if self.shard.is_loaded:
            self.shard.expire()

    def turn(self) -> None:
        """Write what was decided and release what is committed, until nothing is left to do."""
        while True:
            self.shard.flush()
            try:
                self.partition.write()
            except StorageError as error:
                self.lost(self.shard, error)
            if self._is_lost:
                self.shard.unload()
                self.load()
                return
            if not self.is_held:
                self.partition.update_high_watermark(self.partition.log_end_offset)
            end_offset = self.shard.end_offset
            self.shard.advance()
            if self.shard.end_offset == end_offset:
                return

    # --- the shard's edge ---------------------------------------------------------------------------------------------

    def monotonic_ms(self) -> int:
        return self.clock.monotonic_ms()

    def wall_ms(self) -> int:
        return self.clock.wall_ms()

    def reply(self, token: Any, message: Any) -> None:  # noqa: ANN401
        self._observer.replied(token, message)

    def refuse(self, token: Any, code: ErrorCode, message: str | None) -> None:  # noqa: ANN401
        self._observer.refused(token, code, message)

    def perform(self, effect: Any, done: Callable[[Outcome], None]) -> None:  # noqa: ANN401
        self._observer.effect(effect, done)

    def unflushed(self, shard: Shard) -> None:
        """Every turn ends with a flush here."""

    def due_at(self, shard: Shard, at_ms: int) -> None:
        """Nothing to do: the world calls `next_at_ms` when it moves the clock."""

    def lost(self, shard: Shard, error: Exception) -> None:
        self._is_lost = True
        self._observer.lost(error)

    # --- judgement ----------------------------------------------------------------------------------------------------

    def check_law(self, *, compacted: bool = True) -> list[str]:
        """The differences between the live core and its replayed log; none if the law holds."""
        live = self.core.hard_state()
        found = _told("replayed log", differences(live, self._replayed(self.partition).hard_state()))
        if compacted:
            copy = self.machine.copy().open(self._topic_partition, COORDINATOR_LOG)
            compact_fully(copy, self.clock.wall_ms())
            found += _told("replayed compacted log", differences(live, self._replayed(copy).hard_state()))
        return found

    def _replayed(self, partition: Partition) -> Core:
        """A new core that has replayed a log."""
        core = self.new_core()
        for fault in replay_partition(core, partition):
            self._observer.failed("replay", AssertionError(f"the log has {fault}"))
        return core


def differences(live: Mapping[Any, Any], other: Mapping[Any, Any]) -> list[str]:
    """The differences of two states, entry by entry."""
    keys = sorted(live.keys() | other.keys(), key=repr)
    return [
        f"{key!r}: live {live.get(key, 'has none')!r}, there {other.get(key, 'has none')!r}"
        for key in keys
        if live.get(key, None) != other.get(key, None) or (key in live) != (key in other)
    ]


def _told(where: str, found: list[str]) -> list[str]:
    return [f"{where}: {each}" for each in found]
