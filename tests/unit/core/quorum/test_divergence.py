"""A follower whose log has gone apart from its leader's: both are real, and talk until the logs agree."""

from __future__ import annotations

import pytest
from hypothesis import given

from ottla.core.quorum.events import TruncateLog
from ottla.core.quorum.stored import StoredState
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.vote import VoteRequest
from simulation.quorum.virtual_log import Batch, VirtualLog
from tests.unit.core.diverged_logs import DivergedLogs, diverged_logs
from tests.unit.core.quorum.replica import Replica, directory, partition_of, records_of, vote_response, voter

EPOCH = 100


def replica(stored: StoredState, epochs: list[int], number: int) -> Replica:
    """A replica whose log has a record in each of these epochs."""
    log = VirtualLog()
    log.append([Batch(at, at + 1, epoch, records_of(at, at + 1, epoch)) for at, epoch in enumerate(epochs)])
    return Replica(stored, node=voter(number), log=log).start()


def cuts_until_equal(logs: DivergedLogs) -> list[int]:
    """Where the follower cuts its log, answer by answer, before it gets records of the leader."""
    leader = replica(StoredState(EPOCH, -1, 2, directory(2)), logs.leader, 2)
    (vote, *_) = leader.take_sent(VoteRequest)
    leader.answer(vote, vote_response(granted=True, epoch=EPOCH))
    assert leader.quorum.is_leader
    follower = replica(StoredState(EPOCH, 2), logs.follower, 1)
    while True:
        (sent,) = follower.take_sent(FetchRequest)
        response = leader.ask(sent.request)
        follower.answer(sent, response)
        if partition_of(response).diverging_epoch.epoch < 0:
            break
    assert follower.log.batches == leader.log.batches, "the rest came in one answer"
    return [each.end_offset for each in follower.writes if isinstance(each, TruncateLog)]


@pytest.mark.parametrize(
    ("follower", "leader", "cuts"),
    [
        ([1, 1, 3, 3, 5], [1, 1], [2]),
        ([1, 1, 3, 3, 5], [1, 1, 6], [2]),
        ([1, 1, 3, 3, 5], [1, 1, 4], [4, 2]),
        ([1, 1, 3, 3, 5], [1, 1, 2, 2, 2, 4], [4, 2]),
        ([1, 1, 3, 3, 5], [1, 1, 3, 4], [4, 3]),
        ([3, 3, 5], [4], [2, 0]),
        ([3, 3, 5], [], [0]),
    ],
    ids=[
        "the leader has written nothing since",
        "it has written later",
        "it has written in between",
        "it has written before and in between",
        "it has a record of the first epoch",
        "nothing is common",
        "its log is empty",
    ],
)
def test_two_epochs_that_the_leader_does_not_know(follower: list[int], leader: list[int], cuts: list[int]) -> None:
    assert cuts_until_equal(DivergedLogs(follower, leader)) == cuts


@given(diverged_logs())
def test_a_log_is_cut_to_the_common_point_with_one_answer_for_each_epoch(logs: DivergedLogs) -> None:
    cuts = cuts_until_equal(logs)
    assert len(cuts) <= logs.rounds_max
    assert min(cuts, default=len(logs.follower)) == len(logs.common)
