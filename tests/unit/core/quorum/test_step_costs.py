"""A step costs the same however long the log is: as many lines of the quorum's code are run.

`benchmarks/quorum` measures the time, with logs on disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from ottla.core.quorum import quorum
from ottla.core.quorum.events import Tick
from ottla.core.quorum.stored import StoredState
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.vote import VoteRequest
from simulation.quorum.virtual_log import Batch
from tests.unit.core.quorum.replica import (
    EPOCH,
    LOG_EPOCH,
    TOPIC,
    Replica,
    directory,
    fetch,
    fetch_response,
    records_of,
    vote,
    vote_response,
)

CORE = quorum.__file__.removesuffix("quorum.py")
FIVE = (1, 2, 3, 4, 5)


def lines_of(step: Callable[[], object]) -> int:
    """How many lines of `ottla.core.quorum` a step runs."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(CORE):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(before)
    return count


def with_records(stored: StoredState, count: int) -> Replica:
    """A voter of five, with so many more batches in its log."""
    replica = Replica(stored, voters=FIVE)
    first = replica.log.end_offset
    data = records_of(first, first + 1, LOG_EPOCH)
    replica.log.append([Batch(each, each + 1, LOG_EPOCH, data) for each in range(first, first + count)])
    replica.quorum.synced_end_offset = replica.log.end_offset
    return replica.start()


def leading(count: int) -> Replica:
    """It leads, and three of the five have all that it has."""
    replica = with_records(StoredState(EPOCH, voted_id=1, voted_directory_id=directory(1)), count)
    for sent in replica.take_sent(VoteRequest)[:2]:
        replica.answer(sent, vote_response(granted=True))
    for node_id in (2, 3):
        replica.ask(fetch(offset=replica.log.end_offset, last_epoch=EPOCH, replica_id=node_id))
    assert replica.high_watermarks == [replica.log.end_offset]
    return replica


def fetch_without_news(count: int) -> int:
    replica = leading(count)
    request = fetch(offset=replica.log.end_offset, last_epoch=EPOCH, max_wait_ms=0)
    return lines_of(lambda: replica.ask(request))


def fetch_of_one_record(count: int) -> int:
    replica = leading(count)
    request = fetch(offset=replica.log.end_offset - 1, last_epoch=EPOCH)
    return lines_of(lambda: replica.ask(request))


def record_that_is_committed(count: int) -> int:
    replica = leading(count)

    def commit() -> None:
        replica.append()
        for node_id in (2, 3):
            end_offset = replica.log.end_offset
            replica.ask(fetch(offset=end_offset, last_epoch=EPOCH, replica_id=node_id, max_wait_ms=0))

    lines = lines_of(commit)
    assert replica.high_watermarks[-1] == replica.log.end_offset
    return lines


def refused_vote(count: int) -> int:
    replica = leading(count)
    return lines_of(lambda: replica.ask(vote()))


def passing_time(count: int) -> int:
    replica = leading(count)
    return lines_of(lambda: replica.step(Tick()))


def description(count: int) -> int:
    replica, kind = leading(count), DescribeQuorumRequest
    request = kind((kind.TopicData(TOPIC, (kind.PartitionData(0),)),))
    return lines_of(lambda: replica.quorum.describe(request, 2, replica.now_ms, 0))


def record_that_is_fetched(count: int) -> int:
    replica = with_records(StoredState(EPOCH, leader_id=2), count)
    (sent,) = replica.take_sent(FetchRequest)
    end_offset = replica.log.end_offset
    response = fetch_response(records=records_of(end_offset, end_offset + 1, EPOCH), high_watermark=end_offset)
    lines = lines_of(lambda: replica.answer(sent, response))
    assert replica.log.end_offset == end_offset + 1
    assert replica.take_sent(FetchRequest)
    return lines


@pytest.mark.parametrize(
    "step",
    [
        fetch_without_news,
        fetch_of_one_record,
        record_that_is_committed,
        record_that_is_fetched,
        refused_vote,
        passing_time,
        description,
    ],
)
def test_a_long_log_costs_no_more(step: Callable[[int], int]) -> None:
    lines = step(100)
    assert lines > 5
    assert step(100_000) == lines
