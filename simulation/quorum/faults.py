"""What goes wrong in a world of quorum nodes. The seed determines it; it ends when the calm begins.

A run may be told to leave events out (`skip`), by their number: that is how a failing run is made shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.core.quorum.events import QuorumSettings, Stop, UpgradeKRaftVersion
from ottla.core.quorum.states import State
from ottla.core.quorum.voters import Voter
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from simulation.quorum.node import QuorumNode
from simulation.quorum.world import Links, QuorumWorld

__all__ = ["Faults"]

_EVENT_EVERY_MS: Final = 500
_DOWN_MS: Final = (10, 6_000)


class Faults:
    """Causes faults, one about every second, until the calm begins."""

    def __init__(self, world: QuorumWorld, skip: frozenset[int] = frozenset()) -> None:
        self._world = world
        self._skip = skip
        self.count = 0
        self._has_ended = False
        self._lost_directories: set[bytes] = set()
        self._directories = 100
        chance = world.random
        self._events: list[Callable[[], None]] = [
            self._kill,
            self._kill,
            self._kill_after_store,
            self._kill_after_store,
            self._lose_power,
            self._lose_power,
            self._stop,
            self._pause,
            self._cut,
            self._cut,
            self._cut_one_way,
            self._isolate_leader,
            self._heal,
            self._heal,
            self._slow_link,
            self._weather,
            self._slow_disk,
            self._full_disk,
            self._jump_clock,
            self._snapshot,
            self._snapshot,
            self._snapshot,
            self._propose_burst,
            self._propose_burst,
            self._heal,
        ]
        if chance.random() < 0.6:
            self._events += [self._add_voter] * 3 + [self._remove_voter] * 2 + [self._upgrade]
            self._events += [self._empty_disk, self._move]

    def begin(self) -> None:
        world = self._world
        self._weather()
        world.refusals_are_told = True
        chance = world.random
        speed, fetch_bytes = chance.choice((1, 1, 4)), chance.choice((100, 100, 1 << 20))
        for node in world.nodes.values():
            self._slow(node)
            node.settings = QuorumSettings(
                election_timeout_ms=1_000 // speed,
                fetch_timeout_ms=2_000 // speed,
                request_timeout_ms=2_000 // speed,
                fetch_max_wait_ms=500 // speed,
                auto_join=chance.random() < 0.5,
                fetch_max_bytes=fetch_bytes,
                fetch_snapshot_max_bytes=300,
            )
            world.after(chance.randint(0, 500), node.start)
        world.after(0, self._happen)
        world.after(0, self._write)

    def end(self) -> None:
        """The calm begins: everything is mended, and every node runs."""
        world = self._world
        self._has_ended = True
        world.links = Links(delay_ms=(1, 5))
        world.disk_delays_ms = {}
        world.note("the calm begins")
        for node in world.nodes.values():
            node.is_disk_full = False
            node.after_store = None
            if node.holds_syncs:
                node.let_syncs_go()
            node.starts_again = True
            if node.quorum is not None and node.quorum.has_failed:
                node.restart()
            elif not node.is_up:
                node.start()

    # --- all the time -------------------------------------------------------------------------------------------------

    def _happen(self) -> None:
        world = self._world
        if self._has_ended:
            return
        event = world.random.choice(self._events)
        world.after(world.random.randint(0, 2 * _EVENT_EVERY_MS), self._happen)
        self.count += 1
        if self.count not in self._skip:
            event()

    def _write(self) -> None:
        """Clients make records, whoever believes to lead."""
        world = self._world
        for node in world.nodes.values():
            world.propose(node, world.random.randint(1, 3))
        if not self._has_ended:
            world.after(world.random.randint(20, 400), self._write)

    def _fault(self, kind: str, detail: str = "") -> None:
        self._world.note_fault(kind, detail)

    def _any(self) -> QuorumNode:
        return self._world.random.choice(list(self._world.nodes.values()))

    def _any_up(self) -> QuorumNode | None:
        up = [each for each in self._world.nodes.values() if each.is_up]
        return self._world.random.choice(up) if up else None

    # --- machines -----------------------------------------------------------------------------------------------------

    def _crash(self, kind: str, *, power_loss: bool) -> None:
        node, world = self._any_up(), self._world
        leader = world.leader()
        if leader is not None and world.random.random() < 0.3:
            node = leader
        if node is None:
            return
        self._fault(kind, node.name)
        self._down(node, power_loss=power_loss)

    def _down(self, node: QuorumNode, *, power_loss: bool) -> None:
        world = self._world
        node.crash(power_loss=power_loss)
        if not power_loss and world.random.random() < 0.5:
            world.gone(node)
        life = node.life
        world.after(world.random.randint(*_DOWN_MS), lambda: self._start(node, life))

    def _start(self, node: QuorumNode, life: int) -> None:
        if node.life == life and not node.is_up:
            node.start()

    def _kill(self) -> None:
        self._crash("kill", power_loss=False)

    def _kill_after_store(self) -> None:
        """The node dies when it has said what it stored, such as a vote, and is back at once."""
        node, world = self._any(), self._world

        def die() -> None:
            if node.is_up:
                self._fault("kill after a store", node.name)
                node.crash(power_loss=world.random.random() < 0.5)
                life = node.life
                world.after(world.random.randint(0, 100), lambda: self._start(node, life))

        node.after_store = die

    def _lose_power(self) -> None:
        self._crash("power loss", power_loss=True)

    def _stop(self) -> None:
        node = self._any_up()
        if node is None:
            return
        self._fault("stop", node.name)
        node.step(Stop())
        life, world = node.life, self._world

        def end() -> None:
            if node.life == life and node.is_up:
                self._down(node, power_loss=False)

        world.after(world.random.randint(0, 1_500), end)

    def _pause(self) -> None:
        node, world = self._any_up(), self._world
        if node is not None and node.paused_until_ms <= world.now_ms():
            self._fault("pause", node.name)
            node.pause(world.now_ms() + world.random.randint(100, 8_000))

    def _jump_clock(self) -> None:
        node, chance = self._any(), self._world.random
        self._fault("wall clock set", node.name)
        node.wall_offset_ms += chance.choice((-3_600_000, -5_000, 5_000, 3_600_000))

    # --- the network --------------------------------------------------------------------------------------------------

    def _weather(self) -> None:
        chance, links = self._world.random, self._world.links
        links.lost = chance.choice((0.0, 0.0, 0.02, 0.2))
        links.doubled = chance.choice((0.0, 0.0, 0.05, 0.3))
        links.delay_ms = chance.choice(((0, 2), (1, 20), (1, 200), (0, 1_000)))
        self._fault("weather", f"lost {links.lost}, doubled {links.doubled}, delay {links.delay_ms}")

    def _cut(self) -> None:
        """Nodes fall into two parts."""
        chance, ids = self._world.random, list(self._world.nodes)
        part = {each for each in ids if chance.random() < 0.5}
        rest = set(ids) - part
        self._fault("partition", f"{sorted(part)} and {sorted(rest)}")
        self._world.links.cut |= {(a, b) for a in part for b in rest} | {(b, a) for a in part for b in rest}

    def _cut_one_way(self) -> None:
        sender, target = self._any().node_id, self._any().node_id
        self._fault("one-way cut", f"n{sender} to n{target}")
        self._world.links.cut.add((sender, target))

    def _isolate_leader(self) -> None:
        leader = self._world.leader()
        if leader is not None:
            self._fault("leader isolated", leader.name)
            for each in self._world.nodes:
                self._world.links.cut |= {(leader.node_id, each), (each, leader.node_id)}

    def _slow_link(self) -> None:
        sender, target = self._any().node_id, self._any().node_id
        self._fault("slow link", f"n{sender} to n{target}")
        self._world.links.slow[sender, target] = self._world.random.randint(100, 3_000)

    def _heal(self) -> None:
        self._fault("heal")
        self._world.links.cut.clear()
        self._world.links.slow.clear()

    # --- disks --------------------------------------------------------------------------------------------------------

    def _slow_disk(self) -> None:
        node = self._any()
        self._fault("disk speed", node.name)
        self._slow(node)

    def _slow(self, node: QuorumNode) -> None:
        self._world.disk_delays_ms[node.node_id] = self._world.random.choice(((0, 0), (0, 5), (1, 50), (10, 1_500)))

    def _full_disk(self) -> None:
        node, world = self._any(), self._world
        self._fault("disk full", node.name)
        node.is_disk_full = True

        def mend() -> None:
            if node.is_disk_full:
                node.is_disk_full = False
                if node.is_up:
                    self._down(node, power_loss=False)

        world.after(world.random.randint(100, 4_000), mend)

    def _snapshot(self) -> None:
        node, world = self._any_up(), self._world
        if node is None:
            return
        chance = world.random
        ends = [batch.end_offset for batch in node.log.batches]
        if not ends or not world.snapshot(node, chance.choice(ends[-4:]), chance.randint(0, 1_500)):
            return
        self._fault("snapshot", node.name)
        if chance.random() < 0.7:
            ids = sorted(node.log.snapshots)
            node.drop_log(chance.choice(ids))

    def _propose_burst(self) -> None:
        leader = self._world.leader()
        if leader is not None:
            for _ in range(self._world.random.randint(1, 8)):
                self._world.propose(leader, 1)

    # --- voters -------------------------------------------------------------------------------------------------------

    def _leading(self) -> QuorumNode | None:
        leader = self._world.leader()
        if leader is None or leader.quorum is None or leader.paused_until_ms > self._world.now_ms():
            return None
        return leader

    def _add_voter(self) -> None:
        leader = self._leading()
        if leader is None or leader.quorum is None:
            return
        spare = [each for each in self._world.nodes.values() if each.node_id not in leader.quorum.control.voters.ids]
        if spare:
            self._fault("voter added")
            self._world.ask(leader, self._world.add_request(self._world.random.choice(spare)))

    def _remove_voter(self) -> None:
        leader = self._leading()
        if leader is None or leader.quorum is None:
            return
        voters = leader.quorum.control.voters.voters
        lost = [each for each in voters if each.directory_id in self._lost_directories]
        if len(voters) > 1 and self._are_reachable(voters):
            self._fault("voter removed")
            voter = self._world.random.choice(lost or voters)
            self._world.ask(leader, RemoveRaftVoterRequest("c", *voter.key))

    def _are_reachable(self, voters: tuple[Voter, ...]) -> bool:
        """Whether the voters are where the log says: one that has moved may be lost if others leave meanwhile."""
        return all(each.listeners == self._world.nodes[each.voter_id].voter.listeners for each in voters)

    def _upgrade(self) -> None:
        leader = self._leading()
        if leader is not None:
            self._fault("upgrade")
            leader.step(UpgradeKRaftVersion(1, self._world.token()))

    def _empty_disk(self) -> None:
        """A voter comes back with a new disk. Only one such at a time, or the quorum could not go on."""
        world, leader = self._world, self._leading()
        if leader is None or leader.quorum is None or not self._is_calm_quorum(leader):
            return
        node = self._any()
        if node is leader:
            return
        self._fault("disk emptied", node.name)
        if node.is_up:
            node.crash(power_loss=False)
        self._lost_directories.add(node.directory_id)
        self._directories += 1
        node.empty_disk(bytes([self._directories]) * 16)
        node.life += 1
        life = node.life
        world.after(world.random.randint(*_DOWN_MS), lambda: self._start(node, life))

    def _is_calm_quorum(self, leader: QuorumNode) -> bool:
        """Whether the voters are committed, and all their disks there, with a majority to spare."""
        quorum, world = leader.quorum, self._world
        assert quorum is not None
        voters = quorum.control.voters
        is_committed = quorum.control.voters_offset < quorum.high_watermark and quorum.control.kraft_version >= 1
        by_id = {voter.voter_id: voter for voter in voters.voters}
        is_whole = all(
            each.node_id not in by_id or by_id[each.node_id] == each.voter for each in world.nodes.values()
        ) and not any(each.directory_id in self._lost_directories for each in voters.voters)
        is_known = all(
            each.quorum is not None and each.quorum.control.voters == voters for each in world.nodes.values()
        )
        return is_committed and is_whole and is_known and len(voters) >= 3

    def _move(self) -> None:
        """A node starts again with another port."""
        leader, node = self._leading(), self._any_up()
        if leader is None or node is None or not self._is_calm_quorum(leader):
            return
        self._fault("port changed", node.name)
        self._down(node, power_loss=False)
        node.port += 100


def is_steady(world: QuorumWorld) -> bool:
    return not world.unconverged() and all(
        each.quorum is not None and each.quorum.state in (State.LEADER, State.FOLLOWER) for each in world.nodes.values()
    )
