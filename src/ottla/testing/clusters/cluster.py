"""A cluster of real nodes for a test, or for a person at a terminal."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ottla.client.cluster import QuorumDescription
from ottla.testing.brokers import settings_of
from ottla.testing.children import ChildError, ChildProcess
from ottla.testing.clusters import inspection
from ottla.testing.clusters.layout import ClusterLayout, LayoutError
from ottla.testing.clusters.nodes import (
    OTTLA,
    OTTLA_WITHOUT_SYNC,
    ClusterError,
    ClusterNode,
    NodeState,
    Program,
    wait_until,
)
from ottla.testing.clusters.relay import Direction
from ottla.testing.clusters.security import client_of_controllers, node_settings
from ottla.testing.ports import LOOPBACK

__all__ = ["Cluster", "ClusterError", "ClusterNode", "cluster", "open_or_make"]

WAIT_SECONDS: Final = 60.0
DEFAULT_NODES: Final = 3
DEFAULT_SECURITY = "plaintext"
"""How nodes speak to each other where a test does not say it."""
FOR_TESTS: Final = {"group.initial.rebalance.delay.ms": "0"}


@contextlib.contextmanager
def cluster(
    nodes: int = DEFAULT_NODES,
    *,
    controllers: int | None = None,
    data_dir: str | Path | None = None,
    durable: bool = False,
    programs: Mapping[int, Program] = MappingProxyType({}),
    security: str | None = None,
    **config: object,
) -> Iterator[Cluster]:
    """A running cluster: `with cluster(nodes=3) as c: …`.

    Each node is broker and controller; with `controllers` there are as many controllers beside the brokers. `config`
    has Kafka's settings for all nodes, with `_` for the dot. The data are in a new directory, which is removed at the
    end, or in `data_dir`, which stays; if there is a cluster in it, that one is started. `programs` says which nodes
    run something else than ottla. `security` is how nodes speak to each other: "ssl", "sasl_plaintext" or "sasl_ssl".
    """
    with contextlib.ExitStack() as stack:
        path = Path(stack.enter_context(_temporary()) if data_dir is None else data_dir)
        settings = FOR_TESTS | settings_of(config)
        protocol = (security or DEFAULT_SECURITY).upper()
        if protocol != "PLAINTEXT":
            settings = node_settings(protocol, path.absolute()) | settings
        try:
            layout = open_or_make(path, nodes, controllers, settings)
        except LayoutError as error:
            raise ClusterError(str(error)) from None
        made = Cluster(layout, program=OTTLA if durable else OTTLA_WITHOUT_SYNC, programs=programs)
        stack.callback(made.close)
        made.start()
        yield made


@contextlib.contextmanager
def _temporary() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="ottla-cluster-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def open_or_make(directory: Path, brokers: int, controllers: int | None, settings: Mapping[str, str]) -> ClusterLayout:
    """The cluster that is in a directory, or a new one. LayoutError if there is another than was asked for."""
    if not ClusterLayout.exists(directory):
        return ClusterLayout.make(directory, brokers, controllers, settings)
    layout = ClusterLayout.open(directory)
    layout.expect(brokers, controllers)
    return layout


class Cluster:
    """A cluster under test. Methods return when they have taken effect."""

    def __init__(
        self, layout: ClusterLayout, *, program: Program = OTTLA, programs: Mapping[int, Program] = MappingProxyType({})
    ) -> None:
        self.layout = layout
        self.controller_login = client_of_controllers(layout.nodes[0].properties)
        """What a client needs to speak to the controllers."""
        self.cut_directions: frozenset[Direction] = frozenset()
        self._nodes: dict[int, ClusterNode] = {}
        self._relay = ChildProcess("ottla.testing.clusters.relay", "the relay")
        try:
            links = self._open_links()
            for each in layout.nodes:
                runs = programs.get(each.node_id, program)
                self._nodes[each.node_id] = ClusterNode(each, runs, links[each.node_id])
        except BaseException:
            self.close()
            raise
        finally:
            layout.let_go()  # each node keeps its own now

    def _open_links(self) -> dict[int, dict[str, str]]:
        """Node -> address of a listener of another -> where it reaches that."""
        nodes = self.layout.nodes
        wanted = [
            (one.node_id, other.node_id, (LOOPBACK, port))
            for one in nodes
            for other in nodes
            for port in other.ports.values()
            if one is not other
        ]
        links: dict[int, dict[str, str]] = {each.node_id: {} for each in nodes}
        for (one, _, (host, port)), opened in zip(wanted, self._tell_relay({"links": wanted}), strict=True):
            links[one][f"{host}:{port}"] = f"{LOOPBACK}:{opened}"
        return links

    def __repr__(self) -> str:
        return f"<Cluster {' '.join(f'{each.node_id}:{each.state}' for each in self)}>"

    def __getitem__(self, node_id: int) -> ClusterNode:
        try:
            return self._nodes[node_id]
        except KeyError:
            raise ClusterError(f"unknown node {node_id}; known: {', '.join(map(str, self._nodes))}") from None

    def __iter__(self) -> Iterator[ClusterNode]:
        return iter(self._nodes.values())

    @property
    def bootstrap_servers(self) -> str:
        """Host and port of all brokers, for clients; they stay the same."""
        return self.layout.bootstrap_servers

    @property
    def controller_bootstrap(self) -> str:
        """Host and port of all controllers, for tools that speak to these (`--bootstrap-controller`)."""
        return self.layout.controller_bootstrap

    # --- all nodes ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all nodes that do not run, side by side, and wait until the whole cluster serves."""
        starting = [each for each in self if not each.is_running]
        for node in starting:
            node.start(wait=False)
        for node in starting:
            node.wait_ready()
        self.wait_in_sync()

    def stop(self) -> None:
        """Stop all nodes cleanly, one after the other; what is paused is killed.

        The last controllers that are a majority stop together: one of them alone could not write down that it stops.
        """
        for node in self:
            if node.state is NodeState.PAUSED:
                node.kill()
        running = [each for each in self if each.state is NodeState.RUNNING]
        leader = self.quorum_now()
        running.sort(key=lambda each: (each.is_controller, leader is not None and each.node_id == leader.leader_id))
        majority = len([each for each in self if each.is_controller]) // 2 + 1
        first, last = running[:-majority], running[-majority:]
        for node in first:
            node.stop()
        for node in last:
            node.begin_stop()
        for node in last:
            node.end_stop()

    def close(self) -> None:
        """End all nodes at once and for good; `cluster()` calls this at its end."""
        for node in self:
            node.close()
        self._relay.kill()

    # --- links --------------------------------------------------------------------------------------------------------

    def cut(self, one: int, other: int, *, one_way: bool = False) -> None:
        """Let what two nodes send each other vanish; with `one_way` only what the first sends the second."""
        directions = {(self[one].node_id, self[other].node_id)}
        self._set_cut(self.cut_directions | directions | (set() if one_way else {(other, one)}))

    def isolate(self, node_id: int) -> None:
        """Cut a node off from all others. Clients still reach it."""
        others = [each.node_id for each in self if each is not self[node_id]]
        self._set_cut(self.cut_directions | {(node_id, each) for each in others} | {(each, node_id) for each in others})

    def heal(self) -> None:
        """Mend all links. What was sent meanwhile arrives now, as with TCP."""
        self._set_cut(frozenset())

    def _set_cut(self, directions: frozenset[Direction]) -> None:
        self._tell_relay({"cut": sorted(directions)})
        self.cut_directions = directions

    def _tell_relay(self, order: Mapping[str, object]) -> Any:  # noqa: ANN401 - what it answers
        try:
            return self._relay.ask(order)
        except ChildError as error:
            raise ClusterError(str(error)) from None

    # --- what the cluster says ----------------------------------------------------------------------------------------

    def quorum(self) -> QuorumDescription:
        """The quorum as its leader sees it, as soon as there is one."""
        found: list[QuorumDescription] = []

        def look() -> bool:
            claim = self.quorum_now()
            found.extend([] if claim is None else [claim])
            return bool(found)

        wait_until(look, "the quorum has no leader", WAIT_SECONDS)
        return found[-1]

    def quorum_now(self) -> QuorumDescription | None:
        """The same, or None if there is none just now. If several claim to lead, the newest counts."""
        asked = [each for each in self if each.is_controller and each.state is NodeState.RUNNING]
        claims = [inspection.quorum(each.controller_bootstrap, **self.controller_login) for each in asked]
        return max((each for each in claims if each is not None), key=lambda each: each.leader_epoch, default=None)

    def quorum_leader(self) -> ClusterNode:
        """The node that leads the quorum, as soon as there is one. Paused nodes are not asked."""
        return self[self.quorum().leader_id]

    def leader(self, topic: str, partition: int) -> ClusterNode:
        """The node that leads a partition, as soon as there is one."""
        found: list[int] = []

        def look() -> bool:
            views = self._partitions() or ()
            found.extend(each.leader for each in views if (each.topic, each.partition) == (topic, partition))
            return bool(found) and found[-1] >= 0

        wait_until(look, f"{topic}-{partition} has no leader", WAIT_SECONDS)
        return self[found[-1]]

    def wait_in_sync(self) -> None:
        """Wait until the running nodes agree: on one leader of the quorum, with all of its log and of each partition.

        Paused nodes and cut links are waited for, too: it can only end when a majority of the controllers is there.
        """
        wait_until(self._is_in_sync, "the nodes are not in sync", WAIT_SECONDS, self._why_not)

    def _is_in_sync(self) -> bool:
        return not self._why_not()

    def _why_not(self) -> str:
        running = {each.node_id for each in self if each.is_running}
        claim = self.quorum_now()
        if claim is None:
            return ": the quorum has no leader"
        ends = {each.node_id: each.log_end_offset for each in (*claim.voters, *claim.observers)}
        behind = sorted(each for each in running if ends.get(each, -1) < claim.high_watermark)
        if behind:
            return f": behind the leader, {claim.leader_id}: {behind}"
        brokers = {each.node_id for each in self if each.is_broker} & running
        for node_id in sorted(brokers):
            serving = inspection.unfenced(self[node_id].bootstrap_servers)
            if serving != brokers:
                return f": {node_id} sees these brokers serve: {serving and sorted(serving)}"
        for each in self._partitions() or ():
            if not running.intersection(each.replicas) <= set(each.in_sync):
                return f": in sync on {each.topic}-{each.partition} are {each.in_sync} of {each.replicas}"
        return ""

    def _partitions(self) -> list[inspection.PartitionView] | None:
        """The partitions, as the first broker sees them that answers."""
        for node in self:
            if node.is_broker and node.state is NodeState.RUNNING:
                views = inspection.partitions(node.bootstrap_servers)
                if views is not None:
                    return views
        return None
