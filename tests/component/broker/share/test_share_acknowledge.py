"""Acknowledgements over the wire, alone and along with a fetch; and what happens when state cannot be kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.core.share.state.messages import form_of, keys_of
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    ReadShareGroupStateRequest,
    ShareAcknowledgeRequest,
    WriteShareGroupStateRequest,
)
from tests.component.broker.raw_client import RawClient, RunningNode
from tests.component.broker.share.share_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    WAIT,
    Member,
    acquired,
    configure,
    filled,
    initialize,
    kept,
    new_group,
    produce,
    summary,
)


@pytest.fixture
def member(client: RawClient) -> Member:
    """Of a new group, which has acquired ten records."""
    return holding(client, 10)


def holding(client: RawClient, *sizes: int) -> Member:
    topic, group = filled(client, *sizes)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, sum(sizes) - 1, 1)]
    return member


def state(member: Member) -> Any:
    return kept(member.client, member.group, member.topic)


# --- form -------------------------------------------------------------------------------------------------------------

MALFORMED = {
    "reversed": [(3, 2, [ACCEPT])],
    "overlapping": [(0, 5, [ACCEPT]), (4, 9, [ACCEPT])],
    "not in order": [(5, 9, [ACCEPT]), (0, 4, [ACCEPT])],
    "no type": [(0, 9, [])],
    "too few types": [(0, 9, [ACCEPT, ACCEPT])],
    "too many types": [(0, 1, [ACCEPT, ACCEPT, ACCEPT])],
    "type below all": [(0, 9, [-1])],
    "type above all": [(0, 9, [5])],
    "renewal that was not announced": [(0, 9, [RENEW])],
    "good and then bad": [(0, 4, [ACCEPT]), (5, 9, [9])],
}


@pytest.mark.parametrize("batches", MALFORMED.values(), ids=MALFORMED)
def test_malformed_batches_change_nothing(client: RawClient, batches: list[tuple[int, int, Sequence[int]]]):
    topic, group = filled(client, 10, partitions=2)
    member = Member(client, group, "a", topic, 0, 1)
    assert member.take() == [(0, 9, 1)] * 2
    answer = member.acknowledge_all({0: batches, 1: [(0, 9, [ACCEPT])]})
    assert {each.partition_index: each.error_code for each in answer.responses[0].partitions} == {0: 42, 1: 0}
    answer = member.fetch({0: batches})
    assert [(each.error_code, each.acknowledge_error_code) for each in answer.responses[0].partitions] == [(0, 42)]
    assert kept(client, group, topic, 0) == (0, [])
    assert member.acknowledge((0, 9, [ACCEPT])) == 0, "they are still held"


def test_equal_borders_pass_and_are_undone(member: Member):
    assert member.acknowledge((0, 5, [ACCEPT]), (5, 9, [ACCEPT])) == 121
    assert state(member) == (0, [])
    assert member.acknowledge((0, 9, [ACCEPT])) == 0


def test_version_1_knows_no_renewals(member: Member):
    answer = member.fetch({0: [(0, 9, [RENEW])]}, version=1)
    assert answer.responses[0].partitions[0].acknowledge_error_code == 42
    assert member.acknowledge((0, 9, [RENEW]), version=1) == 42
    assert member.acknowledge((0, 9, [REJECT]), version=1) == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"group_id": None}, 42), ({"member_id": None}, 42), ({"member_id": ""}, 42), ({"member_id": "m" * 37}, 42)],
)
def test_requests_that_are_refused_as_a_whole(client: RawClient, fields: dict[str, Any], code: int):
    answer = client.ask(ShareAcknowledgeRequest(**{"group_id": "g", "member_id": "a", **fields}), 2)
    assert (answer.error_code, answer.error_message, answer.responses) == (code, None, ())
    assert answer.acquisition_lock_timeout_ms == 0


# --- what is acknowledged ---------------------------------------------------------------------------------------------


def test_all_types_of_acknowledgement_in_one_batch(member: Member):
    assert member.acknowledge((0, 4, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT])) == 0
    assert state(member) == (0, [(0, 0, 2, 1), (1, 1, 0, 1), (2, 3, 4, 1), (4, 4, 2, 1)])
    assert summary(member.client, member.group, member.topic) == (0, 4)
    assert member.take() == [(1, 1, 2)]


def test_the_first_batch_is_undone_with_the_second(client: RawClient, member: Member):
    assert member.acknowledge((5, 9, [ACCEPT])) == 0
    assert member.acknowledge((0, 4, [ACCEPT]), (5, 9, [ACCEPT])) == 121
    assert state(member) == (0, [(5, 9, 2, 1)])
    assert member.acknowledge((0, 4, [RELEASE])) == 0


def test_acknowledgements_that_are_late_foreign_beyond_or_below_the_window(
    running: RunningNode, client: RawClient, member: Member
):
    other = Member(client, member.group, "b", member.topic)
    other.fetch(max_records=0)
    assert other.acknowledge((0, 9, [ACCEPT])) == 121, "held by another member"
    assert member.acknowledge((0, 10, [ACCEPT])) == 42, "beyond the end"
    assert member.acknowledge((10, 12, [ACCEPT])) == 42
    assert member.acknowledge((0, 3, [ACCEPT])) == 0
    assert member.acknowledge((0, 3, [ACCEPT])) == 0, "below the start"
    assert member.acknowledge((2, 5, [ACCEPT])) == 0, "what is below the start is passed over"
    running.advance(30_000)
    assert member.acknowledge((6, 9, [ACCEPT])) == 121, "the lock has ended"


def test_an_acknowledged_partition_is_in_the_answer(running: RunningNode, member: Member):
    answer = member.fetch({0: [(0, 9, [ACCEPT])]})
    (partition,) = answer.responses[0].partitions
    assert (partition.acknowledge_error_code, partition.error_code, partition.records) == (0, 0, b"")
    assert answer.acquisition_lock_timeout_ms == 30_000


def test_the_answer_waits_for_both_halves(running: RunningNode, client: RawClient, member: Member):
    number = member.wait(running, acks={0: [(0, 9, [ACCEPT])]})
    assert state(member) == (0, [(0, 9, 2, 1)]), "the acknowledgement does not wait for the fetch"
    produce(client, member.topic, 2)
    answer = member.receive(number)
    assert acquired(answer) == [(10, 11, 1)]
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0


def test_partition_without_batches_is_answered(client: RawClient, member: Member):
    answer = member.acknowledge_all({0: []})
    assert [(each.partition_index, each.error_code) for each in answer.responses[0].partitions] == [(0, 0)]


def test_errors_of_single_partitions(client: RawClient, member: Member):
    request = ShareAcknowledgeRequest
    batch = (request.AcknowledgementBatch(0, 9, (ACCEPT,)),)
    loose = client.topic()
    topics = (
        request.AcknowledgeTopic(bytes([5]) * 16, (request.AcknowledgePartition(0, batch),)),
        request.AcknowledgeTopic(loose.topic_id, (request.AcknowledgePartition(0, batch),)),
        request.AcknowledgeTopic(
            member.topic.topic_id, (request.AcknowledgePartition(7, batch), request.AcknowledgePartition(0, batch))
        ),
    )
    answer = member.connection.ask(request(member.group, "a", 1, False, topics), 2)
    codes = {each.topic_id: [one.error_code for one in each.partitions] for each in answer.responses}
    assert codes == {bytes([5]) * 16: [100], loose.topic_id: [3], member.topic.topic_id: [3, 0]}


def test_renewals_stay_when_a_later_batch_is_refused(running: RunningNode, client: RawClient, member: Member):
    running.advance(20_000)
    assert member.acknowledge((0, 4, [RENEW]), (4, 9, [ACCEPT]), is_renew_ack=True) == 0
    assert member.acknowledge((0, 3, [RENEW]), (4, 9, [ACCEPT]), is_renew_ack=True) == 121
    running.advance(10_000)
    assert member.acknowledge((0, 3, [ACCEPT])) == 0


def test_renewal_may_come_with_other_types(member: Member):
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    answer = member.fetch({0: [(0, 2, [RENEW, ACCEPT, RELEASE])]}, is_renew_ack=True, **nothing)
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    assert state(member) == (0, [(1, 1, 2, 1), (2, 2, 0, 1)])


def test_a_consumer_that_closes_without_a_word(client: RawClient, member: Member):
    other = Member(client, member.group, "b", member.topic)
    other.fetch(max_records=0)
    answer = member.acknowledge_all({}, epoch=-1)
    assert (answer.error_code, answer.responses) == (0, ())
    assert other.take(**WAIT) == [(0, 9, 2)]


def test_nothing_that_was_accepted_comes_again(client: RawClient, member: Member):
    assert member.acknowledge((0, 9, [ACCEPT])) == 0
    other = Member(client, member.group, "b", member.topic)
    assert other.take() == []
    member.close()
    other.fetch()
    other.close()
    fresh = Member(client, member.group, "c", member.topic)
    assert fresh.take() == []


def test_a_release_at_the_limit_is_the_end(client: RawClient, member: Member):
    configure(client, member.group, delivery_count_limit=2)
    assert member.acknowledge((0, 9, [RELEASE])) == 0
    assert member.take() == [(0, 9, 2)]
    assert member.acknowledge((0, 9, [RELEASE])) == 0
    assert state(member) == (0, [(0, 9, 4, 2)])


# --- when state cannot be kept ----------------------------------------------------------------------------------------


class Coordinator:
    """Stands between the leader and the share coordinator, and fails what it is told to fail."""

    def __init__(self, running: RunningNode, monkeypatch: pytest.MonkeyPatch) -> None:
        self._edge = running.node.share.leader.edge
        self._persist = self._edge.persist
        self.errors: dict[type, ErrorCode] = {}
        self.is_silent = False
        self.waiting: list[tuple[Any, Any]] = []
        monkeypatch.setattr(self._edge, "persist", self.persist)

    def persist(self, body: Any, done: Any) -> None:
        error = self.errors.get(type(body))
        if self.is_silent:
            self.waiting.append((body, done))
        elif error is None:
            self._persist(body, done)
        else:
            done(self.failure(body, error))

    @staticmethod
    def failure(body: Any, error: ErrorCode) -> Any:
        from ottla.core.share.state.messages import answer_of

        result = form_of(body).partition_result
        return answer_of(body, {key: result(partition=key.partition, error_code=error) for key in keys_of(body)})

    def answer(self, error: ErrorCode | None = None) -> None:
        """Answer what was held back."""
        body, done = self.waiting.pop(0)
        if error is None:
            self._persist(body, done)
        else:
            done(self.failure(body, error))


@pytest.fixture
def coordinator(running: RunningNode, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    return Coordinator(running, monkeypatch)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 15),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 15),
        (ErrorCode.NOT_COORDINATOR, 15),
        (ErrorCode.GROUP_ID_NOT_FOUND, 69),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 3),
        (ErrorCode.INVALID_REQUEST, -1),
        (ErrorCode.UNKNOWN_SERVER_ERROR, -1),
    ],
)
def test_a_failed_write_gives_the_records_back(member: Member, coordinator: Coordinator, error: ErrorCode, code: int):
    coordinator.errors[WriteShareGroupStateRequest] = error
    assert member.acknowledge((0, 9, [ACCEPT])) == code
    answer = member.fetch({0: [(0, 9, [ACCEPT])]})
    assert answer.responses[0].partitions[0].acknowledge_error_code == code
    coordinator.errors.clear()
    assert member.take() == []
    assert member.acknowledge((0, 9, [ACCEPT])) == 0


def test_a_lock_ends_while_its_acknowledgement_is_written(
    running: RunningNode, member: Member, coordinator: Coordinator
):
    coordinator.is_silent = True
    number = member.connection.send(
        ShareAcknowledgeRequest(
            member.group,
            "a",
            1,
            False,
            (
                ShareAcknowledgeRequest.AcknowledgeTopic(
                    member.topic.topic_id,
                    (
                        ShareAcknowledgeRequest.AcknowledgePartition(
                            0, (ShareAcknowledgeRequest.AcknowledgementBatch(0, 9, (ACCEPT,)),)
                        ),
                    ),
                ),
            ),
        ),
        2,
    )
    running.until(lambda: coordinator.waiting)
    running.advance(30_000)
    running.change(lambda: coordinator.answer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert member.connection.receive(79, 2, number).responses[0].partitions[0].error_code == 15
    coordinator.is_silent = False
    running.change(coordinator.answer)
    member.epoch = 2
    assert member.take() == [(0, 9, 2)]


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH])
def test_a_fenced_write_drops_the_share_partition(member: Member, coordinator: Coordinator, error: ErrorCode):
    coordinator.errors[WriteShareGroupStateRequest] = error
    answer = member.acknowledge_all({0: [(0, 9, [ACCEPT])]})
    (partition,) = answer.responses[0].partitions
    assert (partition.error_code, partition.current_leader.leader_id) == (6, 1)
    assert [each.node_id for each in answer.node_endpoints] == [1]
    coordinator.errors.clear()
    assert member.acknowledge((0, 9, [ACCEPT])) == 3, "nothing is loaded any more"
    assert member.take() == [(0, 9, 1)]


@pytest.mark.parametrize("error", [14, 15, 16])
def test_a_load_in_trouble_is_an_empty_answer(
    running: RunningNode, client: RawClient, coordinator: Coordinator, error: int
):
    topic, group = client.topic(), new_group()
    produce(client, topic, 3)
    initialize(client, group, topic)
    coordinator.errors[ReadShareGroupStateRequest] = ErrorCode(error)
    member = Member(client, group, "a", topic)
    number = member.wait(running, max_wait_ms=500)
    running.advance(500)
    answer = member.receive(number)
    assert (answer.error_code, answer.responses) == (0, ())
    coordinator.errors.clear()
    assert member.take() == [(0, 2, 1)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.INVALID_REQUEST, -1),
        (ErrorCode.GROUP_ID_NOT_FOUND, -1),
        (ErrorCode.FENCED_LEADER_EPOCH, 6),
        (ErrorCode.FENCED_STATE_EPOCH, 6),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 3),
    ],
)
def test_other_errors_of_a_load_are_those_that_consumers_bear(
    client: RawClient, coordinator: Coordinator, error: ErrorCode, code: int
):
    topic, group = client.topic(), new_group()
    initialize(client, group, topic)
    coordinator.errors[ReadShareGroupStateRequest] = error
    answer = Member(client, group, "a", topic).fetch(**WAIT)
    assert [each.error_code for each in answer.responses[0].partitions] == [code]


def test_a_start_that_cannot_be_kept_serves_nothing(running: RunningNode, client: RawClient, coordinator: Coordinator):
    topic, group = client.topic(), new_group()
    produce(client, topic, 3)
    initialize(client, group, topic, start=-1)
    configure(client, group, auto_offset_reset="earliest")
    coordinator.errors[WriteShareGroupStateRequest] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    member = Member(client, group, "a", topic)
    assert member.fetch().responses == ()
    coordinator.errors.clear()
    assert member.take(**WAIT) == [(0, 2, 1)]


def test_writes_go_one_at_a_time_and_what_waits_goes_together(
    running: RunningNode, client: RawClient, coordinator: Coordinator
):
    topic, group = client.topic(), new_group()
    produce(client, topic, *[2] * 5)
    initialize(client, group, topic)
    members = [Member(client, group, name, topic) for name in "abcd"]
    for number, member in enumerate(members):
        assert member.take(max_records=2) == [(2 * number, 2 * number + 1, 1)]
    coordinator.is_silent = True
    numbers = [member.send({0: [(2 * at, 2 * at + 1, [ACCEPT])]}, max_records=0) for at, member in enumerate(members)]
    led = running.node.share.partitions_of(group)[0]
    running.until(lambda: sum(run.write_id >= 0 for run in led.core.window.runs()) == 4)
    assert len(coordinator.waiting) == 1
    running.change(coordinator.answer)
    running.until(lambda: coordinator.waiting)
    ((body, _),) = coordinator.waiting
    written = body.topics[0].partitions[0].state_batches
    assert sum(each.last_offset - each.first_offset + 1 for each in written) == 6
    coordinator.is_silent = False
    running.change(coordinator.answer)
    for member, number in zip(members, numbers, strict=True):
        assert member.receive(number).responses[0].partitions[0].acknowledge_error_code == 0
    produce(client, topic, 1)
    assert members[0].take() == [(8, 10, 1)]


def test_a_connection_that_goes_before_its_answer_has_acquired_nothing(
    running: RunningNode, client: RawClient, coordinator: Coordinator, member: Member
):
    produce(client, member.topic, 5)
    coordinator.is_silent = True
    second = client.connect("a")
    second.send(member.request(1, {0: [(0, 9, [ACCEPT])]}), 2)
    running.until(lambda: coordinator.waiting)
    second.close()
    other = client.connect("b")
    other.ask(member.request(9), 2)
    other.close()
    coordinator.is_silent = False
    running.change(coordinator.answer)
    member.epoch = 2
    assert member.take(**WAIT) == [(10, 14, 1)]


def test_a_session_ends_though_nobody_is_there_to_hear_it(
    running: RunningNode, client: RawClient, coordinator: Coordinator, member: Member
):
    coordinator.is_silent = True
    second = client.connect("a")
    second.send(member.request(-1, {0: [(0, 4, [ACCEPT])]}), 2)
    running.until(lambda: coordinator.waiting)
    second.close()
    coordinator.is_silent = False
    running.change(coordinator.answer)
    sessions = running.node.share.leader.sessions
    running.until(lambda: sessions.get(member.group, "a") is None)
    other = Member(client, member.group, "b", member.topic)
    assert other.take(**WAIT) == [(5, 9, 2)]
