"""`ottla cluster replace`: three nodes of Apache Kafka become ottla's and go back, under load, and no client notices.

Idempotent and transactional producers, consumers and members of a share group run from the beginning to the end.
Nothing that was acknowledged is lost or there twice.
"""

from __future__ import annotations

from pathlib import Path

from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.programs import compiled
from tests.interop.quorum.cluster_load import COORDINATORS, SETTINGS, TOPICS, ClusterLoad
from tests.interop.quorum.members import Quorum
from tests.interop.quorum.replacing import replace_nodes

NODES = (1, 2, 3)


def test_nodes_are_replaced_under_load_and_back(apache_jars: Path, tmp_path: Path) -> None:
    compiled("4.3.1")  # which takes a while
    with Quorum(tmp_path / "quorum", voters=dict.fromkeys(NODES, APACHE), **SETTINGS) as quorum:
        with ClusterLoad(quorum.bootstrap_servers, tmp_path / "load", replicas=3) as load:
            for kind, name in ((OTTLA, "ottla"), (APACHE, "Apache Kafka")):
                load.wait_for_progress()
                said = replace_nodes(quorum, tmp_path / "operator", kind)
                assert f"done: 3 nodes run {name}" in said
                assert said.count("back and in sync") == len(NODES)
                load.wait_for_progress()
            load.finish()
        quorum.check_equal_logs(*TOPICS, *COORDINATORS)
        quorum.check_health()
