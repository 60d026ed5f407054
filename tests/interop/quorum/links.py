"""A quorum whose links can be cut, between nodes of both kinds.

    with LinkedQuorum(tmp_path, voters={1: APACHE, 2: OTTLA, 3: OTTLA}) as quorum:
        quorum.isolate(1)
        quorum.heal()

Nodes know the controllers and brokers of the others by names. Each node resolves the names to addresses of its own,
where its links begin: Apache Kafka by a file of hosts, ottla by a table. Between them is the relay of `ottla.testing`.
Clients, which are not cut off, come in at 127.0.0.1. Needs Linux, where all of 127.0.0.0/8 is this machine.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.testing.certificates import LOCAL_HOSTS
from ottla.testing.children import ChildProcess
from ottla.testing.clusters.relay import Direction
from tests.interop.apache import ApacheKafka
from tests.interop.node.brokers import Node
from tests.interop.quorum.members import CONTROLLER, INTERNAL, Quorum, View
from tests.interop.serving import OttlaServe

LOOPBACK = "127.0.0.1"


class LinkedQuorum(Quorum):
    """All nodes are voters. What is cut at the end of the `with` statement stays cut."""

    hosts = (*LOCAL_HOSTS, *(f"node-{number}" for number in range(1, 10)))
    has_internal_listener = True

    def __init__(self, directory: Path, *, voters: Mapping[int, str], **settings: object) -> None:
        super().__init__(directory, voters=voters, **settings)
        self._cut: frozenset[Direction] = frozenset()
        self._relay = ChildProcess("ottla.testing.clusters.relay", "the relay")
        links = [link for one in voters for other in voters if one != other for link in self._links(one, other)]
        self._relay.ask({"links": links})
        for number, node in self.nodes.items():
            hosts = {other: LOOPBACK if other == number else _link_host(number, other) for other in voters}
            self._resolve(node, hosts)

    def _links(self, one: int, other: int) -> list[tuple[object, ...]]:
        """The ways from a node to the listeners of another."""
        return [(one, other, (LOOPBACK, port), (_link_host(one, other), port)) for port in self._ports(other)]

    def _resolve(self, node: Node, hosts: Mapping[int, str]) -> None:
        if isinstance(node, OttlaServe):
            node.links = {
                f"{_name(other)}:{port}": f"{host}:{port}"
                for other, host in hosts.items()
                for port in self._ports(other)
            }
            return
        assert isinstance(node, ApacheKafka)
        node.directory.mkdir(parents=True)
        file = node.directory / "hosts"
        lines = [f"{LOOPBACK} localhost {socket.gethostname()}", *(f"{hosts[each]} {_name(each)}" for each in hosts)]
        file.write_text("\n".join(lines) + "\n")
        node.java_properties = {"jdk.net.hosts.file": str(file)}

    def _advertised(self, number: int, listener: str, address: str) -> str:
        return f"{_name(number)}:{_port(address)}" if listener in (CONTROLLER, INTERNAL) else address

    def _ports(self, number: int) -> list[int]:
        """Of the listeners that other nodes use."""
        listeners = dict(each.split("://") for each in self.nodes[number].settings["listeners"].split(","))
        return [_port(listeners[name]) for name in (CONTROLLER, INTERNAL)]

    def _end(self, error: BaseException | None) -> None:
        super()._end(error)
        self._relay.kill()

    def __getitem__(self, number: int) -> LinkedNode:
        return LinkedNode(self, number)

    def cut(self, one: int, other: int, *, one_way: bool = False) -> None:
        """Let what two nodes send each other vanish; with `one_way` only what the first sends the second."""
        self._set_cut(self._cut | {(one, other)} | (set() if one_way else {(other, one)}))

    def isolate(self, *numbers: int) -> None:
        """Cut these nodes off from each other and from all others; other links work."""
        pairs = {(one, other) for one in self.nodes for other in self.nodes if one != other}
        self._set_cut({pair for pair in pairs if set(pair) & set(numbers)})

    def heal(self) -> None:
        self._set_cut(())

    def _set_cut(self, directions: Iterable[Direction]) -> None:
        self._cut = frozenset(directions)
        self._relay.ask({"cut": sorted(self._cut)})

    def elect(self, chosen: int) -> View:
        """Let a voter of three become the leader: only it has all that the former leader has acknowledged."""
        view = self.wait_for_voters()
        if view.leader_id == chosen:
            return view
        (third,) = set(self.voters) - {chosen, view.leader_id}
        self.isolate(third)
        self.create_topic(f"unknown-to-{third}-in-{view.epoch}", at=chosen)
        self.isolate(view.leader_id)
        self.wait_for(lambda now: now.leader_id == chosen and now.epoch > view.epoch, f"node {chosen} to lead")
        self.heal()
        return self.wait_for_voters()


class LinkedNode(NamedTuple):
    """A node, as `tools.fault_run.plan` hits it."""

    quorum: LinkedQuorum
    number: int

    def kill(self) -> None:
        self.quorum.nodes[self.number].kill()

    def stop(self) -> None:
        self.quorum.nodes[self.number].stop()

    def start(self, *, wait: bool = True) -> None:
        if wait:
            self.quorum.start(self.number)
        else:
            self.quorum.nodes[self.number].launch()

    def pause(self) -> None:
        self.quorum.pause(self.number)

    def resume(self) -> None:
        self.quorum.resume(self.number)


def _name(number: int) -> str:
    return f"node-{number}"


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _link_host(one: int, other: int) -> str:
    return f"127.0.{one}.{other}"
