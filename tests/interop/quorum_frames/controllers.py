"""Two controllers that were seeded alike: Apache Kafka's and ours, each with its own port and its own played voters."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.component.broker.raw_client import RawClient
from tests.interop import process
from tests.interop.apache import POLL_S, ApacheKafka, free_ports
from tests.interop.process import ProgramFailed
from tests.interop.quorum_frames.played_voter import Answer, PlayedVoter, Served
from tests.interop.quorum_frames.seeded import LISTENER, NODE_ID, Seed
from tests.interop.serving import OttlaServe

START_TIMEOUT_S = 300


def _properties(seed: Seed, ports: Mapping[int, int], settings: Mapping[str, object]) -> dict[str, str]:
    addresses = {each: f"127.0.0.1:{port}" for each, port in ports.items()}
    listener = f"{LISTENER}://{addresses[NODE_ID]}"
    if seed.kraft_version:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(addresses[each] for each in seed.voters)}
    else:
        quorum = {"controller.quorum.voters": ",".join(f"{each}@{addresses[each]}" for each in seed.voters)}
    return {
        "process.roles": "controller",
        "node.id": str(NODE_ID),
        "listeners": listener,
        "advertised.listeners": listener,
        "controller.listener.names": LISTENER,
        "metadata.max.idle.interval.ms": "0",
        **quorum,
        **{key: str(value) for key, value in settings.items()},
    }


class ApacheController(ApacheKafka):
    name = "Apache Kafka"

    def __init__(self, directory: Path, properties: Mapping[str, str]) -> None:
        super().__init__(directory, heap="256m")
        self._given = properties

    def _properties(self) -> dict[str, str]:
        return {**self._given, "log.dirs": str(self.data_dir)}

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        self._boot()
        self.wait(timeout_s=timeout_s)


class OttlaController(OttlaServe):
    name = "ottla"

    def __init__(self, directory: Path, properties: Mapping[str, str]) -> None:
        super().__init__(directory, **properties)

    def _command(self) -> list[str]:
        options = [word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")]
        return [sys.executable, "-m", "ottla", "serve", "--data", str(self.data_dir), *options]

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """It listens before it knows a leader, and says that it is ready when it does."""
        port = int(self.settings["listeners"].rpartition(":")[2])
        with self.log_path.open("wb") as output:
            self._process = process.start(self._command(), output)
        deadline = time.monotonic() + timeout_s
        while self.running and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                time.sleep(POLL_S)
            else:
                return
        raise ProgramFailed(self.name, "does not listen", process.tail(self.log_path))


class Controller:
    """One of the two, running; `ports` are those of the voters."""

    def __init__(
        self, node: ApacheController | OttlaController, ports: dict[int, int], played: dict[int, PlayedVoter]
    ) -> None:
        self.node = node
        self.ports = ports
        self.played = played
        self.client = RawClient("127.0.0.1", ports[NODE_ID])


@contextmanager
def controllers(
    directory: Path,
    seed: Seed,
    settings: Mapping[str, object],
    played: Mapping[int, Answer] = MappingProxyType({}),
    served: Served = MappingProxyType({}),
) -> Iterator[tuple[Controller, Controller]]:
    """Apache Kafka's and ours. Voters that are `played` listen, and answer so; nobody listens for the others."""
    with ExitStack() as stack:
        running = []
        for kind in (ApacheController, OttlaController):
            voters = {each: stack.enter_context(PlayedVoter(answer, served)) for each, answer in played.items()}
            absent = sorted({NODE_ID, *seed.voters} - set(played))
            ports = dict(zip(absent, free_ports(len(absent)), strict=True))
            ports |= {each: voter.port for each, voter in voters.items()}
            place = directory / kind.name.replace(" ", "-")
            node = kind(place, _properties(seed, ports, settings))
            seed.write(node.data_dir, ports)
            controller = Controller(node, ports, voters)
            stack.callback(node.kill)
            stack.callback(controller.client.close_all)
            node.start()
            running.append(controller)
        yield running[0], running[1]
