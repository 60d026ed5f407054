"""Scenarios of the runtime on a node: over connections, over restarts, over loss."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.coordinators import loader, runtime
from ottla.broker.coordinators.internal_topics import GROUPS
from ottla.broker.replicas.unit_of_work import EXPIRED_MAX, ROUNDS_MAX
from ottla.core.coordinator.contract import Outcome, Producer
from ottla.core.coordinator.partitioner import partition_for
from ottla.log.read import Isolation
from ottla.wire.batch import AnyBatch, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError
from ottla.wire.types import (
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.types.cluster_metadata import PartitionChangeRecord
from tests.component.broker.coordinators.conftest import VERSION, StartNode
from tests.component.broker.coordinators.heartbeats import (
    PARTITIONS,
    _name_of,
    core_of,
    hear,
    park,
    say,
    send,
    shard_of,
)
from tests.component.broker.raw_client import Connection, RunningNode
from tests.unit.broker.coordinators.ledger import Errand, ask


def batches_of(running: RunningNode, name: str) -> list[AnyBatch]:
    replica = running.node.replicas.get(GROUPS.name, partition_for(name, PARTITIONS))
    assert replica is not None
    region = replica.log.read(0, 1 << 20, Isolation.LOG_END)
    assert region.file is not None
    return list(split_batches(region.file.handle().read(region.length, region.position)))


# --- requests ---------------------------------------------------------------------------------------------------------


def test_the_first_request_creates_the_topic(running: RunningNode) -> None:
    assert running.node.image.topic(GROUPS.name) is None
    assert say(running, "put", "a", 5) == 5
    topic = running.node.image.topic(GROUPS.name)
    assert topic is not None
    assert len(topic.partitions) == PARTITIONS
    assert say(running, "get", "a") == 5


def test_requests_that_come_while_the_topic_is_created_wait_for_it(running: RunningNode) -> None:
    connections = [running.client.connect() for _ in range(5)]
    numbers = [send(connection, "put", f"n{index}", index) for index, connection in enumerate(connections)]
    assert [hear(connection, number) for connection, number in zip(connections, numbers, strict=True)] == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_requests_in_one_piece_are_written_in_one_batch(running: RunningNode) -> None:
    say(running, "put", "a", 0)
    connection = running.client.connection
    numbers = connection.send_together(*((ask("put", "a", number), VERSION) for number in range(1, 21)))
    assert [hear(connection, number) for number in numbers] == list(range(1, 21))
    assert [batch.record_count for batch in batches_of(running, "a")] == [1, 20]


def test_a_parked_request_holds_up_what_follows_it_on_its_connection(running: RunningNode) -> None:
    say(running, "put", "a", 1)
    parked, other = running.client.connect(), running.client.connect()
    numbers = [park(running, parked), send(parked, "get", "a")]
    assert parked.is_silent(0.05)
    assert say(running, "free", "a", 8, other) == 8
    assert [hear(parked, number) for number in numbers] == [8, 8]


def test_a_connection_that_goes_leaves_its_parked_request_behind(running: RunningNode) -> None:
    say(running, "put", "a", 1)
    parked = running.client.connect()
    park(running, parked)
    parked.close()
    assert say(running, "free", "a", 8) == 8


def test_an_answer_after_a_deadline(running: RunningNode) -> None:
    say(running, "put", "a", 1)
    connection = running.client.connect()
    number = park(running, connection, "later", "a", 1000)
    running.advance(999)
    assert connection.is_silent(0.05)
    running.advance(1)
    assert hear(connection, number) == -5
    assert core_of(running, "a").numbers["a"] == -5


def test_refusals(running: RunningNode) -> None:
    assert say(running, "reject", "a", ErrorCode.ILLEGAL_GENERATION) is ErrorCode.ILLEGAL_GENERATION
    assert say(running, "bug") is ErrorCode.UNKNOWN_SERVER_ERROR
    assert say(running, "large", "a", 2_000_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert say(running, "get", "a") == -1


def test_an_effect_is_performed_and_its_outcome_answers(running: RunningNode) -> None:
    performed = []

    def perform(errand: Errand, done: Any) -> None:
        performed.append(errand)
        done(Outcome(value=errand.number * 2))

    running.node.groups.performers[Errand] = perform
    assert say(running, "errand", "a", 21) == 42
    assert performed == [Errand("a", 21)]


def test_an_effect_that_nobody_performs_fails(running: RunningNode) -> None:
    assert say(running, "errand", "a", 21) == -ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_effect_that_cannot_be_performed_fails(running: RunningNode) -> None:
    def perform(errand: Errand, done: Any) -> None:
        raise RuntimeError("a mistake")

    running.node.groups.performers[Errand] = perform
    assert say(running, "errand", "a", 21) == -ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("length", [1, ROUNDS_MAX - 1, ROUNDS_MAX, 5 * ROUNDS_MAX])
def test_what_a_commit_brings_is_written_too(running: RunningNode, length: int) -> None:
    """All in one turn, as long as others need not wait for too many of them."""
    assert say(running, "chain", "a", length) == 0
    assert running.node.groups.counts.batches == length + 1
    assert say(running, "get", "a") == 0


def test_many_deadlines_at_once_let_others_through(running: RunningNode) -> None:
    say(running, "put", "a", 1)
    count = 3 * EXPIRED_MAX
    connections = [running.client.connect() for _ in range(2)]
    numbers = [park(running, connection, "later", "a", 1000) for connection in connections]
    shard = shard_of(running, "a")
    running.change(
        lambda: [shard.deadlines.set(("ledger", f"n{index}", None), 1000) for index in range(count)] and None
    )
    running.advance(1000)
    assert [hear(connection, number) for connection, number in zip(connections, numbers, strict=True)] == [-5, -5]
    assert len(shard.deadlines) == count - EXPIRED_MAX + len(connections)
    for _ in range(3):
        running.advance(1)
    assert len(shard.deadlines) == 0
    assert core_of(running, "a").numbers[f"n{count - 1}"] == -5


def test_an_answer_that_cannot_be_taken_does_not_keep_others_from_theirs(running: RunningNode) -> None:
    groups, heard = running.node.groups, []

    def fail(answer: Any) -> None:
        raise RuntimeError("a mistake")

    def begin() -> None:
        for done in (fail, heard.append):
            groups.ask(None, "a", ask("put", "a", 1), done, refuse=refusal)

    say(running, "put", "a", 0)
    running.change(begin)
    assert say(running, "get", "a") == 1
    assert len(heard) == 1


def test_an_outcome_that_comes_later_is_written_by_itself(running: RunningNode) -> None:
    waiting = []
    running.node.groups.performers[Errand] = lambda errand, done: waiting.append(done)
    say(running, "get", "a")
    connection = running.client.connect()
    number = park(running, connection, "errand", "a", 21)
    running.change(lambda: waiting[0](Outcome(value=7)))
    assert hear(connection, number) == 7


# --- asking several ---------------------------------------------------------------------------------------------------


def collect(running: RunningNode, begin: Any) -> list[Any]:
    """What `begin(done)` brings."""
    heard: list[Any] = []
    done = threading.Event()

    def take(answer: Any) -> None:
        heard.append(answer)
        done.set()

    running.change(lambda: begin(take))
    assert done.wait(10)
    return heard


def refusal(code: ErrorCode, message: str | None) -> ErrorCode:
    return code


def test_ask_answers_at_once_what_rests_on_nothing(running: RunningNode) -> None:
    say(running, "put", "a", 3)
    heard: list[Any] = []

    def step() -> None:
        running.node.groups.ask(None, "a", ask("get", "a"), heard.append, refuse=refusal)
        assert [each.throttle_time_ms for each in heard] == [3]
        running.node.groups.ask(None, "a", ask("put", "a", 4), heard.append, refuse=refusal)
        assert len(heard) == 1, "it waits for its record"

    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            step()
        except AssertionError as error:
            failures.append(error)

    running.change(guarded)
    assert not failures
    assert say(running, "get", "a") == 4
    assert [each.throttle_time_ms for each in heard] == [3, 4]


def test_ask_creates_the_topic_too(running: RunningNode) -> None:
    groups = running.node.groups
    (answer,) = collect(running, lambda done: groups.ask(None, "a", ask("put", "a", 1), done, refuse=refusal))
    assert answer.throttle_time_ms == 1


def test_ask_all_asks_every_shard(running: RunningNode) -> None:
    groups = running.node.groups
    assert collect(running, lambda done: groups.ask_all(None, ask("get", "a"), done, refuse=refusal)) == [[]]
    say(running, "put", "a", 6)
    (answers,) = collect(running, lambda done: groups.ask_all(None, ask("get", "a"), done, refuse=refusal))
    assert sorted(each.throttle_time_ms for each in answers) == [-1, -1, -1, 6]
    assert answers[partition_for("a", PARTITIONS)].throttle_time_ms == 6


def test_ask_all_tells_what_is_being_loaded(running: RunningNode) -> None:
    say(running, "put", "a", 6)
    groups = running.node.groups
    running.change(lambda: groups.loading.add(groups.shards.popitem()[0]))
    (answers,) = collect(running, lambda done: groups.ask_all(None, ask("get", "a"), done, refuse=refusal))
    assert answers[3] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert say(running, "get", _name_of(3)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


# --- transactions -----------------------------------------------------------------------------------------------------


def end_transaction(running: RunningNode, partition: int, producer_id: int, *, committed: bool, epoch: int = 0) -> Any:
    groups = running.node.groups
    (code,) = collect(
        running,
        lambda done: groups.end_transaction(
            partition,
            Producer(producer_id, 0),
            done,
            committed=committed,
            coordinator_epoch=epoch,
            transaction_version=1,
        ),
    )
    return code


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_takes_effect_with_its_marker(start_node: StartNode, committed: bool) -> None:
    expected = 77 if committed else 1
    with start_node() as running:
        say(running, "put", "a", 1)
        assert say(running, "txn", "a", 77) == 77
        assert say(running, "get", "a") == 1
        batch = batches_of(running, "a")[1]
        assert (batch.producer_id, batch.base_sequence, batch.is_transactional) == (77, -1, True)
        assert end_transaction(running, partition_for("a", PARTITIONS), 77, committed=committed) is ErrorCode.NONE
        assert say(running, "get", "a") == expected
    with start_node() as running:
        assert say(running, "get", "a") == expected


def test_a_transaction_that_is_open_at_a_restart_is_open_after_it(start_node: StartNode) -> None:
    with start_node() as running:
        say(running, "txn", "a", 77)
    with start_node() as running:
        assert say(running, "get", "a") == -1
        assert core_of(running, "a").open == {77: {"a": 77}}
        assert end_transaction(running, partition_for("a", PARTITIONS), 77, committed=True) is ErrorCode.NONE
        assert say(running, "get", "a") == 77


def test_a_marker_of_an_older_coordinator_is_refused(running: RunningNode) -> None:
    say(running, "txn", "a", 77)
    partition = partition_for("a", PARTITIONS)
    assert end_transaction(running, partition, 77, committed=True, epoch=5) is ErrorCode.NONE
    say(running, "txn", "a", 77)
    code = end_transaction(running, partition, 77, committed=True, epoch=4)
    assert code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert core_of(running, "a").open == {77: {"a": 77}}


def test_a_marker_for_a_partition_that_is_not_there(running: RunningNode) -> None:
    assert end_transaction(running, 1, 77, committed=True) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_marker_between_verification_and_append_makes_it_void(running: RunningNode) -> None:
    say(running, "txn", "a", 77)
    groups = running.node.groups
    guard = groups.verification_guard("a", 77)
    end_transaction(running, partition_for("a", PARTITIONS), 77, committed=True)
    assert groups.verification_guard("a", 77) != guard


# --- loading ----------------------------------------------------------------------------------------------------------


def test_what_was_answered_is_there_after_a_restart(start_node: StartNode) -> None:
    names = [f"name-{number}" for number in range(40)]
    with start_node() as running:
        for number, name in enumerate(names):
            say(running, "put", name, number)
        say(running, "drop", "name-7")
    with start_node() as running:
        assert len(running.node.groups.shards) == PARTITIONS
        assert [say(running, "get", name) for name in names] == [*range(7), -1, *range(8, 40)]
        assert core_of(running, "name-0").loads == 1


def test_progress_is_told(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with start_node() as running:
        say(running, "put", "a", 1)
    monkeypatch.setattr(runtime, "_PROGRESS_SECONDS", 0)
    monkeypatch.setattr(runtime, "_SLICE_SECONDS", 0)
    caplog.set_level("INFO")
    with start_node():
        pass
    lines = [record.message for record in caplog.records if record.message.startswith("loading __consumer_offsets")]
    assert lines
    assert f"done={partition_for('a', PARTITIONS)} of={PARTITIONS}" in lines[0]


def test_what_the_metadata_log_tells_while_a_node_loads_its_partitions_loads_none_twice(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two shards of a partition would both act for it, one of them on what it knew when it was loaded."""
    names = [_name_of(partition) for partition in range(PARTITIONS)]
    with start_node() as running:
        for number, name in enumerate(names):
            say(running, "put", name, number)
    loaded: list[int] = []
    load = runtime.Runtime._load

    def load_and_hear(self: runtime.Runtime, partition: int) -> Iterator[None]:
        is_first = not loaded
        loaded.append(partition)
        for number, step in enumerate(load(self, partition)):
            if is_first and not number:
                self.follow(set(range(PARTITIONS)))
            yield step

    monkeypatch.setattr(runtime.Runtime, "_load", load_and_hear)
    with start_node() as running:
        answers = [[say(running, "get", name) for name in names] for _ in range(200)]
        assert answers[-1] == list(range(PARTITIONS))
        assert sorted(loaded) == list(range(PARTITIONS))


def test_a_shard_that_is_lost_is_loaded_again(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    parked = running.client.connect()
    number = park(running, parked)
    old = core_of(running, "a")
    running.change(lambda: running.node.groups.lost(shard_of(running, "a"), RuntimeError("a test")))
    assert hear(parked, number) is ErrorCode.NOT_COORDINATOR
    answers = [say(running, "get", "a") for _ in range(200)]
    assert answers[-1] == 5
    assert set(answers) <= {5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
    assert core_of(running, "a") is not old


def test_a_core_that_fails_at_its_own_record_is_loaded_without_it(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    core_of(running, "a").is_frail = True
    assert say(running, "put", "a", 6) is ErrorCode.NOT_COORDINATOR
    assert [say(running, "get", "a") for _ in range(200)][-1] == 5


def test_a_deleted_topic_sends_everybody_away_and_is_made_again(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    parked = running.client.connect()
    number = park(running, parked)
    running.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(GROUPS.name),)), 6)
    assert hear(parked, number) is ErrorCode.NOT_COORDINATOR
    assert running.node.groups.shards == {}
    assert say(running, "get", "a") == -1
    assert len(running.node.groups.shards) == PARTITIONS


def test_a_failing_directory_sends_everybody_away(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    parked = running.client.connect()
    number = park(running, parked)
    replica = running.node.replicas.get(GROUPS.name, partition_for("a", PARTITIONS))
    assert replica is not None
    error = replica.directory.storage.fail(OSError("a test"), "testing")
    running.change(lambda: running.node.replicas.directory_failed(replica.directory, error))
    assert hear(parked, number) is ErrorCode.NOT_COORDINATOR
    assert say(running, "get", "a") is ErrorCode.NOT_COORDINATOR


def test_a_node_that_stops_sends_everybody_away(start_node: StartNode) -> None:
    with start_node() as running:
        say(running, "put", "a", 5)
        advertised = running.node.advertised["PLAINTEXT"]
        parked = Connection((advertised.host, advertised.port), "parked")
        number = park(running, parked)
    assert hear(parked, number) is ErrorCode.NOT_COORDINATOR
    parked.close()


def test_new_partitions_get_shards(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    kind = CreatePartitionsRequest
    running.client.ask(
        kind(topics=(kind.CreatePartitionsTopic(GROUPS.name, PARTITIONS + 2, None),), timeout_ms=5000), 3
    )
    assert sorted(running.node.groups.shards) == list(range(PARTITIONS + 2))


# --- what surrounds cores ---------------------------------------------------------------------------------------------


def test_cores_hear_of_topics(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    core = core_of(running, "a")
    topic = running.client.topic(2)
    kind = CreatePartitionsRequest
    running.client.ask(kind(topics=(kind.CreatePartitionsTopic(topic.name, 3, None),), timeout_ms=5000), 3)
    view = running.node.groups.world.topics.by_name(topic.name)
    assert view is not None
    assert (view.name, view.topic_id, view.partition_count, view.racks(0)) == (
        topic.name,
        topic.topic_id,
        3,
        frozenset(),
    )
    version = running.node.groups.world.topics.version
    running.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
    assert running.node.groups.world.topics.version > version
    assert running.node.groups.world.topics.by_id(topic.topic_id) is None
    changes = [tuple(change) for change in core.changes]
    assert changes == [
        ([topic.name], [], []),
        ([], [topic.name], []),
        ([], [], [(topic.name, topic.topic_id)]),
    ]


def test_settings_of_groups(running: RunningNode) -> None:
    world = running.node.groups.world
    name = "consumer.session.timeout.ms"
    assert world.group_setting("g", name) == 45_000
    version = world.settings_version
    set_config(running, 32, "g", name, "50000")
    assert world.settings_version > version
    assert world.group_setting("g", name) == 50_000
    assert world.group_setting("h", name) == 45_000
    set_config(running, 32, "g", name, "51000")
    assert world.group_setting("g", name) == 51_000
    set_config(running, 4, "", "group.consumer.assignment.interval.ms", "7000")
    assert world.group_setting("h", "consumer.assignment.interval.ms") == 7_000


def test_chance(running: RunningNode) -> None:
    world = running.node.groups.world
    drawn = {world.draw() for _ in range(100)}
    assert len(drawn) == 100
    assert 0 <= min(drawn) < 0.5 < max(drawn) < 1
    assert len({world.new_uuid() for _ in range(100)}) == 100


def set_config(running: RunningNode, resource_type: int, resource: str, name: str, value: str) -> None:
    kind = IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name, 0, value)
    answer = running.client.ask(kind(resources=(kind.AlterConfigsResource(resource_type, resource, (config,)),)), 1)
    assert answer.responses[0].error_code == 0, answer


def test_the_context_of_a_request(start_node: StartNode) -> None:
    asked = []

    def authorizer(request: Any, operation: Any, resource_type: Any, name: str) -> bool:
        asked.append((request.client_id, name))
        return name != "forbidden"

    with start_node(authorizer=authorizer) as running:
        say(running, "deny", "forbidden")
        assert core_of(running, "forbidden").denied is False
        say(running, "deny", "fine")
        assert core_of(running, "fine").denied is True
        assert ("test", "forbidden") in asked


# --- the disk ---------------------------------------------------------------------------------------------------------


def test_with_fsync_an_answer_waits_for_the_disk(start_node: StartNode, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_node(ottla_fsync="true") as running:
        assert say(running, "put", "a", 1) == 1
        held: list[Any] = []
        monkeypatch.setattr(running.node.replicas, "_offload", lambda work, then: held.append((work, then)) or object())
        connection = running.client.connect()
        number = park(running, connection, "put", "a", 2)
        reader = running.client.connect()
        read = park(running, reader, "get", "a")
        assert connection.is_silent(0.05)
        assert reader.is_silent(0.05), "it has seen what is not on the disk yet"
        work, then = held.pop()
        running.change(lambda: (work(), then()))
        assert hear(connection, number) == 2
        assert hear(reader, read) == 2


def test_a_write_that_takes_too_long(start_node: StartNode, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_node(ottla_fsync="true", offsets_commit_timeout_ms=3000) as running:
        assert say(running, "put", "a", 1) == 1
        held: list[Any] = []
        monkeypatch.setattr(running.node.replicas, "_offload", lambda work, then: held.append((work, then)) or object())
        connection = running.client.connect()
        number = park(running, connection, "put", "a", 2)
        running.advance(2999)
        assert connection.is_silent(0.05)
        running.advance(1)
        assert hear(connection, number) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert core_of(running, "a").numbers["a"] == 2, "it stays applied"
        work, then = held.pop()
        running.change(lambda: (work(), then()))
        assert say(running, "get", "a") == 2


def test_numbers_are_told(running: RunningNode) -> None:
    say(running, "put", "a", 1)
    say(running, "put", "a", 2)
    page = running.node.metrics.page()
    prefix = "kafka_server_group_coordinator_metrics"
    assert f'{prefix}_num_partitions{{state="active"}} 4' in page
    assert f"{prefix}_batches_total 2" in page
    assert f"{prefix}_records_total 2" in page
    running.change(lambda: running.node.groups.lost(shard_of(running, "a"), RuntimeError("a test")))
    assert [say(running, "get", "a") for _ in range(200)][-1] == 2
    page = running.node.metrics.page()
    assert f"{prefix}_partitions_lost_total 1" in page
    assert f"{prefix}_records_loaded_total 2" in page


# --- leadership that comes and goes -----------------------------------------------------------------------------------


def change_leader(running: RunningNode, name: str, leader: int) -> None:
    """As if the controller had elected somebody."""
    node = running.node
    topic = node.image.topic(GROUPS.name)
    assert topic is not None
    change = PartitionChangeRecord(partition_id=partition_for(name, PARTITIONS), topic_id=topic.topic_id, leader=leader)
    running.commit(change)


def test_leadership_that_goes_and_comes_back(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    parked = running.client.connect()
    number = park(running, parked)
    change_leader(running, "a", 99)
    assert hear(parked, number) is ErrorCode.NOT_COORDINATOR
    assert say(running, "get", "a") is ErrorCode.NOT_COORDINATOR
    assert say(running, "put", _name_of(0), 1) == 1, "the other partitions go on"
    change_leader(running, "a", 1)
    answers = [say(running, "get", "a") for _ in range(200)]
    assert answers[-1] == 5
    assert set(answers) <= {5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def test_timers_go_with_their_shard(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    park(running, running.client.connect(), "later", "a", 1000)
    shard = shard_of(running, "a")
    unit_of_work = running.node.unit_of_work
    assert shard in unit_of_work._deadlines
    change_leader(running, "a", 99)
    assert shard not in unit_of_work._deadlines


def test_nothing_is_loaded_once_a_node_stops(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    groups = running.node.groups
    running.change(lambda: (groups.lost(shard_of(running, "a"), RuntimeError("a test")), groups.stop()))
    assert say(running, "get", "a") is ErrorCode.NOT_COORDINATOR
    assert (groups.shards, groups.loading) == ({}, set())


def test_a_new_epoch_is_a_new_shard(running: RunningNode) -> None:
    say(running, "put", "a", 5)
    old = core_of(running, "a")
    change_leader(running, "a", 1)
    assert [say(running, "get", "a") for _ in range(200)][-1] == 5
    assert core_of(running, "a") is not old


def test_leadership_that_goes_while_a_partition_is_loaded(running: RunningNode) -> None:
    for number in range(200):
        say(running, "put", "a", number)
    partition = partition_for("a", PARTITIONS)
    steps: list[Any] = []
    running.change(
        lambda: setattr(running.node.cooperative_tasks, "add", lambda name, work, **_: steps.append(work) or True)
    )
    change_leader(running, "a", 1)
    assert say(running, "get", "a") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    running.change(lambda: next(steps[0]))
    change_leader(running, "a", 99)
    change_leader(running, "a", 1)
    assert len(steps) == 1, "it is being loaded already"
    running.change(lambda: list(steps[0]))
    assert partition not in running.node.groups.shards, "what was loaded is of an older epoch"
    assert say(running, "get", "a") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    running.change(lambda: list(steps[1]))
    assert say(running, "get", "a") == 199
    assert running.node.groups.loading == set()


def test_a_log_that_cannot_be_read_sends_whoever_asks_away(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_node() as running:
        say(running, "put", "a", 5)

    def fail(*arguments: Any) -> Any:
        raise WireError("RecordBatch", 0, "a test")

    monkeypatch.setattr(loader, "split_batches", fail)
    with start_node() as running:
        assert say(running, "get", "a") is ErrorCode.NOT_COORDINATOR
        other = _name_of((partition_for("a", PARTITIONS) + 1) % PARTITIONS)
        assert say(running, "put", other, 1) == 1
