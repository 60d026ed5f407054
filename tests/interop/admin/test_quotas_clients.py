"""Java's Admin and its quotas, with either release of the clients; the program checks what it sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.node.brokers import Node
from tests.interop.programs import JARS, run_program


@pytest.mark.parametrize("release", JARS)
def test_java_feels_quotas_of_requests_and_mutations(broker: Node, release: str, clients_4_4_jars: Path) -> None:
    run_program("QuotaAdmin", release, broker.bootstrap_servers)
