"""Clusters that have what findings speak of: a broker of ours, and a stub where it takes several nodes.

The stub stands in for what one node cannot have: partitions without a leader or with copies elsewhere, nodes that are
fenced or silent, several voters, a directory that failed, and a plugin that fails to describe a topology.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

import msgspec

import ottla.testing
from ottla.client import Client, Producer, ProducerRecord, ShareConsumer, TopicPartition, topics, transactions
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.group_offsets import commit
from ottla.client.offsets import delete_records
from ottla.wire import frames, types
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.component.cli.cluster_thread import fake_cluster
from tests.component.client.fake import FakeCluster, topic_id

TIME_LIMIT_S: Final = 60
LONG_MS: Final = 600_000
"""Sessions, locks and transactions outlive the tests."""
SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": 0,
    **{
        f"group.{kind}.{bound}session.timeout.ms": LONG_MS
        for kind in ("consumer", "share", "streams")
        for bound in ("", "max.")
    },
    **{f"group.share.{bound}record.lock.duration.ms": LONG_MS for bound in ("", "max.")},
    "group.streams.topology.description.plugin.class": "ottla.topology_descriptions.InMemoryPlugin",
}
TILLS: Final = "night shift"
"""A name that a shell would take for two."""
IDLE: Final = "idle"
RISK: Final = "risk"
TOTALS: Final = "totals"
STOPPED: Final = "stopped"


class Trouble(NamedTuple):
    """A broker on which

    * `night shift`, a consumer group, is in the middle of a rebalance: its static member till-1 keeps what till-2 is to
      get, and is behind in orders-1;
    * `idle` has no members, and is behind what was deleted from orders-0;
    * `risk`, a share group, has rejected payments-1 3 and released 4;
    * `totals`, a streams group, has a member of an older topology; `stopped` lacks a topic;
    * `loader` has a transaction open in ledger-0.
    """

    bootstrap_servers: str
    tills: tuple[str, str]
    producer_id: int


@contextmanager
def trouble() -> Iterator[Trouble]:
    with ottla.testing.broker(**SETTINGS) as broker, ExitStack() as stack:
        loop = asyncio.new_event_loop()
        stack.callback(loop.close)
        clients = {name: Client(broker.bootstrap_servers, client_id=name) for name in ("till-1", "till-2", "worker")}
        for client in clients.values():
            loop.run_until_complete(client.__aenter__())
            stack.callback(lambda client=client: loop.run_until_complete(client.close()))
        made = loop.run_until_complete(asyncio.wait_for(_make(clients), TIME_LIMIT_S))
        yield Trouble(broker.bootstrap_servers, *made)


async def _make(clients: dict[str, Client]) -> tuple[tuple[str, str], int]:
    client = clients["worker"]
    for name, partitions in {"orders": 2, "payments": 2, "ledger": 1, "lines": 2, "left": 1, "right": 2}.items():
        await topics.create(client, topics.NewTopic(name, partitions=partitions))
    await Producer(client).send_all(
        [
            ProducerRecord(topic, b"%s-%d record %d" % (topic.encode(), partition, number), partition=partition)
            for topic in ("orders", "payments")
            for partition in (0, 1)
            for number in range(10)
        ]
    )
    await commit(client, IDLE, {TopicPartition("orders", 0): 2})
    await commit(client, TILLS, {TopicPartition("orders", 0): 10, TopicPartition("orders", 1): 3})
    await delete_records(client, {TopicPartition("orders", 0): 5})
    tills = await _hold_up(clients)
    await _work(client)
    await _stream(client, TOTALS, "totals-1", "lines", topology_epoch=1)
    await _stream(client, TOTALS, "totals-2", "lines", topology_epoch=0)
    await _stream(client, STOPPED, "stopped-1", "nowhere")
    identity = await transactions.begin(client, "loader", timeout_ms=LONG_MS)
    await Producer(client, identity=identity).send("ledger", b"open", partition=0)
    return tills, identity.producer_id


async def _hold_up(clients: dict[str, Client]) -> tuple[str, str]:
    """One member has both partitions; another comes, and the first does not hear of it."""
    (orders,) = (await clients["till-1"].topics(["orders"])).values()

    async def beat(name: str, member_id: str, epoch: int, owned: tuple[int, ...] = ()) -> Any:
        mine = ConsumerGroupHeartbeatRequest.TopicPartitions(orders.topic_id, owned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=TILLS, member_id=member_id, member_epoch=epoch, instance_id="first" if name == "till-1" else None,
            rebalance_timeout_ms=LONG_MS, subscribed_topic_names=("orders",), topic_partitions=(mine,) if owned else (),
        )  # fmt: skip
        answer = await clients[name].send(request, coordinator=("group", TILLS))
        assert answer.error_code == 0, answer
        return answer

    ids = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
    joined = await beat("till-1", ids[0], 0)
    await beat("till-1", ids[0], joined.member_epoch, (0, 1))
    await beat("till-2", ids[1], 0)
    return ids


async def _work(client: Client) -> None:
    """Of payments-1, 3 is rejected and 4 released; what is then delivered again is kept."""
    earliest = Change(Operation.SET, "share.auto.offset.reset", "earliest")
    await alter(client, Resource(ResourceType.GROUP, RISK), [earliest])
    consumer = await ShareConsumer(client, RISK, ["payments"], acknowledgement="explicit").__aenter__()
    seen = 0
    while seen < 20:
        for acquired in await consumer.poll():
            for record in acquired.records():
                verdicts = {(1, 3): consumer.reject, (1, 4): consumer.release}
                verdicts.get((record.partition, record.offset), consumer.accept)(record)
                seen += 1
    await consumer.commit()
    while not await consumer.poll():
        pass


async def _stream(client: Client, group: str, member_id: str, topic: str, topology_epoch: int = 0) -> None:
    part = StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=(topic,))
    request = StreamsGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=0, rebalance_timeout_ms=LONG_MS,
        topology=StreamsGroupHeartbeatRequest.Topology(epoch=topology_epoch, subtopologies=(part,)),
        active_tasks=(), standby_tasks=(), warmup_tasks=(), process_id=f"process of {member_id}", client_tags=(),
    )  # fmt: skip
    answer = await client.send(request, coordinator=("group", group))
    assert answer.error_code == 0, answer


# --- several nodes ----------------------------------------------------------------------------------------------------

NODES: Final = 3
NOBODY_LISTENS: Final = 1
"""A port."""
_Topics = types.DescribeTopicPartitionsResponse
_Partition = _Topics.DescribeTopicPartitionsResponsePartition
_Cluster = types.DescribeClusterResponse
_Dirs = types.DescribeLogDirsResponse
_Quorum = types.DescribeQuorumResponse
_Offsets = types.ListOffsetsResponse
_Streams = types.StreamsGroupDescribeResponse
STORAGE_ERROR: Final = 56
FAILED_DIRECTORY: Final = "/data/disk 2"
QUORUM_NOW_MS: Final = 1_790_000_000_000


@contextmanager
def sick_cluster() -> Iterator[FakeCluster]:
    """Nodes 1 to 4, of which 2 is fenced, 3 has a disk that failed, 4 does not answer, and 5 is not there at all though
    partitions name it. Partition 1 of orders and of __consumer_offsets has no leader; partition 0 lacks a copy. Of four
    voters, 3 and 4 do not fetch; the plugin for topologies fails, and a warm-up has still 500 records to read."""
    answers: dict[str, Any] = {
        "DescribeTopicPartitions": _described,
        "ListOffsets": _ends,
        "DescribeConfigs": types.DescribeConfigsResponse(),
        "ListGroups": types.ListGroupsResponse(),
        "DescribeLogDirs": _directories(_Dirs.DescribeLogDirsResult(0, "/data/disk1", (), 1000 << 30, 20 << 30)),
        "DescribeQuorum": _quorum,
        "StreamsGroupDescribe": _streams,
        "OffsetFetch": types.OffsetFetchResponse(groups=(types.OffsetFetchResponse.OffsetFetchResponseGroup(TOTALS),)),
    }
    with fake_cluster(NODES, {"orders": [1, 1], "__consumer_offsets": [1, 1]}, **answers) as cluster:
        cluster.broker(1).on("DescribeCluster", _cluster(cluster))
        cluster.broker(3).on(
            "DescribeLogDirs", _directories(_Dirs.DescribeLogDirsResult(STORAGE_ERROR, FAILED_DIRECTORY))
        )
        yield cluster


def _described(request: frames.Request) -> Any:
    names = [each.name for each in request.body.topics] or ["orders", "__consumer_offsets"]
    partitions = (
        _Partition(0, 0, 1, 7, (1, 2, 5), (1,), (), (), (2, 5)),
        _Partition(0, 1, -1, 8, (2, 5), (2,), (2,), (), (2, 5)),
        _Partition(0, 2, 1, 0, (1, 3), (1, 3)),
    )
    topic = _Topics.DescribeTopicPartitionsResponseTopic
    return _Topics(topics=tuple(topic(0, name, topic_id(name), name.startswith("__"), partitions) for name in names))


def _ends(request: frames.Request) -> Any:
    part, topic = _Offsets.ListOffsetsPartitionResponse, _Offsets.ListOffsetsTopicResponse
    return _Offsets(
        topics=tuple(
            topic(each.name, tuple(part(one.partition_index) for one in each.partitions))
            for each in request.body.topics
        )
    )


def _cluster(cluster: FakeCluster) -> Any:
    broker = _Cluster.DescribeClusterBroker
    ports = {node: each.port for node, each in cluster.brokers.items()} | {NODES + 1: NOBODY_LISTENS}
    return _Cluster(
        cluster_id="sick",
        brokers=tuple(broker(node, "127.0.0.1", port, None, node == 2) for node, port in ports.items()),
    )


def _directories(one: Any) -> Callable[[frames.Request], Any]:
    """A node with one directory, which does not say how large topics are."""
    return lambda request: _Dirs(results=(one,) if request.body.topics is None else ())


def _quorum(_: frames.Request) -> Any:
    def replica(node: int, end: int, ago_ms: int) -> Any:
        return _Quorum.ReplicaState(node, bytes([node] * 16), end, QUORUM_NOW_MS - ago_ms, QUORUM_NOW_MS - ago_ms)

    voters = replica(1, 1_000, 0), replica(2, 1_000, 100), replica(3, 400, 90_000), replica(4, 900, 20_000)
    state = _Quorum.PartitionData(0, 0, None, 1, 8, 900, voters, (replica(6, 1_000, 0),))
    return _Quorum(topics=(_Quorum.TopicData("__cluster_metadata", (state,)),))


def _streams(_: frames.Request) -> Any:
    warmup = _Streams.Assignment((), (), (_Streams.TaskIds("0", (1,)),))
    member = _Streams.Member(
        member_id="totals-1", member_epoch=4, client_id="worker", process_id="p", assignment=warmup,
        target_assignment=warmup, task_offsets=(_Streams.TaskOffset("0", 1, 500),),
        task_end_offsets=(_Streams.TaskOffset("0", 1, 1_000),),
    )  # fmt: skip
    topology = _Streams.Topology(0, (_Streams.Subtopology("0", ("lines",)),))
    group = _Streams.DescribedGroup(0, None, TOTALS, "Stable", 4, 4, topology, (member,))
    return _Streams(groups=(msgspec.structs.replace(group, topology_description_status=2),))


def leaderless(_: frames.Request) -> Any:
    """The quorum of a broker whose controllers cannot agree on a leader."""
    voters = tuple(_Quorum.ReplicaState(node, bytes(16), -1, -1, -1) for node in (1, 2, 3))
    state = _Quorum.PartitionData(0, 0, None, -1, 9, -1, voters, ())
    return _Quorum(topics=(_Quorum.TopicData("__cluster_metadata", (state,)),))
