"""The faults of a world of transactions, and its run from beginning to end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.testing.network import Chances
from ottla.wire.errors import ErrorCode
from simulation.chaos import (
    CHAOS_MS,
    EVENT_EVERY_MS,
    WEATHER_EVERY_MS,
    begin_calm,
    calm_down,
    happen,
    hold_watermark,
    kill_at_a_write,
    set_wall_clock,
    weather,
)
from simulation.clients.producer import TransactionalProducer
from simulation.transaction_world import OUTPUTS, TransactionWorld
from simulation.virtual_replica import compact_live

__all__ = ["run_transactions"]

_CALM_MS: Final = 90_000
_MARKER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR)


def run_transactions(world: TransactionWorld, transaction_version: int) -> None:
    """Chaos, then calm: all clients stop, and the invariants are checked."""
    faults = _Faults(world, transaction_version)
    for number in range(world.random.randint(1, 3)):
        faults.start(f"s{number}")
    faults.begin()
    world.run_until(world.random.randint(*CHAOS_MS))
    faults.end()
    calm_down(world, _CALM_MS, world.is_quiet, "somebody is not done, or a transaction is still open")
    world.check_exactly_once()
    world.check_law()
    world.check()


class _Faults:
    def __init__(self, world: TransactionWorld, transaction_version: int) -> None:
        self._world = world
        self._version = transaction_version
        self._events: list[Callable[[], None]] = [
            world.kill,
            *[partial(kill_at_a_write, world, 12)] * 3,
            self._move_leadership,
            self._hold_watermark,
            partial(set_wall_clock, world, 5_000, 60_000),
            self._compact,
            self._crash_program,
            self._crash_program,
            self._replace_program,
            self._replace_program,
            self._look,
        ]
        world.node.marker_delay = self._marker_delay
        world.node.marker_error = self._marker_error

    def start(self, stream: str) -> None:
        world = self._world
        name = f"{stream}-{sum(program.stream == stream for program in world.programs)}"
        program = TransactionalProducer(world, name, stream, OUTPUTS, self._version)
        world.programs.append(program)
        program.start()

    def begin(self) -> None:
        weather(self._world, WEATHER_EVERY_MS, self._chances)
        happen(self._world, EVENT_EVERY_MS, self._events)

    def end(self) -> None:
        world = self._world
        begin_calm(world)
        for host in world.node.hosts:
            host.is_held = False
            if world.is_up and not host.shard.is_loaded:
                host.load()
        for program in world.programs:
            program.is_finishing = True

    # --- weather ------------------------------------------------------------------------------------------------------

    def _chances(self) -> Chances:
        draw = self._world.random.random
        return Chances(
            request_lost=0.08 * draw() ** 2,
            answer_lost=0.08 * draw() ** 2,
            doubled=0.2 * draw() ** 2,
            # Only with version 2 can a late request be distinguished from one of the next transaction.
            late=0.05 * draw() ** 2 if self._version >= 2 else 0.0,
            slow=0.05 * draw() ** 2,
        )

    def _marker_delay(self, write: Callable[[], None]) -> None:
        chance = self._world.random
        if self._world.is_calm or chance.random() < 0.6:
            write()
        else:
            self._world.after(chance.randint(1, 2_000), write)

    def _marker_error(self) -> ErrorCode:
        chance = self._world.random
        if self._world.is_calm or chance.random() > 0.1:
            return ErrorCode.NONE
        self._world.note_fault("marker refused")
        return chance.choice(_MARKER_ERRORS)

    # --- events -------------------------------------------------------------------------------------------------------

    def _move_leadership(self) -> None:
        world = self._world
        host = world.random.choice(world.node.hosts)
        if world.is_up and host.shard.is_loaded:
            world.note_fault("leadership moved")
            host.unload()
            world.after(world.random.randint(100, 3_000), lambda: self._regain(host.partition.topic_partition.topic))

    def _regain(self, topic: str) -> None:
        """Elect a leader again; the process may have been replaced since."""
        host = next(each for each in self._world.node.hosts if each.partition.topic_partition.topic == topic)
        if self._world.is_up and not host.shard.is_loaded:
            host.load()

    def _hold_watermark(self) -> None:
        hold_watermark(self._world, self._world.random.choice(self._world.node.hosts), 8_000)

    def _compact(self) -> None:
        world = self._world
        host = world.random.choice(world.node.hosts)
        if world.is_up and compact_live(host.partition, world.clock.wall_ms()):
            world.note_fault("log compacted")

    def _crash_program(self) -> None:
        program = self._world.random.choice(self._world.programs)
        if program.is_alive:
            self._world.note_fault("program crashed", program.name)
            program.crash()
            self._world.after(self._world.random.randint(1, 8_000), lambda: self._start_again(program))

    def _start_again(self, program: TransactionalProducer) -> None:
        if not program.is_replaced:
            program.start_unless_alive()

    def _replace_program(self) -> None:
        """Another process with the same id starts, while the first one still runs."""
        program = self._world.random.choice(self._world.programs)
        if program.is_alive and not program.is_replaced:
            self._world.note_fault("program replaced", program.name)
            program.is_replaced = True
            self.start(program.stream)

    def _look(self) -> None:
        if self._world.is_up:
            self._world.check_committed()
