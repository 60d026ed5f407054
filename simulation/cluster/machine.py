"""One machine of a simulated cluster: its disk, its clock, and the node that runs there, life after life.

The node is the product's own. What it is given in place of the system's: a disk in memory, threads that end after a
while of virtual time, sockets of the simulated network, a clock, and random numbers from the seed.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.child_process import load_entry
from ottla.broker.loop.randomness import Randomness
from ottla.broker.network.dispatch import Dispatch
from ottla.broker.node import Node
from ottla.broker.replicas.formatter import format_directories
from ottla.core.metadata.features import levels_for_format
from ottla.core.quorum.voters import VoterSet
from ottla.testing.clock import WALL_START_MS
from ottla.testing.disk import VirtualDisk
from simulation.cluster.loop import ClusterLoop
from simulation.cluster.processes import Process, ProcessState

if TYPE_CHECKING:
    from simulation.cluster.world import ClusterWorld

__all__ = ["Machine", "broker_port", "controller_port", "directories", "directory_id", "host"]

CLUSTER_ID: Final = "b3R0bGEtc2ltdWxhdGlvbg"


def broker_port(number: int) -> int:
    return 9002 + 10 * number


def controller_port(number: int) -> int:
    return 9003 + 10 * number


def host(number: int) -> str:
    return f"10.0.0.{number}"


def directory_id(number: int) -> bytes:
    """Of the directory with the metadata."""
    return bytes([number] * 16)


class MachineClock:
    """The clocks of a machine. Measured work takes a little time, so that long work is done in several slices."""

    def __init__(self, loop: ClusterLoop, random: Random) -> None:
        self._loop = loop
        self._random = random
        self._worked_s = 0.0
        self.wall_offset_ms = 0

    def monotonic_ms(self) -> int:
        return self._loop.now_ms

    def wall_ms(self) -> int:
        return WALL_START_MS + self._loop.now_ms + self.wall_offset_ms

    def precise_ns(self) -> int:
        return int(self.precise_s() * 1e9)

    def precise_s(self) -> float:
        self._worked_s += self._random.random() / 2000
        return self._loop.time() + self._worked_s


def directories(number: int) -> tuple[str, str]:
    """The log directories of a machine; the second has no metadata."""
    return f"/data{number}", f"/data{number}b"


class MachineDisk(VirtualDisk):
    """The disk of a machine. An operation that does not return ends the process at once."""

    def __init__(self, machine: Machine, random: Random, capacity_bytes: int | None = None) -> None:
        self._machine = machine
        self.failing: str | None = None
        """A directory in which nothing can be written."""
        super().__init__(random, capacity_bytes=capacity_bytes)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is about to fail."""
        return self.crash_at is None and self.failing is None and self.capacity_bytes is None

    @property
    def now_ms(self) -> int:
        return self._machine.clock.wall_ms()

    @now_ms.setter
    def now_ms(self, _: int) -> None:
        """The machine's clock tells."""

    def _empty(self) -> MachineDisk:
        disk = MachineDisk(self._machine, self.random, self.capacity_bytes)
        disk.failing = self.failing
        return disk

    def count(self, what: str, path: str) -> None:
        if self.failing is not None and path.startswith(f"{self.failing}/"):
            raise OSError(errno.EIO, "Input/output error", path)
        if self.is_next_fatal():
            self._machine.died_in(f"{what} {path}")
        super().count(what, path)

    @property
    def used_bytes(self) -> int:
        return sum(len(node.content) for node in self._files.values())

    @property
    def digest(self) -> str:
        """Of all that lies on it."""
        digest = blake2b(digest_size=8)
        for path, node in sorted(self._files.items()):
            digest.update(path.encode() + node.content)
        return digest.hexdigest()


class _Job:
    """Work in a thread: done at its beginning or at its end, as the disk likes."""

    def __init__(self, offload: MachineOffload, work: Callable[[], None], then: Callable[[], None]) -> None:
        self._offload = offload
        self._work: Callable[[], None] | None = work
        self._then = then
        self.is_finished = False

    def work(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work()

    def finish(self) -> None:
        if not self.is_finished:
            self.is_finished = True
            self._offload.forget(self)
            self.work()
            self._then()


class MachineOffload:
    """The threads of a node."""

    def __init__(self, machine: Machine, loop: asyncio.AbstractEventLoop) -> None:
        self._machine = machine
        self._loop = loop
        self._jobs: dict[_Job, None] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __call__(self, work: Callable[[], None], then: Callable[[], None]) -> Any:  # noqa: ANN401 - stands for a Job
        job, chance = _Job(self, work, then), self._machine.random
        self._jobs[job] = None
        if chance.random() < 0.5:
            job.work()
        self._loop.call_later(chance.uniform(*self._machine.disk_delay_ms) / 1000, job.finish)
        return job

    def forget(self, job: _Job) -> None:
        del self._jobs[job]

    def finish_all(self) -> None:
        while self._jobs:
            next(iter(self._jobs)).finish()

    def close(self) -> None:
        self.finish_all()


class InlineWorker:
    """A child process of a node: its work is done at once, in the thread that waits for it."""

    def __init__(self, entry: str) -> None:
        self._answer = load_entry(entry)

    def call(self, request: Sequence[bytes], limit_ms: int) -> Sequence[bytes]:
        return self._answer(request)

    def close(self) -> None:
        """There is no process."""


class Machine:
    """A machine with a number, which is its node's id."""

    def __init__(self, world: ClusterWorld, number: int, settings: Mapping[str, str]) -> None:
        self.number = number
        self.name = f"n{number}"
        self._world = world
        self._loop = world.loop
        self.random = Random(f"{world.seed} {number}")
        self.config = NodeConfig(dict(settings), {})
        self.clock = MachineClock(world.loop, self.random)
        self.disk = MachineDisk(self, self.random)
        self.disk_delay_ms = (0.1, 2.0)
        self.process: Process | None = None
        self.node: Node | None = None
        """As soon as it is built, before it serves."""
        self.is_serving = False
        self.life = 0
        self.loses_power_with_process = False
        """Whether the machine goes down when its process next ends."""

    def format(self, voters: VoterSet, transaction_version: int) -> None:
        levels = levels_for_format({"transaction.version": transaction_version})
        randomness = Randomness(self.random.randbytes)
        format_directories(
            self.disk, self.config, 0, cluster_id=CLUSTER_ID, levels=levels, voters=voters, randomness=randomness
        )

    @property
    def directories(self) -> tuple[str, str]:
        return directories(self.number)

    @property
    def metadata_path(self) -> str:
        return f"/data{self.number}/__cluster_metadata-0"

    @property
    def is_up(self) -> bool:
        return self.process is not None

    @property
    def has_failed_directory(self) -> bool:
        """Whether a directory fails, or is not used any more because it has failed or was full."""
        directories = () if self.node is None else self.node.replicas.directories
        return self.disk.failing is not None or any(each.is_offline for each in directories)

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.state is ProcessState.PAUSED

    # --- lives --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self.process is not None:
            return
        self.life += 1
        self.loses_power_with_process = False
        self.process = Process(self.name, self.name, self.life)
        self._world.processes.append(self.process)
        self._world.network.power_on(self.name)
        self._world.note(f"{self.name} starts, life {self.life}")
        self.process.run(self._loop, self._main(self.process))

    async def _main(self, process: Process) -> None:
        try:
            await Node.start(
                self.config,
                clock=self.clock,
                randomness=Randomness(Random(f"{self._world.seed} {self.number} {self.life}").randbytes),
                disk=self.disk,
                offload=partial(MachineOffload, self),  # type: ignore[arg-type]
                make_worker=InlineWorker,
                bind=self._world.network.bind,
                dial=self._world.network.dial,
                on_fatal=self._fail,
                dispatch=self._built,
            )
        except Exception as error:  # noqa: BLE001 - the process ends with it
            self._world.failed(self, "start", error)
            return
        self.is_serving = True
        self._world.note(f"{self.name} serves")

    def _built(self, node: Node, *arguments: Any, **options: Any) -> Dispatch:  # noqa: ANN401
        self.node = node
        self._world.built(self, node)
        return Dispatch(node, *arguments, **options)

    def _fail(self, reason: str) -> None:
        """The node asks to be ended."""
        self._world.note(f"{self.name} gives up: {reason}")
        self._world.after(0, partial(self._world.ended, self))

    def kill(self) -> None:
        """End the process: no code of it runs any more, what it has written is in the page cache."""
        self._end()
        self.disk = self._after(power_loss=False)

    def lose_power(self) -> None:
        """End the machine: what is not synced may be lost, and nobody is told that the connections are gone."""
        self._world.network.power_off(self.name)
        self._end()
        self.disk = self._after(power_loss=True)

    def died_in(self, what: str) -> None:
        """The process has died in an operation of its disk."""
        self._world.note(f"{self.name} dies in {what}")
        self._world.after(0, partial(self._world.ended, self))
        if self.process is not None:
            self._end_process(self.process)

    def _after(self, *, power_loss: bool) -> MachineDisk:
        disk = self.disk.crash(power_loss=power_loss)
        assert isinstance(disk, MachineDisk)
        return disk

    def _end(self) -> None:
        process, self.process = self.process, None
        self.node, self.is_serving = None, False
        if process is not None:
            self._end_process(process)

    def _end_process(self, process: Process) -> None:
        process.end()
        self._world.network.end_process(process)

    def pause(self) -> None:
        if self.process is not None and self.process.is_running:
            self.process.state = ProcessState.PAUSED

    def resume(self) -> None:
        if self.process is not None and self.process.state is ProcessState.PAUSED:
            self._loop.resume(self.process)

    def stop(self) -> None:
        """Stop the node cleanly; its process ends when it is done."""
        if self.process is not None and self.node is not None and self.is_serving:
            self.is_serving = False
            self.process.run(self._loop, self._stop(self.node))

    async def _stop(self, node: Node) -> None:
        try:
            await node.stop()
        except Exception as error:  # noqa: BLE001 - the process ends with it
            self._world.failed(self, "stop", error)
            return
        self._world.note(f"{self.name} has stopped")
        self._world.after(0, partial(self._world.ended, self))
