"""Reading the log for a share group: which batches, how far, and that going on finds what looking anew would."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.share.log_reader import Reader
from ottla.log.read import Isolation
from tests.component.broker.raw_client import RawClient, RunningNode, Topic
from tests.component.broker.share.share_members import produce

FAR = 1 << 62


def replica_of(running: RunningNode, topic: Topic) -> Any:
    return running.node.replicas.get(topic.name, 0)


def spans(reader: Reader, offset: int, until: int, max_bytes: int = 1 << 20) -> list[tuple[int, int]]:
    reading = reader.look(offset, max_bytes, Isolation.HIGH_WATERMARK)
    return [each[:2] for each in reader.read(reading, until).batches] if reading.length else []


def test_no_more_batches_than_there_is_use_for(running: RunningNode, client: RawClient):
    topic = client.topic()
    produce(client, topic, 5, 5, 5, 5)
    reader = Reader(replica_of(running, topic))
    assert spans(reader, 0, 0) == [(0, 4)]
    assert spans(reader, 2, 5) == [(0, 4), (5, 9)]
    assert spans(reader, 5, 14) == [(5, 9), (10, 14)]
    assert spans(reader, 0, FAR) == [(0, 4), (5, 9), (10, 14), (15, 19)]
    assert spans(reader, 20, FAR) == []


def test_a_batch_that_is_cut_does_not_count_unless_it_is_the_first(running: RunningNode, client: RawClient):
    topic = client.topic()
    produce(client, topic, 5, 5)
    size = len(client.fetch(topic).records)
    reader = Reader(replica_of(running, topic))
    assert spans(reader, 0, FAR, size - 1) == [(0, 4)]
    assert spans(reader, 0, FAR, 1) == [(0, 4)]


@pytest.mark.parametrize("size", [1, 40, 3_000])
def test_going_on_finds_what_looking_anew_finds(running: RunningNode, client: RawClient, size: int):
    topic = client.topic(internal_segment_bytes=100_000)
    produce(client, topic, *[size] * 30)
    source = replica_of(running, topic)
    reader, offset, seen = Reader(source), 0, []
    while batches := spans(reader, offset, offset + 2 * size):
        assert batches == spans(Reader(source), offset, offset + 2 * size)
        seen += batches
        offset = batches[-1][1] + 1
    assert seen == [(first, first + size - 1) for first in range(0, 30 * size, size)]


def test_the_place_of_some_batches(running: RunningNode, client: RawClient):
    topic = client.topic()
    produce(client, topic, 5, 5, 5, 5)
    whole = bytes(client.fetch(topic).records)
    reader = Reader(replica_of(running, topic))
    size = len(whole) // 4
    for first, last, place in ((0, 19, slice(None)), (7, 12, slice(size, 3 * size)), (16, 17, slice(3 * size, None))):
        batch_range = reader.read(reader.look(0, 1 << 20, Isolation.HIGH_WATERMARK), FAR)
        assert batch_range.span(first, last).read(1 << 20) == whole[place]
