"""Fetch sessions, row by row of the table in the module, and then over the wire."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.broker.replicas import fetch_sessions
from ottla.broker.replicas.fetch_sessions import FetchSession, FetchSessions, WantedPartition
from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode

EPOCH_MAX = (1 << 31) - 1
TOPIC_ID = bytes(15) + b"\x01"


def wanted(partition: int = 0, offset: int = 0, topic: str = "t", topic_id: bytes = TOPIC_ID) -> WantedPartition:
    return WantedPartition(topic, topic_id, partition, fetch_offset=offset, max_bytes=100)


def sessions(slots: int = 3) -> FetchSessions:
    ids = count(1)
    return FetchSessions(slots, 1_000, lambda: next(ids))


def opened(cache: FetchSessions, size: int = 1, *, now_ms: int = 0, is_follower: bool = False) -> FetchSession | None:
    follower = (1, 7) if is_follower else None
    return cache.open(map(wanted, range(size)), uses_ids=True, follower=follower, now_ms=now_ms)


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


def test_sessions_unused_for_long_give_their_partitions_away(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetch_sessions, "SESSION_PARTITIONS_MAX", 5)
    cache = sessions()
    stale, used = opened(cache, 3), opened(cache, 2)
    assert stale is not None
    assert used is not None
    go_on(cache, used.session_id, 1, now_ms=900)
    assert opened(cache, 2, now_ms=1_000) is None
    assert opened(cache, 4, now_ms=1_001) is None, "that is too much in any case"
    assert opened(cache, 3, now_ms=1_001) is not None
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


def renamed(again: WantedPartition) -> bool:
    """Whether a partition that was told of is news for a client who names it again."""
    cache = sessions()
    session = cache.open([wanted(offset=3)], uses_ids=True, follower=(1, 7), now_ms=0)
    assert session is not None
    told(session.partitions[TOPIC_ID, 0])
    go_on(cache, session.session_id, 1, (again,))
    return told(session.partitions[TOPIC_ID, 0])


def test_who_names_a_partition_at_the_same_offset_may_have_dropped_what_was_told():
    assert renamed(wanted(offset=3))


def test_who_names_a_partition_in_another_leader_epoch_has_dropped_what_was_told():
    again = wanted(offset=4)
    again.current_leader_epoch = 7
    assert renamed(again)


def test_a_follower_whose_log_diverges_is_told_again():
    """It cuts its log, and takes nothing else of the response."""
    one = wanted()
    one.is_news(0, False, 5, 0, is_special=True)
    assert told(one)


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


# --- what followers need not look at ----------------------------------------------------------------------------------


def unsettled(session: FetchSession) -> list[int]:
    return [partition for _, partition in session.unsettled]


def followed(cache: FetchSessions, size: int = 3) -> FetchSession:
    session = opened(cache, size, is_follower=True)
    assert session is not None
    for each in session.partitions.values():
        session.settle(each)
    return session


def test_a_settled_partition_is_looked_at_again_when_something_happens_to_it():
    session = followed(sessions())
    assert unsettled(session) == []
    assert session.look_again((TOPIC_ID, 1))
    assert not session.look_again((TOPIC_ID, 1)), "it was not settled any more"
    assert unsettled(session) == [1]


def test_what_a_follower_names_is_looked_at_and_what_it_forgets_is_not():
    cache = sessions()
    session = followed(cache)
    go_on(cache, session.session_id, 1, (wanted(2, offset=9),))
    assert unsettled(session) == [2]
    assert session.unsettled[TOPIC_ID, 2].fetch_offset == 9
    session.forget((TOPIC_ID, 2))
    assert unsettled(session) == []
    assert (TOPIC_ID, 2) not in session.partitions


def test_a_follower_that_registers_anew_is_looked_at_anew():
    session = followed(sessions())
    session.take_epoch(7)
    assert unsettled(session) == []
    session.take_epoch(8)
    assert unsettled(session) == [0, 1, 2]


def test_only_open_sessions_of_followers_are_told():
    cache = sessions()
    opened(cache, 3)
    session = followed(cache)

    def told_of(partition: int) -> list[int]:
        return [each.session_id for each, _ in cache.of_followers_with("t", TOPIC_ID, partition)]

    assert told_of(2) == [session.session_id]
    assert told_of(3) == []
    cache.close(session.session_id)
    assert told_of(2) == []
