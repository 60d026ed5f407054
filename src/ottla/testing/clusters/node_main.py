"""A node of a cluster as a process: `ottla serve` that reaches the other nodes through the relay.

    python -m ottla.testing.clusters.node_main [--no-sync] [--console] FILE [127.0.0.1:9093=127.0.0.1:40001 …]

Each pair is the address of another node's listener, as the cluster knows it, and where it is reached instead. With
`--console` the node shows a console what only it knows. The node ends when its standard input is closed: it does not
outlive the program that started it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial

from ottla.broker.config.node_config import ConfigError, NodeConfig, file_settings
from ottla.broker.peers.peer_connection import Address, dial
from ottla.cli.node_process import WITH_CONSOLE, CannotServe, run_node
from ottla.log.disk import OsDisk

NO_SYNC = "--no-sync"
CONSOLE = "--console"


def main(arguments: Sequence[str]) -> int:
    began = time.monotonic()
    is_durable = NO_SYNC not in arguments
    path, *pairs = [each for each in arguments if each not in (NO_SYNC, CONSOLE)]
    instead = {_address(known): _address(other) for known, _, other in (pair.partition("=") for pair in pairs)}
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        return run_node(
            NodeConfig(WITH_CONSOLE if CONSOLE in arguments else {}, file_settings(path)),
            disk=OsDisk(durable=is_durable),
            dial=partial(_dial, instead),
            verbosity=0,
            out=sys.stdout,
            began=began,
        )
    except (CannotServe, ConfigError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host, int(port))


def _dial(instead: Mapping[Address, Address], address: Address) -> socket.socket:
    return dial(instead.get(address, address))


def _end_with_parent() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
