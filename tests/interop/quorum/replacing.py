"""`ottla cluster replace` on a quorum under test."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.component.cli.order_taker import PROGRAM, OrderTaker
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import Quorum


def replace_nodes(quorum: Quorum, directory: Path, kind: str, *named: int) -> str:
    """Let the command replace the nodes that are named, or all that are not of this kind; gives what it said.

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
    software = APACHE if kind == APACHE else OTTLA
    target = ("--to", software, "--yes", "--wait", "4m", "--bootstrap", quorum.bootstrap_servers)
    command = [*PROGRAM.split(), "cluster", "replace", *map(str, named), *target, *words]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as replacing:
            said = operator.serve(replacing)
    finally:
        operator.close()
    assert replacing.returncode == 0, said
    return said
