"""A follower of a partition: what it does with the leader's answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


class Log:
    """A log by its epochs: where each begins."""

    def __init__(self, *starts: tuple[int, int], end: int, start: int = 0) -> None:
        self.starts = starts
        self.log_start_offset, self.log_end_offset = start, end

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
        (Log((3, 60), end=100, start=60), EpochEnd(2, 30), 60),
        (Log((3, 60), end=100, start=60), EpochEnd(2, 90), 90),
        (Log((1, 0), (3, 60), (4, 100), end=100), EpochEnd(3, 100), 100),
    ],
    ids=[
        "it has written more in the epoch",
        "the leader has written more",
        "it lacks the leader's epoch",
        "the epoch ended earlier at the leader",
        "the leader's epoch is before its start",
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


Histories = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=8)


def written(history: list[tuple[int, int]]) -> list[int]:
    """The epoch of each record, in a log that has grown so: a number of records in each epoch."""
    return [epoch for epoch, count in sorted(history) for _ in range(count)]


def as_log(records: list[int]) -> Log:
    starts = tuple((epoch, records.index(epoch)) for epoch in sorted(set(records)))
    return Log(*starts, end=len(records))


@given(common=Histories, own=Histories, leaders=Histories)
def test_after_some_rounds_the_log_is_a_beginning_of_the_leaders(
    common: list[tuple[int, int]], own: list[tuple[int, int]], leaders: list[tuple[int, int]]
):
    """Records of one epoch at one offset are the same, since an epoch has one leader: both went apart in other ones."""
    shared = written(common)
    last = max(shared, default=0)
    follower = shared + [2 * epoch + last + 1 for epoch in written(own)]
    leader = shared + [2 * epoch + last + 2 for epoch in written(leaders)]
    for _ in range(20):
        if not follower:
            break
        epoch = follower[-1]
        known = as_log(leader).epoch_end(epoch)
        if known is not None and known.epoch == epoch and known.end_offset >= len(follower):
            break
        first = min(leader, default=epoch)
        diverging = known or EpochEnd(epoch, leader.index(first) if leader else 0)
        follower = follower[: truncation_offset(as_log(follower), diverging)]
    assert follower == leader[: len(follower)]
    assert len(follower) >= min(len(shared), len(leader))
