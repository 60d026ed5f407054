"""How far groups are behind: what is read, how often, and what is said when it cannot be known."""

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.client import EARLIEST, Client, TopicPartition
from ottla.client.client import Build
from ottla.client.lag import ROUNDS, Lag, lags
from ottla.wire import frames, types
from ottla.wire.batch import (
    BatchView,
    Compression,
    Record,
    build_batch,
    build_end_txn_marker,
    filter_batch,
    split_batches,
)
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import FakeCluster, topic_id
from tests.unit.client.running import run

Described = types.DescribeTopicPartitionsResponse
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
START, END = 5, 20


def described(leaders: Mapping[str, list[int]]) -> Any:
    def answer(request: frames.Request) -> Described:
        kind = Described.DescribeTopicPartitionsResponsePartition
        topics = [
            Described.DescribeTopicPartitionsResponseTopic(
                0, name, topic_id(name), False, tuple(kind(0, i, leader) for i, leader in enumerate(leaders[name]))
            )
            if name in leaders
            else Described.DescribeTopicPartitionsResponseTopic(3, name)
            for name in (each.name for each in request.body.topics)
        ]
        return Described(topics=tuple(topics))

    return answer


def ends(request: frames.Request) -> types.ListOffsetsResponse:
    kind = types.ListOffsetsResponse
    topics = tuple(
        kind.ListOffsetsTopicResponse(
            topic.name,
            tuple(
                kind.ListOffsetsPartitionResponse(
                    each.partition_index, 0, -1, START if each.timestamp == EARLIEST else END
                )
                for each in topic.partitions
            ),
        )
        for topic in request.body.topics
    )
    return kind(topics=topics)


def batch(first: int, count: int = 5) -> bytes:
    records = [Record(first + n, 1000 * (first + n), None, b"v") for n in range(count)]
    return bytes(build_batch(records, compression=Compression.ZSTD))


def records(parts: Mapping[int, bytes], code: int = 0) -> Any:
    """An answer to Fetch that has something for some partitions, and nothing for the others."""

    def answer(request: frames.Request) -> types.FetchResponse:
        kind = types.FetchResponse
        (topic,) = request.body.topics
        data = tuple(
            kind.PartitionData(each.partition, code, END, END, START, records=parts.get(each.partition, b""))
            for each in topic.partitions
        )
        return kind(responses=(kind.FetchableTopicResponse(topic.topic, topic.topic_id, data),))

    return answer


def found(committed: Mapping[TopicPartition, int | None], *fetches: Any, **options: Any) -> Any:
    """What `lags` says of topic t, which has two partitions, and how often it has fetched."""
    results: list[Any] = []

    async def body() -> None:
        async with FakeCluster(topics={"t": [1, 1]}) as cluster, cluster.client() as client:
            cluster.broker().on("DescribeTopicPartitions", described({"t": [1, 1], "dead": [-1]}))
            cluster.broker().on("ListOffsets", ends)
            if fetches:
                cluster.broker().on("Fetch", *fetches)
            lag = await lags(client, committed, **options)
            results.append((lag, cluster.broker().asked_for("Fetch")))

    run(body)
    return results[0]


def test_the_age_is_that_of_the_first_record_to_process():
    lag, asked = found({T0: 12, T1: 20}, records({0: batch(10)}))
    assert lag == {T0: Lag(12, 5, 20, 8, 12_000), T1: Lag(20, 5, 20, 0, None)}
    assert lag[T0].seconds(15_000) == 3.0
    assert lag[T1].seconds(15_000) == 0.0
    (request,) = asked
    assert [(each.partition, each.fetch_offset) for each in request.topics[0].partitions] == [(0, 12)]
    assert (request.max_wait_ms, request.min_bytes) == (0, 0)


def marker(offset: int) -> bytes:
    kind = {"committed": True, "coordinator_epoch": 0, "producer_id": 7, "producer_epoch": 0}
    return build_end_txn_marker(timestamp=1000 * offset, base_offset=offset, **kind)


def without_records(first: int) -> bytes:
    """What compaction leaves of a batch."""
    (whole,) = split_batches(batch(first))
    assert isinstance(whole, BatchView)
    return filter_batch(whole, lambda _: False)


@pytest.mark.parametrize(
    "before", [marker(10), without_records(10), marker(10) + without_records(11)], ids=["marker", "empty", "both"]
)
def test_what_is_no_record_to_process_has_no_age(before: bytes):
    lag, asked = found({T0: 10}, records({0: before + batch(16)}))
    assert (lag[T0].oldest_at_ms, len(asked)) == (16_000, 1)


def test_if_nothing_but_a_marker_is_left_its_age_counts():
    lag, _ = found({T0: 19}, records({0: marker(19)}))
    assert lag[T0].oldest_at_ms == 19_000


def test_clocks_may_differ():
    assert Lag(1, 0, 2, 1, 5000).seconds(4000) == 0.0


def test_what_did_not_fit_is_asked_for_again():
    lag, asked = found({T0: 10, T1: 15}, records({0: batch(10)}), records({1: batch(15)}))
    assert (lag[T0].oldest_at_ms, lag[T1].oldest_at_ms) == (10_000, 15_000)
    assert [[each.partition for each in one.topics[0].partitions] for one in asked] == [[0, 1], [1]]


def test_it_does_not_ask_for_ever():
    lag, asked = found({T0: 10}, records({}))
    assert len(asked) == ROUNDS
    assert lag[T0] == Lag(10, 5, 20, 10, None)
    assert lag[T0].seconds(99) is None


@pytest.mark.parametrize("cut", [40, 70])
def test_half_a_batch_says_nothing(cut: int):
    lag, _ = found({T0: 10}, records({0: batch(10)[:cut]}))
    assert lag[T0].oldest_at_ms is None


def test_records_that_were_deleted_unread():
    lag, asked = found({T0: 2}, records({0: batch(5)}))
    assert lag[T0] == Lag(2, 5, 20, 18, 5_000, "3 deleted before they were read")
    assert asked[0].topics[0].partitions[0].fetch_offset == START


def test_who_may_not_read_learns_no_age():
    lag, asked = found({T0: 10}, records({}, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert lag[T0] == Lag(10, 5, 20, 10, None, "time unknown: TOPIC_AUTHORIZATION_FAILED (29)")
    assert len(asked) == 1


def test_a_topic_that_goes_meanwhile_has_no_age(monkeypatch: pytest.MonkeyPatch):
    def forgetful(client: Client, api: str, build: Build, **options: Any) -> Any:
        if api == "Fetch":
            client.metadata.forget("t")
        return ask(client, api, build, **options)

    ask = Client.ask
    monkeypatch.setattr(Client, "ask", forgetful)
    lag, _ = found({T0: 10}, records({0: batch(10)}))
    assert (lag[T0].records, lag[T0].oldest_at_ms) == (10, None)


def test_what_is_not_there():
    gone, dead, beyond = TopicPartition("gone", 0), TopicPartition("dead", 0), TopicPartition("t", 7)
    lag, asked = found({gone: 3, dead: 3, beyond: 3, T1: None})
    assert lag[gone] == Lag(3, note="the topic does not exist")
    assert lag[dead] == Lag(3, note="no leader")
    assert lag[beyond] == Lag(3, note="the topic has no such partition")
    assert lag[T1] == Lag(None, 5, 20)
    assert asked == []


def test_seconds_are_not_asked_for_where_nobody_wants_them():
    lag, asked = found({T0: 10}, seconds=False)
    assert (lag[T0].records, lag[T0].oldest_at_ms, asked) == (10, None, [])
    assert found({})[0] == {}
