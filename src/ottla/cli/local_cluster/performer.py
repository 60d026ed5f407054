"""Carries out orders on the cluster that this process runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.cli.failure import Failure
from ottla.testing.clusters.cluster import Cluster, ClusterError, ClusterNode

__all__ = ["Performer", "describe_node"]

_OF_NODES: Final[dict[str, Callable[[ClusterNode], None]]] = {
    "kill": ClusterNode.kill,
    "pause": ClusterNode.pause,
    "resume": ClusterNode.resume,
    "stop": ClusterNode.stop,
    "start": lambda node: node.start(wait=False),
}


class Performer:
    """The commands; each gives what the other process prints."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __call__(self, command: str, **arguments: Any) -> Any:  # noqa: ANN401
        try:
            if command in _OF_NODES:
                return self._each(command, **arguments)
            return getattr(self, f"_{command}")(**arguments)
        except ClusterError as error:
            raise Failure(str(error), "ottla cluster status shows the nodes") from None

    def _each(self, command: str, nodes: list[int]) -> list[str]:
        """Do something to nodes; all of them must be there."""
        found = [self._cluster[number] for number in nodes]
        for node in found:
            _OF_NODES[command](node)
        return [f"node {node.node_id} is {node.state}" for node in found]

    def _cut(self, one: int, other: int | None, one_way: bool) -> list[str]:
        if other is None:
            self._cluster.isolate(one)
        elif one == other:
            raise Failure("a node has no link to itself")
        else:
            self._cluster.cut(one, other, one_way=one_way)
        return self._cut_links()

    def _heal(self) -> list[str]:
        self._cluster.heal()
        return ["all links are up"]

    def _cut_links(self) -> list[str]:
        cut = self._cluster.cut_directions
        both = [
            f"{one} and {other} cannot reach each other" for one, other in cut if one < other and (other, one) in cut
        ]
        single = [f"{other} receives nothing from {one}" for one, other in cut if (other, one) not in cut]
        return sorted(both) + sorted(single)

    def _status(self) -> dict[str, Any]:
        quorum = self._cluster.quorum_now()
        return {
            "bootstrap": self._cluster.bootstrap_servers,
            "leader": None if quorum is None else quorum.leader_id,
            "epoch": None if quorum is None else quorum.leader_epoch,
            "nodes": [describe_node(each) for each in self._cluster],
            "cut": self._cut_links(),
        }


def describe_node(node: ClusterNode) -> dict[str, Any]:
    return {
        "node": node.node_id,
        "roles": list(node.layout.roles),
        "state": str(node.state),
        "pid": node.pid,
        "listeners": {name: node.layout.address(name) for name in node.layout.ports},
        "directory": str(node.layout.directory),
    }
