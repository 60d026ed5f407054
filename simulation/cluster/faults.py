"""What goes wrong in a simulated cluster. The seed determines it; it ends when the calm begins.

A run may be told to leave events out (`skip`), by their number: that is how a failing run is made shorter. The random
numbers of an event are its own, so that the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from ottla.wire.types.write_txn_markers import WriteTxnMarkersRequest
from simulation.cluster.checks import unconverged
from simulation.cluster.clients.client import DATA_TOPIC
from simulation.cluster.machine import Machine
from simulation.cluster.network import Link
from simulation.cluster.world import ClusterWorld

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.replicas.replicas import Replica
    from ottla.core.replication.partition_leader import InSyncChange, PartitionLeader

__all__ = ["Faults"]

_EVENT_EVERY_MS: Final = 700
_DOWN_MS: Final = (10, 4_000)
_SPEEDS_MS: Final = ((0.1, 2.0), (0.1, 2.0), (1.0, 30.0), (5.0, 600.0))
_DELAYS_MS: Final = ((0.1, 1.0), (0.1, 1.0), (1.0, 20.0), (5.0, 150.0))

_OnFetch = Callable[[Machine, Machine, "Replica", int], None]
"""Hears that a follower which is not in sync fetches from its leader: both, the leader's replica, and the offset."""
_OnJoin = Callable[[Machine, Machine], None]
"""Hears that a leader wants a follower to be in sync."""


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
        self._on_fetch: _OnFetch | None = None
        self._on_join: _OnJoin | None = None
        if world.shape.aims_at_followers:
            world.watchers.append(self._watch)
            self._events = [self._aim_at_return, self._aim_at_join, self._kill, self._weather, self._slow_disk]
        self._marker_delay_ms: int | None = None
        """How long markers that commit a transaction shall be on their way, once."""
        if world.shape.aims_at_coordinators:
            world.watchers.append(self._watch_markers)
            self._events = [self._isolate] * 2 + [self._slow_link] * 3 + [self._heal] * 3 + [self._kill, self._pause]
            if world.shape.is_about_transactions:
                self._events = [self._isolate, self._kill] + [self._heal] * 2 + [self._aim_at_markers] * 8

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
        self._on_fetch = self._on_join = self._marker_delay_ms = None
        world.note("the calm begins")
        world.network.delay_ms = (0.1, 1.0)
        world.network.heal()
        for machine in world.machines.values():
            machine.disk_delay_ms = (0.1, 2.0)
            machine.disk.crash_at = None
            machine.disk.capacity_bytes = None
            machine.clock.wall_offset_ms = 0
            machine.resume()
            if machine.disk.failing is not None:  # a directory that has failed is used again after a restart
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
        """Whether a partition for which it is in sync may have nobody else who is."""
        image = self._world.newest_image()
        if image is None:
            return True
        partitions = [each for topic in image.topics_by_name.values() for each in topic.partitions.values()]
        up = {each.number for each in self._world.machines.values() if each.is_up} - {machine.number}
        return any(machine.number in each.isr and not up.intersection(each.isr) for each in partitions)

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

    # --- followers that come back -------------------------------------------------------------------------------------

    def _watch(self, machine: Machine, node: Node) -> None:
        """Look at what the followers of a leader fetch, and who shall be in sync."""
        fetched, change_isr = node.replicas.fetched, node.replicas._change_isr

        def watched_fetch(replica: Replica, follower_id: int, offset: int, **others: Any) -> None:  # noqa: ANN401
            leading = replica.leading if replica.topic_partition.topic == DATA_TOPIC else None
            if self._on_fetch is not None and leading is not None and follower_id not in leading.maximal_isr:
                self._on_fetch(machine, self._world.machines[follower_id], replica, offset)
            fetched(replica, follower_id, offset, **others)

        def watched_change(replica: Replica, leading: PartitionLeader, change: InSyncChange) -> None:
            joining = set(change.isr) - set(leading.isr)
            if self._on_join is not None and joining and replica.topic_partition.topic == DATA_TOPIC:
                self._on_join(machine, self._world.machines[joining.pop()])
            change_isr(replica, leading, change)

        node.replicas.fetched = watched_fetch  # type: ignore[method-assign]
        node.replicas._change_isr = watched_change

    def _let_return(self, aim: Callable[[], None]) -> None:
        """Cut a broker off until it is out of sync, and take aim before it is back."""
        world = self._world
        brokers = [each for each in world.brokers if each is not world.leader() and self._is_in_sync(each)]
        if not brokers or self._is_fragile:
            return
        follower = self._chance.choice(brokers)
        self._fault("isolated", follower.name)
        self._cut_off(follower)

        def look() -> None:
            if self._has_ended:
                return
            self._keep_quiet(1_000)
            if self._is_in_sync(follower):
                world.after(20, look)
                return
            world.after(800, heal)  # until nobody waits for it any more

        def heal() -> None:
            if not self._has_ended:
                aim()
                self._heal()

        look()

    def _is_in_sync(self, machine: Machine) -> bool:
        """Whether a machine is in sync for a partition that clients write to."""
        image = self._world.newest_image()
        topic = image.topic(DATA_TOPIC) if image is not None else None
        return topic is not None and any(machine.number in each.isr for each in topic.partitions.values())

    def _aim_at_return(self) -> None:
        """A follower is sent all that there is. When more is committed its leader dies, before anybody else can know
        that. The next leader lets the follower wait: if that is in sync by then, it is so too early."""
        chance, world = self._chance, self._world

        def come_back(leader: Machine, follower: Machine, replica: Replica, offset: int) -> None:
            if offset >= replica.high_watermark or leader is world.leader():
                return
            self._keep_quiet(3_000)
            self._slow_link_by(Link(leader.name, follower.name), 300)
            world.after(1, partial(kill_leader, leader, replica, leader.life, replica.log_end_offset))
            self._on_fetch = fetch_again

        def kill_leader(leader: Machine, replica: Replica, life: int, end_offset: int) -> None:
            if leader.life != life or self._on_fetch is not fetch_again:
                return
            if replica.high_watermark > end_offset:
                self._fault("kill", leader.name)
                leader.kill()
                world.start_later(leader, chance.randint(1_500, 4_000))
            else:
                world.after(1, partial(kill_leader, leader, replica, life, end_offset))

        def fetch_again(leader: Machine, follower: Machine, replica: Replica, offset: int) -> None:
            assert replica.leading is not None
            if offset < replica.leading.epoch_start_offset:
                self._slow_link_by(Link(leader.name, follower.name), 1_000)
                self._on_fetch = None

        self._let_return(partial(setattr, self, "_on_fetch", come_back))

    def _aim_at_join(self) -> None:
        """When a follower is to be in sync, it loses its tail, and registers anew before the controller hears that it
        had one."""
        chance, world = self._chance, self._world

        def join(leader: Machine, follower: Machine) -> None:
            controller = world.leader()
            if controller in (None, leader):
                return
            self._on_join = None
            if controller is follower or not self._may_lose_tail(follower):
                return
            assert controller is not None
            self._keep_quiet(3_000)
            self._slow_link_by(Link(leader.name, controller.name), chance.randint(2_300, 2_450))
            # So that an answer is on its way when the power goes, and the controller hears that nobody waits for it.
            self._slow_link_by(Link(controller.name, follower.name), 550)
            world.network.cut([Link(leader.name, follower.name), Link(follower.name, leader.name)])
            world.after(510, partial(lose, controller, follower))

        def lose(controller: Machine, follower: Machine) -> None:
            self._fault("tail lost", follower.name)
            world.network.slow_ms.pop(Link(controller.name, follower.name), None)
            self._has_lost_tail = True
            follower.lose_power()
            world.start_later(follower, chance.randint(0, 50))

        self._let_return(partial(setattr, self, "_on_join", join))

    # --- coordinators -------------------------------------------------------------------------------------------------

    def _watch_markers(self, machine: Machine, node: Node) -> None:
        send = node.brokers.send

        def watched(broker_id: int, request: object, versions: tuple[int, int], done: Callable[[Any], None]) -> None:
            connection = node.brokers._connections.get((broker_id, WriteTxnMarkersRequest))
            sock: Any = None if connection is None else connection._sock
            delay_ms = self._marker_delay_ms
            if delay_ms is not None and sock is not None and _commits(request):
                self._marker_delay_ms = None
                self._fault("connection stalls", f"{machine.name} to n{broker_id}, {delay_ms} ms")
                sock.stall(delay_ms / 1000)
            send(broker_id, request, versions, done)

        node.brokers.send = watched  # type: ignore[method-assign]

    def _aim_at_markers(self) -> None:
        """What a coordinator sends to end a transaction is long on its way. The next coordinator may send it again, and
        the producer go on, before it arrives."""
        self._marker_delay_ms = self._chance.randint(300, 2_000)

    def _keep_quiet(self, duration_ms: int) -> None:
        self._quiet_until_ms = self._world.now_ms() + duration_ms

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


def _commits(request: object) -> bool:
    return isinstance(request, WriteTxnMarkersRequest) and any(each.transaction_result for each in request.markers)
