"""Fetch sessions, row by row of the table in the module, and then over the wire."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.broker.replicas.fetch_sessions import FetchSession, FetchSessions, WantedPartition
from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode
from ottla.wire.types import FetchRequest
from tests.unit.broker.raw_client import RawClient, batch, fetch_partition, fetch_request

EPOCH_MAX = (1 << 31) - 1
TOPIC_ID = bytes(15) + b"\x01"


def wanted(partition: int = 0, offset: int = 0, topic: str = "t", topic_id: bytes = TOPIC_ID) -> WantedPartition:
    return WantedPartition(topic, topic_id, partition, fetch_offset=offset, max_bytes=100)


def sessions(slots: int = 3) -> FetchSessions:
    ids = count(1)
    return FetchSessions(slots, 1_000, lambda: next(ids))


def opened(cache: FetchSessions, size: int = 1, *, now_ms: int = 0, is_follower: bool = False) -> FetchSession | None:
    return cache.open(map(wanted, range(size)), uses_ids=True, is_follower=is_follower, now_ms=now_ms)


def go_on(
    cache: FetchSessions,
    session_id: int,
    epoch: int,
    added: tuple[WantedPartition, ...] = (),
    forgotten: tuple[tuple[str, bytes, int], ...] = (),
    *,
    uses_ids: bool = True,
    now_ms: int = 0,
) -> FetchSession:
    return cache.go_on(session_id, epoch, added, forgotten, uses_ids=uses_ids, now_ms=now_ms)


# --- the cache --------------------------------------------------------------------------------------------------------


def test_a_session_expects_the_epochs_from_one_on():
    cache = sessions()
    session = opened(cache)
    assert session is not None
    assert [go_on(cache, session.session_id, epoch).epoch for epoch in (1, 2, 3)] == [2, 3, 4]


def test_the_epoch_after_the_largest_is_one():
    cache = sessions()
    session = opened(cache)
    assert session is not None
    session.epoch = EPOCH_MAX
    assert go_on(cache, session.session_id, EPOCH_MAX).epoch == 1


def test_another_epoch_is_refused_and_the_session_stays_as_it_is():
    cache = sessions()
    session = opened(cache)
    assert session is not None
    for epoch in (2, 5, -2):
        with pytest.raises(Reject) as refused:
            go_on(cache, session.session_id, epoch, (wanted(7),))
        assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert go_on(cache, session.session_id, 1).partitions.keys() == {(TOPIC_ID, 0)}


def test_an_unknown_id_is_refused():
    with pytest.raises(Reject) as refused:
        go_on(sessions(), 5, 1)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_in_a_session_of_ids_are_refused():
    cache = sessions()
    session = opened(cache)
    assert session is not None
    with pytest.raises(Reject) as refused:
        go_on(cache, session.session_id, 1, uses_ids=False)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_partitions_are_added_changed_and_forgotten():
    cache = sessions()
    session = opened(cache, 2)
    assert session is not None
    go_on(cache, session.session_id, 1, (wanted(0, 9), wanted(2)), (("", TOPIC_ID, 1),))
    assert [(key[1], one.fetch_offset) for key, one in session.partitions.items()] == [(0, 9), (2, 0)]


def test_what_is_named_and_forgotten_in_one_request_is_forgotten():
    cache = sessions()
    session = opened(cache, 2)
    assert session is not None
    go_on(cache, session.session_id, 1, (wanted(1, 9),), (("", TOPIC_ID, 1),))
    assert [key[1] for key in session.partitions] == [0]


def test_forgetting_what_was_never_there_does_no_harm():
    cache = sessions()
    session = opened(cache)
    assert session is not None
    assert len(go_on(cache, session.session_id, 1, (), (("", bytes(16), 4),)).partitions) == 1


def test_a_session_whose_last_partition_is_forgotten_is_gone():
    cache = sessions()
    session = opened(cache)
    assert session is not None
    assert not go_on(cache, session.session_id, 1, (), (("", TOPIC_ID, 0),)).partitions
    assert len(cache) == 0


def test_nothing_to_fetch_opens_no_session():
    assert opened(sessions(), 0) is None


def test_ids_are_positive_and_differ():
    ids = iter([7, 0, 7, 8])
    cache = FetchSessions(3, 1_000, lambda: next(ids))
    first, second = opened(cache), opened(cache)
    assert first is not None
    assert second is not None
    assert (first.session_id, second.session_id) == (7, 8)


def test_a_full_cache_opens_no_session():
    cache = sessions(slots=2)
    assert opened(cache) is not None
    assert opened(cache) is not None
    assert opened(cache) is None
    assert len(cache) == 2


def test_without_slots_there_are_no_sessions():
    assert opened(sessions(slots=0)) is None


def test_a_session_unused_for_long_gives_its_place_away():
    cache = sessions(slots=2)
    stale, used = opened(cache), opened(cache)
    assert stale is not None
    assert used is not None
    go_on(cache, used.session_id, 1, now_ms=900)
    assert opened(cache, now_ms=1_000) is None
    assert opened(cache, now_ms=1_001) is not None
    with pytest.raises(Reject):
        go_on(cache, stale.session_id, 1)
    go_on(cache, used.session_id, 2)


def test_a_larger_session_takes_the_place_of_the_smallest():
    cache = sessions(slots=2)
    small, large = opened(cache, 1), opened(cache, 5)
    assert small is not None
    assert large is not None
    assert opened(cache, 3) is not None
    with pytest.raises(Reject):
        go_on(cache, small.session_id, 1)
    go_on(cache, large.session_id, 1)


def test_a_follower_takes_the_place_of_a_consumer_and_never_the_reverse():
    cache = sessions(slots=1)
    assert opened(cache, 5) is not None
    follower = opened(cache, 1, is_follower=True)
    assert follower is not None
    assert opened(cache, 9) is None
    go_on(cache, follower.session_id, 1)


def test_partitions_with_records_go_to_the_end():
    session = opened(sessions(), 3)
    assert session is not None
    session.to_the_end(session.partitions[TOPIC_ID, 0])
    assert [key[1] for key in session.partitions] == [1, 2, 0]


# --- what is news -----------------------------------------------------------------------------------------------------


def told(one: WantedPartition, error_code: int = 0, has_records: bool = False, high: int = 5, start: int = 0) -> bool:
    return one.is_news(error_code, has_records, high, start, is_special=False)


def test_what_was_told_is_not_told_again():
    one = wanted()
    assert told(one)
    assert not told(one)


@pytest.mark.parametrize("news", [{"high": 6}, {"start": 1}, {"has_records": True}, {"error_code": 3}])
def test_what_has_changed_is_told(news: dict[str, int]):
    one = wanted()
    told(one)
    assert told(one, **news)  # type: ignore[arg-type]


def test_divergence_is_told():
    one = wanted()
    told(one)
    assert one.is_news(0, False, 5, 0, is_special=True)


def test_after_an_error_the_recovery_is_told():
    one = wanted()
    told(one)
    assert told(one, error_code=6, high=5)
    assert told(one)
    assert not told(one)


def test_a_moved_position_does_not_make_old_news_new():
    session = opened(sessions())
    assert session is not None
    told(session.partitions[TOPIC_ID, 0])
    session.add(wanted(0, 3))
    assert not told(session.partitions[TOPIC_ID, 0])


# --- over the wire ----------------------------------------------------------------------------------------------------


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
