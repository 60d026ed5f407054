"""The faults of a world of share groups, and its run from beginning to end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.testing.network import Chances
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
from simulation.share.member import ShareMember
from simulation.share.node import BROKERS
from simulation.share.world import GROUP, ShareWorld

__all__ = ["run_share"]

_CALM_MS: Final = 180_000


def run_share(world: ShareWorld) -> None:
    """Chaos, then calm: members accept all remaining records, and the history is checked."""
    faults = _Faults(world)
    for number in range(world.random.randint(1, 5)):
        world.members.append(ShareMember(world, f"m{number}", GROUP))
    faults.begin()
    for member in world.members:
        world.after(world.random.randint(0, 5_000), member.start_unless_alive)
    world.run_until(world.random.randint(*CHAOS_MS))
    faults.end()
    calm_down(world, _CALM_MS, world.is_quiet, "there are records that nobody gets")
    world.check_ends()
    world.check_law()
    world.check()


class _Faults:
    def __init__(self, world: ShareWorld) -> None:
        self._world = world
        world.node.delay = self._delay
        self._events: list[Callable[[], None]] = [
            world.kill,
            *[partial(kill_at_a_write, world, 12)] * 3,
            self._move_coordinator,
            self._hold_watermark,
            self._move_leader,
            self._move_leader,
            self._crash_member,
            self._crash_member,
            self._stop_member,
            self._break_connection,
            self._delete_records,
            partial(set_wall_clock, world, 5_000, 60_000),
            self._alter,
        ]

    def begin(self) -> None:
        weather(self._world, WEATHER_EVERY_MS, self._chances)
        self._produce()
        happen(self._world, EVENT_EVERY_MS, [partial(self._if_up, each) for each in self._events])

    def end(self) -> None:
        world = self._world
        begin_calm(world)
        if world.is_up:
            self._mend()
        else:
            world.after(10_000, self._mend)
        for member in world.members:
            world.after(1_000, member.start_unless_alive)

    def _mend(self) -> None:
        node = self._world.node
        node.state.is_held = False
        if not node.state.shard.is_loaded:
            node.state.load()
        for number in node.leaders:
            node.elect(number, 0)

    # --- weather ------------------------------------------------------------------------------------------------------

    def _chances(self) -> Chances:
        draw = self._world.random.random
        return Chances(
            request_lost=0.06 * draw() ** 2,
            answer_lost=0.08 * draw() ** 2,
            late=0.05 * draw() ** 2,
            slow=0.05 * draw() ** 2,
        )

    def _delay(self) -> int:
        chance = self._world.random
        return chance.randint(1, 1_500) if not self._world.is_calm and chance.random() < 0.1 else 0

    def _produce(self) -> None:
        world = self._world
        if world.is_calm:
            return
        if world.is_up:
            world.produce()
        world.after(world.random.choice((10, 100, 500, 2_000)), self._produce)

    # --- events -------------------------------------------------------------------------------------------------------

    def _if_up(self, event: Callable[[], None]) -> None:
        if self._world.is_up:
            event()

    def _move_coordinator(self) -> None:
        world = self._world
        if world.node.state.shard.is_loaded:
            world.note_fault("coordinator moved")
            world.node.state.unload()
            world.after(world.random.randint(100, 3_000), self._regain)

    def _regain(self) -> None:
        state = self._world.node.state
        if self._world.is_up and not state.shard.is_loaded:
            state.load()

    def _hold_watermark(self) -> None:
        hold_watermark(self._world, self._world.node.state, 8_000)

    def _move_leader(self) -> None:
        world = self._world
        number = world.random.randrange(world.partition_count)
        if world.node.leaders[number] is not None:
            world.note_fault("leader moved", str(number))
            world.node.resign(number)
            broker = world.random.randrange(BROKERS)
            world.after(world.random.randint(0, 2_000), lambda: self._elect(number, broker))

    def _elect(self, number: int, broker: int) -> None:
        if self._world.is_up:
            self._world.node.elect(number, broker)

    def _crash_member(self) -> None:
        member = self._world.random.choice(self._world.members)
        if member.is_alive:
            self._world.note_fault("member crashed", member.name)
            member.crash()
            self._world.after(self._world.random.randint(1, 8_000), member.start_unless_alive)

    def _stop_member(self) -> None:
        member = self._world.random.choice(self._world.members)
        if member.is_alive:
            self._world.note_fault("member stopped", member.name)
            member.stop()
            self._world.after(self._world.random.randint(1_000, 8_000), lambda: self._start_anew(member))

    def _start_anew(self, member: ShareMember) -> None:
        if member.is_alive:
            member.crash()
        member.start()

    def _break_connection(self) -> None:
        member = self._world.random.choice(self._world.members)
        if member.is_alive:
            self._world.note_fault("connection broken", member.name)
            member.break_connection()

    def _delete_records(self) -> None:
        if self._world.random.random() < 0.3:
            self._world.delete_records()

    def _alter(self) -> None:
        if self._world.random.random() < 0.2:
            self._world.note_fault("offsets altered")
            self._world.alter()
