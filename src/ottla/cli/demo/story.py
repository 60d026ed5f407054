"""The story of the demo: three nodes and their workloads, three incidents, and the final check of all records."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

from ottla.cli.demo.cluster_state import ClusterState
from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.journal import Journal, now_ms
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.nodes import Nodes
from ottla.cli.demo.plan import BILLING, NODES, PAYMENTS, RISK_CHECKS, TOPICS, VICTIM, WORD_TOTALS, Plan
from ottla.cli.demo.watcher import Watcher
from ottla.cli.demo.workload_processes import WorkloadProcesses
from ottla.client import TopicPartition

__all__ = ["Story"]

STABLE_S: Final = 90.0
TAKEN_OVER_S: Final = 60.0
DRAIN_S: Final = 90.0
MOVED_S: Final = 60.0
QUIET: Final = "all healthy"


class Story:
    """Each scene returns when its events have happened. The story has a journal of its own."""

    def __init__(
        self,
        plan: Plan,
        directory: DemoDirectory,
        nodes: Nodes,
        workloads: WorkloadProcesses,
        watcher: Watcher,
        narrator: Narrator,
    ) -> None:
        self._plan = plan
        self._nodes = nodes
        self._workloads = workloads
        self._watcher = watcher
        self._narrator = narrator
        self._cluster: ClusterState
        self._journal = Journal(directory.journal_of("story"))
        self._began_s = monotonic()

    async def tell(self) -> None:
        try:
            await self.set_up()
            await self.enter()
            await self.second_application()
            await self.kill_member()
            await self.kill_node()
            await self.storm()
            await self.drain()
        finally:
            self._journal.close()

    # --- the beginning ------------------------------------------------------------------------------------------------

    async def set_up(self) -> None:
        began = monotonic()
        await self._nodes.start()
        self._cluster = ClusterState(self._nodes.bootstrap)
        await self._cluster.create_topics()
        took_s = monotonic() - began
        self._journal.note(
            "cluster",
            what_runs=self._nodes.what,
            bootstrap=self._nodes.bootstrap,
            cluster_id=await self._cluster.cluster_id(),
        )
        sizes = ", ".join(f"{name} ({count} p)" for name, count in TOPICS.items())
        self._narrator.step(1, "cluster", f"{NODES} nodes in {took_s:.1f} s at {self._nodes.bootstrap}; topics {sizes}")
        sessions, locks = _s(self._plan.session_ms), _s(self._plan.lock_ms)
        self._narrator.say(f"settings: session timeout {sessions}, lock duration of share groups {locks}")

    async def enter(self) -> None:
        await self._cluster.start_share_at_the_beginning()
        await self._watcher.start(self._nodes)
        await self._workloads.enter()
        async with self._narrator.doing("waiting for the groups"):
            views = await self._cluster.stable(STABLE_S)
        self._began_s = monotonic()
        self._journal.note("began", members={name: len(view.members) for name, view in views.items()})
        self._narrator.step(2, "workloads", "groups of all four types are stable: " + ", ".join(
            f"{view.group_id} ({view.type}, {len(view.members)})" for view in views.values()))  # fmt: skip

    async def second_application(self) -> None:
        await self._until(self._plan.second_app_s, "200 records per second")
        self._journal.note("second-app")
        await self._workloads.enter_word_totals(2)
        views = await self._cluster.stable(STABLE_S, {WORD_TOTALS: 2})
        shares = " and ".join(str(len(member.assignment)) for member in views[WORD_TOTALS].members)
        self._narrator.say(f"started a second process of {WORD_TOTALS}: {shares} tasks")

    # --- incidents ----------------------------------------------------------------------------------------------------

    async def kill_member(self) -> None:
        await self._until(self._plan.kill_member_s, QUIET)
        view = (await self._cluster.stable(STABLE_S, {WORD_TOTALS: 2}))[BILLING]
        victim = next(member for member in view.members if member.client_id == VICTIM)
        owned = frozenset(at for at in victim.assignment if isinstance(at, TopicPartition))
        self._journal.note("member-killed", member=victim.member_id)
        await self._workloads.kill(VICTIM)
        began = monotonic()
        self._narrator.begin(3, f"killed {VICTIM} (owned {', '.join(map(str, sorted(owned)))})")
        async with self._narrator.doing("waiting for its session to time out"):
            await self._cluster.taken_over(owned, victim.member_id, TAKEN_OVER_S)
        self._journal.note("taken-over")
        self._narrator.say(f"partitions reassigned after {monotonic() - began:.1f} s")

    async def kill_node(self) -> None:
        """Kill the node that leads most; of those, one that leads the quorum, too."""
        await self._until(self._plan.kill_node_s, QUIET)
        before, led = await self._cluster.quorum(), await self._cluster.leaders()
        node = max(led, key=lambda each: (led[each], each == before.leader_id))
        await self._nodes.kill(node)
        began, is_leader = monotonic(), node == before.leader_id
        self._journal.note(
            "node-killed",
            node=node,
            led=led[node],
            led_quorum=is_leader,
            leader_before=before.leader_id,
            epoch_before=before.leader_epoch,
        )
        what = f"{led[node]} of {led.total()} partitions{', and the quorum' if is_leader else ''}"
        self._narrator.begin(4, f"killed node {node} (led {what})")
        async with self._narrator.doing("waiting for new leaders"):
            await self._cluster.led_by_others(node, MOVED_S)
        self._journal.note("led-by-others")
        self._narrator.say(f"all partitions have new leaders after {monotonic() - began:.1f} s; clients continue")
        await self._pause(self._plan.down_s, f"running without node {node}")
        await self._bring_back(node)

    async def _bring_back(self, node: int) -> None:
        began, restarted_ms = monotonic(), now_ms()
        await self._nodes.restart(node)
        ready_ms = now_ms()
        async with self._narrator.doing("catching up"):
            await self._cluster.in_sync(STABLE_S)
        after = await self._cluster.quorum()
        self._journal.note(
            "node-back",
            restarted_ms=restarted_ms,
            ready_ms=ready_ms,
            in_sync_ms=now_ms(),
            leader_after=after.leader_id,
            epoch_after=after.leader_epoch,
        )
        self._narrator.say(f"restarted with the same data; in sync after {monotonic() - began:.1f} s")
        async with self._narrator.doing("checking the groups"):
            await self._cluster.stable(STABLE_S, {BILLING: 2, WORD_TOTALS: 2})
        self._narrator.say("all groups are stable, no member was lost")

    async def storm(self) -> None:
        await self._until(self._plan.storm_s, QUIET)
        self._journal.note("storm")
        await self._workloads.tell(RISK_CHECKS, "storm")
        length = f"{self._plan.storm_length_s:.0f} s"
        self._narrator.begin(
            5, f"simulated downstream failure: for {length} {RISK_CHECKS} releases 90 % of its records"
        )
        await self._pause(self._plan.storm_length_s, f"{PAYMENTS} are redelivered")
        await self._workloads.tell(RISK_CHECKS, "calm")
        self._journal.note("calm")
        self._narrator.say("workers accept records again")

    # --- the end ------------------------------------------------------------------------------------------------------

    async def drain(self) -> None:
        await self._until(self._plan.end_s, QUIET)
        await self._workloads.exit("producers")
        async with self._narrator.doing("waiting for the groups to read to the end"):
            ends = await self._cluster.drained(DRAIN_S)
        self._journal.note("drained", records=sum(ends.values()))
        await self._watcher.stop()
        await self._workloads.exit_all()

    async def _until(self, moment_s: float, meanwhile: str) -> None:
        """Wait for a time of the plan. If it has passed already, all later times move, so that distances stay."""
        left_s = self._began_s + moment_s - monotonic()
        self._began_s -= min(left_s, 0)
        await self._pause(left_s, meanwhile)

    async def _pause(self, seconds: float, meanwhile: str) -> None:
        """Wait, and raise an error if one of the processes ends."""
        if seconds <= 0:
            return
        until_s = monotonic() + seconds
        async with self._narrator.doing(meanwhile, seconds):
            while (left_s := until_s - monotonic()) > 0:
                self._nodes.check()
                self._workloads.check()
                self._watcher.check()
                await asyncio.sleep(min(left_s, 0.25))


def _s(ms: int) -> str:
    return f"{ms / 1000:g} s"
