"""A simulated cluster: machines with whole nodes, clients, the network between them, and one clock for all.

The seed decides everything. The trace tells what happened, line by line; two runs of a seed have the same trace.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.config.node_config import StartError
from ottla.broker.controller.metadata_load import MetadataLogError
from ottla.broker.node import Node
from ottla.core.quorum.initial_controllers import read_initial_controllers
from ottla.log.errors import StorageError
from ottla.testing.clock import WALL_START_MS
from ottla.testing.disk import Crash
from ottla.testing.trace import Trace, Violation
from ottla.wire import uuid_text
from simulation.cluster.coordinator_checks import ShareStarts
from simulation.cluster.history import History
from simulation.cluster.loop import ClusterLoop, has_lost_error
from simulation.cluster.machine import Machine, broker_port, controller_port, directories, directory_id, host
from simulation.cluster.network import NOBODY, Network
from simulation.cluster.processes import CURRENT, Process
from simulation.cluster.raft_invariants import RaftInvariants
from simulation.cluster.replica_invariants import ReplicaInvariants

if TYPE_CHECKING:
    from ottla.core.metadata.image import MetadataImage
    from simulation.cluster.clients.client import SimulatedClient

__all__ = ["ClusterWorld", "Shape"]

_SETTINGS: Final = {
    "controller.listener.names": "CONTROLLER",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "200",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.max.timeout.ms": "10000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
} | {
    f"group.{family}.{name}": value
    for family in ("consumer", "share", "streams")
    for name, value in {
        "min.heartbeat.interval.ms": "500",
        "heartbeat.interval.ms": "1000",
        "min.session.timeout.ms": "1000",
        "session.timeout.ms": "5000",
    }.items()
}


_IS_REPLICATED: Final = 0.5
_IS_ABOUT_REPLICATION: Final = 0.5
_AIMS_AT_FOLLOWERS: Final = 0.4
_AIMS_AT_COORDINATORS: Final = 0.4
_IS_ABOUT_COORDINATORS: Final = 0.4
_HAS_OLD_TRANSACTIONS: Final = 0.4
_BOTH: Final = "broker,controller"
_FIVE: Final = dict.fromkeys((1, 2, 3, 4, 5), _BOTH)
_ROLES: Final = (
    dict.fromkeys((1, 2, 3), _BOTH),
    dict.fromkeys((1, 2, 3), _BOTH),
    dict.fromkeys((1, 2, 3), _BOTH),
    {1: _BOTH},
    dict.fromkeys((1, 2), _BOTH),
    _FIVE,
    {1: "controller", 2: "controller", 3: "controller", 4: "broker"},
    {1: "controller", 2: "controller", 3: "controller", 4: "broker", 5: "broker"},
)


class Shape:
    """How large a world is, and what its nodes are told; follows from the seed."""

    def __init__(self, seed: int) -> None:
        chance = Random(f"shape of {seed}")
        self.roles = chance.choice(_ROLES)
        self.has_power_losses = chance.random() < 0.5
        """Then every write is synced before it is acknowledged. Else only processes die; and machines, one at a time,
        where two others have what they lose."""
        self.snapshot_bytes = chance.choice((1_000, 5_000, 20_971_520))
        brokers = sum("broker" in roles for roles in self.roles.values())
        is_replicated = Random(f"replicas of {seed}").random() < _IS_REPLICATED
        self.replication_factor = min(3, brokers) if is_replicated else 1
        self.is_about_replication = (
            self.replication_factor > 1 and Random(f"subject of {seed}").random() < _IS_ABOUT_REPLICATION
        )
        """Then nearly all clients are producers, and brokers are often cut off from each other."""
        self.aims_at_followers = (
            self.is_about_replication
            and self.replication_factor > 2
            and Random(f"aim in {seed}").random() < _AIMS_AT_FOLLOWERS
        )
        """Then some faults wait for a follower to come back, and hit it or its leader at the worst time. Others can
        go on without both."""
        if self.aims_at_followers:
            self.roles = _FIVE
        self.is_about_coordinators = (
            brokers > 1
            and not self.is_about_replication
            and Random(f"coordinators of {seed}").random() < _IS_ABOUT_COORDINATORS
        )
        """Then clients write in transactions or work in share groups, and coordinators are moved."""
        self.is_about_transactions = self.is_about_coordinators and Random(f"clients of {seed}").choice((True, False))
        self.aims_at_coordinators = (
            self.is_about_coordinators and Random(f"moves in {seed}").random() < _AIMS_AT_COORDINATORS
        )
        """Then everything that coordinators and share groups need moves all the time, between nodes that are often out
        of each other's reach."""
        if self.aims_at_coordinators:
            self.replication_factor = min(3, brokers)
        has_old = not self.is_about_replication and Random(f"transactions of {seed}").random() < _HAS_OLD_TRANSACTIONS
        # In version 1 a producer keeps its epoch, and only that of the coordinator tells which markers are stale.
        has_old |= self.aims_at_coordinators
        self.transaction_version = 1 if has_old else 2

    @property
    def min_insync_replicas(self) -> int:
        return max(1, self.replication_factor - 1)


class ClusterWorld:
    def __init__(self, seed: int, shape: Shape | None = None) -> None:
        self.seed = seed
        self.shape = shape or Shape(seed)
        self.random = Random(seed)
        self.trace = Trace()
        self.loop = ClusterLoop()
        self.network = Network(self.loop, Random(f"network of {seed}"))
        self.history = History(self)
        self.raft = RaftInvariants(self)
        self.replicas = ReplicaInvariants(self)
        self.watchers: list[Callable[[Machine, Node], None]] = [
            self.raft.watch,
            self.replicas.watch,
            ShareStarts().watch,
        ]
        """Told of every node that is built, before it does anything."""
        self.processes: list[Process] = []
        """All that ever ran."""
        self.is_calm = False
        """Whether faults are over."""
        self.clients: list[SimulatedClient] = []
        self._client_count = 0
        self.settled_ms = 0
        self._marks = 0
        self.machines = {
            number: Machine(self, number, self._settings(number, roles)) for number, roles in self.shape.roles.items()
        }
        voters = [number for number, roles in self.shape.roles.items() if "controller" in roles]
        entries = ",".join(
            f"{each}@{host(each)}:{controller_port(each)}:{uuid_text(directory_id(each))}" for each in voters
        )
        for machine in self.machines.values():
            self.network.hosts[broker_port(machine.number)] = machine.name
            self.network.hosts[controller_port(machine.number)] = machine.name
            machine.format(read_initial_controllers(entries, "CONTROLLER"), self.shape.transaction_version)

    def _settings(self, number: int, roles: str) -> dict[str, str]:
        controllers = [each for each, told in self.shape.roles.items() if "controller" in told]
        listeners = {
            "broker": f"PLAINTEXT://{host(number)}:{broker_port(number)}",
            "controller": f"CONTROLLER://{host(number)}:{controller_port(number)}",
        }
        return _SETTINGS | {
            "node.id": str(number),
            "process.roles": roles,
            "listeners": ",".join(listeners[role] for role in roles.split(",")),
            "controller.quorum.bootstrap.servers": ",".join(
                f"{host(each)}:{controller_port(each)}" for each in controllers
            ),
            "log.dirs": ",".join(directories(number)),
            **self._replication(),
            "ottla.fsync": str(self.shape.has_power_losses).lower(),
            "metadata.log.max.record.bytes.between.snapshots": str(self.shape.snapshot_bytes),
        }

    def _replication(self) -> dict[str, str]:
        factor, minimum = str(self.shape.replication_factor), str(self.shape.min_insync_replicas)
        factors = ("default", "offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        minima = ("min.insync.replicas", "transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr")
        return {f"{name}.replication.factor": factor for name in factors} | dict.fromkeys(minima, minimum)

    @property
    def brokers(self) -> list[Machine]:
        return [each for each in self.machines.values() if "broker" in self.shape.roles[each.number]]

    @property
    def controllers(self) -> list[Machine]:
        return [each for each in self.machines.values() if "controller" in self.shape.roles[each.number]]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host(each.number)}:{broker_port(each.number)}" for each in self.brokers)

    # --- what happens -------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self.loop.now_ms

    def wall_ms(self) -> int:
        """What the clocks of clients say."""
        return WALL_START_MS + self.loop.now_ms

    def next_mark(self) -> int:
        """A number that no operation had before, such as an offset to commit."""
        self._marks += 1
        return self._marks

    def note(self, line: str) -> None:
        self.trace.add(self.loop.now_ms, line)

    def note_fault(self, kind: str, detail: str = "") -> None:
        self.trace.fault(self.loop.now_ms, kind, detail)

    def after(self, delay_ms: float, action: Callable[[], object]) -> None:
        """Let the world do something later, whoever asks for it."""
        self.loop.call_later(delay_ms / 1000, action, context=NOBODY)

    def built(self, machine: Machine, node: Node) -> None:
        for watch in self.watchers:
            watch(machine, node)

    def failed(self, machine: Machine, what: str, error: Exception) -> None:
        """A node has not started or not stopped. A disk may be the reason; everything else is a bug."""
        self.note(f"{machine.name} does not {what}: {type(error).__name__}: {error}")
        if not isinstance(error, StartError | OSError | StorageError | MetadataLogError):
            self.loop.found_bug(f"{machine.name} does not {what}", error)
        self.after(0, lambda: self.ended(machine))

    def ended(self, machine: Machine) -> None:
        """A process has ended by itself; the machine starts it again, sooner or later."""
        if machine.loses_power_with_process:
            machine.lose_power()
        else:
            machine.kill()
        self.start_later(machine, self.random.randint(10, 1_500))

    def start_later(self, machine: Machine, pause_ms: int) -> None:
        life = machine.life

        def start() -> None:
            if machine.life == life:
                machine.start()

        self.after(pause_ms, start)

    def lost_errors(self) -> Iterator[tuple[str, BaseException]]:
        """Errors of tasks that nobody has looked at."""
        for process in self.processes:
            for task in process.tasks:
                if has_lost_error(task):
                    error = task.exception()
                    if error is not None and not isinstance(error, Crash):
                        yield process.name, error

    def process(self, name: str) -> Process:
        """A new process of a client, on a host of its own."""
        process = Process(name, name)
        self.processes.append(process)
        return process

    def client_number(self) -> int:
        self._client_count += 1
        return self._client_count

    def add_client(self, client: SimulatedClient) -> None:
        self.clients.append(client)
        client.start()

    def kill_client(self, client: SimulatedClient) -> None:
        """End a client in the middle of what it does; another of its kind comes soon."""
        client.process.end()
        self.network.end_process(client.process)
        self.clients.remove(client)
        self.after(self.random.randint(0, 2_000), lambda: self.add_client(type(client)(self)))

    def leader(self) -> Machine | None:
        """The leader of the highest epoch, among the nodes that are up."""
        leading = [each for each in self.machines.values() if each.node is not None and each.node.raft.is_leader]
        return max(leading, key=lambda each: each.node.raft.quorum.epoch if each.node else 0, default=None)

    def newest_image(self) -> MetadataImage | None:
        """The newest that a node knows which serves."""
        images = [each.node.image for each in self.machines.values() if each.node is not None and each.is_serving]
        return max(images, key=lambda image: image.last_offset, default=None)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, script: Callable[[], Any]) -> None:
        """Run a script in this world, and take it down. Raises Violation."""
        with _seeded(self.seed), _complaints(self.loop):
            main = self.loop.create_task(script())
            try:
                self.loop.run_until_complete(main)
            except Violation as violation:
                violation.world = self
                self.note(f"VIOLATION {violation}")
                raise
            finally:
                self._take_down()

    def _tasks(self) -> list[asyncio.Task[Any]]:
        return self.loop.tasks + [task for process in self.processes for task in process.tasks]

    def _take_down(self) -> None:
        """Close what still waits, while nothing of it can do anything any more."""
        for process in self.processes:
            process.end()
        asyncio._set_running_loop(self.loop)  # for what a task still starts when it is closed
        closed: set[asyncio.Task[Any]] = set()
        while left := [each for each in self._tasks() if not each.done() and each not in closed]:
            for task in left:  # what is closed may make further tasks to clean up
                closed.add(task)
                with suppress(BaseException):
                    task.get_coro().close()
        asyncio._set_running_loop(None)
        self.loop.violations.clear()
        self.loop.set_exception_handler(lambda *_: None)
        self.loop.close()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Clients draw from Python's own random numbers and from the system's."""
    state, urandom = random.getstate(), os.urandom
    random.seed(seed)
    os.urandom = random.randbytes
    was_enabled = gc.isenabled()
    gc.disable()  # when an object is torn down must not depend on what the process did before
    try:
        yield
    finally:
        os.urandom = urandom
        random.setstate(state)
        if was_enabled:
            gc.enable()


class _Complaints(logging.Handler):
    """Takes an exception that a node has logged for what it is: a bug."""

    def __init__(self, loop: ClusterLoop) -> None:
        super().__init__(logging.ERROR)
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        process = CURRENT.get()
        if record.exc_info and record.exc_info[1] is not None and (process is None or process.is_running):
            self._loop.found_bug(record.getMessage(), record.exc_info[1])


@contextmanager
def _complaints(loop: ClusterLoop) -> Iterator[None]:
    """Nodes warn of each fault; only what they did not expect counts."""
    logger, handler = logging.getLogger("ottla"), _Complaints(loop)
    level, propagates, disabled = logger.level, logger.propagate, logging.root.manager.disable
    logging.disable(logging.NOTSET)
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
        logging.disable(disabled)
