"""ottla's client against Apache Kafka: every way to write, to read and to look."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, TypeVar

import pytest

from ottla.client import (
    EARLIEST,
    LATEST,
    Client,
    Fetcher,
    Producer,
    ProducerRecord,
    ResponseError,
    TopicPartition,
    cluster,
    configs,
    delete_records,
    fetch,
    groups,
    list_offsets,
    topics,
)
from ottla.client.configs import Change, ConfigSource, Operation, Resource, ResourceType
from ottla.client.errors import ProduceError
from ottla.client.offsets import EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST_TIERED, MAX_TIMESTAMP
from ottla.client.partitioner import partition_of_key
from ottla.client.topics import NewTopic
from ottla.wire import types, versions
from ottla.wire.batch import Record, build_batch
from tests.interop.apache import ApacheKafka

TIME_LIMIT_S = 120
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"

_names = count(1)
T = TypeVar("T")
Body = Callable[[Client, str], Coroutine[Any, Any, None]]


def run(kafka: ApacheKafka, body: Body, partitions: int = 1, **settings: Any) -> None:
    """Run a test with a client and a new topic; no task may be left behind."""
    name = f"client-{next(_names)}"

    async def bounded() -> None:
        async with asyncio.timeout(TIME_LIMIT_S), Client(kafka.bootstrap_servers) as client:
            await topics.create(client, NewTopic(name, partitions, configs=settings))
            await body(client, name)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(bounded(), debug=True)


async def eventually(look: Callable[[], Coroutine[Any, Any, T]], is_right: Callable[[T], bool]) -> T:
    """Look until it is right: the controller answers before all brokers know of a change."""
    found = await look()
    for _ in range(1000):
        if is_right(found):
            break
        await asyncio.sleep(0.05)
        found = await look()
    assert is_right(found), found
    return found


async def known(look: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Look until the broker knows of the topic: the controller answers its creation first."""
    for _ in range(1000):
        try:
            return await look()
        except ResponseError as error:
            if "UNKNOWN_TOPIC_OR_PARTITION" not in str(error):
                raise
            await asyncio.sleep(0.05)
    return await look()


async def values(client: Client, name: str, start: int = EARLIEST, **options: Any) -> list[bytes | None]:
    return [record.value async for record in fetch(client, {(name, 0): start}, until=LATEST, **options)]


# --- writing and reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read(apache_kafka: ApacheKafka, codec: str):
    async def body(client: Client, name: str) -> None:
        wanted = [
            ProducerRecord(name, b"tea", b"k", [("h", b"1"), ("n", None)], timestamp_ms=1_700_000_000_123),
            ProducerRecord(name, None, b"gone"),
            ProducerRecord(name, b"", None),
            *(ProducerRecord(name, b"%06d" % number * 20) for number in range(20_000)),
        ]
        placed = await Producer(client, compression=codec, batch_bytes=64 * 1024).send_all(wanted)
        assert [each.offset for each in placed] == list(range(len(wanted)))
        found = [record async for record in fetch(client, {(name, 0): EARLIEST}, until=LATEST)]
        assert [(each.offset, each.key, each.value) for each in found] == [
            (offset, each.key, each.value) for offset, each in enumerate(wanted)
        ]
        assert found[0].headers == (("h", b"1"), ("n", None))
        assert found[0].timestamp_ms == 1_700_000_000_123
        assert found[0].leader_epoch == 0

    run(apache_kafka, body)


def test_java_reads_what_is_written_and_writes_what_is_read(apache_kafka: ApacheKafka):
    where = ("--bootstrap-server", apache_kafka.bootstrap_servers)

    async def body(client: Client, name: str) -> None:
        await Producer(client, idempotent=True, compression="lz4").send(name, "grün".encode(), key=b"k", partition=0)
        bounds = ("--from-beginning", "--max-messages", "1", "--timeout-ms", "30000")
        shown = ("--formatter-property", "print.key=true")
        read = await asyncio.to_thread(apache_kafka.tool, CONSUMER, *where, "--topic", name, *bounds, *shown)
        assert read.splitlines()[0] == "k\tgrün"
        lines = "".join(f"key-{number}:value-{number}\n" for number in range(200))
        keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
        await asyncio.to_thread(apache_kafka.tool, PRODUCER, *where, "--topic", name, *keyed, stdin=lines)
        everywhere = {(name, partition): EARLIEST for partition in range(5)}
        found = [record async for record in fetch(client, everywhere, until=LATEST)]
        by_java = [each for each in found if (each.value or b"").startswith(b"value-")]
        assert len(by_java) == 200
        for each in by_java:
            assert each.key is not None
            assert each.partition == partition_of_key(each.key, 5)

    run(apache_kafka, body, partitions=5)


def test_acknowledgements(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        assert (await Producer(client, acks=1).send(name, b"one")).offset == 0
        assert (await Producer(client, acks=0).send(name, b"two")).offset is None
        assert (await Producer(client, acks="all").send(name, b"three")).offset == 2
        assert await values(client, name) == [b"one", b"two", b"three"]

    run(apache_kafka, body)


def test_the_broker_s_clock(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        placed = await Producer(client).send(name, b"v", timestamp_ms=1_700_000_000_000)
        assert placed.timestamp_ms > 1_700_000_000_000
        (found,) = [record async for record in fetch(client, {(name, 0): EARLIEST}, until=LATEST)]
        assert found.timestamp_ms == placed.timestamp_ms
        assert found.timestamp_type.name == "LOG_APPEND_TIME"

    run(apache_kafka, body, **{"message.timestamp.type": "LogAppendTime"})


def test_what_a_broker_refuses_is_explained(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        producer = Producer(client, idempotent=True)
        assert (await producer.send(name, b"small", key=b"k")).offset == 0
        with pytest.raises(ProduceError, match="MESSAGE_TOO_LARGE") as large:
            await producer.send_all([ProducerRecord(name, b"v" * 10_000, b"k"), ProducerRecord(name, b"v", b"k")])
        assert large.value.delivered == [None, None]
        with pytest.raises(ProduceError, match=r"INVALID_RECORD \(87\): .*record 0: ") as keyless:
            await producer.send(name, b"v")
        assert keyless.value.about == f"{name}-0"
        assert (await producer.send(name, b"again", key=b"k")).offset == 1
        assert await values(client, name) == [b"small", b"again"]

    run(apache_kafka, body, **{"max.message.bytes": "5000", "cleanup.policy": "compact"})


def test_an_idempotent_producer_is_one_to_the_broker(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        producer = Producer(client, idempotent=True, batch_bytes=1000)
        records = [ProducerRecord(name, b"%d" % number, partition=number % 3) for number in range(3000)]
        await producer.send_all(records)
        await asyncio.gather(*(producer.send(name, b"x", partition=number % 3) for number in range(30)))
        request = types.DescribeProducersRequest(topics=(types.DescribeProducersRequest.TopicRequest(name, (0, 1, 2)),))
        answer = await client.send(request, partition=(name, 0))
        states = [each.active_producers for each in answer.topics[0].partitions]
        assert [len(each) for each in states] == [1, 1, 1]
        assert {each[0].producer_id for each in states} == {states[0][0].producer_id}
        assert [each[0].last_sequence for each in states] == [1009, 1009, 1009]

    run(apache_kafka, body, partitions=3)


def test_reading_begins_and_ends_anywhere(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        await Producer(client).send_all([ProducerRecord(name, b"%d" % number) for number in range(100)])
        at = TopicPartition(name, 0)
        assert [record.offset async for record in fetch(client, {at: 40}, until={at: 60})] == list(range(40, 60))
        assert await values(client, name, LATEST) == []
        assert await values(client, name, 500) == []
        async with Fetcher(client, {at: 500}) as fetcher:
            with pytest.raises(ResponseError, match="at offset 500: OFFSET_OUT_OF_RANGE"):
                await fetcher.poll(timeout_ms=10_000)
        async with Fetcher(client, {at: 500}, on_out_of_range=EARLIEST) as fetcher:
            (fetched,) = await fetcher.poll(timeout_ms=10_000)
            assert len(list(fetched.records())) == 100
        async with Fetcher(client, {at: LATEST}) as fetcher:
            assert await fetcher.poll(timeout_ms=50) == []
            polling = asyncio.create_task(fetcher.poll(timeout_ms=30_000))
            await Producer(client).send(name, b"new")
            (fetched,) = await polling
            assert [record.value for record in fetched.records()] == [b"new"]
            assert (fetched.high_watermark, fetched.log_start_offset) == (101, 0)

    run(apache_kafka, body)


def test_offsets_by_name_and_by_time(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        producer, at = Producer(client), (name, 0)
        for timestamp_ms in (1_700_000_000_000, 1_700_000_500_000, 1_700_000_300_000):
            await producer.send(name, b"v", timestamp_ms=timestamp_ms)
        found = {
            wanted: (await list_offsets(client, {at: wanted}))[TopicPartition(*at)]
            for wanted in (EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, 1_700_000_200_000, 1_800_000_000_000)
        }
        assert {wanted: (each.offset, each.timestamp_ms) for wanted, each in found.items()} == {
            EARLIEST: (0, -1),
            LATEST: (3, -1),
            MAX_TIMESTAMP: (1, 1_700_000_500_000),
            EARLIEST_LOCAL: (0, -1),
            1_700_000_200_000: (1, 1_700_000_500_000),
            1_800_000_000_000: (-1, -1),
        }
        for tiered in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            assert (await list_offsets(client, {at: tiered}))[TopicPartition(*at)].offset == -1
        assert await delete_records(client, {at: 2}) == {TopicPartition(*at): 2}
        assert (await list_offsets(client, {at: EARLIEST}))[TopicPartition(*at)].offset == 2
        assert len(await values(client, name)) == 1

    run(apache_kafka, body)


# --- transactions -----------------------------------------------------------------------------------------------------


class Transactions:
    """A transactional producer made of plain requests (the older way, with AddPartitionsToTxn)."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name, self.id = client, name, f"txn-{name}"
        self.sequence = 0

    async def begin(self) -> None:
        request = types.InitProducerIdRequest(self.id, 60_000)
        self.identity = await self.client.send(request, coordinator=("transaction", self.id))
        assert self.identity.error_code == 0
        self.sequence = 0

    async def write(self, value: bytes) -> None:
        topic = types.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(self.name, (0,))
        add = types.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.producer_epoch,
            v3_and_below_topics=(topic,),
        )
        added = await self.client.send(add, coordinator=("transaction", self.id), version=3)
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        batch = build_batch(
            [Record(0, 1_700_000_000_000, None, value)],
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            base_sequence=self.sequence,
            is_transactional=True,
        )
        self.sequence += 1
        data = types.ProduceRequest.TopicProduceData(
            self.name, partition_data=(types.ProduceRequest.PartitionProduceData(0, batch),)
        )
        produce = types.ProduceRequest(self.id, -1, 30_000, (data,))
        answer = await self.client.send(produce, partition=(self.name, 0), version=9)
        assert answer.responses[0].partition_responses[0].error_code == 0

    async def end(self, *, committed: bool) -> None:
        request = types.EndTxnRequest(self.id, self.identity.producer_id, self.identity.producer_epoch, committed)
        answer = await self.client.send(request, coordinator=("transaction", self.id), version=4)
        assert answer.error_code == 0


def test_what_was_aborted_is_not_read(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        transactions = Transactions(client, name)
        for value, committed in ((b"yes 1", True), (b"no 1", False), (b"yes 2", True), (b"no 2", False)):
            await transactions.begin()
            await transactions.write(value)
            await transactions.write(value)
            await transactions.end(committed=committed)
        await Producer(client).send(name, b"plain")
        await transactions.begin()
        await transactions.write(b"open")
        committed = [b"yes 1", b"yes 1", b"yes 2", b"yes 2", b"plain"]
        await until_committed(client, name, committed)
        everything = [b"yes 1"] * 2 + [b"no 1"] * 2 + [b"yes 2"] * 2 + [b"no 2"] * 2 + [b"plain", b"open"]
        assert await values(client, name) == everything
        at = TopicPartition(name, 0)
        stable = (await list_offsets(client, {at: LATEST}, isolation="read_committed"))[at].offset
        assert stable == (await list_offsets(client, {at: LATEST}))[at].offset - 1
        await transactions.end(committed=True)
        await until_committed(client, name, [*committed, b"open"])

    run(apache_kafka, body)


async def until_committed(client: Client, name: str, wanted: list[bytes]) -> None:
    """Markers are written after EndTxn was answered; a reader sees them a moment later."""
    found: list[bytes | None] = []
    for _ in range(100):
        found = await values(client, name, isolation="read_committed")
        if len(found) >= len(wanted):
            break
        await asyncio.sleep(0.05)
    assert found == wanted


# --- topics, configurations, the cluster ------------------------------------------------------------------------------


def test_the_life_of_a_topic(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        other = f"{name}-other"
        (created,) = await topics.create(client, NewTopic(other, 2, 1, {"retention.ms": "1234"}))
        assert (created.partitions, created.replication_factor, created.configs["retention.ms"]) == (2, 1, "1234")
        outcomes = await topics.try_create(client, NewTopic(other), NewTopic(f"{name}-third"), validate_only=True)
        assert isinstance(outcomes[other], ResponseError)
        assert not isinstance(outcomes[f"{name}-third"], ResponseError)
        every = await eventually(lambda: topics.try_describe(client), lambda found: other in found)
        described = every[other]
        assert isinstance(described, topics.TopicDescription)
        assert described.topic_id == created.topic_id
        assert described.partitions[1][:5] == (1, 1, 0, (1,), (1,))
        await topics.add_partitions(client, other, 5)
        with pytest.raises(ResponseError, match="INVALID_PARTITIONS"):
            await topics.add_partitions(client, other, 5)
        await eventually(lambda: topics.describe(client, other), lambda found: len(found[0].partitions) == 5)
        assert (await Producer(client).send(other, b"v", partition=4)).offset == 0
        assert await topics.try_delete(client, other) == {other: None}
        await eventually(
            lambda: topics.try_describe(client, other), lambda found: isinstance(found[other], ResponseError)
        )
        (again,) = await topics.create(client, NewTopic(other, 1))
        assert again.topic_id != created.topic_id
        assert (await Producer(client).send(other, b"v")).offset == 0, "a topic of the same name is another topic"
        await topics.create(client, NewTopic(f"{name}-placed", assignments={0: [1], 1: [1]}))
        await topics.delete(client, other, f"{name}-placed")

    run(apache_kafka, body)


def test_configurations(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        topic = Resource(ResourceType.TOPIC, name)
        assert len(await known(lambda: configs.describe(client, topic))) == 33
        changes = [Change(Operation.SET, "retention.ms", "77"), Change(Operation.APPEND, "cleanup.policy", "compact")]
        await configs.alter(client, topic, changes, validate_only=True)
        assert (await configs.describe(client, topic))["retention.ms"].value == "604800000"
        await configs.alter(client, topic, changes)
        found = await eventually(
            lambda: configs.describe(client, topic, keys=["retention.ms", "cleanup.policy"], synonyms=True),
            lambda found: not found["retention.ms"].is_default,
        )
        assert {key: (each.value, each.source) for key, each in found.items()} == {
            "retention.ms": ("77", ConfigSource.TOPIC),
            "cleanup.policy": ("delete,compact", ConfigSource.TOPIC),
        }
        assert found["cleanup.policy"].synonyms[1] == ("log.cleanup.policy", "delete", ConfigSource.DEFAULT)
        await configs.alter(client, topic, [Change(Operation.DELETE, "retention.ms")])
        entries = await eventually(
            lambda: configs.describe(client, topic, documentation=True), lambda found: found["retention.ms"].is_default
        )
        entry = entries["retention.ms"]
        assert (entry.value, entry.is_default) == ("604800000", True)
        assert "time" in (entry.documentation or "")
        with pytest.raises(ResponseError, match="INVALID_CONFIG"):
            await configs.alter(client, topic, [Change(Operation.SET, "retention.msss", "1")])
        assert topic in await configs.list_resources(client, ResourceType.TOPIC)

    run(apache_kafka, body)


def test_configurations_of_brokers_and_groups(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        one, every = Resource(ResourceType.BROKER, "1"), Resource(ResourceType.BROKER, "")
        group, logger = Resource(ResourceType.GROUP, name), Resource(ResourceType.BROKER_LOGGER, "1")
        entries = await configs.describe(client, one)
        assert len(entries) == 340
        assert (entries["node.id"].value, entries["node.id"].is_read_only) == ("1", True)
        await configs.alter(client, one, [Change(Operation.SET, "log.cleaner.backoff.ms", "15001")])
        await eventually(
            lambda: configs.describe(client, one),
            lambda found: found["log.cleaner.backoff.ms"].source is ConfigSource.DYNAMIC_BROKER,
        )
        await configs.alter(client, one, [Change(Operation.DELETE, "log.cleaner.backoff.ms")])
        await configs.alter(client, group, [Change(Operation.SET, "share.auto.offset.reset", "earliest")])
        await eventually(
            lambda: configs.describe(client, group),
            lambda found: found["share.auto.offset.reset"].source is ConfigSource.GROUP,
        )
        outcomes = await configs.try_describe(client, every, group, logger)
        assert all(isinstance(outcome, dict) for outcome in outcomes.values())
        with pytest.raises(ResponseError, match="INVALID_REQUEST"):
            await configs.alter(client, one, [Change(Operation.SET, "node.id", "9")])

    run(apache_kafka, body)


def test_the_cluster_and_its_quorum_are_those_of_the_tools(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        found = await cluster.describe(client, include_fenced=True)
        assert found.cluster_id == client.metadata.cluster_id
        assert [(each.node_id, each.port, each.is_fenced) for each in found.brokers] == [(1, apache_kafka.port, False)]
        quorum = await cluster.describe_quorum(client)
        status = await asyncio.to_thread(
            apache_kafka.tool, QUORUM, "--bootstrap-server", apache_kafka.bootstrap_servers, "describe", "--status"
        )
        facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        assert int(facts["LeaderId"]) == quorum.leader_id == 1
        assert int(facts["LeaderEpoch"]) == quorum.leader_epoch
        assert int(facts["HighWatermark"]) >= quorum.high_watermark > 0
        (voter,) = quorum.voters
        assert voter.endpoints == (("CONTROLLER", "127.0.0.1", int(apache_kafka.controller_servers.split(":")[1])),)
        assert voter.directory_id is not None
        assert quorum.lag(voter) == 0

    run(apache_kafka, body)


# --- groups -----------------------------------------------------------------------------------------------------------


def test_groups_of_three_kinds(apache_kafka: ApacheKafka):
    async def body(client: Client, name: str) -> None:
        consumer, share, classic = f"{name}-consumer", f"{name}-share", f"{name}-classic"
        joined = await client.send(
            types.ConsumerGroupHeartbeatRequest(
                group_id=consumer,
                member_id="c" * 22,
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=(name,),
                topic_partitions=(),
            ),
            coordinator=("group", consumer),
        )
        assert joined.error_code == 0
        shared = await client.send(
            types.ShareGroupHeartbeatRequest(
                group_id=share, member_id="s" * 22, member_epoch=0, subscribed_topic_names=(name,)
            ),
            coordinator=("group", share),
        )
        assert shared.error_code == 0
        await join_classic(client, classic)
        found = {each.group_id: each.type for each in await groups.list_groups(client)}
        assert {group_id: found[group_id] for group_id in (consumer, share, classic)} == {
            consumer: "consumer",
            share: "share",
            classic: "classic",
        }
        shares = {each.group_id: each.type for each in await groups.list_groups(client, types=["share"])}
        assert share in shares
        assert set(shares.values()) == {"share"}
        for group_id in (consumer, share, classic):
            described = await groups.describe(client, group_id)
            assert described.group_id == group_id
            assert len(described.members) == 1
        with pytest.raises(ResponseError, match="GROUP_ID_NOT_FOUND"):
            await groups.describe(client, f"{name}-nobody")

    run(apache_kafka, body)


async def join_classic(client: Client, group_id: str) -> None:
    """Two requests: the first is told its member id."""
    protocol = types.JoinGroupRequest.JoinGroupRequestProtocol("range", b"")
    member_id = ""
    for _ in range(2):
        request = types.JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        answer = await client.send(request, coordinator=("group", group_id))
        member_id = answer.member_id
    assert answer.error_code == 0


# --- every version ----------------------------------------------------------------------------------------------------


def test_each_version_that_both_sides_have(apache_kafka: ApacheKafka):
    """The same question in each version; the negotiated one is the highest of them."""

    async def body(client: Client, name: str) -> None:
        offered = await client.send(types.ApiVersionsRequest("ottla", "1"), version=4)
        ranges = {each.api_key: (each.min_version, each.max_version) for each in offered.api_keys}
        for api, key, message in (
            ("Metadata", 3, types.MetadataRequest()),
            ("ListGroups", 16, types.ListGroupsRequest()),
            ("DescribeCluster", 60, types.DescribeClusterRequest()),
            ("DescribeConfigs", 32, types.DescribeConfigsRequest()),
        ):
            low, high = ranges[key]
            for version in range(max(low, versions(f"{api}Request").start), high + 1):
                answer: Any = await client.send(message, broker=1, version=version)
                assert getattr(answer, "error_code", 0) == 0, (api, version)
            assert (await client.ask(api, lambda _, message=message: message)).version == high  # type: ignore[misc]

    run(apache_kafka, body)


@pytest.mark.parametrize("version", versions("FetchRequest"))
def test_fetch_in_each_version(apache_kafka: ApacheKafka, version: int):
    async def body(client: Client, name: str) -> None:
        await Producer(client).send(name, b"v")
        topic_id = client.metadata.topics[name].topic_id
        partition = types.FetchRequest.FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)
        topic = types.FetchRequest.FetchTopic(name, topic_id, (partition,))
        request = types.FetchRequest(max_wait_ms=100, min_bytes=1, topics=(topic,))
        answer = await client.send(request, partition=(name, 0), version=version)
        data = answer.responses[0].partitions[0]
        assert (data.error_code, data.high_watermark) == (0, 1)
        assert len(data.records or b"") > 61

    run(apache_kafka, body)


@pytest.mark.parametrize("version", versions("ProduceRequest"))
def test_produce_in_each_version(apache_kafka: ApacheKafka, version: int):
    async def body(client: Client, name: str) -> None:
        await client.topics([name])
        batch = build_batch([Record(0, 1_700_000_000_000, None, b"v")])
        partition = types.ProduceRequest.PartitionProduceData(0, batch)
        topic = types.ProduceRequest.TopicProduceData(name, client.metadata.topics[name].topic_id, (partition,))
        request = types.ProduceRequest(None, -1, 10_000, (topic,))
        answer = await client.send(request, partition=(name, 0), version=version)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert await values(client, name) == [b"v"]

    run(apache_kafka, body)


# --- trouble ----------------------------------------------------------------------------------------------------------


def test_a_broker_may_be_restarted_meanwhile(boot_apache_kafka: Callable[..., ApacheKafka]):
    kafka = boot_apache_kafka()

    async def body(client: Client, name: str) -> None:
        producer, at = Producer(client, idempotent=True), TopicPartition(name, 0)
        assert (await producer.send(name, b"before")).offset == 0
        async with Fetcher(client, {at: 0}) as fetcher:
            assert len(await fetcher.poll(timeout_ms=10_000)) == 1
            await asyncio.to_thread(kafka.stop)
            sending = asyncio.create_task(producer.send(name, b"after"))
            await asyncio.to_thread(kafka.start)
            assert (await sending).offset == 1
            fetched = []
            while not fetched:
                fetched = await fetcher.poll(timeout_ms=10_000)
            assert [record.value for record in fetched[0].records()] == [b"after"]

    run(kafka, body)
