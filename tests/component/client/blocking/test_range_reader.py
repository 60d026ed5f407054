"""Reading a range: what is asked for when, where it ends, and what is tried again."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client import TopicPartition, clock
from ottla.client.blocking import BlockingConnection, Chunk, ReadOptions, read_range
from ottla.client.blocking.range_reader import (
    FIRST_GUESS_BYTES,
    SLACK,
    SLACK_BYTES,
    ReadStats,
    StalledError,
    whole_batches,
)
from ottla.client.errors import ConnectionLostError, ResponseError
from ottla.wire import WireError, frames, types
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from tests.component.client.blocking.threaded import ThreadedCluster, threaded
from tests.component.client.fake import DROP, FakeCluster, topic_id
from tests.component.client.fake_logs import Data, Logs, Topic
from tests.unit.client.batches import batch

ORDERS = TopicPartition("orders", 0)
QUICK = ReadOptions(max_wait_ms=1, stall_timeout_ms=30_000)


def read(there: ThreadedCluster, start: int, until: int, options: ReadOptions = QUICK, **more: Any) -> list[Chunk]:
    with there.client() as client:
        return list(read_range(client, ORDERS, start, until, options, **more))


def offsets(chunks: list[Chunk]) -> list[int]:
    return [record.offset for chunk in chunks for view in split_batches(chunk.data) for record in view.records()]


def serving(logs: Logs, *answers: Any, nodes: int = 1) -> FakeCluster:
    cluster = FakeCluster(nodes, {"orders": [1]})
    for broker in cluster.brokers.values():
        broker.on("Fetch", *answers, logs.fetch)
    return cluster


def answer(**data: Any) -> types.FetchResponse:
    return types.FetchResponse(responses=(Topic("orders", topic_id("orders"), (Data(0, **data),)),))


def test_a_range_is_read_chunk_by_chunk():
    with threaded(serving(Logs(orders=[batch(0, 1, 2), batch(3, 4), batch(5, 6)]))) as there:
        chunks = read(there, 1, 5)
        assert [(each.position, each.next_position) for each in chunks] == [(1, 3), (3, 5)]
        assert offsets(chunks) == [0, 1, 2, 3, 4]
        assert [each.topics[0].partitions[0].fetch_offset for each in there.cluster.broker().asked_for("Fetch")] == [
            1,
            3,
        ]


def test_a_request_asks_for_about_as_much_as_the_range_has():
    large = batch(0, 1, value=b"x" * 100_000)
    with threaded(serving(Logs(orders=[large, batch(2, 999)]))) as there:
        read(there, 0, 1_000)
        first, second = _sizes(there)
        assert first == round(1_000 * FIRST_GUESS_BYTES * SLACK) + SLACK_BYTES
        assert second == QUICK.partition_max_bytes, "the first answer has larger records"

    patient = QUICK._replace(min_bytes=1_000_000)
    with threaded(serving(Logs(orders=[batch(0)]))) as there:
        read(there, 0, 1, patient)
        assert _sizes(there) == [1_000_000], "less would never be enough"


def _sizes(there: ThreadedCluster) -> list[int]:
    """How many bytes of the partition each request asked for."""
    return [each.topics[0].partitions[0].partition_max_bytes for each in there.cluster.broker().asked_for("Fetch")]


def test_the_next_request_is_sent_before_the_answer_is_given():
    with threaded(serving(Logs(orders=[batch(0), batch(1)]))) as there, there.client() as client:
        broker = there.cluster.broker()
        chunks = read_range(client, ORDERS, 0, 2, QUICK)
        next(chunks)
        deadline = time.monotonic() + 30
        while len(broker.asked_for("Fetch")) < 2:
            assert time.monotonic() < deadline, "only one request was sent"
        chunks.close()


def test_a_reader_that_stops_early_does_not_leave_its_answer_to_the_next():
    with threaded(serving(Logs(orders=[batch(0), batch(1)]))) as there, there.client() as client:
        chunks = read_range(client, ORDERS, 0, 2, QUICK)
        next(chunks)
        chunks.close()
        assert offsets(list(read_range(client, ORDERS, 0, 2, QUICK))) == [0, 1]


def test_readers_use_the_connection_again():
    with threaded(serving(Logs(orders=[batch(0), batch(1)]))) as there, there.client() as client:
        for _ in range(3):
            assert offsets(list(read_range(client, ORDERS, 0, 2, QUICK))) == [0, 1]
        assert there.cluster.broker().connections == 2, "one for the reader, and one to ask who leads"


def test_gaps_are_stepped_over_and_the_end_needs_no_record():
    with threaded(serving(Logs(orders=[batch(0, 4), batch(9, 12)]))) as there:
        assert offsets(read(there, 5, 11)) == [9, 12]
        assert offsets(read(there, 2, 8)) == [0, 4, 9, 12]


def test_a_range_whose_rest_was_compacted_away_ends():
    empty = types.FetchResponse(
        responses=(Topic("orders", topic_id("orders"), (Data(0, high_watermark=10, records=b""),)),)
    )
    with threaded(serving(Logs(orders=[batch(0, 1)]))) as there:
        there.cluster.broker().on("Fetch", Logs(orders=[batch(0, 1)]).fetch, empty)
        assert offsets(read(there, 0, 10)) == [0, 1]


def test_aborted_transactions_come_with_the_chunk():
    logs = Logs(orders=[batch(0, 1)])
    logs.aborted = [(7, 0)]
    with threaded(serving(logs)) as there:
        (chunk,) = read(there, 0, 2, QUICK._replace(isolation="read_committed"))
        assert chunk.aborted == (AbortedTransaction(first_offset=0, producer_id=7),)
        (asked,) = there.cluster.broker().asked_for("Fetch")
        assert asked.isolation_level == 1


def test_a_topic_that_was_made_anew_since_the_client_heard_of_it_is_read():
    wanted = QUICK._replace(topic_id=topic_id("orders"))
    with threaded(serving(Logs(orders=[batch(0, 1)]))) as there, there.client() as client:
        list(read_range(client, ORDERS, 0, 2, QUICK))
        known = client.metadata.topics["orders"]
        client.metadata.topics["orders"] = known._replace(topic_id=b"before-16-bytes.")
        assert offsets(list(read_range(client, ORDERS, 0, 2, wanted))) == [0, 1]
        with pytest.raises(ResponseError, match="deleted and created again"):
            list(read_range(client, ORDERS, 0, 2, QUICK._replace(topic_id=b"after--16-bytes.")))


@pytest.mark.parametrize("failure", [DROP, "not leader", "storage"])
def test_what_passes_is_tried_again(failure: str):
    logs = Logs(orders=[batch(0, 1)])
    if failure != DROP:
        logs.errors[ORDERS] = [{"not leader": 6, "storage": 56}[failure]]
    stats = ReadStats()
    with threaded(serving(logs, *([DROP] if failure == DROP else []))) as there:
        assert offsets(read(there, 0, 2, stats=stats)) == [0, 1]
    assert stats.retries == 1


def test_what_has_come_is_given_though_the_next_request_cannot_be_sent(monkeypatch: pytest.MonkeyPatch):
    send, asked = BlockingConnection.send, []

    def fail_once(connection: BlockingConnection, message: object, version: int) -> None:
        asked.append(type(message))
        if type(message) is types.FetchRequest and asked.count(types.FetchRequest) == 2:
            raise ConnectionLostError(connection.peer, "broken pipe")
        send(connection, message, version)

    monkeypatch.setattr(BlockingConnection, "send", fail_once)
    with threaded(serving(Logs(orders=[batch(0), batch(1), batch(2)]))) as there:
        assert offsets(read(there, 0, 3)) == [0, 1, 2]


def test_the_time_that_the_caller_takes_is_not_the_broker_s(monkeypatch: pytest.MonkeyPatch):
    taken_s = [0.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + taken_s[0]))
    stats = ReadStats()
    with threaded(serving(Logs(orders=[batch(0), batch(1), batch(2)]))) as there, there.client() as client:
        found = []
        for chunk in read_range(client, ORDERS, 0, 3, QUICK, stats):
            found.append(chunk)
            taken_s[0] += 3_600
        assert (offsets(found), stats.retries) == ([0, 1, 2], 0)


def test_a_leader_that_the_answer_names_is_followed():
    logs = Logs(orders=[batch(0, 1)])
    cluster = serving(logs, nodes=2)

    def moved(request: frames.Request) -> types.FetchResponse:
        there = cluster.broker(2)
        cluster.topics["orders"] = [2]
        cluster.leader_epoch = 5
        data = Data(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=types.FetchResponse.LeaderIdAndEpoch(2, 5))
        endpoint = types.FetchResponse.NodeEndpoint(2, "127.0.0.1", there.port)
        return types.FetchResponse(
            responses=(Topic("orders", topic_id("orders"), (data,)),), node_endpoints=(endpoint,)
        )

    cluster.broker(1).on("Fetch", moved)
    with threaded(cluster) as there:
        assert offsets(read(there, 0, 2)) == [0, 1]
        assert len(cluster.broker(2).asked_for("Fetch")) == 1


def test_a_replica_nearby_is_read_from():
    logs = Logs(orders=[batch(0, 1)])
    cluster = serving(logs, nodes=2)
    elsewhere = answer(high_watermark=2, preferred_read_replica=2, records=b"")
    cluster.broker(1).on("Fetch", elsewhere)
    with threaded(cluster) as there:
        assert offsets(read(there, 0, 2, QUICK._replace(rack_id="b"))) == [0, 1]
        (asked,) = cluster.broker(2).asked_for("Fetch")
        assert asked.rack_id == "b"


def test_a_replica_nearby_that_the_client_does_not_know_yet_is_looked_up():
    """It has come back since the client asked for the brokers. An answer of the leader without records must not be
    taken for a range that was compacted away."""
    cluster = serving(Logs(orders=[batch(0, 1)]), nodes=2)
    cluster.broker(1).on("Fetch", answer(high_watermark=2, preferred_read_replica=2, records=b""))
    with threaded(cluster) as there, there.client() as client:
        client.leader(ORDERS, client.deadline())
        del client.metadata.brokers[2]
        assert offsets(list(read_range(client, ORDERS, 0, 2, QUICK._replace(rack_id="b")))) == [0, 1]


def test_no_progress_is_an_error_at_last_that_says_where():
    with threaded(FakeCluster(1, {"orders": [1]})) as there:
        there.cluster.broker().on("Fetch", DROP)
        with pytest.raises(
            StalledError, match=r"no response from 127\.0\.0\.1:\d+ for topic orders partition 0 in 1000 ms"
        ):
            read(there, 0, 2, QUICK._replace(stall_timeout_ms=1_000))


def test_an_offset_that_is_gone_is_never_reset():
    logs = Logs(orders=[batch(5, 6)])
    logs.start = 5
    with threaded(serving(logs)) as there:
        with pytest.raises(ResponseError) as raised:
            read(there, 0, 7)
        assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_another_topic_of_the_same_name_is_not_read():
    refused = pytest.raises(ResponseError, match="the topic was deleted and created again")
    with threaded(serving(Logs(orders=[batch(0, 1)]))) as there, refused:
        read(there, 0, 2, QUICK._replace(topic_id=b"x" * 16))


def test_a_topic_that_is_gone_is_an_error():
    with threaded(FakeCluster(1, {})) as there, pytest.raises(ResponseError, match="topic orders"):
        read(there, 0, 2)


def test_stats_count_what_came():
    chunks = [batch(0, 1), batch(2)]
    stats = ReadStats()
    with threaded(serving(Logs(orders=chunks))) as there:
        read(there, 0, 3, stats=stats)
    assert (stats.fetches, stats.bytes) == (2, sum(map(len, chunks)))


def test_whole_batches_leaves_a_cut_one_out():
    whole = batch(0, 1) + batch(2, 5)
    assert whole_batches(memoryview(whole + batch(6)[:-1])) == (len(whole), 6)
    assert whole_batches(memoryview(batch(0)[:-1])) == (0, -1)
    with pytest.raises(WireError):
        whole_batches(memoryview(b"\0" * 8 + b"\xff\xff\xff\xff" + b"\0" * 60))
