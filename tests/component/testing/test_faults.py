"""Faults on demand, as a caller sees them."""

from collections.abc import Callable, Iterator

import pytest

import ottla.testing
from ottla.testing import Broker, Faults
from ottla.wire.errors import ErrorCode
from ottla.wire.types.metadata import MetadataRequest
from ottla.wire.types.produce import ProduceRequest
from tests.component.testing.caller import Caller

NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER
SILENCE_S = 0.1


@pytest.fixture(scope="module", params=[False, True], ids=["thread", "process"])
def shared(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with ottla.testing.broker(process=request.param) as made:
        Caller(made).create_topic("orders")
        yield made


@pytest.fixture
def running(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


def creation_error(caller: Caller, name: str) -> int:
    return int(caller.creation(name).error_code)


def exists(running: Broker, name: str) -> bool:
    return Caller(running).topic_error(name) == 0


def test_the_next_answers_fail_and_then_no_more(running: Broker):
    fault = running.faults.fail("CreateTopics", "NOT_CONTROLLER", times=2)
    caller = Caller(running)
    assert [creation_error(caller, "failing") for _ in range(2)] == [NOT_CONTROLLER] * 2
    assert not exists(running, "failing")
    assert fault.hits == 2
    assert creation_error(caller, "failing") == 0


def test_other_apis_are_not_touched(running: Broker):
    fault = running.faults.fail("CreateTopics", NOT_CONTROLLER)
    assert exists(running, "orders")
    assert fault.hits == 0


def test_a_failed_answer_after_the_deed(running: Broker):
    running.faults.fail("CreateTopics", "REQUEST_TIMED_OUT", after=True)
    assert creation_error(Caller(running), "done") == ErrorCode.REQUEST_TIMED_OUT
    assert exists(running, "done")


@pytest.mark.parametrize("after", [False, True])
def test_a_closed_connection_in_place_of_an_answer(running: Broker, after: bool):
    name = f"closed-{after}"
    running.faults.close("CreateTopics", after=after)
    caller = Caller(running)
    caller.begin_creation(name)
    assert caller.is_closed()
    assert exists(running, name) is after


@pytest.mark.parametrize("after", [False, True])
def test_a_dropped_answer_leaves_the_connection_open(running: Broker, after: bool):
    name = f"dropped-{after}"
    running.faults.drop("CreateTopics", after=after)
    caller = Caller(running)
    caller.begin_creation(name)
    assert caller.is_silent(SILENCE_S)
    assert exists(running, name) is after
    running.close_connections()
    assert caller.is_closed()


def test_a_delayed_answer_comes(running: Broker):
    running.faults.delay("Metadata", ms=int(SILENCE_S * 2000))
    caller = Caller(running)
    caller.send(3, MetadataRequest(()))
    assert caller.is_silent(SILENCE_S)
    assert caller.receive(3).cluster_id == running.cluster_id


def test_a_fault_for_any_api_until_it_is_removed(running: Broker):
    fault = running.faults.close("*", times=None)
    for _ in range(3):
        caller = Caller(running)
        caller.send(3, MetadataRequest(()))
        assert caller.is_closed()
    fault.remove()
    assert exists(running, "orders")
    assert fault.hits == 3


def test_faults_strike_in_their_order(running: Broker):
    running.faults.fail("CreateTopics", "NOT_CONTROLLER")
    running.faults.fail("CreateTopics", "POLICY_VIOLATION")
    caller = Caller(running)
    assert [creation_error(caller, "order") for _ in range(2)] == [NOT_CONTROLLER, ErrorCode.POLICY_VIOLATION]


def test_who_expects_no_answer_gets_none(running: Broker):
    fault = running.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    caller = Caller(running)
    caller.send(0, ProduceRequest(acks=0, timeout_ms=1000, topic_data=()))
    assert caller.call(3, MetadataRequest(())).cluster_id == running.cluster_id
    assert fault.hits == 1


def test_faults_and_waiting_answers_end_with_the_broker(running: Broker):
    running.faults.drop("Metadata")
    running.faults.fail("CreateTopics", "NOT_CONTROLLER")
    waiting = Caller(running)
    waiting.send(3, MetadataRequest(()))
    Caller(running).api_keys()
    running.restart()
    assert waiting.is_closed()
    assert creation_error(Caller(running), "afterwards") == 0


def test_a_fault_from_before_a_restart_is_not_taken_for_a_later_one(running: Broker):
    before = running.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=None)
    running.restart()
    assert before.hits == 0
    later = running.faults.fail("CreateTopics", "NOT_CONTROLLER")
    before.remove()
    assert creation_error(Caller(running), "later") == NOT_CONTROLLER
    assert (before.hits, later.hits) == (0, 1)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda faults: faults.fail("Prodce", 1), "did you mean Produce"),
        (lambda faults: faults.fail("Produce", "NOT_LEADER"), "did you mean NOT_LEADER_OR_FOLLOWER"),
        (lambda faults: faults.fail("Produce", 9999), "9999"),
        (lambda faults: faults.drop("Produce", times=0), "at least once"),
        (lambda faults: faults.delay("Produce", ms=-1), "ms=-1"),
    ],
)
def test_what_makes_no_sense_is_refused(running: Broker, wrong: Callable[[Faults], object], told: str):
    with pytest.raises(ValueError, match=told):
        wrong(running.faults)
