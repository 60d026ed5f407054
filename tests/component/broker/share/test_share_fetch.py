"""ShareFetch over the wire: what is acquired, how long it waits, and what it is refused for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.broker.share.log_reader import Reader
from ottla.log.errors import CorruptMessageError, InvalidRecordError, LogError, StorageError
from ottla.wire.access import Operation, ResourceType
from ottla.wire.types import CreatePartitionsRequest, DeleteTopicsRequest, ShareFetchRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, running_node
from tests.component.broker.share.share_members import (
    WAIT,
    Member,
    acquired,
    configure,
    filled,
    initialize,
    kept,
    new_group,
    offsets_read,
    produce,
    summary,
)

EXACT = {"share_acquire_mode": 1}


# --- what is acquired -------------------------------------------------------------------------------------------------


def test_whole_batches_are_taken(client: RawClient):
    """Batches of 10."""
    topic, group = filled(client, 10, 10, 10)
    member = Member(client, group, "a", topic)
    assert member.take(max_records=5, batch_size=500) == [(0, 9, 1)]
    assert member.take(max_records=15, batch_size=5) == [(10, 19, 1), (20, 29, 1)]


def test_the_limit_of_records_and_then_the_rest(client: RawClient):
    """Batches of 20."""
    topic, group = filled(client, 20, 20)
    member = Member(client, group, "a", topic)
    assert member.take(max_records=7, **EXACT) == [(0, 6, 1)]
    assert member.take(max_records=7, **EXACT) == [(7, 13, 1)]
    assert member.take(max_records=7) == [(14, 19, 1), (20, 39, 1)]


def test_nothing_is_taken_beyond_a_full_window(client: RawClient):
    """100 locks, batches of 10."""
    topic, group = filled(client, *[10] * 12, settings={"partition_max_record_locks": 100})
    member = Member(client, group, "a", topic)
    assert member.take(max_records=95, batch_size=10) == [(first, first + 9, 1) for first in range(0, 100, 10)]
    assert member.take() == []
    assert member.acknowledge((50, 59, [1])) == 0
    assert member.take() == []
    assert member.acknowledge((20, 29, [2])) == 0
    assert member.take() == [(20, 29, 2)]
    assert member.acknowledge((0, 9, [1])) == 0
    assert member.take() == [(100, 109, 1)]


def test_the_limit_counts_across_partitions(client: RawClient):
    topic, group = filled(client, 8, partitions=3)
    member = Member(client, group, "a", topic, 0, 1, 2)
    firsts = []
    for epoch in range(2):
        answer = member.fetch(max_records=10, **EXACT)
        assert sum(last - first + 1 for first, last, _ in acquired(answer)) == 10, epoch
        firsts.append(next(each.partition_index for each in answer.responses[0].partitions if each.records))
    assert len(set(firsts)) == 2


def test_a_limit_of_nothing_fetches_nothing(client: RawClient):
    topic, group = filled(client, 3)
    member = Member(client, group, "a", topic)
    assert member.fetch(max_records=0, **WAIT).responses == ()
    assert member.fetch(max_bytes=0, **WAIT).responses == ()
    assert member.take() == [(0, 2, 1)]


def test_a_full_window_slides(client: RawClient):
    topic, group = filled(client, *[50] * 4, settings={"partition_max_record_locks": 100})
    first, second = Member(client, group, "a", topic), Member(client, group, "b", topic)
    assert first.take(max_records=100) == [(0, 99, 1)]
    assert second.take() == []
    assert first.acknowledge((50, 99, [2])) == 0
    assert second.take() == [(50, 99, 2)], "a full window still delivers again"
    assert first.acknowledge((0, 49, [1])) == 0
    assert second.take() == [(100, 149, 1)]


def test_suspects_come_in_ever_smaller_portions(client: RawClient):
    topic, group = filled(client, 40)
    member = Member(client, group, "a", topic)
    sizes = []
    for _ in range(100):
        taken = member.take()
        if not taken:
            break
        sizes.append(sum(last - first + 1 for first, last, _ in taken))
        assert member.acknowledge(*((first, last, [2]) for first, last, _ in taken)) == 0
    assert sizes == [40, 40, 40, 20, *[1] * 20, 20, *[1] * 20]
    assert member.acknowledge((0, 39, [1])) == 0, "all of it is below the start"
    produce(client, topic, 1)
    assert member.take() == [(40, 40, 1)]
    assert member.acknowledge((40, 40, [1])) == 0
    assert kept(client, group, topic) == (40, [(40, 40, 2, 1)])


def test_records_are_archived_after_two_deliveries(client: RawClient):
    topic, group = filled(client, 10, settings={"delivery_count_limit": 2})
    member = Member(client, group, "a", topic)
    for delivery_count in (1, 2):
        assert member.take() == [(0, 9, delivery_count)]
        assert member.acknowledge((0, 9, [2])) == 0
    assert member.take() == []
    assert kept(client, group, topic) == (0, [(0, 9, 4, 2)])


def test_the_end_of_a_lock_wakes_who_waits(running: RunningNode, client: RawClient):
    topic, group = filled(client, 1)
    first, second = Member(client, group, "a", topic), Member(client, group, "b", topic)
    assert first.take() == [(0, 0, 1)]
    number = second.wait(running)
    running.advance(29_999)
    assert second.connection.is_silent(0.02)
    running.advance(1)
    assert acquired(second.receive(number)) == [(0, 0, 2)]
    assert kept(client, group, topic) == (0, [(0, 0, 0, 1)])


def test_locks_that_end_together_are_one_write_and_one_chance(
    running: RunningNode, client: RawClient, monkeypatch: pytest.MonkeyPatch
):
    topic, group = filled(client, 10)
    first, second = Member(client, group, "a", topic), Member(client, group, "b", topic)
    assert first.take() == [(0, 9, 1)]
    assert first.acknowledge((3, 3, [1])) == 0
    number = second.wait(running)
    edge, written = running.node.share.leader.edge, []
    persist = edge.persist
    monkeypatch.setattr(edge, "persist", lambda body, done: (written.append(body), persist(body, done)))
    running.advance(30_000)
    assert acquired(second.receive(number)) == [(0, 2, 2), (4, 9, 2)]
    assert len([body for body in written if body.group_id == group]) == 1


def test_renewed_locks_do_not_end(running: RunningNode, client: RawClient):
    topic, group = filled(client, 5)
    first, second = Member(client, group, "a", topic), Member(client, group, "b", topic)
    assert first.take() == [(0, 4, 1)]
    for _ in range(4):
        running.advance(20_000)
        assert first.acknowledge((0, 4, [4]), is_renew_ack=True) == 0
    assert second.take() == []
    configure(client, group, renew_acknowledge_enable=False)
    assert first.acknowledge((0, 4, [4]), is_renew_ack=True) == 121
    assert first.acknowledge((0, 4, [1])) == 0
    assert kept(client, group, topic) == (0, [(0, 4, 2, 1)])


def test_members_get_different_records(client: RawClient):
    topic, group = filled(client, *[10] * 20)
    members = [Member(client, group, name, topic) for name in "ab"]
    seen: list[int] = []
    for _ in range(5):
        numbers = [member.send(max_records=20) for member in members]
        for member, number in zip(members, numbers, strict=True):
            for first, last, _ in acquired(member.receive(number)):
                seen += range(first, last + 1)
    assert sorted(seen) == list(range(200))


def test_twenty_consumers_on_one_partition(client: RawClient):
    topic, group = filled(client)
    members = [Member(client, group, f"m{number}", topic) for number in range(20)]
    numbers = [member.send(**WAIT, max_records=1) for member in members]
    for _ in members:
        produce(client, topic, 1)
    taken = [acquired(member.receive(number)) for member, number in zip(members, numbers, strict=True)]
    assert sorted(taken) == [[(offset, offset, 1)] for offset in range(20)]
    for member, ((first, last, _),) in zip(members, taken, strict=True):
        assert member.acknowledge((first, last, [1])) == 0
    start, done = summary(client, group, topic)
    assert start + done == 20


def test_records_are_whole_batches_around_what_is_acquired(client: RawClient):
    topic, group = filled(client, 5, 5, 5)
    member = Member(client, group, "a", topic)
    answer = member.fetch(max_records=7, **EXACT)
    assert acquired(answer) == [(0, 6, 1)]
    assert offsets_read(answer) == list(range(10))
    answer = member.fetch(max_records=4, **EXACT)
    assert acquired(answer) == [(7, 9, 1), (10, 10, 1)]
    assert offsets_read(answer) == list(range(5, 15))


def test_bytes_are_shared_by_the_partitions(client: RawClient):
    topic, group = filled(client, *[1] * 10, partitions=2)
    size = len(client.fetch(topic).records) // 10
    member = Member(client, group, "a", topic, 0, 1)
    answer = member.fetch(max_bytes=size * 6)
    assert [len(each.records) // size for each in answer.responses[0].partitions] == [3, 3]
    answer = member.fetch(max_bytes=1)
    assert [len(each.records) // size for each in answer.responses[0].partitions] == [1], "the first is sent whole"


# --- waiting ----------------------------------------------------------------------------------------------------------


def test_a_fetch_of_too_little_waits_for_its_time(running: RunningNode, client: RawClient):
    topic, group = filled(client, 10)
    member = Member(client, group, "a", topic)
    number = member.wait(running, min_bytes=1_000_000, max_wait_ms=700)
    running.advance(699)
    assert member.connection.is_silent(0.02)
    running.advance(1)
    assert acquired(member.receive(number)) == [(0, 9, 1)]


def test_new_records_wake(client: RawClient):
    topic, group = filled(client)
    member = Member(client, group, "a", topic)
    number = member.send(**WAIT)
    assert member.connection.is_silent(0.02)
    produce(client, topic, 2)
    assert acquired(member.receive(number)) == [(0, 1, 1)]


def test_a_release_wakes(client: RawClient):
    topic, group = filled(client, 2)
    first, second = Member(client, group, "a", topic), Member(client, group, "b", topic)
    assert first.take() == [(0, 1, 1)]
    number = second.send(**WAIT)
    assert first.acknowledge((0, 1, [2])) == 0
    assert acquired(second.receive(number)) == [(0, 1, 2)]


def test_an_older_segment_does_not_wait(client: RawClient):
    topic, group = client.topic(segment_bytes=1024 * 1024, **{"internal_segment_bytes": 200}), new_group()
    initialize(client, group, topic)
    produce(client, topic, 1, 1, 1, 1)
    member = Member(client, group, "a", topic)
    assert member.take(min_bytes=1_000_000, **WAIT)


def test_a_waiting_fetch_leaves_with_its_connection(running: RunningNode, client: RawClient):
    topic, group = filled(client)
    member = Member(client, group, "a", topic)
    before = len(running.node.purgatory)
    member.wait(running)
    member.close()
    running.until(lambda: len(running.node.purgatory) == before)


# --- where a group begins ---------------------------------------------------------------------------------------------


def started(client: RawClient, reset: str, topic: Topic) -> int:
    """The start that is kept after the first fetch, which acquires nothing."""
    group = new_group()
    initialize(client, group, topic, start=-1)
    configure(client, group, auto_offset_reset=reset)
    assert Member(client, group, "a", topic).fetch().error_code == 0
    start, count = summary(client, group, topic)
    assert count == 0
    return start


def test_reset_strategies(running: RunningNode, client: RawClient):
    topic = client.topic(message_timestamp_type="LogAppendTime")
    produce(client, topic, 3)
    running.advance(3_600_000)
    produce(client, topic, 2)
    running.advance(60_000)
    assert started(client, "earliest", topic) == 0
    assert started(client, "by_duration:PT2H", topic) == 0
    assert started(client, "by_duration:PT30M", topic) == 3
    assert started(client, "by_duration:PT1S", topic) == 5, "nothing is that young: from the end on"


def test_reset_to_latest_is_kept_with_the_first_fetch(running: RunningNode, client: RawClient):
    topic, group = client.topic(), new_group()
    produce(client, topic, 4)
    initialize(client, group, topic, start=-1)
    member = Member(client, group, "a", topic)
    number = member.send(**WAIT)
    assert member.connection.is_silent(0.02)
    assert summary(client, group, topic) == (4, 0)
    produce(client, topic, 2)
    assert acquired(member.receive(number)) == [(4, 5, 1)]


def test_reset_on_a_partition_without_a_log(client: RawClient):
    for reset in ("earliest", "latest", "by_duration:P1D"):
        topic = client.topic()
        assert started(client, reset, topic) == 0


def test_settings_act_at_once(running: RunningNode, client: RawClient):
    topic, group = filled(client, 100, 100)
    member = Member(client, group, "a", topic)
    configure(client, group, partition_max_record_locks=100)
    assert member.take() == [(0, 99, 1)]
    assert member.take() == []
    configure(client, group, partition_max_record_locks=200, record_lock_duration_ms=15_000)
    answer = member.fetch()
    assert (acquired(answer), answer.acquisition_lock_timeout_ms) == ([(100, 199, 1)], 15_000)
    running.advance(15_000)
    assert member.take() == [(100, 199, 2)], "the first lock keeps its time"
    configure(client, group, delivery_count_limit=2)
    assert member.acknowledge((100, 199, [2])) == 0
    assert kept(client, group, topic)[1] == [(100, 199, 4, 2)]


# --- what it is refused for -------------------------------------------------------------------------------------------


def test_requests_that_are_refused_as_a_whole(client: RawClient):
    topic, group = filled(client, 1)
    member = Member(client, group, "a", topic)

    def code(**fields: Any) -> int:
        request = ShareFetchRequest(**{"group_id": group, "member_id": "a", **fields})
        answer = member.connection.ask(request, 2)
        assert answer.responses == ()
        assert answer.error_message is None
        return int(answer.error_code)

    assert code(group_id=None) == 42
    assert code(member_id=None) == 42
    assert code(member_id="") == 42
    assert code(member_id="m" * 37) == 42
    assert code(member_id="m" * 36) == 0


@pytest.mark.parametrize("field", ["max_wait_ms", "min_bytes", "max_bytes", "max_records"])
def test_a_renewal_fetches_nothing(client: RawClient, field: str):
    topic, group = filled(client, 5)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 4, 1)]
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    renewal = {0: [(0, 4, [4])]}
    answer = member.fetch(renewal, epoch=1, is_renew_ack=True, **{**nothing, field: 1})
    assert answer.error_code == 42
    answer = member.fetch(renewal, epoch=1, is_renew_ack=True, **nothing)
    assert (answer.error_code, answer.responses[0].partitions[0].acknowledge_error_code) == (0, 0)
    assert acquired(answer) == []


def test_unknown_topic_id_fails_its_own_partitions_only(client: RawClient):
    topic, group = filled(client, 3)
    member = Member(client, group, "a", topic)
    request = ShareFetchRequest
    topics = (
        request.FetchTopic(bytes([9]) * 16, (request.FetchPartition(0),)),
        request.FetchTopic(topic.topic_id, (request.FetchPartition(0), request.FetchPartition(5))),
    )
    answer = member.fetch(topics=topics, **WAIT)
    assert acquired(answer) == [(0, 2, 1)]
    errors = {
        (each.topic_id, one.partition_index): one.error_code for each in answer.responses for one in each.partitions
    }
    assert errors == {(bytes([9]) * 16, 0): 100, (topic.topic_id, 0): 0, (topic.topic_id, 5): 3}


def test_a_deleted_topic_in_a_session(client: RawClient):
    topic, group = filled(client, 3)
    other = client.topic()
    initialize(client, group, other)
    member = Member(client, group, "a", topic)
    request = ShareFetchRequest
    both = tuple(request.FetchTopic(each.topic_id, (request.FetchPartition(0),)) for each in (topic, other))
    assert acquired(member.fetch(topics=both, **WAIT)) == [(0, 2, 1)]
    number = member.send(**WAIT)
    client.ask(DeleteTopicsRequest((DeleteTopicsRequest.DeleteTopicState(None, topic.topic_id),), timeout_ms=5_000), 6)
    answer = member.receive(number)
    assert [(each.topic_id, each.partitions[0].error_code) for each in answer.responses] == [(topic.topic_id, 100)]
    answer = member.fetch({0: [(0, 2, [1])]})
    assert [(each.error_code, each.acknowledge_error_code) for each in answer.responses[0].partitions] == [(100, 100)]


def test_a_partition_whose_state_was_never_initialized(client: RawClient):
    topic = client.topic()
    member = Member(client, new_group(), "a", topic)
    answer = member.fetch(**WAIT)
    assert [each.error_code for each in answer.responses[0].partitions] == [-1]
    initialize(client, member.group, topic)
    assert [each.error_code for each in member.fetch().responses[0].partitions] == [0], "the next fetch tries again"


def test_partitions_added_to_a_known_topic(client: RawClient):
    topic, group = filled(client, 2)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 1, 1)]
    grown = CreatePartitionsRequest.CreatePartitionsTopic(topic.name, 2, None)
    client.ask(CreatePartitionsRequest((grown,), 5_000, False), 3)
    produce(client, topic, 4, partition=1)
    initialize(client, group, topic, 1)
    more = (ShareFetchRequest.FetchTopic(topic.topic_id, (ShareFetchRequest.FetchPartition(1),)),)
    assert member.take(topics=more) == [(0, 3, 1)]


@pytest.mark.parametrize(
    ("error", "code"),
    [(StorageError("gone"), 56), (CorruptMessageError("bad"), 2), (InvalidRecordError("odd"), -1)],
)
def test_logs_that_cannot_be_read(client: RawClient, monkeypatch: pytest.MonkeyPatch, error: LogError, code: int):
    topic, group = filled(client, 3)
    member = Member(client, group, "a", topic)
    for name in ("look", "read"):
        with monkeypatch.context() as patch:
            patch.setattr(Reader, name, lambda *_: (_ for _ in ()).throw(error))
            answer = member.fetch()
            assert [(each.error_code, each.records) for each in answer.responses[0].partitions] == [(code, b"")]
    assert member.take() == [(0, 2, 1)]


def test_nothing_is_acquired_for_a_client_that_is_held_up(
    running: RunningNode, client: RawClient, monkeypatch: pytest.MonkeyPatch
):
    topic, group = filled(client, 3)
    member = Member(client, group, "a", topic)
    with monkeypatch.context() as patch:
        patch.setattr(running.node.share.leader.edge, "throttle_ms", lambda _: 250)
        answer = member.fetch(**WAIT)
        assert (answer.throttle_time_ms, answer.responses) == (250, ())
    assert member.take() == [(0, 2, 1)]


@pytest.fixture
def denied() -> set[tuple[int, str]]:
    return set()


@pytest.fixture
def guarded(tmp_path: Path, denied: set[tuple[int, str]]) -> Iterator[RunningNode]:
    def authorizer(_: object, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return operation is not Operation.READ or (resource_type, name) not in denied

    settings = {"share_coordinator_state_topic_num_partitions": 1}
    with running_node(tmp_path, ManualClock(), authorizer, **settings) as running:
        yield running


def test_rights_to_read(guarded: RunningNode, denied: set[tuple[int, str]]):
    client = guarded.client
    topic, group = filled(client, 3)
    member = Member(client, group, "a", topic)
    denied.add((ResourceType.GROUP, group))
    assert member.fetch().error_code == 30
    assert member.acknowledge_all({}).error_code == 30
    denied.clear()
    member.epoch = 0
    assert member.take() == [(0, 2, 1)]
    denied.add((ResourceType.TOPIC, topic.name))
    answer = member.fetch({0: [(0, 2, [1])]})
    assert [(each.error_code, each.acknowledge_error_code) for each in answer.responses[0].partitions] == [(29, 29)]
    assert member.acknowledge((0, 2, [1])) == 29
    denied.clear()
    assert member.acknowledge((0, 2, [1])) == 0


# --- odd requests -----------------------------------------------------------------------------------------------------


def test_odd_numbers_do_no_harm(client: RawClient):
    topic, group = filled(client, 3, 3)
    member = Member(client, group, "a", topic)
    request = ShareFetchRequest
    partitions = tuple(map(request.FetchPartition, (0, 0, -1, 2**31 - 1)))
    topics = (request.FetchTopic(topic.topic_id, partitions), request.FetchTopic(bytes(16), partitions[:1]))
    answer = member.fetch(topics=topics, max_records=2**31 - 1, batch_size=-5, min_bytes=-7, max_wait_ms=-1)
    assert acquired(answer) == [(0, 2, 1), (3, 5, 1)]
    codes = {
        (each.topic_id, one.partition_index): one.error_code for each in answer.responses for one in each.partitions
    }
    assert codes == {
        (topic.topic_id, 0): 0,
        (topic.topic_id, -1): 3,
        (topic.topic_id, 2**31 - 1): 3,
        (bytes(16), 0): 100,
    }
    gone = (request.ForgottenTopic(topic.topic_id, (-1, 2**31 - 1, 77)), request.ForgottenTopic(bytes(16), (0,)))
    assert member.fetch(forgotten_topics_data=gone, max_bytes=-1).responses == ()
    assert member.fetch(max_records=-1).responses == ()


@pytest.mark.parametrize("last", [6, 2**63 - 1])
def test_acknowledgements_beyond_everything_are_refused(client: RawClient, last: int):
    topic, group = filled(client, 3, 3)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 5, 1)]
    assert member.acknowledge((0, last, [1])) == 42
    assert member.acknowledge((-(2**63), 5, [1])) == 42
    assert member.acknowledge((-1, 5, [1])) == 0, "what is below the start is passed over"


def test_a_partition_that_is_acknowledged_twice_in_a_request_has_the_error(client: RawClient):
    topic, group = filled(client, 6)
    member = Member(client, group, "a", topic)
    assert member.take() == [(0, 5, 1)]
    request = ShareFetchRequest
    batches = (request.AcknowledgementBatch(0, 2, (1,)), request.AcknowledgementBatch(9, 9, (1,)))
    twice = tuple(request.FetchPartition(0, acknowledgement_batches=(each,)) for each in batches)
    answer = member.fetch(topics=(request.FetchTopic(topic.topic_id, twice),))
    assert [each.acknowledge_error_code for each in answer.responses[0].partitions] == [42]
    assert kept(client, group, topic) == (0, [(0, 2, 2, 1)])
