"""A quorum whose links can be cut, between nodes of both kinds.

    with LinkedQuorum(tmp_path, voters={1: APACHE, 2: OTTLA, 3: OTTLA}) as quorum:
        quorum.isolate(1)
        quorum.heal()

Nodes know the controllers of the others by names. Each node resolves the names to addresses of its own, where its links
begin: Apache Kafka by a file of hosts, ottla by a table. Between them is the relay of `ottla.testing`. Clients, which
are not cut off, come in at 127.0.0.1. Needs Linux, where all of 127.0.0.0/8 is this machine.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from ottla.testing.certificates import LOCAL_HOSTS
from ottla.testing.children import ChildProcess
from tests.interop.apache import ApacheKafka
from tests.interop.node.brokers import Node
from tests.interop.quorum.members import Quorum, View
from tests.interop.serving import OttlaServe

LOOPBACK = "127.0.0.1"


class LinkedQuorum(Quorum):
    """All nodes are voters. What is cut at the end of the `with` statement stays cut."""

    hosts = (*LOCAL_HOSTS, *(f"node-{number}" for number in range(1, 10)))

    def __init__(self, directory: Path, *, voters: Mapping[int, str], **settings: object) -> None:
        super().__init__(directory, voters=voters, **settings)
        self._relay = ChildProcess("ottla.testing.clusters.relay", "the relay")
        self._relay.ask({"links": [self._link(one, other) for one in voters for other in voters if one != other]})
        for number, node in self.nodes.items():
            hosts = {other: LOOPBACK if other == number else _link_host(number, other) for other in voters}
            self._resolve(node, hosts)

    def _link(self, one: int, other: int) -> tuple[object, ...]:
        port = self._port(other)
        return one, other, (LOOPBACK, port), (_link_host(one, other), port)

    def _resolve(self, node: Node, hosts: Mapping[int, str]) -> None:
        if isinstance(node, OttlaServe):
            node.links = {
                self.advertised_controller(other): f"{host}:{self._port(other)}" for other, host in hosts.items()
            }
            return
        assert isinstance(node, ApacheKafka)
        node.directory.mkdir(parents=True)
        file = node.directory / "hosts"
        lines = [f"{LOOPBACK} localhost {socket.gethostname()}", *(f"{hosts[each]} {_name(each)}" for each in hosts)]
        file.write_text("\n".join(lines) + "\n")
        node.java_properties = {"jdk.net.hosts.file": str(file)}

    def advertised_controller(self, number: int) -> str:
        return f"{_name(number)}:{self._port(number)}"

    def _port(self, number: int) -> int:
        return int(self.nodes[number].controller_servers.rpartition(":")[2])

    def _end(self, error: BaseException | None) -> None:
        super()._end(error)
        self._relay.kill()

    def isolate(self, *numbers: int) -> None:
        """Cut these nodes off from each other and from all others; other links work."""
        pairs = {(one, other) for one in self.nodes for other in self.nodes if one != other}
        self._relay.ask({"cut": [pair for pair in sorted(pairs) if set(pair) & set(numbers)]})

    def heal(self) -> None:
        self.isolate()

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


def _name(number: int) -> str:
    return f"node-{number}"


def _link_host(one: int, other: int) -> str:
    return f"127.0.{one}.{other}"
