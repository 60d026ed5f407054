"""Writes tests/golden/rights.txt, what Apache Kafka tells everybody: python -m tests.interop.security.rights_table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.component.broker.raw_client import RawClient
from tests.component.broker.rights import ASKERS, CASES, GOLDEN, Asking, settings
from tests.interop.apache import ApacheKafka, free_ports

HEAD = (
    "# What Apache Kafka 4.3.1 tells everybody who asks for something: the case, the asker, and the answer in short.\n"
    "# tests/component/broker/rights.py explains the words. Written by tests/interop/security/rights_table.py.\n"
)


@contextmanager
def asking_apache(directory: Path) -> Iterator[Asking]:
    """The askers at a node of Apache Kafka."""
    kafka = ApacheKafka(directory)
    (port,) = free_ports(1)
    doors = {"PLAINTEXT": kafka.bootstrap_servers, "LOGIN": f"127.0.0.1:{port}", "CONTROLLER": kafka.controller_servers}
    listeners = [f"{name}://{address}" for name, address in doors.items()]
    kafka.settings |= settings(CASES)
    kafka.settings |= {"listeners": ",".join(listeners), "advertised.listeners": ",".join(listeners[:2])}
    with kafka:
        login, controller = RawClient.at(doors["LOGIN"]), RawClient.at(doors["CONTROLLER"])
        asking = Asking(CASES, login, controller)
        asking.prepare()
        yield asking
        login.close_all()
        controller.close_all()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, asking_apache(Path(directory)) as asking:
        lines = [f"{case.name} {asker} {asking.answer(case, asker)}\n" for case in CASES for asker in ASKERS]
    GOLDEN.write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    main()
