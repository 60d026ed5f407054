"""Conversations of quorum nodes, as text: commands, a line `----`, and what happened.

    nodes 3
    start
    advance 3000
    ----
        1405 n2 is PROSPECTIVE in epoch 0
        ...

Time passes with `advance` only; a message takes 1 ms, and a sync none unless it is held. The lines are those of the
world's trace: `->` is a request, `=>` its response. Fetches without news are left out unless `fetches on` was said.
The invariants of `simulation.quorum.invariants` hold after every step, as in runs from seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.core.quorum.events import Stop, UpgradeKRaftVersion
from ottla.testing.trace import Violation
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from simulation.commands import Words
from simulation.quorum.conversation import show_state
from simulation.quorum.node import QuorumNode
from simulation.quorum.world import QuorumWorld
from simulation.scenario import RULE, ScenarioError, join_lines, parse_blocks

__all__ = ["run_quorum_text"]

_SETTLE_MS: Final = 30_000


class QuorumScenario:
    def __init__(self) -> None:
        self._world: QuorumWorld | None = None
        self.faults: list[str] = []

    @property
    def world(self) -> QuorumWorld:
        if self._world is None:
            raise ScenarioError("begin with `nodes 3`")
        return self._world

    def run(self, commands: list[str]) -> list[str]:
        """Run commands; returns what happened."""
        begin = len(self._world.trace.lines) if self._world else 0
        for text in commands:
            words = Words(text)
            name = words.next()
            if name not in _COMMANDS:
                raise ScenarioError(f"there is no command {name!r}; there are {', '.join(sorted(_COMMANDS))}")
            try:
                _COMMANDS[name](self, words)
            except Violation as violation:
                self.faults.append(str(violation))
                self.world.note(f"VIOLATION {violation}")
        return self.world.trace.lines[begin:] or ["ok"]

    def node(self, words: Words) -> QuorumNode:
        """The node that the next word names: `n1`, or `leader`."""
        return self.named(words.next())

    def named(self, name: str) -> QuorumNode:
        return self.leader({}) if name == "leader" else self.world.nodes[int(name.removeprefix("n"))]

    def leader(self, options: dict[str, str]) -> QuorumNode:
        """The node that is asked: the leader unless it is named."""
        if "to" in options:
            return self.named(options["to"])
        leader = self.world.leader()
        if leader is None:
            raise ScenarioError("nobody leads")
        return leader

    # --- commands -----------------------------------------------------------------------------------------------------

    def nodes(self, words: Words) -> None:
        """nodes 3 [observers=1] [kraft=0] [seed=1] [auto-join=yes] [snapshot-bytes=100]"""
        voters, options = int(words.next()), words.options()
        self._world = QuorumWorld(
            int(options.get("seed", "0")),
            voters=voters,
            observers=int(options.get("observers", "0")),
            kraft_version=int(options.get("kraft", "1")),
        )
        self._world.is_quiet = True
        for node in self._world.nodes.values():
            node.settings = type(node.settings)(
                auto_join=options.get("auto-join") == "yes",
                fetch_snapshot_max_bytes=int(options.get("snapshot-bytes", "1000000")),
            )

    def start(self, words: Words) -> None:
        """start [n1 n2]: nodes that are down start; all of them unless some are named"""
        nodes = [self.named(each) for each in words.text.split()] or list(self.world.nodes.values())
        for node in nodes:
            if not node.is_up:
                node.start()

    def advance(self, words: Words) -> None:
        """advance 1000: let milliseconds pass"""
        self.world.run_until(self.world.now_ms() + int(words.next()))

    def settle(self, words: Words) -> None:
        """settle: let time pass until all nodes that are up have the same log"""
        world = self.world
        down = [f"{each.name} is down" for each in world.nodes.values() if not each.is_up]
        if not world.run_until(world.now_ms() + _SETTLE_MS, lambda: world.unconverged() == down):
            world.note(f"not settled: {'; '.join(world.unconverged())}")

    def propose(self, words: Words) -> None:
        """propose [n1] [records=2] [times=3]: the controller of a node writes, the leader's unless it is named"""
        named = words.next() if words.text.startswith("n") else None
        options = words.options()
        node = self.named(named) if named else self.leader(options)
        for _ in range(int(options.get("times", "1"))):
            self.world.propose(node, int(options.get("records", "1")))

    def kill(self, words: Words) -> None:
        """kill n1: the process dies; its disk keeps what was written"""
        self.node(words).crash(power_loss=False)

    def power_off(self, words: Words) -> None:
        """power-off n1: the disk keeps what was synced, and perhaps more"""
        self.node(words).crash(power_loss=True)

    def stop(self, words: Words) -> None:
        """stop n1: the node goes down in order"""
        self.node(words).step(Stop())

    def pause(self, words: Words) -> None:
        """pause n1 3000: the process stands still"""
        self.node(words).pause(self.world.now_ms() + int(words.next()))

    def gone(self, words: Words) -> None:
        """gone n1: the others see its connections closed, and new ones refused"""
        self.world.gone(self.node(words))

    def cut(self, words: Words) -> None:
        """cut n1 n2: no message passes between them"""
        one, other = self.node(words).node_id, self.node(words).node_id
        self.world.links.cut |= {(one, other), (other, one)}

    def cut_one_way(self, words: Words) -> None:
        """cut-one-way n1 n2: nothing that n1 sends arrives at n2"""
        self.world.links.cut.add((self.node(words).node_id, self.node(words).node_id))

    def isolate(self, words: Words) -> None:
        """isolate n1: nothing reaches it, and nothing of it reaches the others"""
        one = self.node(words).node_id
        self.world.links.cut |= {pair for each in self.world.nodes for pair in ((one, each), (each, one))}

    def heal(self, words: Words) -> None:
        """heal: every link works again"""
        self.world.links.cut.clear()

    def slow(self, words: Words) -> None:
        """slow n1 n2 500: a message from n1 to n2 takes that much longer"""
        link = (self.node(words).node_id, self.node(words).node_id)
        self.world.links.slow[link] = int(words.next())

    def hold_sync(self, words: Words) -> None:
        """hold-sync n1: its log is appended to, and not synced"""
        self.node(words).holds_syncs = True

    def release_sync(self, words: Words) -> None:
        """release-sync n1"""
        self.node(words).let_syncs_go()

    def disk_full(self, words: Words) -> None:
        """disk-full n1: its disk takes nothing more"""
        self.node(words).is_disk_full = True

    def disk_free(self, words: Words) -> None:
        """disk-free n1"""
        self.node(words).is_disk_full = False

    def snapshot(self, words: Words) -> None:
        """snapshot n1 [end=7] [bytes=500]: a snapshot at the high watermark, or elsewhere"""
        node, options = self.node(words), words.options()
        end = int(options["end"]) if "end" in options else None
        if not self.world.snapshot(node, end, int(options.get("bytes", "0"))):
            self.world.note(f"{node.name} makes no snapshot")

    def drop_log(self, words: Words) -> None:
        """drop-log n1: the log begins at the newest snapshot; older ones are gone"""
        node = self.node(words)
        node.drop_log(max(node.log.snapshots))

    def add_voter(self, words: Words) -> None:
        """add-voter n4 [to=n1]: an administrator asks the leader, or the one that is named"""
        node = self.node(words)
        self.world.ask(self.leader(words.options()), self.world.add_request(node))

    def remove_voter(self, words: Words) -> None:
        """remove-voter n2 [to=n1] [directory=07]"""
        node, options = self.node(words), words.options()
        leader = self.leader(options)
        assert leader.quorum is not None
        voter = leader.quorum.control.voters.by_id(node.node_id)
        directory_id = node.directory_id if voter is None else voter.directory_id
        if "directory" in options:
            directory_id = bytes.fromhex(options["directory"]) * 16
        self.world.ask(leader, RemoveRaftVoterRequest("c", node.node_id, directory_id))

    def upgrade(self, words: Words) -> None:
        """upgrade [to=n1]: kraft.version becomes 1"""
        leader = self.leader(words.options())
        self.world.note(f"admin -> {leader.name} kraft.version=1")
        leader.step(UpgradeKRaftVersion(1, self.world.token()))

    def new_disk(self, words: Words) -> None:
        """new-disk n3 07: the node is down, and gets an empty disk with a new directory id"""
        node = self.node(words)
        node.empty_disk(bytes.fromhex(words.next()) * 16)
        self.world.note(f"{node.name} gets an empty disk")

    def move(self, words: Words) -> None:
        """move n3: the node, which is down, will listen on another port"""
        self.node(words).port += 100

    def fetches(self, words: Words) -> None:
        """fetches on|off: whether fetches without news are shown"""
        self.world.is_quiet = words.next() == "off"

    def state(self, words: Words) -> None:
        """state: every node in a line"""
        for node in self.world.nodes.values():
            self.world.note(f"{node.name} {'down' if node.quorum is None else show_state(node.quorum)}")

    def describe(self, words: Words) -> None:
        """describe n1: what it answers to DescribeQuorum; times are in milliseconds before now"""
        node, world, kind = self.node(words), self.world, DescribeQuorumRequest
        assert node.quorum is not None
        request = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
        wall_ms = world.now_ms() + node.wall_offset_ms
        (partition,) = node.quorum.describe(request, 2, world.now_ms(), wall_ms).topics[0].partitions
        if partition.error_code:
            world.note(f"{node.name} error={partition.error_code}")
            return
        world.note(
            f"{node.name} leader=n{partition.leader_id} epoch={partition.leader_epoch} hw={partition.high_watermark}"
        )
        for name, rows in (("voter", partition.current_voters), ("observer", partition.observers)):
            for row in rows:
                times = [
                    "never" if each < 0 else f"-{wall_ms - each}"
                    for each in (row.last_fetch_timestamp, row.last_caught_up_timestamp)
                ]
                world.note(
                    f"  {name} n{row.replica_id} end={row.log_end_offset} fetched={times[0]} caught-up={times[1]}"
                )


_COMMANDS: Final[dict[str, Callable[[QuorumScenario, Words], None]]] = {
    name.replace("_", "-"): function
    for name, function in vars(QuorumScenario).items()
    if callable(function) and not name.startswith("_") and name not in ("run", "node", "named", "leader")
}


def run_quorum_text(text: str) -> tuple[str, list[str]]:
    """The text with the actual output, and the violated invariants."""
    scenario, seen = QuorumScenario(), []
    for block in parse_blocks(text):
        commands = join_lines(block.commands)
        if not block.has_output and not commands:
            seen.append("\n".join(block.commands))
            continue
        seen.append("\n".join([*block.commands, RULE, *scenario.run(commands)]))
    return "\n\n".join(seen) + "\n", scenario.faults
