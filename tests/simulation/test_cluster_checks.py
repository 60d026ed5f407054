"""What the checks of simulated clusters take for a fault, and what not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.core.quorum.states import State
from ottla.testing.trace import Violation
from simulation.cluster.checks import unconverged
from simulation.cluster.replica_invariants import ReplicaInvariants

WORLD: Any = SimpleNamespace(after=lambda *_: None, newest_image=lambda: None, machines={})
MACHINE: Any = SimpleNamespace(name="n1")


def move(checks: ReplicaInvariants, leader_epoch: int, end_offset: int) -> None:
    """A leader commits all that it has."""
    place: Any = SimpleNamespace(partition=0)
    replica: Any = SimpleNamespace(
        topic_id=bytes(16), topic_partition=place, leader_epoch=leader_epoch, partition_epoch=leader_epoch
    )
    log: Any = SimpleNamespace(high_watermark=end_offset, log_end_offset=end_offset, log_start_offset=end_offset)
    checks._moved(MACHINE, replica, log, 0)


def test_a_leader_has_what_the_former_one_has_committed() -> None:
    checks = ReplicaInvariants(WORLD)
    move(checks, 1, 53)
    with pytest.raises(Violation, match="ends at 46, committed is 53"):
        move(checks, 2, 46)


def test_a_former_leader_may_be_late_to_hear_that_it_leads_no_more() -> None:
    checks = ReplicaInvariants(WORLD)
    move(checks, 2, 53)
    move(checks, 1, 46)


@pytest.mark.parametrize(("state", "missing"), [(State.FOLLOWER, []), (State.PROSPECTIVE, ["n1 stands for election"])])
def test_a_node_that_stands_for_election_has_not_come_to_rest(state: State, missing: list[str]) -> None:
    image: Any = SimpleNamespace(brokers={}, topics_by_name={})
    machines = {
        number: SimpleNamespace(
            number=number,
            name=f"n{number}",
            is_serving=True,
            node=SimpleNamespace(
                image=image,
                raft=SimpleNamespace(quorum=SimpleNamespace(leader_id=2, epoch=7, high_watermark=9, state=its_state)),
            ),
        )
        for number, its_state in ((1, state), (2, State.LEADER))
    }
    world: Any = SimpleNamespace(machines=machines, brokers=[], leader=lambda: machines[2])
    assert list(unconverged(world)) == missing
