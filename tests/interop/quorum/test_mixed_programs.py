"""Unmodified Java clients and Apache Kafka's tools on a cluster whose controller and brokers are not of one kind.

Node 1 is the only controller, so each direction has its own: ottla's with brokers of Apache Kafka, and the other way
round. The topics of the coordinators are spread over all three brokers, and so are groups and transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.programs import pairs, run_program
from tests.interop.quorum.members import Quorum

CONTROLLER, BROKERS = 1, (2, 3)
COORDINATORS = {
    f"{topic}.{setting}": value
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    for setting, value in (("num.partitions", "6"), ("replication.factor", "3"))
}
OTHER = {OTTLA: APACHE, APACHE: OTTLA}


@pytest.fixture(scope="module", params=OTHER, ids=lambda kind: f"{kind} controls")
def quorum(
    request: pytest.FixtureRequest, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Quorum]:
    brokers = dict.fromkeys(BROKERS, OTHER[request.param])
    directory = tmp_path_factory.mktemp("quorum")
    with Quorum(directory, voters={CONTROLLER: request.param}, brokers=brokers, **COORDINATORS) as quorum:
        quorum.start(*BROKERS)
        yield quorum
        quorum.check_health()


@pytest.mark.parametrize(("name", "release"), pairs())
def test_program_is_content(name: str, release: str, quorum: Quorum) -> None:
    run_program(name, release, quorum.bootstrap_servers)


def test_coordinators_were_on_both_kinds(quorum: Quorum) -> None:
    """What the programs have made: each broker leads a part of each topic, and all replicas have the same bytes."""
    for topic in ("__consumer_offsets", "__transaction_state", "__share_group_state"):
        assert set(quorum.leaders(topic)) == {CONTROLLER, *BROKERS}
        quorum.wait_in_sync(topic)
        quorum.check_equal_logs(topic)
