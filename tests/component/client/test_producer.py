"""Producing: where records go, what is sent again, and what the numbers of an idempotent producer are."""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from ottla.client import Delivered, Producer, ProducerRecord, TopicPartition
from ottla.client import producer as producer_module
from ottla.client.errors import ConfigurationError, ConnectionLostError, ProduceError, ResponseError
from ottla.client.partitioner import partition_of_key
from ottla.wire import frames, types
from ottla.wire.batch import BatchBuilder, BatchView, Compression, split_batches
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import DROP, HOLD, FakeCluster, topic_id
from tests.unit.client.running import run

Partition = types.ProduceResponse.PartitionProduceResponse


class Log:
    """What a fake broker appends, by topic and partition; `errors` is used up before anything is appended."""

    def __init__(self) -> None:
        self.batches: dict[TopicPartition, list[bytes]] = {}
        self.errors: dict[TopicPartition, list[int]] = {}
        self.extra: dict[str, Any] = {}

    def __call__(self, request: frames.Request) -> types.ProduceResponse:
        topics = []
        for topic in request.body.topic_data:
            name = topic.name or topic.topic_id.rstrip(b"\1").decode()
            partitions = tuple(self._append(TopicPartition(name, each.index), each) for each in topic.partition_data)
            topics.append(types.ProduceResponse.TopicProduceResponse(name, topic_id(name), partitions))
        return types.ProduceResponse(responses=tuple(topics), **self.extra)

    def _append(self, at: TopicPartition, data: Any) -> Any:
        if codes := self.errors.get(at):
            return Partition(at.partition, codes.pop(0), base_offset=-1)
        base_offset = sum(batch.record_count for batch in self.views(at))
        self.batches.setdefault(at, []).append(bytes(data.records))
        return Partition(at.partition, base_offset=base_offset)

    def views(self, at: TopicPartition) -> list[BatchView]:
        found = [view for batch in self.batches.get(at, []) for view in split_batches(batch)]
        assert all(isinstance(each, BatchView) for each in found)
        return found  # type: ignore[return-value]

    def values(self, at: TopicPartition) -> list[bytes]:
        return [bytes(record.value or b"") for view in self.views(at) for record in view.records()]


ORDERS = TopicPartition("orders", 0)


def cluster_of(nodes: int = 1, **topics: list[int]) -> tuple[FakeCluster, Log]:
    cluster, log = FakeCluster(nodes, topics or {"orders": [1]}), Log()
    for broker in cluster.brokers.values():
        broker.on("Produce", log)
        broker.on("InitProducerId", *(types.InitProducerIdResponse(producer_id=each) for each in (70, 71, 72)))
    return cluster, log


def test_a_record_gets_its_place():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:
            producer = Producer(client)
            first = await producer.send("orders", b"tea", key=b"k", headers=[("h", b"1")], timestamp_ms=1234)
            second = await producer.send("orders", None)
            assert first == Delivered("orders", 0, 0, 1234)
            assert (second.offset, second.timestamp_ms > 1_600_000_000_000) == (1, True)
            (record,) = log.views(ORDERS)[0].records()
            assert (record.key, record.value, record.headers, record.timestamp) == (b"k", b"tea", (("h", b"1"),), 1234)
            (asked, _) = cluster.broker().asked_for("Produce")
            assert (asked.acks, asked.topic_data[0].topic_id) == (-1, topic_id("orders"))
            log.views(ORDERS)[0].check_crc()

    run(body)


def test_topics_have_names_for_older_brokers():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster:
            cluster.broker().versions["Produce"] = (3, 9)
            async with cluster.client() as client:
                assert (await Producer(client).send("orders", b"tea")).offset == 0
            assert cluster.broker().asked_for("Produce")[0].topic_data[0].name == "orders"
            assert log.values(ORDERS) == [b"tea"]

    run(body)


def test_the_key_chooses_the_partition_unless_one_is_named():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[1] * 5)
        async with cluster, cluster.client() as client:
            producer = Producer(client)
            keys = [str(number).encode() for number in range(30)]
            placed = await producer.send_all([ProducerRecord("orders", b"v", key=key) for key in keys])
            assert [each.partition for each in placed] == [partition_of_key(key, 5) for key in keys]
            assert (await producer.send("orders", b"v", key=b"k", partition=3)).partition == 3

    run(body)


def test_records_without_a_key_take_turns_by_batch():
    async def body() -> None:
        cluster, _ = cluster_of(orders=[1, 1, -1, 1])
        async with cluster, cluster.client() as client:
            producer = Producer(client, batch_bytes=500)
            one_by_one = [(await producer.send("orders", b"v")).partition for _ in range(6)]
            assert Counter(one_by_one) == {0: 2, 1: 2, 3: 2}
            together = await producer.send_all([ProducerRecord("orders", b"v" * 20) for _ in range(90)])
            counts = Counter(each.partition for each in together)
            assert set(counts) == {0, 1, 3}
            moves = sum(one.partition != other.partition for one, other in pairwise(together))
            assert 3 <= moves <= 10, "a batch is filled before the next partition has its turn"

    run(body)


def test_many_records_become_batches_in_order():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:
            values = [b"%04d" % number for number in range(500)]
            placed = await Producer(client, batch_bytes=1000).send_all(
                ProducerRecord("orders", each) for each in values
            )
            assert [each.offset for each in placed] == list(range(500))
            assert log.values(ORDERS) == values
            assert len(log.views(ORDERS)) > 5
            assert all(view.size_bytes < 1100 for view in log.views(ORDERS))

    run(body)


@pytest.mark.parametrize("key", [b"k", None])
def test_a_record_that_would_make_a_batch_too_large_begins_another(key: bytes | None):
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:
            values = [b"small", b"small", b"v" * 920, b"small", b"v" * 2000, b"small"]
            await Producer(client, batch_bytes=1000).send_all(ProducerRecord("orders", each, key) for each in values)
            assert log.values(ORDERS) == values
            assert [len(view.records()) for view in log.views(ORDERS)] == [2, 1, 1, 1, 1]
            assert [view.size_bytes > 1000 for view in log.views(ORDERS)] == [False, False, False, True, False]

    run(body)


def test_each_leader_gets_one_request_with_all_its_partitions():
    async def body() -> None:
        cluster, _ = cluster_of(2, orders=[1, 2, 1, 2], bills=[2])
        async with cluster, cluster.client() as client:
            records = [ProducerRecord("orders", b"v", partition=index) for index in range(4)]
            await Producer(client).send_all([*records, ProducerRecord("bills", b"v", partition=0)])
            asked = {node: cluster.broker(node).asked_for("Produce") for node in (1, 2)}
            sent = {
                node: sorted((topic.topic_id, each.index) for topic in one.topic_data for each in topic.partition_data)
                for node, (one,) in asked.items()
            }
            orders, bills = topic_id("orders"), topic_id("bills")
            assert sent == {1: [(orders, 0), (orders, 2)], 2: [(bills, 0), (orders, 1), (orders, 3)]}

    run(body)


def test_a_round_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(producer_module, "REQUEST_BYTES_MAX", 5000)

    async def body() -> None:
        cluster, log = cluster_of(orders=[1] * 20)
        async with cluster, cluster.client() as client:
            records = [ProducerRecord("orders", b"v" * 1000, partition=index) for index in range(20)]
            await Producer(client).send_all([*records, ProducerRecord("orders", b"v" * 50_000, partition=0)])
            sizes = [
                [len(each.records) for topic in asked.topic_data for each in topic.partition_data]
                for asked in cluster.broker().asked_for("Produce")
            ]
            assert all(sum(each) <= 5000 or len(each) == 1 for each in sizes)
            assert sum(map(len, sizes)) == sum(map(len, log.batches.values())) == 20
            assert len(sizes) >= 5

    run(body)


@pytest.mark.parametrize("codec", [Compression.GZIP, "zstd", "LZ4", "snappy"])
def test_batches_are_compressed(codec: Any):
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:
            await Producer(client, compression=codec).send("orders", b"v" * 1000)
            (view,) = log.views(ORDERS)
            assert view.compression.name.lower() == str(getattr(codec, "name", codec)).lower()
            assert view.size_bytes < 200

    run(body)


def test_the_broker_s_time_counts_where_the_topic_says_so():
    async def body() -> None:
        cluster, _ = cluster_of()
        async with cluster, cluster.client() as client:
            partition = Partition(0, base_offset=5, log_append_time_ms=999)
            topic = types.ProduceResponse.TopicProduceResponse("orders", topic_id("orders"), (partition,))
            cluster.broker().on("Produce", types.ProduceResponse(responses=(topic,)))
            assert await Producer(client).send("orders", b"v") == Delivered("orders", 0, 5, 999)

    run(body)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT],
)
def test_what_can_be_cured_is_sent_again(code: int):
    async def body() -> None:
        cluster, log = cluster_of(orders=[1, 1])
        async with cluster, cluster.client() as client:
            log.errors[ORDERS] = [code]
            records = [ProducerRecord("orders", b"%d" % index, partition=index) for index in (0, 1)]
            placed = await Producer(client).send_all(records)
            assert [each.offset for each in placed] == [0, 0]
            assert log.values(ORDERS) == [b"0"]
            assert log.values(TopicPartition("orders", 1)) == [b"1"], "what went well is not sent twice"

    run(body)


def test_a_new_leader_in_the_answer_needs_no_question():
    async def body() -> None:
        cluster, log = cluster_of(2, orders=[1])
        async with cluster, cluster.client(retry_backoff_ms=1) as client:
            await client.topics(["orders"])
            leader = types.ProduceResponse.LeaderIdAndEpoch(2, 1)
            endpoint = types.ProduceResponse.NodeEndpoint(2, "127.0.0.1", cluster.broker(2).port)
            partition = Partition(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader)
            topic = types.ProduceResponse.TopicProduceResponse("orders", topic_id("orders"), (partition,))
            cluster.broker(1).on("Produce", types.ProduceResponse(responses=(topic,), node_endpoints=(endpoint,)))
            before = len(cluster.broker(1).asked_for("Metadata"))
            assert (await Producer(client).send("orders", b"v")).offset == 0
            assert log.values(ORDERS) == [b"v"]
            assert len(cluster.broker(1).asked_for("Metadata")) == before

    run(body)


def test_a_leader_that_has_left_the_cluster_is_replaced():
    async def body() -> None:
        cluster, log = cluster_of(2, orders=[2])
        async with cluster, cluster.client() as client:
            await client.topics(["orders"])
            gone = cluster.brokers.pop(2)
            await gone.stop()
            await client.refresh()

            def elect(request: frames.Request) -> Any:
                answer = cluster.metadata(request.body)
                cluster.topics["orders"], cluster.leader_epoch = [1], 1
                return answer

            cluster.broker(1).on("Metadata", elect)
            assert (await Producer(client).send("orders", b"v")).offset == 0
            assert log.values(ORDERS) == [b"v"]

    run(body)


def test_what_cannot_be_cured_says_what_was_written():
    async def body() -> None:
        cluster, log = cluster_of(orders=[1, 1])
        async with cluster, cluster.client() as client:
            log.errors[ORDERS] = [ErrorCode.MESSAGE_TOO_LARGE]
            records = [ProducerRecord("orders", b"v" * 100, partition=index % 2) for index in range(8)]
            with pytest.raises(
                ProduceError, match=r"Produce at broker 1 \S+ for orders-0: MESSAGE_TOO_LARGE"
            ) as caught:
                await Producer(client, batch_bytes=200).send_all(records)
            delivered = caught.value.delivered
            assert [each is None for each in delivered] == [True, False] * 4
            assert len(log.values(TopicPartition("orders", 1))) == 4
            assert log.values(ORDERS) == [], "what comes behind a failure in the same partition is not written"

    run(body)


def test_what_a_broker_says_of_single_records_is_passed_on():
    async def body() -> None:
        cluster, _ = cluster_of()
        async with cluster, cluster.client() as client:
            single = types.ProduceResponse.BatchIndexAndErrorMessage(0, "it has no key")
            partition = Partition(0, ErrorCode.INVALID_RECORD, record_errors=(single,), error_message="refused")
            topic = types.ProduceResponse.TopicProduceResponse("orders", topic_id("orders"), (partition,))
            cluster.broker().on("Produce", types.ProduceResponse(responses=(topic,)))
            with pytest.raises(ProduceError, match="refused; record 0: it has no key"):
                await Producer(client).send("orders", b"v")

    run(body)


def test_a_topic_that_is_not_there():
    async def body() -> None:
        cluster, _ = cluster_of()
        async with cluster, cluster.client() as client:
            with pytest.raises(ResponseError, match="for topic nix: UNKNOWN_TOPIC_OR_PARTITION"):
                await Producer(client).send("nix", b"v")
            with pytest.raises(ResponseError, match="for orders-7: UNKNOWN_TOPIC_OR_PARTITION"):
                await Producer(client).send("orders", b"v", partition=7)

    run(body)


def test_the_delivery_timeout_ends_the_attempts():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:
            log.errors[ORDERS] = [ErrorCode.NOT_ENOUGH_REPLICAS] * 100_000
            with pytest.raises(ProduceError, match="NOT_ENOUGH_REPLICAS"):
                await Producer(client, delivery_timeout_ms=300).send("orders", b"v")

    run(body)


def test_a_record_was_written_though_its_topic_is_forgotten_meanwhile():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:

            def deleted(request: frames.Request) -> types.ProduceResponse:
                client.metadata.forget("orders")  # another task has asked for all topics
                return log(request)

            cluster.broker().on("Produce", deleted)
            assert (await Producer(client).send("orders", b"v")).offset == 0

    run(body)


def test_without_acknowledgements_nobody_says_where():
    async def body() -> None:
        cluster, _ = cluster_of()
        async with cluster, cluster.client() as client:
            cluster.broker().on("Produce", HOLD)
            placed = await Producer(client, acks=0).send("orders", b"v", timestamp_ms=7)
            assert placed == Delivered("orders", 0, None, 7)
            await cluster.broker().was_asked("Produce")
            assert cluster.broker().asked_for("Produce")[0].acks == 0

    run(body)


def test_a_lost_answer_is_not_written_twice_by_an_idempotent_producer():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:

            def lose(request: frames.Request) -> Any:
                log(request)
                return DROP

            cluster.broker().on("Produce", lose, log)
            await Producer(client, idempotent=True).send("orders", b"v")
            first, second = log.views(ORDERS)
            assert (first.producer_id, first.base_sequence) == (second.producer_id, second.base_sequence) == (70, 0)
            assert bytes(first.data) == bytes(second.data), "the broker knows it again"

    run(body)


def test_an_idempotent_producer_numbers_its_records():
    async def body() -> None:
        cluster, log = cluster_of(orders=[1, 1])
        async with cluster, cluster.client() as client:
            producer = Producer(client, idempotent=True)
            for count in (3, 2, 1):
                records = [ProducerRecord("orders", b"v", partition=index) for index in (0, 1) for _ in range(count)]
                await producer.send_all(records)
            for index in (0, 1):
                views = log.views(TopicPartition("orders", index))
                assert [(each.producer_id, each.base_sequence) for each in views] == [(70, 0), (70, 3), (70, 5)]
            assert len(cluster.broker().asked_for("InitProducerId")) == 1

    run(body)


def test_calls_of_an_idempotent_producer_do_not_overtake_each_other():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:
            producer = Producer(client, idempotent=True)
            log.errors[ORDERS] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
            await asyncio.gather(*(producer.send("orders", b"%d" % number) for number in range(5)))
            assert [each.base_sequence for each in log.views(ORDERS)] == [0, 1, 2, 3, 4]

    run(body)


def filled(*values: bytes) -> BatchBuilder:
    batch = BatchBuilder()
    for value in values:
        batch.append(7, None, value)
    return batch


def test_batches_that_are_filled_already_are_sent_in_order():
    async def body() -> None:
        cluster, log = cluster_of(2, orders=[1, 2])
        async with cluster, cluster.client() as client:
            other = TopicPartition("orders", 1)
            producer = Producer(client, idempotent=True)
            await producer.send_batches({ORDERS: [filled(b"a", b"b"), filled(b"c")], other: [filled(b"d")]})
            await producer.send_batches({ORDERS: [filled(b"e")]})
            assert (log.values(ORDERS), log.values(other)) == ([b"a", b"b", b"c", b"e"], [b"d"])
            assert [(each.producer_id, each.base_sequence) for each in log.views(ORDERS)] == [(70, 0), (70, 2), (70, 3)]
            assert len(cluster.broker(1).asked_for("Produce")) == 3

    run(body)


def test_a_filled_batch_that_cannot_be_written_is_told_like_records():
    async def body() -> None:
        cluster, log = cluster_of(orders=[1, 1])
        async with cluster, cluster.client() as client:
            log.errors[ORDERS] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.MESSAGE_TOO_LARGE]
            other = TopicPartition("orders", 1)
            with pytest.raises(ProduceError, match=r"Produce at broker 1 \S+ for orders-0: MESSAGE_TOO_LARGE"):
                await Producer(client).send_batches({ORDERS: [filled(b"a"), filled(b"b")], other: [filled(b"c")] * 2})
            assert (log.values(ORDERS), log.values(other)) == ([], [b"c", b"c"])

    run(body)


def test_after_a_failure_an_idempotent_producer_begins_anew():
    async def body() -> None:
        cluster, log = cluster_of(orders=[1, 1])
        async with cluster, cluster.client() as client:
            producer = Producer(client, idempotent=True)
            await producer.send("orders", b"v", partition=0)
            log.errors[ORDERS] = [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
            records = [ProducerRecord("orders", b"v", partition=index) for index in (0, 1)]
            with pytest.raises(ProduceError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
                await producer.send_all(records)
            await producer.send_all(records)
            last = [log.views(TopicPartition("orders", index))[-1] for index in (0, 1)]
            assert [(each.producer_id, each.base_sequence) for each in last] == [(71, 0), (71, 0)]

    run(body)


def test_after_a_call_that_was_cancelled_an_idempotent_producer_begins_anew():
    async def body() -> None:
        cluster, log = cluster_of()
        async with cluster, cluster.client() as client:
            may_answer = asyncio.Event()

            async def late(request: frames.Request) -> Any:
                answer = log(request)
                await may_answer.wait()
                return answer

            cluster.broker().on("Produce", late, log)
            producer = Producer(client, idempotent=True)
            sending = asyncio.create_task(producer.send("orders", b"cancelled"))
            await cluster.broker().was_asked("Produce")
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            may_answer.set()
            await producer.send("orders", b"next")
            # With the same number the broker would take the second batch for the first, sent again.
            assert [(each.producer_id, each.base_sequence) for each in log.views(ORDERS)] == [(70, 0), (71, 0)]

    run(body)


def test_who_may_not_have_an_id_is_told():
    async def body() -> None:
        cluster, _ = cluster_of()
        async with cluster, cluster.client() as client:
            cluster.broker().on("InitProducerId", types.InitProducerIdResponse(error_code=31))
            with pytest.raises(ResponseError, match="InitProducerId: CLUSTER_AUTHORIZATION_FAILED"):
                await Producer(client, idempotent=True).send("orders", b"v")

    run(body)


def test_a_connection_that_stays_broken_is_reported_as_such():
    async def body() -> None:
        cluster, _ = cluster_of()
        async with cluster, cluster.client() as client:
            cluster.broker().on("Produce", DROP)
            with pytest.raises(ConnectionLostError, match="broker 1"):
                await Producer(client, delivery_timeout_ms=300).send("orders", b"v")

    run(body)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"acks": 2}, "acks is 2"),
        ({"acks": 1, "idempotent": True}, "needs acks=all"),
        ({"compression": "brotli"}, "'brotli'; known: none, gzip"),
    ],
)
def test_options_that_cannot_be_are_refused(options: Any, reason: str):
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            with pytest.raises(ConfigurationError, match=reason):
                Producer(client, **options)

    run(body)


def test_nothing_to_send_asks_nobody():
    async def body() -> None:
        async with FakeCluster() as cluster, cluster.client() as client:
            before = len(cluster.broker().requests)
            assert await Producer(client).send_all([]) == []
            assert len(cluster.broker().requests) == before

    run(body)
