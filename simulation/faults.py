"""The faults of a world of groups: the seed determines them, and they end when the calm begins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.testing.network import Chances
from ottla.wire.errors import ErrorCode
from simulation.chaos import begin_calm, happen, hold_watermark, kill_at_a_write, set_wall_clock, weather
from simulation.clients.client import Client
from simulation.virtual_replica import compact_live
from simulation.world import World

__all__ = ["Faults"]

_EVENT_EVERY_MS: Final = 4_000
_WEATHER_EVERY_MS: Final = 20_000
_REFUSALS: Final = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)
_HOUR_MS: Final = 3_600_000
_PARTITIONS_MAX: Final = 12
_CHANGING: Final = ("t0", "t1")
"""Topics that grow and are deleted while they are used."""


class Faults:
    """Causes faults until the calm begins."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._events: list[Callable[[], None]] = [
            world.kill,
            *[partial(kill_at_a_write, world, 6)] * 2,
            self._move_leadership,
            self._hold_watermark,
            self._refuse_append,
            partial(set_wall_clock, world, _HOUR_MS, _HOUR_MS),
            self._compact,
            self._compact,
            self._grow_topic,
            self._delete_topic,
            self._crash_client,
            self._crash_client,
            self._stop_client,
            self._stop_client,
            self._start_client,
            self._start_client,
            self._read_back,
        ]

    def begin(self) -> None:
        weather(self._world, _WEATHER_EVERY_MS, self._chances)
        happen(self._world, _EVENT_EVERY_MS, self._events)

    def end(self) -> None:
        """The calm begins."""
        world = self._world
        begin_calm(world)
        world.host.is_held = False
        world.host.replica.refusals.clear()
        self._last_change()

    def _last_change(self) -> None:
        """A client joins, or one crashes for good: the groups must notice by themselves."""
        chance = self._world.random
        alive = [client for client in self._clients() if client.is_alive]
        if alive and chance.random() < 0.5:
            self._world.note_fault("client crashed", "for good")
            chance.choice(alive).crash()
            return
        for client in self._clients():
            if chance.random() < 0.7:
                client.start_unless_alive()

    def _clients(self) -> list[Client]:
        return [client for each in self._world.workloads for client in each.clients]

    # --- weather ------------------------------------------------------------------------------------------------------

    def _chances(self) -> Chances:
        draw = self._world.random.random
        return Chances(
            request_lost=0.1 * draw() ** 2,
            answer_lost=0.15 * draw() ** 2,
            doubled=0.2 * draw() ** 2,
            late=0.1 * draw() ** 2 if self._world.has_late_requests else 0.0,
            slow=0.1 * draw() ** 2,
        )

    # --- events -------------------------------------------------------------------------------------------------------

    def _move_leadership(self) -> None:
        world = self._world
        if world.is_up and world.host.shard.is_loaded:
            world.note_fault("leadership moved")
            world.host.unload()
            world.after(world.random.randint(100, 5_000), self._regain_leadership)

    def _regain_leadership(self) -> None:
        if self._world.is_up and not self._world.host.shard.is_loaded:
            self._world.note("leadership is back")
            self._world.host.load()
            self._world.read_commits()

    def _hold_watermark(self) -> None:
        if not self._world.host.is_held:
            hold_watermark(self._world, self._world.host, 12_000)

    def _refuse_append(self) -> None:
        code = self._world.random.choice(_REFUSALS)
        self._world.note_fault("append refused", code.name)
        self._world.host.replica.refusals.append(code)

    def _compact(self) -> None:
        world = self._world
        if world.is_up and compact_live(world.host.partition, world.clock.wall_ms()):
            world.note_fault("log compacted")

    def _grow_topic(self) -> None:
        world = self._world
        name = world.random.choice(_CHANGING)
        topic = world.topics.by_name(name)
        if topic is not None and topic.partition_count < _PARTITIONS_MAX:
            world.note_fault("topic grown", name)
            world.put_topic(name, topic.partition_count + world.random.randint(1, 3))

    def _delete_topic(self) -> None:
        """Delete a topic and create it again a little later."""
        world = self._world
        name = world.random.choice(_CHANGING)
        if world.topics.by_name(name) is not None and world.is_up:
            world.note_fault("topic deleted", name)
            world.delete_topic(name)
            world.after(world.random.randint(100, 10_000), lambda: world.put_topic(name, world.random.randint(1, 6)))

    # --- clients ------------------------------------------------------------------------------------------------------

    def _crash_client(self) -> None:
        client = self._world.random.choice(self._clients())
        if client.is_alive:
            self._world.note_fault("client crashed", client.name)
            client.crash()
            if self._world.random.random() < 0.6:
                self._world.after(self._world.random.randint(1, 15_000), client.start_unless_alive)

    def _stop_client(self) -> None:
        client = self._world.random.choice(self._clients())
        if client.is_alive:
            self._world.note_fault("client left", client.name)
            client.stop()

    def _start_client(self) -> None:
        client = self._world.random.choice(self._clients())
        if not client.is_alive:
            self._world.note_fault("client joined", client.name)
            client.start()

    def _read_back(self) -> None:
        if self._world.is_up and self._world.host.shard.is_loaded:
            self._world.read_commits()
