"""Fetch sessions, row by row of the table in the module, and then over the wire."""

from __future__ import annotations

from ottla.wire.types import FetchRequest
from tests.component.broker.raw_client import RawClient, batch, fetch_partition, fetch_request


def partitions_of(answer: object) -> list[int]:
    return [one.partition_index for topic in answer.responses for one in topic.partitions]  # type: ignore[attr-defined]


def test_a_full_fetch_opens_a_session_and_lists_every_partition(client: RawClient):
    topic = client.topic(2)
    client.produce(topic, batch(b"a"), partition=1)
    answer = client.ask(fetch_request(topic, fetch_partition(0, 0), fetch_partition(1, 0)), 17)
    assert answer.session_id > 0
    assert (answer.error_code, partitions_of(answer)) == (0, [0, 1])


def test_an_incremental_fetch_lists_only_what_has_changed(client: RawClient):
    topic = client.topic(2)
    session_id = client.ask(fetch_request(topic, fetch_partition(0, 0), fetch_partition(1, 0)), 17).session_id
    nothing = client.ask(fetch_request(topic, session_id=session_id, session_epoch=1), 17)
    assert (nothing.session_id, nothing.responses) == (session_id, ())
    client.produce(topic, batch(b"a"), partition=1)
    something = client.ask(fetch_request(topic, session_id=session_id, session_epoch=2), 17)
    assert partitions_of(something) == [1]


def test_records_are_sent_again_until_the_position_moves(client: RawClient):
    topic = client.topic()
    client.produce(topic, batch(b"a"))
    session_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    assert partitions_of(client.ask(fetch_request(topic, session_id=session_id, session_epoch=1), 17)) == [0]
    moved = fetch_request(topic, fetch_partition(0, 1), session_id=session_id, session_epoch=2)
    assert partitions_of(client.ask(moved, 17)) == []


def test_an_epoch_used_twice_is_refused_and_the_next_one_works(client: RawClient):
    topic = client.topic()
    session_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    client.ask(fetch_request(topic, session_id=session_id, session_epoch=1), 17)
    refused = client.ask(fetch_request(topic, session_id=session_id, session_epoch=1), 17)
    assert (refused.error_code, refused.session_id, refused.responses) == (71, 0, ())
    assert client.ask(fetch_request(topic, session_id=session_id, session_epoch=2), 17).error_code == 0


def test_a_session_goes_on_from_another_connection(client: RawClient):
    topic = client.topic()
    session_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    other = client.connect()
    assert other.ask(fetch_request(topic, session_id=session_id, session_epoch=1), 17).session_id == session_id
    other.close()


def test_forgetting_the_last_partition_ends_the_session(client: RawClient):
    topic = client.topic()
    session_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    forget = (FetchRequest.ForgottenTopic(topic.name, topic.topic_id, (0,)),)
    last = client.ask(fetch_request(topic, session_id=session_id, session_epoch=1, forgotten_topics_data=forget), 17)
    assert (last.error_code, last.session_id, last.responses) == (0, 0, ())
    assert client.ask(fetch_request(topic, session_id=session_id, session_epoch=2), 17).error_code == 70


def test_the_final_epoch_closes_the_session_and_opens_none(client: RawClient):
    topic = client.topic()
    session_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    final = client.ask(fetch_request(topic, session_id=session_id, session_epoch=-1), 17)
    assert (final.error_code, final.session_id, final.responses) == (0, 0, ())
    assert client.ask(fetch_request(topic, session_id=session_id, session_epoch=1), 17).error_code == 70


def test_a_full_fetch_closes_the_session_it_names(client: RawClient):
    topic = client.topic()
    first = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    second = client.ask(fetch_request(topic, fetch_partition(0, 0), session_id=first), 17).session_id
    assert second not in (0, first)
    assert client.ask(fetch_request(topic, session_id=first, session_epoch=1), 17).error_code == 70


def test_names_and_ids_do_not_mix_in_a_session(client: RawClient):
    topic = client.topic()
    by_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    assert client.ask(fetch_request(topic, session_id=by_id, session_epoch=1), 12).error_code == 106
    by_name = client.ask(fetch_request(topic, fetch_partition(0, 0)), 12).session_id
    assert client.ask(fetch_request(topic, session_id=by_name, session_epoch=1), 13).error_code == 106


def test_a_wrong_epoch_with_a_wrong_kind_of_topic(client: RawClient):
    topic = client.topic()
    by_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    assert client.ask(fetch_request(topic, session_id=by_id, session_epoch=9), 12).error_code == 71


def test_what_is_named_and_forgotten_in_one_fetch_is_forgotten(client: RawClient):
    topic = client.topic(2)
    client.produce(topic, batch(b"a"), partition=1)
    wanted_partitions = fetch_partition(0, 0), fetch_partition(1, 1)
    session_id = client.ask(fetch_request(topic, *wanted_partitions), 17).session_id
    forget = (FetchRequest.ForgottenTopic(topic.name, topic.topic_id, (1,)),)
    both = fetch_request(
        topic, fetch_partition(1, 0), session_id=session_id, session_epoch=1, forgotten_topics_data=forget
    )
    assert partitions_of(client.ask(both, 17)) == []


def test_an_unknown_topic_in_a_session_is_told_each_time_and_its_recovery_once(client: RawClient):
    topic = client.topic()
    unknown = FetchRequest.FetchTopic("", b"\x09" * 16, (fetch_partition(0, 0),))
    known = fetch_request(topic, fetch_partition(0, 0))
    full = FetchRequest(topics=(*known.topics, unknown), max_bytes=1 << 20, session_epoch=0)
    answer = client.ask(full, 17)
    assert [one.partitions[0].error_code for one in answer.responses] == [0, 100]
    again = client.ask(fetch_request(topic, session_id=answer.session_id, session_epoch=1), 17)
    assert [one.partitions[0].error_code for one in again.responses] == [100]


def test_forgetting_a_zero_id_does_no_harm(client: RawClient):
    topic = client.topic()
    session_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 17).session_id
    forget = (FetchRequest.ForgottenTopic("", bytes(16), (0,)),)
    answer = client.ask(fetch_request(topic, session_id=session_id, session_epoch=1, forgotten_topics_data=forget), 17)
    assert (answer.error_code, answer.session_id) == (0, session_id)
