"""Share sessions: the table of requests and epochs, and how sessions end."""

from __future__ import annotations

from functools import partial

import pytest

from ottla.core.share.sessions import FINAL_EPOCH, ShareSessions, Turn
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

TOPIC_ID = bytes([1]) * 16
P0, P1, P2 = [(TOPIC_ID, partition) for partition in range(3)]
INVALID_EPOCH = ErrorCode.INVALID_SHARE_SESSION_EPOCH
NOT_FOUND = ErrorCode.SHARE_SESSION_NOT_FOUND


def refusal(sessions: ShareSessions, api: str, epoch: int, member_id: str = "a") -> ErrorCode:
    ask = partial(sessions.fetch, connection="c1") if api == "fetch" else sessions.acknowledge
    with pytest.raises(Reject) as refused:
        ask("g", member_id, epoch)
    return refused.value.code


def opened(*partitions: tuple[bytes, int], slots: int = 10) -> ShareSessions:
    sessions = ShareSessions(slots)
    sessions.fetch("g", "a", 0, "c1", added=partitions)
    return sessions


def at_epoch(sessions: ShareSessions, epoch: int) -> None:
    session = sessions.get("g", "a")
    assert session is not None
    session.next_epoch = epoch


@pytest.mark.parametrize(
    ("api", "epoch", "error"),
    [("fetch", 4, NOT_FOUND), ("fetch", -1, NOT_FOUND), ("acknowledge", 4, NOT_FOUND), ("acknowledge", -1, NOT_FOUND)],
)
def test_without_a_session(api: str, epoch: int, error: ErrorCode) -> None:
    assert refusal(ShareSessions(10), api, epoch) is error


@pytest.mark.parametrize("sessions", [ShareSessions(10), opened(P0)])
def test_acknowledgement_cannot_open_a_session(sessions: ShareSessions) -> None:
    assert refusal(sessions, "acknowledge", 0) is INVALID_EPOCH


@pytest.mark.parametrize("api", ["fetch", "acknowledge"])
@pytest.mark.parametrize("epoch", [2, 4])
def test_another_epoch_harms_nothing(api: str, epoch: int) -> None:
    sessions = opened(P0)
    at_epoch(sessions, 3)
    assert refusal(sessions, api, epoch) is INVALID_EPOCH
    assert sessions.acknowledge("g", "a", 3).epoch == 3


def test_fetches_and_acknowledgements_share_one_sequence() -> None:
    sessions = opened(P0)
    sessions.fetch("g", "a", 1, "c1")
    sessions.acknowledge("g", "a", 2)
    sessions.fetch("g", "a", 3, "c1")


def test_epoch_after_the_highest_is_one() -> None:
    sessions = opened(P0)
    at_epoch(sessions, 2147483647)
    turn = sessions.fetch("g", "a", 2147483647, "c1")
    assert sessions.is_current(turn)
    sessions.fetch("g", "a", 1, "c1")


def test_acknowledgements_in_the_first_request() -> None:
    sessions = opened(P0)
    with pytest.raises(Reject) as refused:
        sessions.fetch("g", "a", 0, "c2", has_acknowledgements=True)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    sessions.fetch("g", "a", 1, "c1")  # the old session is still there


def test_partitions_are_added_and_forgotten() -> None:
    sessions = opened(P0, P1)
    turn = sessions.fetch("g", "a", 1, "c1", added=[P2, P1], forgotten=[P0, P2])
    assert list(turn.session.partitions) == [P1]


def test_last_request_changes_no_partitions_and_serves_none() -> None:
    sessions = opened(P0)
    turn = sessions.fetch("g", "a", FINAL_EPOCH, "c1", added=[P1])
    assert (turn.is_final, turn.order()) == (True, [])
    ended = sessions.close(turn.session)
    assert ended == ("g", "a", [P0], True)
    assert sessions.close(turn.session) is None


def test_new_session_of_a_member_takes_the_place_of_the_old_one() -> None:
    sessions = opened(P0, slots=1)
    turn = sessions.fetch("g", "a", 0, "c1", added=[P1])
    assert (list(turn.session.partitions), len(sessions)) == ([P1], 1)


def test_old_connection_does_not_end_the_new_session() -> None:
    """KAFKA-19950."""
    sessions = opened(P0)
    sessions.fetch("g", "a", 0, "c2", added=[P0])
    assert sessions.disconnected("c1") == []
    sessions.fetch("g", "a", 1, "c2")


def test_disconnect_ends_what_the_connection_has_opened() -> None:
    sessions = opened(P0, P1)
    sessions.fetch("g", "b", 0, "c2", added=[P0])
    sessions.fetch("g", "a", 1, "c1", forgotten=[P1])
    assert sessions.disconnected("c1") == [("g", "a", [P0], False)]
    assert refusal(sessions, "fetch", 2) is NOT_FOUND
    assert sessions.disconnected("heartbeats") == []
    assert sessions.disconnected("c2") == [("g", "b", [P0], True)]


def test_there_is_room_for_so_many_and_no_more() -> None:
    sessions = ShareSessions(3)
    for member_id in "abc":
        sessions.fetch("g", member_id, 0, "c1")
    assert refusal(sessions, "fetch", 0, "d") is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    sessions.fetch("g", "a", 0, "c1")
    assert [each.member_id for each in sessions.close_all()] == ["b", "c", "a"]
    sessions.fetch("g", "d", 0, "c1")


def test_turn_is_over_when_the_session_was_used_since() -> None:
    sessions = opened(P0)
    turn = sessions.fetch("g", "a", 1, "c1")
    assert sessions.is_current(turn)
    sessions.fetch("g", "a", 2, "c2")
    assert not sessions.is_current(turn)


def test_turn_is_over_when_there_is_a_new_session() -> None:
    sessions = opened(P0)
    turn = sessions.fetch("g", "a", 1, "c1")
    sessions.fetch("g", "a", 0, "c1")
    sessions.fetch("g", "a", 1, "c1")
    assert not sessions.is_current(turn)


def test_each_partition_is_first_at_some_time() -> None:
    sessions = opened(P0, P1, P2)
    orders = [sessions.fetch("g", "a", epoch, "c1").order() for epoch in (1, 2, 3)]
    assert orders == [[P1, P2, P0], [P2, P0, P1], [P0, P1, P2]]


def test_who_had_something_is_served_last() -> None:
    sessions = ShareSessions(1)
    turn, firsts = sessions.fetch("g", "a", 0, "c1", added=[P0, P1, P2]), []
    for epoch in range(1, 7):
        firsts.append(turn.order()[0])
        turn.served(firsts[-1:])
        turn = sessions.fetch("g", "a", epoch, "c1")
    assert firsts == [P0, P1, P2] * 2
    turn.served([P2, P0, (b"gone", 0)])
    assert sessions.fetch("g", "a", 7, "c1").order() == [P1, P2, P0]


def news(turn: Turn, partition: tuple[bytes, int], *, has_records: bool = False, has_error: bool = False) -> bool:
    return turn.is_news(partition, has_records=has_records, has_error=has_error)


def test_which_partitions_an_answer_has() -> None:
    sessions = ShareSessions(1)
    turn = sessions.fetch("g", "a", 0, "c1", added=[P0, P1])
    assert news(turn, P0)
    assert news(turn, P1, has_error=True)
    turn = sessions.fetch("g", "a", 1, "c1", added=[P2])
    assert not news(turn, P0)
    assert news(turn, P1)  # after an error
    assert news(turn, P2)  # just added
    turn = sessions.fetch("g", "a", 2, "c1")
    assert not news(turn, P1)
    assert news(turn, P0, has_records=True)
    assert news(turn, P2, has_error=True)
    turn = sessions.fetch("g", "a", 3, "c1", forgotten=[P2])
    assert not news(turn, P2)
