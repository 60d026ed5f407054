"""The parts of a world: the network's faults, what a commit may be found as, owners and epochs in a log, time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ottla.core.coordinator.records import record, tombstone
from ottla.testing.clock import WALL_START_MS, VirtualClock
from ottla.testing.network import Chances, InFlightRequest, Network
from ottla.testing.timeline import Timeline
from ottla.testing.trace import Violation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.group_consumer import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from ottla.wire.types.heartbeat import HeartbeatRequest
from simulation.invariants import Claims, CommitRegister, LogModel

PLACE = ("g", "t", 0)


class Mail(Timeline):
    """A world in which nothing lives: what arrives is kept."""

    def __init__(self, **chances: float) -> None:
        super().__init__(1)
        self.network = Network(self, random.Random(1))
        self.network.chances = Chances(**chances)
        self.arrived: list[InFlightRequest] = []
        self.answers: list[Any] = []

    def next_deadline_ms(self) -> int | None:
        return None

    def serve(self) -> None:
        pass

    def deliver(self, in_flight: InFlightRequest) -> None:
        self.arrived.append(in_flight)
        self.network.answer(in_flight, f"answer to {in_flight.number}")

    def send(self, count: int) -> None:
        for _ in range(count):
            self.network.send("c1", HeartbeatRequest(group_id="g"), 4, self.answers.append, 5_000)

    def run(self) -> Mail:
        self.run_until(60_000)
        return self


def test_a_good_network_delivers_in_order_and_answers_once() -> None:
    mail = Mail()
    mail.send(20)
    mail.run()
    assert [in_flight.number for in_flight in mail.arrived] == list(range(1, 21))
    assert sorted(mail.answers) == sorted(f"answer to {number}" for number in range(1, 21))


@pytest.mark.parametrize("fault", ["request_lost", "answer_lost"])
def test_who_hears_nothing_gives_up(fault: str) -> None:
    mail = Mail(**{fault: 1.0})
    mail.send(1)
    mail.run_until(4_999)
    assert mail.answers == []
    assert mail.run().answers == [None]


def test_a_doubled_request_is_answered_once() -> None:
    mail = Mail(doubled=1.0)
    mail.send(1)
    mail.run()
    assert [in_flight.is_echo for in_flight in mail.arrived] == [False, True]
    assert mail.answers == ["answer to 1"]


def test_a_late_request_arrives_when_nobody_waits() -> None:
    mail = Mail(late=1.0)
    mail.send(1)
    mail.run_until(1_999)
    assert mail.arrived == []
    assert len(mail.run().arrived) == 1


def test_time_goes_from_action_to_action() -> None:
    mail = Mail()
    seen: list[int] = []
    for delay_ms in (30, 10, 20):
        mail.after(delay_ms, lambda: seen.append(mail.now_ms()))
    assert not mail.run_until(25)
    assert seen == [10, 20]
    assert mail.run_until(100, lambda: len(seen) == 3)
    assert mail.now_ms() == 30


def test_a_violation_is_raised_after_the_step_even_if_something_caught_it() -> None:
    mail = Mail()
    mail.after(5, lambda: mail.hold("owned once", False, "twice"))
    with pytest.raises(Violation, match="owned once: twice"):
        mail.run()


def test_only_the_wall_clock_goes_back() -> None:
    clock = VirtualClock()
    clock.advance_to(100)
    clock.jump_wall(-1_000)
    clock.advance_to(50)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (100, WALL_START_MS - 900)


# --- offsets ----------------------------------------------------------------------------------------------------------


def told(code: ErrorCode) -> Callable[[Any], int]:
    return lambda place: code


def test_an_acknowledged_commit_replaces_those_before() -> None:
    register = CommitRegister()
    for token, offset in (("first", 1), ("second", 2), ("third", 3)):
        register.begin(token, [(PLACE, offset)])
    register.finish("second", told(ErrorCode.NONE))
    assert register.candidates(PLACE) == {2, 3}


def test_a_refused_commit_must_not_be_there_and_an_unclear_one_may() -> None:
    register = CommitRegister()
    register.begin("refused", [(PLACE, 1)])
    register.begin("unclear", [(PLACE, 2)])
    register.finish("refused", told(ErrorCode.ILLEGAL_GENERATION))
    register.finish("unclear", told(ErrorCode.NOT_COORDINATOR))
    assert register.candidates(PLACE) == {None, 2}


def test_a_deletion_that_was_acknowledged_leaves_nothing() -> None:
    register = CommitRegister()
    register.begin("commit", [(PLACE, 1)])
    register.finish("commit", told(ErrorCode.NONE))
    register.begin("deletion", [(PLACE, None)])
    register.finish("deletion", told(ErrorCode.NONE))
    assert register.candidates(PLACE) == {None}


# --- owners and epochs ------------------------------------------------------------------------------------------------


def holds(member_id: str, *partitions: int, pending: tuple[int, ...] = ()) -> Any:
    topic = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    value = ConsumerGroupCurrentMemberAssignmentValue(
        assigned_partitions=(topic(bytes(16), partitions),), partitions_pending_revocation=(topic(bytes(16), pending),)
    )
    return record(ConsumerGroupCurrentMemberAssignmentKey("g", member_id), value, 0)


def test_a_partition_has_one_owner_after_every_batch() -> None:
    model = LogModel()
    model.take([holds("a", 0, 1), holds("b", 2)])
    model.take([holds("b", 1), holds("a", 0)])
    with pytest.raises(Violation, match="owned once"):
        model.take([holds("b", 0, 1)])


def test_what_is_not_given_up_yet_is_owned() -> None:
    model = LogModel()
    model.take([holds("a", 0, pending=(1,))])
    with pytest.raises(Violation, match="owned once"):
        model.take([holds("b", 1)])


def test_epochs_fall_only_with_the_group() -> None:
    model = LogModel()
    key = ConsumerGroupMetadataKey("g")
    model.take([record(key, ConsumerGroupMetadataValue(epoch=5), 0)])
    with pytest.raises(Violation, match="epochs"):
        model.take([record(key, ConsumerGroupMetadataValue(epoch=4), 0)])
    model.take([tombstone(key), record(key, ConsumerGroupMetadataValue(epoch=1), 0)])


def test_the_same_is_not_given_to_two_in_one_epoch() -> None:
    claims = Claims()
    assert claims.take("g", 3, "a", ["p"]) is None
    assert claims.take("g", 4, "b", ["p"]) is None
    assert claims.take("g", 3, "b", ["p"]) is not None
    claims.forget("g")
    assert claims.take("g", 3, "b", ["p"]) is None
