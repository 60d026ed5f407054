"""Groups, topics, errors and records at a glance, and filters by them."""

import pytest

from ottla import wire
from ottla.explain.exchanges import Connection, Exchange, Side
from ottla.explain.facts import Facts, TopicNames, exchange_facts
from ottla.explain.filters import Filters, UnknownApi, api_named, make_filters
from ottla.wire import frames, types
from ottla.wire.batch import Record, build_batch
from tests.unit.explain import packets as made


def exchange(request: object, response: object | None, version: int, client_id: str = "me") -> Exchange:
    connection = Connection()
    asked = frames.write_request(request, version, correlation_id=1, client_id=client_id)
    events = connection.receive(Side.CLIENT, asked, 0)
    if response is not None:
        events = connection.receive(Side.BROKER, frames.write_response(response, version, correlation_id=1), 1)
    else:
        events += connection.close(1)
    [found] = events
    assert isinstance(found, Exchange)
    return found


def facts_of(found: Exchange, names: TopicNames | None = None) -> Facts:
    return exchange_facts(found, names or TopicNames())


def commit(error_code: int = 0) -> Exchange:
    asked, answered = types.OffsetCommitRequest, types.OffsetCommitResponse
    partitions = tuple(asked.OffsetCommitRequestPartition(partition_index=index) for index in range(3))
    request = asked(
        group_id="orders-app", topics=(asked.OffsetCommitRequestTopic(name="orders", partitions=partitions),)
    )
    results = tuple(answered.OffsetCommitResponsePartition(index, error_code) for index in range(3))
    response = answered(topics=(answered.OffsetCommitResponseTopic(name="orders", partitions=results),))
    return exchange(request, response, 9)


def test_groups_topics_and_errors_of_both_sides():
    facts = facts_of(commit(error_code=25))
    assert list(facts.groups) == ["orders-app"]
    assert list(facts.topics) == ["orders"]
    assert facts.errors == {"UNKNOWN_MEMBER_ID": 3}


def test_an_error_that_kafka_does_not_have_is_said_to_be_unknown():
    assert facts_of(commit(error_code=999)).errors == {"unknown error": 3}


def test_no_error_is_no_fact():
    assert not facts_of(commit()).errors


def test_ids_get_their_names_from_earlier_messages():
    names = TopicNames()
    metadata = types.MetadataResponse(
        topics=(types.MetadataResponse.MetadataResponseTopic(name="orders", topic_id=made.topic_id("orders")),)
    )
    exchange_facts(exchange(types.MetadataRequest(), metadata, 12), names)
    fetch = types.FetchRequest(topics=(types.FetchRequest.FetchTopic(topic_id=made.topic_id("orders")),))
    assert list(facts_of(exchange(fetch, None, 13), names).topics) == ["orders"]
    assert list(facts_of(exchange(fetch, None, 13)).topics) == [wire.uuid_text(made.topic_id("orders"))]


def test_the_quorums_topic_is_known_from_the_start():
    fetch = types.FetchRequest(topics=(types.FetchRequest.FetchTopic(topic_id=bytes(15) + b"\x01"),))
    assert list(facts_of(exchange(fetch, None, 17)).topics) == ["__cluster_metadata"]


def test_records_are_counted_by_their_headers():
    batch = build_batch([Record(number, 0, b"k", b"v") for number in range(5)])
    partition = types.ProduceRequest.PartitionProduceData(records=batch * 2 + batch[:20])
    topic = types.ProduceRequest.TopicProduceData(name="orders", partition_data=(partition,))
    facts = facts_of(exchange(types.ProduceRequest(acks=0, topic_data=(topic,)), None, 9))
    assert (facts.record_count, facts.batch_count) == (10, 2)


@pytest.mark.parametrize(
    ("key_type", "groups"), [(0, ["orders-app", "other"]), (1, [])], ids=["groups", "transactional ids"]
)
def test_find_coordinator_names_groups_in_a_field_of_many_meanings(key_type: int, groups: list[str]):
    request = types.FindCoordinatorRequest(key_type=key_type, coordinator_keys=("orders-app", "other"))
    assert list(facts_of(exchange(request, None, 4)).groups) == groups


def test_what_cannot_be_read_has_no_facts():
    connection = Connection()
    connection.receive(Side.CLIENT, made.metadata_request(1, "orders")[:30], 0)
    [cut] = connection.close(0)
    assert isinstance(cut, Exchange)
    assert facts_of(cut) == Facts()


# --- filters ----------------------------------------------------------------------------------------------------------


def admits(found: Exchange, **wanted: list[str]) -> bool:
    return make_filters(**wanted).admits(found, facts_of(found))


def test_nothing_wanted_lets_everything_pass():
    assert Filters().is_empty
    assert admits(commit())


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({"apis": ["OffsetCommit"]}, True),
        ({"apis": ["offsetcommitrequest"]}, True),
        ({"apis": ["offset-commit"]}, True),
        ({"apis": ["8"]}, True),
        ({"apis": ["Fetch"]}, False),
        ({"apis": ["Fetch", "OffsetCommit"]}, True),
        ({"client_ids": ["me"]}, True),
        ({"client_ids": ["m?"]}, True),
        ({"client_ids": ["you"]}, False),
        ({"groups": ["orders-*"]}, True),
        ({"groups": ["orders"]}, False),
        ({"topics": ["orders"]}, True),
        ({"topics": ["ORDERS"]}, False),
        ({"groups": ["orders-app"], "topics": ["payments"]}, False),
        ({"groups": ["orders-app"], "apis": ["OffsetCommit"], "client_ids": ["*"]}, True),
    ],
)
def test_options_are_combined_and_values_are_alternatives(wanted: dict[str, list[str]], passes: bool):
    assert admits(commit(), **wanted) is passes


def test_a_misspelt_api_is_refused_with_the_nearest():
    with pytest.raises(UnknownApi) as refused:
        api_named("ShareFech")
    assert refused.value.nearest == "ShareFetch"
    with pytest.raises(UnknownApi):
        api_named("4711")
    with pytest.raises(UnknownApi):
        api_named("1" * 5_000)
