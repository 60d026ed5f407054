"""Apache Kafka's controller and ours, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.apache import NODE_ID
from tests.interop.controller.twin import TOKEN_CHECK_MS, ControllerOnly, Twin

LONG_MS = 3_600_000
SHORT_MS = 6_000
SECRET_KEY = "a secret of the cluster"


def booted(
    directory: Path,
    session_timeout_ms: int,
    leader_interval_s: int = 300,
    *,
    apache: type[ControllerOnly] = ControllerOnly,
    settings: dict[str, Any] | None = None,
    **ours: Any,
) -> Iterator[Twin]:
    intervals = {
        "leader.imbalance.check.interval.seconds": leader_interval_s,
        "unclean.leader.election.interval.ms": 1000 * leader_interval_s,
        **(settings or {}),
    }
    with apache(directory, broker_session_timeout_ms=session_timeout_ms, **intervals) as theirs:
        twin = Twin(theirs, session_timeout_ms, 1000 * leader_interval_s, **ours)
        try:
            yield twin
            twin.check_state()
        finally:
            twin.client.close_all()


@pytest.fixture
def twin(tmp_path: Path, apache_jars: Path) -> Iterator[Twin]:
    """Controllers whose brokers' sessions outlast the test."""
    yield from booted(tmp_path, LONG_MS)


@pytest.fixture
def short_twin(tmp_path: Path, apache_jars: Path) -> Iterator[Twin]:
    """Controllers whose brokers' sessions are short."""
    yield from booted(tmp_path, SHORT_MS)


@pytest.fixture
def busy_twin(tmp_path: Path, apache_jars: Path) -> Iterator[Twin]:
    """Controllers that look after leaders every three seconds."""
    yield from booted(tmp_path, LONG_MS, leader_interval_s=3)


class StaticVoters(ControllerOnly):
    """A controller whose quorum has the voters of its configuration: kraft.version 0."""

    def _properties(self) -> dict[str, str]:
        properties = super()._properties() | {"controller.quorum.voters": f"{NODE_ID}@{self.controller_servers}"}
        del properties["controller.quorum.bootstrap.servers"]
        return properties

    def __init__(self, directory: Path, **settings: Any) -> None:
        super().__init__(directory, format_arguments=(), **settings)


@pytest.fixture
def static_twin(tmp_path: Path, apache_jars: Path) -> Iterator[Twin]:
    """Controllers of quorums with kraft.version 0."""
    yield from booted(tmp_path, LONG_MS, apache=StaticVoters, kraft_version=0)


@pytest.fixture
def token_twin(tmp_path: Path, apache_jars: Path) -> Iterator[Twin]:
    """Controllers that keep delegation tokens, and often look for expired ones."""
    settings = {
        "delegation.token.secret.key": SECRET_KEY,
        "delegation.token.expiry.check.interval.ms": TOKEN_CHECK_MS,
    }
    ours = {"token_secret_key": SECRET_KEY, "token_expiry_check_interval_ms": TOKEN_CHECK_MS}
    yield from booted(tmp_path, LONG_MS, settings=settings, **ours)
