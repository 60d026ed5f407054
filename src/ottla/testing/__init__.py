"""Tools for tests of programs that use Kafka: a broker or a cluster of your own, and faults on demand.

    with ottla.testing.broker() as b:
        run_my_program(b.bootstrap_servers)

    with ottla.testing.cluster(nodes=3) as c:
        c.quorum_leader().kill()

pytest finds the fixtures `ottla_broker` and `ottla_cluster` without any setup. docs/how-to/testing.md is the tutorial.
Importing this package loads nothing else; what is in it is imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.brokers import Broker, BrokerError, broker
    from ottla.testing.clusters.cluster import Cluster, ClusterError, ClusterNode, cluster
    from ottla.testing.faults import Fault, Faults

__all__ = ["Broker", "BrokerError", "Cluster", "ClusterError", "ClusterNode", "Fault", "Faults", "broker", "cluster"]

_HOMES = {
    "Broker": "brokers",
    "BrokerError": "brokers",
    "Cluster": "clusters.cluster",
    "ClusterError": "clusters.cluster",
    "ClusterNode": "clusters.cluster",
    "Fault": "faults",
    "Faults": "faults",
    "broker": "brokers",
    "cluster": "clusters.cluster",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
