"""Where a cluster lies on the disk: a directory for each node, with its server.properties and its data.

    DIR/node-1/server.properties    Kafka's own settings and no others: Apache Kafka can take the node over
    DIR/node-1/data/                what log.dirs says
    DIR/node-1/node.log             what the node has said, since the cluster was made

The properties files say everything that has to stay the same over a restart; the ports are the ones that the quorum
knows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ottla.broker.config.node_config import LOOPBACK, NodeConfig, file_settings
from ottla.broker.loop.randomness import Randomness
from ottla.broker.replicas.formatter import format_directories
from ottla.core.metadata.uuids import draw
from ottla.core.quorum.voters import Listener, Voter, VoterSet
from ottla.log.disk import OsDisk
from ottla.testing.ports import PortReservation
from ottla.wire import uuid_text
from ottla.wire.properties import write_properties

__all__ = ["ClusterLayout", "LayoutError", "NodeLayout"]

BROKER: Final = "PLAINTEXT"
CONTROLLER: Final = "CONTROLLER"
BETWEEN_BROKERS: Final = "inter.broker.listener.name"
PROPERTIES: Final = "server.properties"

REPLICATION_FACTOR: Final = 3

_OURS: Final = frozenset(
    (
        "advertised.listeners",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    )
)


class LayoutError(Exception):
    """A cluster cannot be made, or is not there; the text says why."""


class NodeLayout(NamedTuple):
    """One node: its directory, its roles, and the ports of its listeners."""

    node_id: int
    directory: Path
    roles: tuple[str, ...]
    ports: dict[str, int]
    """Listener -> port."""

    @property
    def properties(self) -> Path:
        return self.directory / PROPERTIES

    @property
    def log(self) -> Path:
        return self.directory / "node.log"

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    def address(self, listener: str) -> str:
        return f"{LOOPBACK}:{self.ports[listener]}"


class ClusterLayout(NamedTuple):
    """The nodes of a cluster, in the order of their ids."""

    directory: Path
    nodes: tuple[NodeLayout, ...]
    kept_ports: tuple[PortReservation, ...] = ()
    """The ports of a new cluster, until its nodes keep them: another process could get them while it is formatted."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(each.address(BROKER) for each in self.nodes if each.is_broker)

    @property
    def controller_bootstrap(self) -> str:
        return ",".join(each.address(CONTROLLER) for each in self.nodes if each.is_controller)

    @classmethod
    def exists(cls, directory: Path) -> bool:
        return any(directory.glob(f"node-*/{PROPERTIES}"))

    @classmethod
    def open(cls, directory: Path) -> ClusterLayout:
        """A cluster that was made before."""
        nodes = [_read(path.parent) for path in directory.glob(f"node-*/{PROPERTIES}")]
        if not nodes:
            raise LayoutError(f"{directory} contains no cluster")
        return cls(directory, tuple(sorted(nodes)))

    @classmethod
    def make(
        cls, directory: Path, brokers: int, controllers: int | None = None, settings: Mapping[str, str] | None = None
    ) -> ClusterLayout:
        """A new cluster, formatted. Without `controllers` each node is broker and controller.

        Otherwise the brokers have the lowest ids, and as many nodes as that are controllers and nothing else.
        """
        if brokers < 1 or (controllers is not None and controllers < 1):
            raise LayoutError("a cluster has at least one broker and one controller")
        if cls.exists(directory):
            raise LayoutError(f"{directory} already contains a cluster")
        if ours := sorted(_OURS & (settings or {}).keys()):
            raise LayoutError(f"{ours[0]} cannot be set: each node of a cluster has its own")
        layout = _plan(directory.absolute(), brokers, controllers, (settings or {}).get(BETWEEN_BROKERS, BROKER))
        try:
            _write(layout, defaults(brokers) | dict(settings or {}))
        except BaseException:
            layout.let_go()
            raise
        return layout

    def let_go(self) -> None:
        """Keep the ports of a new cluster no longer."""
        for each in self.kept_ports:
            each.close()

    def expect(self, brokers: int, controllers: int | None) -> None:
        """LayoutError unless the cluster has the nodes that were asked for."""
        alone = None if all(each.is_broker for each in self.nodes) else sum(not each.is_broker for each in self.nodes)
        found = (sum(each.is_broker for each in self.nodes), alone)
        if found != (brokers, controllers):
            beside = "" if alone is None else f" and {alone} controllers"
            raise LayoutError(f"{self.directory} contains a cluster of {found[0]} brokers{beside}")


def defaults(brokers: int) -> dict[str, str]:
    """What the nodes of a small cluster are set to: topics that outlive one of its brokers, small internal topics."""
    replicas = min(REPLICATION_FACTOR, brokers)
    factor, in_sync = str(replicas), str(max(replicas - 1, 1))
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": factor,
    }


def _plan(directory: Path, brokers: int, controllers: int | None, between_brokers: str) -> ClusterLayout:
    """Nodes with their ports. Brokers have one listener for clients, and another for each other if it has a name."""
    both: tuple[str, ...] = ("broker", "controller")
    roles = [both] * brokers if controllers is None else [both[:1]] * brokers + [both[1:]] * controllers
    listeners = {"broker": dict.fromkeys((BROKER, between_brokers)), "controller": (CONTROLLER,)}
    kept: list[PortReservation] = []
    nodes: list[NodeLayout] = []
    for number, each in enumerate(roles, 1):
        ports = {name: PortReservation() for role in each for name in listeners[role]}
        kept += ports.values()
        numbers = {name: reservation.port for name, reservation in ports.items()}
        nodes.append(NodeLayout(number, directory / f"node-{number}", each, numbers))
    return ClusterLayout(directory, tuple(nodes), tuple(kept))


def _write(layout: ClusterLayout, settings: Mapping[str, str]) -> None:
    """Write the properties files and format the directories."""
    new_id = Randomness().uuid
    voters = VoterSet(
        tuple(
            Voter(each.node_id, draw(new_id), (Listener(CONTROLLER, LOOPBACK, each.ports[CONTROLLER]),))
            for each in layout.nodes
            if each.is_controller
        )
    )
    cluster_id = uuid_text(draw(new_id))
    disk, now_ms = OsDisk(), time.time_ns() // 1_000_000
    for node in layout.nodes:
        own = _identity(node, layout.controller_bootstrap) | dict(settings)
        config = NodeConfig(own)
        node.directory.mkdir(parents=True, exist_ok=True)
        format_directories(disk, config, now_ms, cluster_id=cluster_id, voters=voters)
        node.properties.write_text(write_properties(own, now_ms), encoding="utf-8")


def _identity(node: NodeLayout, controllers: str) -> dict[str, str]:
    return {
        "process.roles": ",".join(node.roles),
        "node.id": str(node.node_id),
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in node.ports.items()),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.bootstrap.servers": controllers,
        "log.dirs": str(node.data_dir),
    }


def _read(directory: Path) -> NodeLayout:
    config = NodeConfig(file_settings(str(directory / PROPERTIES)))
    roles = tuple(role for role, has in (("broker", config.is_broker), ("controller", config.is_controller)) if has)
    return NodeLayout(config.node_id, directory, roles, {each.name: each.port for each in config.listeners})
