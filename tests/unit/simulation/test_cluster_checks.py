"""The checks of simulated clusters find what they are for, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.core.quorum.states import State
from ottla.testing.trace import Violation
from simulation.cluster.checks import unconverged
from simulation.cluster.data_checks import data_checks
from simulation.cluster.history import History
from simulation.cluster.readings import Readings
from simulation.cluster.replica_invariants import ReplicaInvariants


class Told:
    """A history that a test tells, one operation after the other."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.history = History(self)  # type: ignore[arg-type]

    def now_ms(self) -> int:
        return self.at_ms

    def note(self, line: str) -> None:
        pass

    def did(self, client: str, kind: str, subject: Any, result: Any = None) -> None:
        self.at_ms += 10
        number = self.history.begin(client, kind, subject)
        self.at_ms += 10
        self.history.end(number, result=result)

    def violated(self, **readings: Any) -> list[str]:
        return [name for name, _ in data_checks(self.history, Readings(**readings))]


@pytest.mark.parametrize(
    ("lies", "violated"),
    [
        ([(0, "a"), (1, "b")], []),
        ([(0, "a")], []),
        ([], ["acknowledged stays"]),
        ([(1, "a")], ["acknowledged stays"]),
        ([(0, "a"), (1, "a")], ["acknowledged stays", "acknowledged stays"]),
        ([(0, "a"), (1, "b"), (2, "b")], ["acknowledged stays"]),
    ],
)
def test_records(lies: list[tuple[int, str]], violated: list[str]) -> None:
    """`a` was acknowledged at 0; of `b` nobody knows."""
    told = Told()
    told.did("p", "produce", "a", (0, 0))
    told.did("p", "produce", "b")
    assert told.violated(values={0: lies}) == violated


@pytest.mark.parametrize(
    ("wants_commit", "result", "seen", "is_well"),
    [
        (True, "committed", ["a", "b"], True),
        (True, "committed", ["a"], False),
        (True, "committed", [], False),
        (True, None, ["a", "b"], True),
        (True, None, [], True),
        (True, None, ["b"], False),
        (False, "aborted", [], True),
        (False, "aborted", ["a", "b"], False),
        (False, None, ["a"], False),
    ],
)
def test_transactions(wants_commit: bool, result: str | None, seen: list[str], is_well: bool) -> None:
    told = Told()
    told.did("t", "transaction", (("a", "b"), None, wants_commit), result)
    assert told.violated(committed_values={0: [(0, each) for each in seen]}) == ([] if is_well else ["all or nothing"])


def test_the_offset_of_a_transaction_comes_with_its_records() -> None:
    told = Told()
    told.did("t", "transaction", (("a",), 7, True), "committed")
    seen = {0: [(0, "a")]}
    assert told.violated(committed_values=seen, offsets={("group of t", 0): 7}) == []
    assert told.violated(committed_values=seen) == ["all or nothing"]


@pytest.mark.parametrize(("final", "is_well"), [(1, False), (2, True), (3, True), (4, False), (None, False)])
def test_committed_offsets(final: int | None, is_well: bool) -> None:
    """1 and 2 were acknowledged, one after the other; 3 was not, and may have come at any time."""
    told = Told()
    for mark, result in ((1, True), (2, True), (3, None)):
        told.did("c", "commit", ("g", 0, mark), result)
    offsets = {} if final is None else {("g", 0): final}
    assert told.violated(offsets=offsets) == ([] if is_well else ["commits stay"])


@pytest.mark.parametrize(("read", "is_well"), [(1, False), (2, True), (-1, False)])
def test_offsets_that_are_read(read: int, is_well: bool) -> None:
    told = Told()
    told.did("c", "commit", ("g", 0, 1), True)
    told.did("c", "commit", ("g", 0, 2), True)
    told.did("d", "read offset", ("g", 0), read)
    assert told.violated(offsets={("g", 0): 2}) == ([] if is_well else ["offsets in order"])


def test_producer_ids() -> None:
    told = Told()
    told.did("a", "take id", "a", ("a", 5))
    told.did("a", "take id", "a", ("a", 5))
    assert told.violated() == []
    told.did("b", "take id", "b", ("b", 5))
    assert told.violated() == ["producer ids"]


def test_share_starts() -> None:
    told = Told()
    told.did("w", "share start", "g", [(0, 5), (1, 0)])
    told.did("w", "share start", "g", [(0, 5), (1, 3)])
    assert told.violated() == []
    told.did("w", "share start", "g", [(0, 4)])
    assert set(told.violated()) == {"share start"}


def test_accepted_records() -> None:
    told = Told()
    told.did("s", "deliver", "g", [(0, 1), (0, 2)])
    told.did("s", "accept", "g", [(0, 1)])
    told.did("s", "deliver", "g", [(0, 2)])
    assert told.violated() == []
    told.did("s", "deliver", "g", [(0, 1)])
    assert told.violated() == ["accepted stays"]


def test_a_commit_counts_in_the_millisecond_in_which_it_is_read() -> None:
    told = Told()
    told.did("a", "commit", ("g", 0, 1), True)
    for kind, subject, result in (("commit", ("g", 0, 2), True), ("read offset", ("g", 0), 2)):
        told.history.end(told.history.begin("a", kind, subject), result=result)
    assert told.violated(offsets={("g", 0): 2}) == []


# --- nodes ------------------------------------------------------------------------------------------------------------

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
