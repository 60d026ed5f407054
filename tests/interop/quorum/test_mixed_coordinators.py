"""Coordinators on nodes of both kinds: groups, transactions and share groups go on while each node is killed in turn.

What one kind's coordinator has written, the other's goes on with: state moves in both directions several times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.programs import compiled
from tests.interop.quorum.cluster_load import COORDINATORS, SETTINGS, TOPICS, ClusterLoad
from tests.interop.quorum.members import MIXED, Quorum


@pytest.mark.parametrize("kinds", MIXED.values(), ids=MIXED)
def test_clients_go_on_when_coordinators_move(kinds: dict[int, str], tmp_path: Path) -> None:
    compiled("4.3.1")  # which takes a while
    with Quorum(tmp_path / "quorum", voters=kinds, **SETTINGS) as quorum:
        with ClusterLoad(quorum.bootstrap_servers, tmp_path / "load", replicas=3) as load:
            for end in ("kill", "stop"):
                for number in kinds:
                    load.wait_for_progress()
                    getattr(quorum.nodes[number], end)()
                    load.wait_for_progress()
                    quorum.start(number)
                    for topic in (*TOPICS, *COORDINATORS):
                        quorum.wait_in_sync(topic)
                        quorum.elect_preferred(topic)
            load.finish()
        quorum.check_equal_logs(*TOPICS, *COORDINATORS)
        quorum.check_health()
