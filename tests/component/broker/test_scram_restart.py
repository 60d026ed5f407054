"""SCRAM credentials through restarts, from the log and from snapshots taken at any moment.

Apache Kafka 4.3.1 forgets users that were added after the last one of their mechanism had been deleted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.broker.raw_client import RunningNode, running_node
from tests.component.broker.scram_requests import SHA_256, SHA_512, alter, describe, upsertion

STEPS = ["ann added", "ann deleted", "bob added"]


@pytest.mark.parametrize("snapshot_after", [None, *STEPS])
@pytest.mark.parametrize("lives", [[STEPS], [STEPS[:1], STEPS[1:]], [STEPS[:2], STEPS[2:]]], ids=["one", "1+2", "2+1"])
def test_users_added_after_the_last_one_was_deleted_are_kept(
    tmp_path: Path, lives: list[list[str]], snapshot_after: str | None
) -> None:
    for steps in lives:
        with running_node(tmp_path) as running:
            for step in steps:
                _do(running, step)
                if step == snapshot_after:
                    running.snapshot_metadata()
                    assert running.node.raft.snapshots.newest is not None
    with running_node(tmp_path) as last:
        users = {"bob": (0, [(SHA_256, 4096), (SHA_512, 5000)]), "cid": (0, [(SHA_512, 4096)])}
        assert describe(last.client, of_all=True) == users
        assert alter(last.client, deletions=(("bob", SHA_256), ("cid", SHA_512))) == {"bob": 0, "cid": 0}
        assert describe(last.client, of_all=True) == {"bob": (0, [(SHA_512, 5000)])}


def _do(running: RunningNode, step: str) -> None:
    """Ann is the only user of SHA-256, and for a while of SHA-512."""
    client = running.client
    if step == "ann added":
        assert alter(client, upsertion("ann")) == {"ann": 0}
        assert alter(client, upsertion("ann", SHA_512)) == {"ann": 0}
    elif step == "ann deleted":
        assert alter(client, deletions=(("ann", SHA_256),)) == {"ann": 0}
        assert alter(client, upsertion("cid", SHA_512), deletions=(("ann", SHA_512),)) == {"ann": 0, "cid": 0}
    else:
        assert alter(client, upsertion("bob")) == {"bob": 0}
        assert alter(client, upsertion("bob", SHA_512, 5000)) == {"bob": 0}
