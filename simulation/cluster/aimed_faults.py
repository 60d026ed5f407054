"""Faults that take aim: they wait for the moment at which a follower or a coordinator is easiest to hurt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.wire.types.write_txn_markers import WriteTxnMarkersRequest
from simulation.cluster.clients.client import DATA_TOPIC
from simulation.cluster.faults import Faults
from simulation.cluster.machine import Machine
from simulation.cluster.network import Link
from simulation.cluster.world import ClusterWorld

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.replicas.replicas import Replica
    from ottla.core.replication.partition_leader import InSyncChange, PartitionLeader

__all__ = ["CoordinatorFaults", "FollowerFaults"]

_OnFetch = Callable[[Machine, Machine, "Replica", int], None]
"""Hears that a follower which is not in sync fetches from its leader: both, the leader's replica, and the offset."""
_OnJoin = Callable[[Machine, Machine], None]
"""Hears that a leader wants a follower to be in sync."""


class FollowerFaults(Faults):
    """Hits followers that come back, and their leaders."""

    def __init__(self, world: ClusterWorld, skip: frozenset[int] = frozenset()) -> None:
        super().__init__(world, skip)
        self._events = [self._aim_at_return, self._aim_at_join, self._kill, self._weather, self._slow_disk]
        self._on_fetch: _OnFetch | None = None
        self._on_join: _OnJoin | None = None
        world.watchers.append(self._watch)

    def end(self) -> None:
        self._on_fetch = self._on_join = None
        super().end()

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

    def _keep_quiet(self, duration_ms: int) -> None:
        self._quiet_until_ms = self._world.now_ms() + duration_ms

    def _let_return(self, aim: Callable[[], None]) -> None:
        """Cut a broker off until it is out of sync, and take aim before it is back."""
        world = self._world
        brokers = [each for each in world.brokers if each is not world.leader() and self._is_in_sync(each)]
        if not brokers or self._is_fragile:
            return
        self._on_fetch = self._on_join = None
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


class CoordinatorFaults(Faults):
    """Keeps nodes from each other, and delays the markers of transactions."""

    def __init__(self, world: ClusterWorld, skip: frozenset[int] = frozenset()) -> None:
        super().__init__(world, skip)
        self._events = [self._isolate] * 2 + [self._slow_link] * 3 + [self._heal] * 3 + [self._kill, self._pause]
        if world.shape.is_about_transactions:
            self._events = [self._isolate, self._kill] + [self._heal] * 2 + [self._aim_at_markers] * 8
        self._marker_delay_ms: int | None = None
        """How long markers that commit a transaction shall be on their way, once."""
        world.watchers.append(self._watch)

    def end(self) -> None:
        self._marker_delay_ms = None
        super().end()

    def _watch(self, machine: Machine, node: Node) -> None:
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


def _commits(request: object) -> bool:
    return isinstance(request, WriteTxnMarkersRequest) and any(each.transaction_result for each in request.markers)
