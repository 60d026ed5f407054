"""Transactions frame by frame: what the original does, we do."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    FetchResponse,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from tests.component.broker.raw_client import RawClient, Topic
from tests.component.broker.transactional_producer import READ_COMMITTED, Producer, committed, error, markers

NONE = ErrorCode.NONE


# --- transaction version 2 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [12, 13])
def test_a_commit_of_version_2(client: RawClient, version: int):
    topic = client.topic(2)
    producer = Producer(client, produce_version=version).begun()
    assert producer.epoch == 0
    producer.produce(topic, b"a")
    producer.produce(topic, b"b", partition=1)
    producer.produce(topic, b"c")
    state = producer.describe()
    assert (state.transaction_state, state.producer_epoch, state.transaction_timeout_ms) == ("Ongoing", 0, 60_000)
    assert [(one.topic, sorted(one.partitions)) for one in state.topics] == [(topic.name, [0, 1])]
    assert committed(client, topic) == []
    answer = producer.end(True)
    assert (answer.error_code, answer.producer_epoch) == (0, 1)
    assert (producer.settled().transaction_state, producer.settled().topics) == ("CompleteCommit", ())
    assert committed(client, topic) == [b"a", b"c"]
    assert committed(client, topic, 1) == [b"b"]
    assert markers(client, topic) == [("commit", 1)]


def test_an_abort_of_version_2(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun()
    producer.produce(topic, b"a")
    producer.abort()
    producer.produce(topic, b"b")
    producer.commit()
    producer.settled()
    assert committed(client, topic) == [b"b"]
    assert markers(client, topic) == [("abort", 1), ("commit", 2)]


def test_an_end_that_is_sent_again(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun()
    producer.produce(topic, b"a")
    producer.commit()
    producer.settled()
    answer = producer.end(True, epoch=0)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer.producer_id, 1)
    answer = producer.end(False, epoch=0)
    assert (error(answer), answer.producer_id, answer.producer_epoch) == (ErrorCode.INVALID_TXN_STATE, -1, -1)


def test_ends_of_nothing(client: RawClient):
    producer = Producer(client).begun()
    assert error(producer.end(True)) is ErrorCode.INVALID_TXN_STATE
    assert error(producer.end(True, version=4)) is ErrorCode.INVALID_TXN_STATE
    assert error(producer.end(False, version=4)) is ErrorCode.INVALID_TXN_STATE
    answer = producer.end(False)
    assert (error(answer), answer.producer_epoch) == (NONE, 1)
    assert producer.settled().transaction_state == "CompleteAbort"
    assert error(producer.end(True)) is ErrorCode.INVALID_TXN_STATE


def test_sequences_begin_at_0_in_a_transaction_of_version_2(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun()
    answer = producer.produce(topic, b"a", base_sequence=3)
    assert error(answer) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_foreign_producer_cannot_write(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun().begun()
    assert producer.epoch == 1
    other = Producer(client).begun()
    assert error(producer.produce(topic, b"a", producer_epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    mixed = producer.produce(topic, b"a", producer_id=other.producer_id, producer_epoch=0)
    assert error(mixed) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    unknown = Producer(client)
    unknown.producer_id, unknown.epoch = 4_000_000, 0
    assert error(unknown.produce(topic, b"a")) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_two_producers_in_one_request(client: RawClient):
    topic = client.topic(2)
    producer, other = Producer(client).begun(), Producer(client).begun()
    records = {0: producer.batch(topic, b"a"), 1: other.batch(topic, b"b", partition=1)}
    codes = [error(one) for one in producer.send(topic, records)]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def test_plain_records_do_not_mix_with_an_open_transaction(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun()
    producer.produce(topic, b"a")
    assert error(producer.produce(topic, b"b", is_transactional=False)) is ErrorCode.INVALID_TXN_STATE


def test_a_repeated_batch_gets_its_old_offset(client: RawClient):
    topic = client.topic()
    producer = Producer(client).begun()
    assert producer.produce(topic, b"a").base_offset == 0
    assert producer.produce(topic, b"b").base_offset == 1
    assert producer.produce(topic, b"a", base_sequence=0).base_offset == 0


# --- transaction version 1 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_of_version_1(client: RawClient, version: int, is_commit: bool):
    topic = client.topic(2)
    producer = Producer.of_version_1(client, produce_version=9).begun(version=version)
    for _ in range(2):
        assert producer.add(topic.name, 0, 1, version=version) == [NONE, NONE]
        producer.produce(topic, b"a")
        answer = producer.end(is_commit, version=version)
        assert (error(answer), answer.producer_id, answer.producer_epoch) == (NONE, -1, -1)
        producer.settled()
    assert committed(client, topic) == ([b"a", b"a"] if is_commit else [])
    assert markers(client, topic, 1) == [("commit" if is_commit else "abort", 0)] * 2


def test_version_1_ends_sent_again(client: RawClient):
    topic = client.topic()
    producer = Producer.of_version_1(client).begun()
    producer.add(topic.name)
    producer.end(True)
    producer.settled()
    assert error(producer.end(True)) is NONE
    assert error(producer.end(False)) is ErrorCode.INVALID_TXN_STATE
    assert error(producer.end(True, epoch=5)) is ErrorCode.PRODUCER_FENCED
    assert error(producer.end(True, epoch=5, version=1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error(producer.end(True, producer_id=4_000_000)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(
    ("version", "code"), [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_a_partition_that_was_not_added(client: RawClient, version: int, code: ErrorCode):
    topic = client.topic(2)
    producer = Producer.of_version_1(client, produce_version=version).begun()
    producer.add(topic.name, 1)
    answer = producer.produce(topic, b"a")
    assert (error(answer), answer.base_offset) == (code, -1)
    assert error(producer.produce(topic, b"b", partition=1)) is NONE


@pytest.mark.parametrize("version", [10, 11])
def test_a_partition_of_the_transaction_before(client: RawClient, version: int):
    topic = client.topic()
    producer = Producer.of_version_1(client, produce_version=version).begun()
    producer.add(topic.name)
    producer.produce(topic, b"a")
    producer.commit()
    producer.settled()
    assert error(producer.produce(topic, b"late")) in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)
    assert committed(client, topic) == [b"a"]


def test_one_unknown_partition_and_none_is_added(client: RawClient):
    topic = client.topic()
    producer = Producer.of_version_1(client).begun()
    assert producer.add(topic.name, 0, 9) == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.add("no-such-topic") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.add("__consumer_offsets") == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.parametrize("version", range(4))
def test_adding_as_somebody_else(client: RawClient, version: int):
    topic = client.topic()
    producer = Producer.of_version_1(client).begun().begun()
    producer.epoch = 0
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add(topic.name, version=version) == [fenced]
    assert producer.add_offsets("g", version=version) is fenced
    producer.producer_id = 4_000_000
    assert producer.add(topic.name, version=version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert producer.add_offsets("g", version=version) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    unknown = Producer.of_version_1(client)
    assert unknown.add(topic.name, version=version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


def test_adding_the_offsets_of_a_group(client: RawClient):
    producer = Producer.of_version_1(client).begun()
    assert producer.add_offsets("g") is NONE
    (topic,) = producer.describe().topics
    assert (topic.topic, len(topic.partitions)) == ("__consumer_offsets", 1)
    producer.commit()
    assert producer.settled().transaction_state == "CompleteCommit"


# --- InitProducerId ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_init_producer_id(client: RawClient, version: int):
    producer = Producer(client)
    first, second = producer.init(version=version), producer.init(version=version)
    assert (first.producer_epoch, second.producer_epoch) == (0, 1)
    assert first.producer_id == second.producer_id >= 0


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_with_an_init_producer_id(client: RawClient, given: dict[str, Any], code: ErrorCode):
    request = InitProducerIdRequest(**{"transactional_id": "wrong", "transaction_timeout_ms": 1_000, **given})
    Producer(client, name="wrong")
    answer = client.ask(request, 5)
    assert (error(answer), answer.producer_id, answer.producer_epoch) == (code, -1, -1)


def test_a_producer_that_goes_on(client: RawClient):
    producer = Producer(client).begun()
    own = {"producer_id": producer.producer_id, "producer_epoch": 0}
    assert [producer.init(**own).producer_epoch for _ in range(2)] == [1, 1]
    stale = {"producer_id": producer.producer_id, "producer_epoch": 7}
    assert error(producer.init(**stale)) is ErrorCode.PRODUCER_FENCED
    assert error(producer.init(**stale, version=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    foreign = {"producer_id": producer.producer_id + 1_000_000, "producer_epoch": 1}
    assert error(producer.init(**foreign)) is ErrorCode.PRODUCER_FENCED


def test_a_newcomer_aborts_what_is_open(client: RawClient):
    topic = client.topic()
    old = Producer(client).begun().begun()
    old.produce(topic, b"a")
    assert old.epoch == 1
    request = InitProducerIdRequest(old.name, 60_000)
    assert error(client.ask(request, 5)) is ErrorCode.CONCURRENT_TRANSACTIONS
    new = Producer(client, name=old.name).begun()
    assert (new.producer_id, new.epoch) == (old.producer_id, 3)
    assert error(old.produce(topic, b"b")) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error(old.end(True)) is ErrorCode.PRODUCER_FENCED
    assert committed(client, topic) == []
    assert markers(client, topic) == [("abort", 2)]


# --- looking ----------------------------------------------------------------------------------------------------------


def test_describing_what_is_not_there(client: RawClient):
    Producer(client)
    unknown, empty = client.ask(DescribeTransactionsRequest(("no-such-id", "")), 0).transaction_states
    assert (error(unknown), unknown.transactional_id) == (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "no-such-id")
    assert error(empty) is ErrorCode.INVALID_REQUEST
    assert client.ask(DescribeTransactionsRequest(()), 0).transaction_states == ()


def listed(client: RawClient, *, version: int = 2, **filters: Any) -> dict[str, tuple[int, str]]:
    answer = client.ask(ListTransactionsRequest(**filters), version)
    assert error(answer) is NONE
    return {one.transactional_id: (one.producer_id, one.transaction_state) for one in answer.transaction_states}


def test_listing(client: RawClient):
    topic = client.topic()
    idle, busy = Producer(client).begun(), Producer(client).begun()
    busy.produce(topic, b"a")
    found = listed(client)
    assert found[idle.name] == (idle.producer_id, "Empty")
    assert found[busy.name] == (busy.producer_id, "Ongoing")
    for version in range(3):
        ongoing = listed(client, version=version, state_filters=("Ongoing",))
        assert busy.name in ongoing
        assert idle.name not in ongoing
    assert list(listed(client, producer_id_filters=(idle.producer_id,))) == [idle.name]
    assert busy.name not in listed(client, duration_filter=600_000)
    assert busy.name in listed(client, duration_filter=0)
    assert list(listed(client, transactional_id_pattern=idle.name[:-1] + ".")) in ([idle.name], [idle.name, busy.name])
    assert listed(client, transactional_id_pattern=idle.name[:-1]) == {}
    assert idle.name in listed(client, transactional_id_pattern="")
    busy.abort()


def test_listing_by_what_is_none(client: RawClient):
    Producer(client)
    answer = client.ask(ListTransactionsRequest(state_filters=("Ongoing", "ongoing", "Nonsense")), 2)
    assert sorted(answer.unknown_state_filters) == ["Nonsense", "ongoing"]
    answer = client.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert (error(answer), answer.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, ())


# --- between brokers --------------------------------------------------------------------------------------------------


def marker_request(
    producer: Producer, topic: str, *partitions: int, epoch: int, is_commit: bool = False, coordinator_epoch: int = 0
) -> WriteTxnMarkersRequest:
    kind = WriteTxnMarkersRequest
    named = kind.WritableTxnMarkerTopic(topic, partitions)
    marker = kind.WritableTxnMarker(producer.producer_id, epoch, is_commit, (named,), coordinator_epoch, 2)
    return kind((marker,))


def marker_codes(answer: Any) -> list[ErrorCode]:
    ((topic,),) = (marker.topics for marker in answer.markers)
    return [error(one) for one in sorted(topic.partitions, key=lambda one: one.partition_index)]


@pytest.mark.parametrize("version", [1, 2])
def test_markers_of_an_administrator(client: RawClient, version: int):
    topic = client.topic()
    producer = Producer(client).begun()
    producer.produce(topic, b"a")
    request = marker_request(producer, topic.name, 0, 9, epoch=1)
    assert marker_codes(client.ask(request, version)) == [NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert markers(client, topic) == [("abort", 1)]
    assert committed(client, topic) == []
    late = marker_request(producer, topic.name, 0, epoch=0)
    assert marker_codes(client.ask(late, version)) == [ErrorCode.INVALID_PRODUCER_EPOCH]


def test_markers_for_a_producer_that_nobody_knows(client: RawClient):
    topic = client.topic()
    producer = Producer(client)
    producer.producer_id = 5_000_000
    request = marker_request(producer, topic.name, 0, epoch=0, is_commit=True)
    assert marker_codes(client.ask(request, 2)) == [NONE]
    assert markers(client, topic) == [("commit", 0)]


def test_no_markers(client: RawClient):
    assert client.ask(WriteTxnMarkersRequest(()), 1).markers == ()


def test_markers_of_a_coordinator_that_was_replaced(client: RawClient):
    topic = client.topic()
    producer = Producer(client)
    producer.producer_id = 5_000_001
    newer = marker_request(producer, topic.name, 0, epoch=0, coordinator_epoch=9)
    assert marker_codes(client.ask(newer, 1)) == [NONE]
    older = marker_request(producer, topic.name, 0, epoch=0, coordinator_epoch=8)
    assert marker_codes(client.ask(older, 1)) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]


def verified(
    client: RawClient, producer: Producer, topic: str, *partitions: int, verify_only: bool = True
) -> list[ErrorCode]:
    kind = AddPartitionsToTxnRequest
    named = kind.AddPartitionsToTxnTopic(topic, partitions)
    one = kind.AddPartitionsToTxnTransaction(producer.name, producer.producer_id, producer.epoch, verify_only, (named,))
    answer = client.ask(kind((one,)), 5)
    assert answer.error_code == 0
    (result,) = answer.results_by_transaction
    assert result.transactional_id == producer.name
    found = sorted(result.topic_results[0].results_by_partition, key=lambda each: each.partition_index)
    return [ErrorCode(each.partition_error_code) for each in found]


def test_brokers_verify_and_add(client: RawClient):
    topic = client.topic(3)
    producer = Producer(client).begun()
    assert verified(client, producer, topic.name, 0) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert verified(client, producer, topic.name, 0, verify_only=False) == [NONE]
    assert verified(client, producer, topic.name, 0, 1) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]
    missing = verified(client, producer, topic.name, 1, 9)
    assert missing == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    producer.epoch = 7
    assert verified(client, producer, topic.name, 0) == [ErrorCode.PRODUCER_FENCED]
    assert verified(client, producer, topic.name, 0, verify_only=False) == [ErrorCode.PRODUCER_FENCED]


def test_brokers_ask_about_several_transactions(client: RawClient):
    topic = client.topic()
    kind = AddPartitionsToTxnRequest
    producers = [Producer(client).begun() for _ in range(3)]
    named = (kind.AddPartitionsToTxnTopic(topic.name, (0,)),)
    request = kind(
        tuple(
            kind.AddPartitionsToTxnTransaction(one.name, one.producer_id, one.epoch, False, named) for one in producers
        )
    )
    answer = client.ask(request, 4)
    assert {one.transactional_id for one in answer.results_by_transaction} == {one.name for one in producers}
    assert {one.describe().transaction_state for one in producers} == {"Ongoing"}


# --- the last stable offset -------------------------------------------------------------------------------------------


def stable(client: RawClient, topic: Topic) -> FetchResponse.PartitionData:
    return client.fetch(topic, isolation_level=READ_COMMITTED, max_wait_ms=0)


def test_the_oldest_open_transaction_holds_readers_back(client: RawClient):
    topic = client.topic()
    first, second = Producer(client).begun(), Producer(client).begun()
    first.produce(topic, b"a")
    second.produce(topic, b"b")
    first.produce(topic, b"c")
    second.commit()
    second.settled()
    assert (stable(client, topic).last_stable_offset, stable(client, topic).high_watermark) == (0, 4)
    first.abort()
    first.settled()
    assert (stable(client, topic).last_stable_offset, stable(client, topic).high_watermark) == (5, 5)
    (aborted,) = stable(client, topic).aborted_transactions or ()
    assert (aborted.producer_id, aborted.first_offset) == (first.producer_id, 0)
    assert committed(client, topic) == [b"b"]
