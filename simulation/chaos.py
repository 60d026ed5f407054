"""Faults that every world can have, during the chaos of a run.

Faults of the network last for a while and change (`weather`). All others are events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ottla.testing.network import Chances
from ottla.testing.timeline import Timeline
from simulation.host import CoordinatorHost
from simulation.machine import MachineWorld

__all__ = [
    "CHAOS_MS",
    "EVENT_EVERY_MS",
    "WEATHER_EVERY_MS",
    "begin_calm",
    "calm_down",
    "happen",
    "hold_watermark",
    "kill_at_a_write",
    "set_wall_clock",
    "weather",
]

CHAOS_MS: Final = (15_000, 60_000)
EVENT_EVERY_MS: Final = 1_500
WEATHER_EVERY_MS: Final = 10_000
"""For worlds whose groups settle fast."""


def happen(world: Timeline, every_ms: int, events: Sequence[Callable[[], None]]) -> None:
    """Cause random events, one after another."""

    def event() -> None:
        if not world.is_calm:
            happen(world, every_ms, events)
            world.random.choice(events)()

    world.after(world.random.randint(1, 2 * every_ms), event)


def weather(world: MachineWorld, up_to_ms: int, draw: Callable[[], Chances]) -> None:
    """Change the faults of the network at random times."""
    if not world.is_calm:
        world.network.chances = draw()
        world.after(world.random.randint(1, up_to_ms), lambda: weather(world, up_to_ms, draw))


def kill_at_a_write(world: MachineWorld, within: int) -> None:
    """Kill the process in the middle of one of the next disk operations, which is done in part."""
    disk = world.node.machine.disk
    disk.crash_at = disk.operations + world.random.randint(1, within)


def hold_watermark(world: Timeline, host: CoordinatorHost, up_to_ms: int) -> None:
    """Stop the high watermark for a while."""

    def release() -> None:
        host.is_held = False

    world.note_fault("commits held up")
    host.is_held = True
    world.after(world.random.randint(100, up_to_ms), release)


def set_wall_clock(world: Timeline, back_ms: int, forward_ms: int) -> None:
    by_ms = world.random.randint(-back_ms, forward_ms)
    world.note_fault("wall clock set back" if by_ms < 0 else "wall clock set forward", f"{by_ms} ms")
    world.clock.jump_wall(by_ms)


def begin_calm(world: MachineWorld) -> None:
    """End the faults of the network, and those that wait for the disk."""
    world.note("the calm begins")
    world.is_calm = True
    world.network.chances = Chances()
    world.node.machine.disk.crash_at = None


def calm_down(world: Timeline, calm_ms: int, is_quiet: Callable[[], bool], complaint: str) -> None:
    """Wait until everything is quiet; it is a violation if that takes too long."""
    begin_ms = world.now_ms()
    world.run_until(begin_ms + calm_ms, lambda: world.is_up and is_quiet())
    world.settled_ms = world.now_ms() - begin_ms
    world.hold("converges", world.is_up and is_quiet(), complaint)
    world.check()
