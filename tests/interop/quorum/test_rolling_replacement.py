"""`ottla cluster replace`: three nodes of Apache Kafka become ottla's and go back, under load, and no client notices.

Idempotent and transactional producers, consumers and members of a share group run from the beginning to the end.
Nothing that was acknowledged is lost or there twice.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.component.cli.order_taker import PROGRAM, OrderTaker
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.programs import compiled
from tests.interop.quorum.cluster_load import COORDINATORS, SETTINGS, TOPICS, ClusterLoad
from tests.interop.quorum.members import Quorum

NODES = (1, 2, 3)


def replace_all(quorum: Quorum, directory: Path, kind: str) -> str:
    """Let the command replace all nodes; gives what it said.

    Nodes are started by this thread: they end with the one that has started them.
    """

    def perform(command: str, number: int) -> None:
        if command == "stop":
            quorum.nodes[number].stop()
        else:
            quorum.replace(number, kind)
            quorum.start(number)

    operator = OrderTaker(directory, perform)
    data = quorum.nodes[1].directory.parent
    words = operator.options(check=f"{PROGRAM} storage check {data}/node-{{node}}/data")
    target = ("--to", kind, "--yes", "--wait", "4m", "--bootstrap", quorum.bootstrap_servers)
    command = [*PROGRAM.split(), "cluster", "replace", *target, *words]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as replacing:
            said = operator.serve(replacing)
    finally:
        operator.close()
    assert replacing.returncode == 0, said
    return said


def test_nodes_are_replaced_under_load_and_back(apache_jars: Path, tmp_path: Path) -> None:
    compiled("4.3.1")  # which takes a while
    with Quorum(tmp_path / "quorum", voters=dict.fromkeys(NODES, APACHE), **SETTINGS) as quorum:
        with ClusterLoad(quorum.bootstrap_servers, tmp_path / "load", replicas=3) as load:
            for kind, name in ((OTTLA, "ottla"), (APACHE, "Apache Kafka")):
                load.wait_for_progress()
                said = replace_all(quorum, tmp_path / "operator", kind)
                assert f"done: 3 nodes run {name}" in said
                assert said.count("back and in sync") == len(NODES)
                load.wait_for_progress()
            load.finish()
        quorum.check_equal_logs(*TOPICS, *COORDINATORS)
        quorum.check_health()
