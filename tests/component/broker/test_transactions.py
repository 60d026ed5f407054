"""Transactions of one node: what only we do, what needs a clock that stands still, and what comes after a crash."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.broker.replicas.replicas import Replica
from ottla.core.coordinator.contract import Outcome
from ottla.core.txn.messages import WriteMarkers
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from tests.component.broker.raw_client import Closed, RawClient, RunningNode, Topic, produce_request, running_node
from tests.component.broker.transactional_producer import Producer, committed, error, markers

NONE = ErrorCode.NONE
DAY_MS = 86_400_000


@pytest.fixture
def manual(tmp_path: Path) -> Iterator[RunningNode]:
    with running_node(tmp_path, ManualClock(time.time_ns() // 1_000_000)) as running:
        yield running


def end_request(producer: Producer, *, is_commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest(producer.name, producer.producer_id, producer.epoch, is_commit)


class HeldMarkers:
    """Markers that a node is to write, held back by a test."""

    def __init__(self, running: RunningNode) -> None:
        self._running = running
        self.held: list[tuple[WriteMarkers, Callable[[Outcome], None]]] = []
        self._perform = running.node.transactions.performers[WriteMarkers]
        self._running.node.transactions.performers[WriteMarkers] = self._hold

    def _hold(self, effect: WriteMarkers, done: Callable[[Outcome], None]) -> None:
        self.held.append((effect, done))

    def release(self) -> None:
        self._running.node.transactions.performers[WriteMarkers] = self._perform
        held, self.held = self.held, []
        for effect, done in held:
            self._running.change(lambda effect=effect, done=done: self._perform(effect, done))


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("is_commit", [True, False])
def test_an_end_is_answered_when_it_is_complete(client: RawClient, version: int, is_commit: bool):
    """Apache Kafka answers after the decision, and for a moment CONCURRENT_TRANSACTIONS to all that follows."""
    topic = client.topic(3)
    producer = Producer(client, produce_version=13 if version == 5 else 11).begun()
    for _ in range(2):
        if version < 5:
            producer.add(topic.name, 0, 1, 2)
        producer.produce(topic, b"a")
        producer.produce(topic, b"b", partition=2)
        answer = client.ask(end_request(producer, is_commit=is_commit), version)
        assert error(answer) is NONE
        assert producer.describe().transaction_state == ("CompleteCommit" if is_commit else "CompleteAbort")
        if version == 5:
            producer.take(answer)
    assert committed(client, topic) == ([b"a", b"a"] if is_commit else [])
    assert len(markers(client, topic, 2)) == 2


def test_a_newcomer_waits_for_one_answer_only(client: RawClient):
    topic = client.topic()
    old = Producer(client).begun()
    old.produce(topic, b"a")
    request = InitProducerIdRequest(old.name, 60_000)
    answers = [client.ask(request, 5) for _ in range(2)]
    assert [error(one) for one in answers] == [ErrorCode.CONCURRENT_TRANSACTIONS, NONE]
    assert answers[1].producer_epoch == 2


def test_many_ends_at_once(client: RawClient):
    """Each on a connection of its own, sent before any answer is read."""
    topic = client.topic()
    producers = [Producer(client).begun() for _ in range(20)]
    for number, producer in enumerate(producers):
        producer.produce(topic, str(number).encode())
    connections = [client.connect() for _ in producers]
    numbers = [connection.send(end_request(one), 5) for connection, one in zip(connections, producers, strict=True)]
    answers = [connection.receive(26, 5, number) for connection, number in zip(connections, numbers, strict=True)]
    assert {(error(one), one.producer_epoch) for one in answers} == {(NONE, 1)}
    assert committed(client, topic) == [str(number).encode() for number in range(20)]
    for connection in connections:
        connection.close()


def test_produce_and_end_in_one_piece(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun()
    batches = [producer.batch(topic, value) for value in (b"a", b"b", b"c")]
    requests = [(produce_request(topic, {0: one}, transactional_id=producer.name), 13) for one in batches]
    numbers = client.connection.send_together(*requests, (end_request(producer), 5))
    for number in numbers[:3]:
        (answer,) = client.connection.receive(0, 13, number).responses[0].partition_responses
        assert error(answer) is NONE
    assert error(client.connection.receive(26, 5, numbers[3])) is NONE
    assert committed(client, topic) == [b"a", b"b", b"c"]


def test_a_topic_that_was_deleted_does_not_hold_up_the_end(client: RawClient):
    kept, gone = client.topic(), client.topic()
    producer = Producer(client).begun()
    producer.produce(kept, b"a")
    producer.produce(gone, b"b")
    client.ask(DeleteTopicsRequest((DeleteTopicsRequest.DeleteTopicState(gone.name),), timeout_ms=5_000), 6)
    producer.commit()
    assert committed(client, kept) == [b"a"]


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_crash_after_the_decision(tmp_path: Path, is_commit: bool):
    with running_node(tmp_path) as running:
        topic = running.client.topic(2)
        producer = Producer(running.client).begun()
        producer.produce(topic, b"a")
        producer.produce(topic, b"b", partition=1)
        held = HeldMarkers(running)
        connection = running.client.connect()
        connection.send(end_request(producer, is_commit=is_commit), 5)
        while not held.held:
            assert error(producer.describe()) is NONE
        assert producer.describe().transaction_state.startswith("Prepare")
    with running_node(tmp_path) as running:
        again = Producer(running.client, name=producer.name)
        assert again.settled().transaction_state == ("CompleteCommit" if is_commit else "CompleteAbort")
        assert committed(running.client, topic) == ([b"a"] if is_commit else [])
        assert committed(running.client, topic, 1) == ([b"b"] if is_commit else [])
        again.producer_id, again.epoch = producer.producer_id, producer.epoch
        assert error(again.end(is_commit)) is NONE
        assert again.epoch == producer.epoch + 1


def test_what_an_open_transaction_has_is_known_after_a_restart(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic = running.client.topic()
        producer = Producer(running.client).begun()
        producer.produce(topic, b"a")
    with running_node(tmp_path) as running:
        producer.client = running.client
        producer.produce(topic, b"b")
        producer.commit()
        assert committed(running.client, topic) == [b"a", b"b"]


# --- time-outs --------------------------------------------------------------------------------------------------------


def test_a_transaction_that_takes_too_long(manual: RunningNode):
    client = manual.client
    topic = client.topic()
    producer = Producer(client).begun(timeout_ms=1_000)
    assert error(producer.produce(topic, b"a")) is NONE
    manual.advance(9_000)
    assert producer.describe().transaction_state == "Ongoing"
    assert client.fetch(topic, isolation_level=1, max_wait_ms=0).last_stable_offset == 0
    manual.advance(2_000)
    assert producer.describe().transaction_state == "CompleteAbort"
    assert client.fetch(topic, isolation_level=1, max_wait_ms=0).last_stable_offset == 2
    assert error(producer.produce(topic, b"b")) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add(topic.name) == [ErrorCode.PRODUCER_FENCED]
    assert error(producer.end(True)) is ErrorCode.INVALID_TXN_STATE
    assert committed(client, topic) == []


def test_ids_that_nobody_uses_are_forgotten(manual: RunningNode):
    producer = Producer(manual.client).begun()
    manual.advance(6 * DAY_MS)
    assert error(producer.describe()) is NONE
    manual.advance(DAY_MS + 3_600_000)
    assert error(producer.describe()) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert producer.add("t") in ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], [ErrorCode.INVALID_PRODUCER_ID_MAPPING])
    assert error(producer.end(True)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert producer.begun().epoch == 0


# --- while a transaction ends -----------------------------------------------------------------------------------------


@contextmanager
def ending(running: RunningNode, **given: Any) -> Iterator[tuple[Producer, HeldMarkers]]:
    """A producer whose transaction is decided, and the markers that are not written yet."""
    client = running.client
    topic = client.topic()
    producer = Producer(client, **given).begun()
    producer.produce(topic, b"a")
    held = HeldMarkers(running)
    connection = client.connect()
    connection.send(end_request(producer), 5)
    while not held.held:
        assert error(producer.describe()) is NONE
    producer.epoch += 1
    producer.sequences.clear()
    yield producer, held
    held.release()
    connection.close()


def await_parked(running: RunningNode) -> None:
    """Until a request waits for time to go by."""
    running.until(lambda: len(running.node.purgatory) > 0)


def await_complete(producer: Producer, running: RunningNode) -> None:
    """Until the transaction has all its markers."""
    running.until(lambda: producer.describe().transaction_state == "CompleteCommit")


def test_the_next_transaction_s_first_batch_waits_a_moment(manual: RunningNode):
    topic = manual.client.topic()
    with ending(manual) as (producer, held):
        connection = manual.client.connect()
        records = {0: producer.batch(topic, b"next")}
        number = connection.send(produce_request(topic, records, transactional_id=producer.name), 13)
        await_parked(manual)
        held.release()
        await_complete(producer, manual)
        manual.advance(20)
        (answer,) = connection.receive(0, 13, number).responses[0].partition_responses
        assert (error(answer), answer.base_offset) == (NONE, 0)
        connection.close()


def test_the_next_transaction_s_first_batch_does_not_wait_for_ever(manual: RunningNode):
    topic = manual.client.topic()
    with ending(manual) as (producer, _):
        connection = manual.client.connect()
        records = {0: producer.batch(topic, b"next")}
        number = connection.send(produce_request(topic, records, transactional_id=producer.name), 13)
        await_parked(manual)
        for _ in range(5):
            manual.advance(20)
        (answer,) = connection.receive(0, 13, number).responses[0].partition_responses
        assert (error(answer), answer.base_offset) == (ErrorCode.CONCURRENT_TRANSACTIONS, -1)
        connection.close()


def test_a_partition_that_this_node_comes_to_lead_while_the_coordinator_is_asked(manual: RunningNode):
    """Its batch was not asked about: it is sent again, and does not end the transaction."""
    topic = manual.client.topic(2)
    replica = replica_of(manual, topic, 1)
    manual.change(lambda: setattr(replica, "leader", 2))
    with ending(manual) as (producer, held):
        connection = manual.client.connect()
        records = {each: producer.batch(topic, b"next", partition=each) for each in (0, 1)}
        number = connection.send(produce_request(topic, records, transactional_id=producer.name), 13)
        await_parked(manual)
        manual.change(lambda: setattr(replica, "leader", 1))
        held.release()
        await_complete(producer, manual)
        manual.advance(20)
        answers = connection.receive(0, 13, number).responses[0].partition_responses
        assert [error(each) for each in answers] == [NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        connection.close()


@pytest.mark.parametrize("version", [10, 11])
def test_older_producers_are_told_to_send_again(manual: RunningNode, version: int):
    topic = manual.client.topic()
    with ending(manual) as (producer, _):
        records = {0: producer.batch(topic, b"next")}
        request = produce_request(topic, records, transactional_id=producer.name)
        (answer,) = manual.client.ask(request, version).responses[0].partition_responses
        assert error(answer) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert "CONCURRENT_TRANSACTIONS" in (answer.error_message or "")


def test_a_coordinator_that_is_not_there(running: RunningNode):
    client = running.client
    topic = client.topic()
    producer = Producer(client).begun()
    shards = running.node.transactions.shards
    kept = dict(shards)
    running.change(shards.clear)
    request = produce_request(topic, {0: producer.batch(topic, b"a")}, transactional_id=producer.name)
    try:
        (answer,) = client.ask(request, 13).responses[0].partition_responses
        assert error(answer) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert error(client.ask(end_request(producer), 5)) is ErrorCode.NOT_COORDINATOR
        assert error(producer.describe()) is ErrorCode.NOT_COORDINATOR
    finally:
        running.change(lambda: shards.update(kept))


def test_a_refused_batch_without_acknowledgement_ends_the_connection(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun().begun()
    records = {0: producer.batch(topic, b"a", producer_epoch=0)}
    connection = client.connect()
    with pytest.raises(Closed):
        connection.ask(produce_request(topic, records, acks=0, transactional_id=producer.name), 13)


def test_a_batch_without_acknowledgement_begins_a_transaction(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun()
    connection = client.connect()
    connection.send(
        produce_request(topic, {0: producer.batch(topic, b"a")}, acks=0, transactional_id=producer.name), 13
    )
    assert error(connection.ask(end_request(producer), 5)) is NONE
    assert committed(client, topic) == [b"a"]
    connection.close()


# --- replicas that are slow, or led elsewhere -------------------------------------------------------------------------


def replica_of(running: RunningNode, topic: Topic, partition: int = 0) -> Replica:
    replica = running.node.replicas.get(topic.name, partition)
    assert replica is not None
    return replica


def widen(replica: Replica) -> None:
    """From now on nothing is committed: the second replica is not there."""
    replica.replicas = replica.isr = (1, 2)


def narrow(running: RunningNode, replica: Replica) -> None:
    replica.replicas = replica.isr = (1,)
    replica.log.update_high_watermark(replica.log.log_end_offset)
    running.node.replicas.wake(replica.topic_partition)


def markers_for(topic: Topic, producer_id: int = 9_000) -> WriteTxnMarkersRequest:
    kind = WriteTxnMarkersRequest
    named = kind.WritableTxnMarkerTopic(topic.name, (0,))
    return kind((kind.WritableTxnMarker(producer_id, 0, True, (named,)),))


def marker_code(answer: Any) -> ErrorCode:
    return error(answer.markers[0].topics[0].partitions[0])


def test_markers_that_are_not_committed_in_time(manual: RunningNode):
    topic = manual.client.topic()
    manual.change(lambda: widen(replica_of(manual, topic)))
    connection = manual.client.connect()
    number = connection.send(markers_for(topic), 1)
    assert connection.is_silent(0.05)
    manual.advance(30_000)
    assert marker_code(connection.receive(27, 1, number)) is ErrorCode.REQUEST_TIMED_OUT
    connection.close()


def test_markers_that_are_committed_late(running: RunningNode):
    topic = running.client.topic()
    running.change(lambda: widen(replica_of(running, topic)))
    connection = running.client.connect()
    number = connection.send(markers_for(topic), 1)
    assert connection.is_silent(0.05)
    running.change(lambda: narrow(running, replica_of(running, topic)))
    assert marker_code(connection.receive(27, 1, number)) is NONE
    connection.close()


def test_leadership_lost_while_markers_wait(running: RunningNode):
    topic = running.client.topic()
    running.change(lambda: widen(replica_of(running, topic)))
    connection = running.client.connect()
    number = connection.send(markers_for(topic), 1)
    assert connection.is_silent(0.05)

    def lose() -> None:
        replica = replica_of(running, topic)
        replica.leader = 2
        running.node.replicas.wake(replica.topic_partition)

    running.change(lose)
    assert marker_code(connection.receive(27, 1, number)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert marker_code(running.client.ask(markers_for(topic), 1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    connection.close()


def test_an_end_whose_markers_are_slow_is_not_answered_before_them(running: RunningNode):
    client = running.client
    topic = client.topic()
    producer = Producer(client).begun()
    producer.produce(topic, b"a")
    running.change(lambda: widen(replica_of(running, topic)))
    connection = client.connect()
    number = connection.send(end_request(producer), 5)
    assert connection.is_silent(0.05)
    assert producer.describe().transaction_state == "PrepareCommit"
    running.change(lambda: narrow(running, replica_of(running, topic)))
    assert error(connection.receive(26, 5, number)) is NONE
    assert producer.describe().transaction_state == "CompleteCommit"
    connection.close()


def test_a_partition_that_another_node_leads_gets_its_marker_when_it_comes_back(manual: RunningNode):
    client = manual.client
    here, there = client.topic(), client.topic()
    producer = Producer(client).begun()
    producer.produce(here, b"a")
    producer.produce(there, b"b")
    replica = replica_of(manual, there)
    image = manual.node.image.topic(there.name)
    assert image is not None

    def lead(leader: int) -> None:
        replica.leader = leader
        image.partitions[0] = msgspec.structs.replace(image.partitions[0], leader=leader)

    manual.change(lambda: lead(2))
    answer = client.ask(end_request(producer), 5)
    assert (error(answer), answer.producer_epoch) == (NONE, 1), "the decision is answered at once"
    assert producer.describe().transaction_state == "PrepareCommit"
    assert committed(client, here) == [b"a"]
    manual.advance(20)
    assert producer.describe().transaction_state == "PrepareCommit"
    manual.change(lambda: lead(1))
    manual.advance(1_000)
    assert producer.describe().transaction_state == "CompleteCommit"
    assert committed(client, there) == [b"b"]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_verification_can_be_switched_off(tmp_path: Path):
    with running_node(tmp_path, transaction_partition_verification_enable="false") as running:
        topic = running.client.topic()
        old = Producer.of_version_1(running.client).begun()
        assert error(old.produce(topic, b"a")) is NONE
        new = Producer(running.client).begun()
        assert error(new.produce(topic, b"b")) is NONE
        assert new.describe().transaction_state == "Ongoing"


def test_a_node_that_waits_for_its_disk(tmp_path: Path):
    """Each of the writes of an end then waits for a sync, in a thread."""
    with running_node(tmp_path, ottla_fsync="true") as running:
        topic = running.client.topic(2)
        producer = Producer(running.client).begun()
        for value in (b"a", b"b", b"c"):
            producer.produce(topic, value)
            producer.produce(topic, value, partition=1)
            answer = running.client.ask(end_request(producer, is_commit=value != b"b"), 5)
            assert error(answer) is NONE
            producer.take(answer)
        assert producer.describe().transaction_state == "CompleteCommit"
        assert committed(running.client, topic) == committed(running.client, topic, 1) == [b"a", b"c"]


def offered(client: RawClient) -> int:
    versions = client.ask(ApiVersionsRequest("a", "1"), 4).api_keys
    return next(one.max_version for one in versions if one.api_key == 22)


def test_two_phase_commit_is_hidden(client: RawClient):
    assert offered(client) == 5
    with pytest.raises(Closed):
        client.connect().ask(InitProducerIdRequest("a", 60_000), 6)


@pytest.mark.parametrize(("enabled", "code"), [(True, NONE), (False, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)])
def test_two_phase_commit(tmp_path: Path, enabled: bool, code: ErrorCode):
    settings = {"unstable_api_versions_enable": "true", "transaction_two_phase_commit_enable": str(enabled).lower()}
    with running_node(tmp_path, **settings) as running:
        assert offered(running.client) == 6
        producer = Producer(running.client)
        answer = producer.init(version=6, enable2_pc=True, timeout_ms=0)
        assert (error(answer), answer.ongoing_txn_producer_id) == (code, -1)
        kept = producer.init(version=6, keep_prepared_txn=True)
        assert error(kept) is ErrorCode.UNSUPPORTED_VERSION


# --- access -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def denied(tmp_path: Path) -> Iterator[tuple[RawClient, set[tuple[Operation, ResourceType]]]]:
    """A client, and what nobody may do."""
    rules: set[tuple[Operation, ResourceType]] = set()

    def may(_request: object, operation: Operation, resource_type: ResourceType, _name: str) -> bool:
        return (operation, resource_type) not in rules

    with running_node(tmp_path, authorizer=may) as running:
        yield running.client, rules


def test_writing_under_a_transactional_id(denied: tuple[RawClient, set[tuple[Operation, ResourceType]]]):
    client, rules = denied
    topic = client.topic()
    producer = Producer(client).begun()
    producer.produce(topic, b"a")
    rules.add((Operation.WRITE, ResourceType.TRANSACTIONAL_ID))
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error(producer.init()) is refused
    assert error(producer.produce(topic, b"b")) is refused
    assert producer.add(topic.name) == [refused]
    assert producer.add_offsets("g") is refused
    answer = producer.end(True)
    assert (error(answer), answer.producer_id) == (refused, -1)


def test_writing_to_topics_and_reading_groups(denied: tuple[RawClient, set[tuple[Operation, ResourceType]]]):
    client, rules = denied
    topic = client.topic()
    producer = Producer(client).begun()
    rules.update({(Operation.WRITE, ResourceType.TOPIC), (Operation.READ, ResourceType.GROUP)})
    assert producer.add(topic.name) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert producer.add_offsets("g") is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert error(producer.produce(topic, b"a")) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_looking_at_transactions(denied: tuple[RawClient, set[tuple[Operation, ResourceType]]]):
    client, rules = denied
    topic = client.topic()
    producer = Producer(client).begun()
    producer.produce(topic, b"a")
    rules.add((Operation.DESCRIBE, ResourceType.TOPIC))
    assert (error(producer.describe()), producer.describe().topics) == (NONE, ())
    rules.add((Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID))
    assert error(producer.describe()) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert client.ask(ListTransactionsRequest(), 2).transaction_states == ()


def test_what_only_brokers_may(denied: tuple[RawClient, set[tuple[Operation, ResourceType]]]):
    client, rules = denied
    topic = client.topic()
    producer = Producer(client).begun()
    rules.add((Operation.CLUSTER_ACTION, ResourceType.CLUSTER))
    kind = AddPartitionsToTxnRequest
    named = (kind.AddPartitionsToTxnTopic(topic.name, (0,)),)
    one = kind.AddPartitionsToTxnTransaction(producer.name, producer.producer_id, 0, True, named)
    assert error(client.ask(kind((one,)), 5)) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        5, 0, True, (WriteTxnMarkersRequest.WritableTxnMarkerTopic(topic.name, (0,)),)
    )
    request = WriteTxnMarkersRequest((marker,))
    allowed = client.ask(request, 1).markers[0].topics[0].partitions[0]
    assert error(allowed) is NONE, "who may alter the cluster may end transactions"
    rules.add((Operation.ALTER, ResourceType.CLUSTER))
    refused = client.ask(request, 1).markers[0].topics[0].partitions[0]
    assert error(refused) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
