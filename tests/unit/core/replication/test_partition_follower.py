"""A follower of a partition: what it does with the leader's answers."""

from __future__ import annotations

import pytest
from hypothesis import given

from ottla.core.replication.partition_follower import (
    Action,
    Append,
    AskOffsets,
    Delay,
    EpochEnd,
    StartAt,
    Stop,
    Truncate,
    after_fetch,
    after_offsets,
    truncation_offset,
)
from ottla.wire.errors import ErrorCode
from tests.unit.core.diverged_logs import DivergedLogs, diverged_logs


class Log:
    """A log by its epochs: where each begins."""

    def __init__(self, *starts: tuple[int, int], end: int) -> None:
        self.starts = starts
        self.log_end_offset = end

    def epoch_end(self, epoch: int) -> EpochEnd | None:
        """As a log tells it: of the largest epoch not above this one."""
        below = [each for each in self.starts if each[0] <= epoch]
        above = [each for each in self.starts if each[0] > epoch]
        return EpochEnd(below[-1][0], above[0][1] if above else self.log_end_offset) if below else None


@pytest.mark.parametrize(
    ("code", "action"),
    [
        (ErrorCode.NONE, Append(80, 5)),
        (ErrorCode.OFFSET_OUT_OF_RANGE, AskOffsets()),
        (ErrorCode.FENCED_LEADER_EPOCH, Stop()),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Delay(76)),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Delay(6)),
        (ErrorCode.KAFKA_STORAGE_ERROR, Delay(56)),
    ],
)
def test_answers_to_a_fetch(code: ErrorCode, action: Action):
    expected = Delay(code) if isinstance(action, Delay) else action
    assert after_fetch(Log((1, 0), end=100), code, None, 80, 5) == expected


@pytest.mark.parametrize(
    ("log", "diverging", "offset"),
    [
        (Log((1, 0), (3, 60), end=100), EpochEnd(3, 80), 80),
        (Log((1, 0), (3, 60), end=70), EpochEnd(3, 80), 70),
        (Log((1, 0), (3, 60), end=100), EpochEnd(2, 90), 60),
        (Log((1, 0), (3, 60), end=100), EpochEnd(1, 40), 40),
        (Log((3, 60), end=100), EpochEnd(2, 30), 30),
        (Log((3, 60), end=100), EpochEnd(3, 30), 30),
        (Log((3, 60), end=100), EpochEnd(2, 90), 90),
        (Log((1, 0), (3, 60), (4, 100), end=100), EpochEnd(3, 100), 100),
    ],
    ids=[
        "it has written more in the epoch",
        "the leader has written more",
        "it lacks the leader's epoch",
        "the epoch ended earlier at the leader",
        "the leader's epoch is before its start",
        "the epoch ended before its start at the leader",
        "it has no epoch so old",
        "an epoch without records",
    ],
)
def test_where_logs_part(log: Log, diverging: EpochEnd, offset: int):
    assert truncation_offset(log, diverging) == offset
    assert after_fetch(log, 0, diverging, 0, 0) == Truncate(offset)


@pytest.mark.parametrize(
    ("start", "end", "action"),
    [(0, 90, Truncate(90)), (120, 200, StartAt(120)), (20, 200, Truncate(100)), (100, 100, Truncate(100))],
    ids=["it is longer than the leader's", "the leader begins behind its end", "they overlap again", "they meet"],
)
def test_a_log_that_is_out_of_the_leaders_range(start: int, end: int, action: Action):
    assert after_offsets(Log((1, 0), end=100), start, end) == action


def test_a_log_that_begins_behind_the_end_of_the_leaders():
    """Nothing of it is left; else the leader could not be fetched from before it has written as much."""
    assert after_offsets(Log((1, 60), end=100), 0, 50) == Truncate(50)


def as_log(records: list[int]) -> Log:
    starts = tuple((epoch, records.index(epoch)) for epoch in sorted(set(records)))
    return Log(*starts, end=len(records))


def cuts_until_common(logs: DivergedLogs) -> list[int]:
    """Where the follower cuts its log, answer by answer, until the leader's goes on where it ends."""
    follower, cuts = logs.follower, []
    while follower:
        epoch = follower[-1]
        known = as_log(logs.leader).epoch_end(epoch)
        if known is not None and known.epoch == epoch and known.end_offset >= len(follower):
            break
        diverging = known or EpochEnd(epoch, 0)
        cuts.append(truncation_offset(as_log(follower), diverging))
        assert cuts[-1] < len(follower), "or they would never agree"
        follower = follower[: cuts[-1]]
    assert follower == logs.leader[: len(follower)]
    return cuts


@pytest.mark.parametrize(
    ("leader", "cuts"),
    [([1, 1], [2]), ([1, 1, 6], [2]), ([1, 1, 4], [4, 2]), ([1, 1, 2, 2, 2, 4], [4, 2]), ([1, 1, 3, 4], [4, 3])],
    ids=[
        "the leader has written nothing since",
        "it has written later",
        "it has written in between",
        "it has written before and in between",
        "it has a record of the first epoch",
    ],
)
def test_two_epochs_that_the_leader_does_not_know(leader: list[int], cuts: list[int]):
    assert cuts_until_common(DivergedLogs([1, 1, 3, 3, 5], leader)) == cuts


@given(diverged_logs())
def test_a_log_is_cut_to_the_common_point_with_one_answer_for_each_epoch(logs: DivergedLogs):
    cuts = cuts_until_common(logs)
    assert len(cuts) <= logs.rounds_max
    assert min(cuts, default=len(logs.follower)) == len(logs.common)
