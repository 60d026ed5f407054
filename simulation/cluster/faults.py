"""What goes wrong in a simulated cluster. The seed determines it; it ends when the calm begins.

A run may be told to leave events out (`skip`), by their number: that is how a failing run is made shorter. The random
numbers of an event are its own, so that the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from simulation.cluster.checks import unconverged
from simulation.cluster.machine import Machine
from simulation.cluster.network import Link
from simulation.cluster.world import ClusterWorld

__all__ = ["Faults"]

_EVENT_EVERY_MS: Final = 700
_DOWN_MS: Final = (10, 4_000)
_SPEEDS_MS: Final = ((0.1, 2.0), (0.1, 2.0), (1.0, 30.0), (5.0, 600.0))
_DELAYS_MS: Final = ((0.1, 1.0), (0.1, 1.0), (1.0, 20.0), (5.0, 150.0))


class Faults:
    """Causes faults until the calm begins."""

    def __init__(self, world: ClusterWorld, skip: frozenset[int] = frozenset()) -> None:
        self._world = world
        self._skip = skip
        self._chance = Random(f"faults of {world.seed}")
        self.count = 0
        self._has_ended = False
        self._has_lost_tail = False
        self._events: list[Callable[[], None]] = [
            self._kill,
            self._kill,
            self._kill_at_write,
            self._kill_at_write,
            self._stop,
            self._pause,
            self._pause,
            self._cut,
            self._cut,
            self._cut_one_way,
            self._isolate_leader,
            self._heal,
            self._heal,
            self._heal,
            self._slow_link,
            self._weather,
            self._reset,
            self._slow_disk,
            self._full_disk,
            self._fail_directory,
            self._jump_clock,
            self._kill_client,
            self._kill_client,
        ]
        if world.shape.is_about_replication or world.shape.is_about_coordinators:
            self._events += [self._isolate, self._isolate, self._isolate, self._heal]
        if world.shape.has_power_losses:
            self._events += [self._lose_power] * 3
        elif world.shape.min_insync_replicas > 1:
            self._events += [self._lose_tail] * 3
        self._quiet_until_ms = 0
        """Until then nothing else happens."""

    def begin(self) -> None:
        world, chance = self._world, self._chance
        world.network.delay_ms = chance.choice(_DELAYS_MS[:3])
        for client in world.clients:
            client.start()
        for machine in world.machines.values():
            machine.disk_delay_ms = chance.choice(_SPEEDS_MS)
            world.after(chance.randint(0, 300), machine.start)
        self._plan()

    def _plan(self) -> None:
        self._world.after(self._chance.randint(0, 2 * _EVENT_EVERY_MS), self._happen)

    def _happen(self) -> None:
        if self._has_ended:
            return
        self._plan()
        self.count += 1
        if self.count not in self._skip and self._world.now_ms() >= self._quiet_until_ms:
            chance, self._chance = self._chance, Random(f"fault {self.count} of {self._world.seed}")
            self._chance.choice(self._events)()
            self._chance = chance

    def end(self) -> None:
        """The calm begins: everything is mended, and every node runs."""
        world = self._world
        self._has_ended = world.is_calm = True
        world.note("the calm begins")
        world.network.delay_ms = (0.1, 1.0)
        world.network.heal()
        for machine in world.machines.values():
            machine.disk_delay_ms = (0.1, 2.0)
            machine.disk.crash_at = None
            machine.disk.capacity_bytes = None
            machine.clock.wall_offset_ms = 0
            machine.resume()
            if machine.has_failed_directory:  # it is used again after a restart
                machine.kill()
                machine.disk.failing = None
            machine.start()

    # --- machines -----------------------------------------------------------------------------------------------------

    def _any(self) -> Machine:
        return self._chance.choice(list(self._world.machines.values()))

    @property
    def _is_fragile(self) -> bool:
        """Whether a machine has lost data and may not have it again: then no other one may die or lose a disk.

        Kafka trusts neither the one nor a process that was killed, even if the disk of that has everything.
        """
        if self._has_lost_tail:
            self._has_lost_tail = any(unconverged(self._world))
        return self._has_lost_tail

    def _any_up(self) -> Machine | None:
        leader = self._world.leader()
        if leader is not None and self._chance.random() < 0.3:
            return leader
        up = [each for each in self._world.machines.values() if each.is_up]
        return self._chance.choice(up) if up else None

    def _fault(self, kind: str, detail: str = "") -> None:
        self._world.note_fault(kind, detail)

    def _restart(self, machine: Machine) -> None:
        quick = self._chance.random() < 0.3
        self._world.start_later(machine, self._chance.randint(0, 50) if quick else self._chance.randint(*_DOWN_MS))

    def _kill(self) -> None:
        machine = self._any_up()
        if machine is not None and not self._is_fragile:
            self._fault("kill", machine.name)
            machine.kill()
            self._restart(machine)

    def _lose_power(self) -> None:
        machine = self._any_up()
        if machine is not None:
            self._fault("power loss", machine.name)
            machine.lose_power()
            self._restart(machine)

    def _lose_tail(self) -> None:
        """A machine loses power that syncs nothing. Others have all that is committed, until it is in sync again."""
        machine = self._any_up()
        if machine is not None and self._may_lose_tail(machine):
            self._fault("tail lost", machine.name)
            self._has_lost_tail = True
            machine.lose_power()
            self._restart(machine)

    def _may_lose_tail(self, machine: Machine) -> bool:
        is_sound = all(each.disk.is_sound for each in self._world.machines.values())
        return is_sound and not self._is_fragile and not self._is_needed(machine)

    def _is_needed(self, machine: Machine) -> bool:
        """Whether a partition for which it is in sync may have nobody else who is. Without a leader of the quorum that
        is not known: those who are up may not have heard of the last changes."""
        image, leader = self._world.newest_image(), self._world.leader()
        if image is None or leader is None or not leader.is_serving:
            return True
        partitions = [each for topic in image.topics_by_name.values() for each in topic.partitions.values()]
        others = {each.number for each in self._world.machines.values() if each.is_serving} - {machine.number}
        return any(machine.number in each.isr and not others.intersection(each.isr) for each in partitions)

    def _kill_at_write(self) -> None:
        """The process dies in one of the next operations of its disk, which may be half done."""
        machine = self._any_up()
        if machine is not None and not self._is_fragile:
            self._fault("kill at a write", machine.name)
            machine.loses_power_with_process = self._world.shape.has_power_losses and self._chance.random() < 0.5
            machine.disk.crash_at = machine.disk.operations + self._chance.randint(1, 40)

    def _stop(self) -> None:
        machine = self._any_up()
        if machine is not None and machine.is_serving:
            self._fault("stop", machine.name)
            machine.stop()

    def _pause(self) -> None:
        machine = self._any_up()
        if machine is not None and not machine.is_paused:
            self._fault("pause", machine.name)
            machine.pause()
            life = machine.life

            def resume() -> None:
                if machine.life == life:
                    machine.resume()

            self._world.after(self._chance.randint(50, 6_000), resume)

    def _jump_clock(self) -> None:
        machine = self._any()
        self._fault("wall clock set", machine.name)
        machine.clock.wall_offset_ms += self._chance.choice((-3_600_000, -5_000, 5_000, 3_600_000))

    def _kill_client(self) -> None:
        client = self._chance.choice(self._world.clients) if self._world.clients else None
        if client is not None:
            self._fault("client killed", client.name)
            self._world.kill_client(client)

    # --- the network --------------------------------------------------------------------------------------------------

    def _weather(self) -> None:
        delay_ms = self._world.network.delay_ms = self._chance.choice(_DELAYS_MS)
        self._fault("delays", f"{delay_ms[0]} to {delay_ms[1]} ms")

    def _cut(self) -> None:
        """Machines fall into two parts."""
        hosts = [each.name for each in self._world.machines.values()]
        part = [each for each in hosts if self._chance.random() < 0.5]
        rest = [each for each in hosts if each not in part]
        self._fault("partition", f"{' '.join(part)} | {' '.join(rest)}")
        self._world.network.cut(link for a in part for b in rest for link in (Link(a, b), Link(b, a)))

    def _cut_one_way(self) -> None:
        link = Link(self._any().name, self._any().name)
        self._fault("one-way cut", f"{link.source} to {link.target}")
        self._world.network.cut([link])

    def _isolate_leader(self) -> None:
        leader = self._world.leader()
        if leader is not None:
            self._fault("leader isolated", leader.name)
            self._cut_off(leader)

    def _isolate(self) -> None:
        """Clients still reach it."""
        machine = self._any()
        self._fault("isolated", machine.name)
        self._cut_off(machine)

    def _cut_off(self, machine: Machine) -> None:
        others = [each.name for each in self._world.machines.values() if each is not machine]
        self._world.network.cut(
            link for other in others for link in (Link(machine.name, other), Link(other, machine.name))
        )

    def _slow_link(self) -> None:
        link = Link(self._any().name, self._any().name)
        self._slow_link_by(link, self._chance.randint(50, 2_000))

    def _slow_link_by(self, link: Link, delay_ms: int) -> None:
        self._world.network.slow_ms[link] = delay_ms
        self._fault("slow link", f"{link.source} to {link.target}, {delay_ms} ms")

    def _reset(self) -> None:
        link = Link(self._any().name, self._any().name)
        count = self._world.network.reset_some(link)
        self._fault("reset", f"{count} connections of {link.source} to {link.target}")

    def _heal(self) -> None:
        self._fault("heal")
        self._world.network.heal()

    # --- disks --------------------------------------------------------------------------------------------------------

    def _slow_disk(self) -> None:
        machine = self._any()
        machine.disk_delay_ms = self._chance.choice(_SPEEDS_MS)
        self._fault("disk speed", f"{machine.name}, {machine.disk_delay_ms[1]:g} ms at most")

    def _full_disk(self) -> None:
        machine, world = self._any(), self._world
        if self._is_fragile:
            return
        self._fault("disk full", machine.name)
        machine.disk.capacity_bytes = machine.disk.used_bytes + self._chance.randint(0, 2_000)

        def mend() -> None:
            machine.disk.capacity_bytes = None

        world.after(self._chance.randint(100, 4_000), mend)

    def _fail_directory(self) -> None:
        machine = self._any()
        if self._is_fragile:
            return
        machine.disk.failing = machine.directories[1]
        self._fault("directory fails", f"{machine.disk.failing} of {machine.name}")
