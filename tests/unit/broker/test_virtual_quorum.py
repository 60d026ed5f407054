"""Several whole nodes in one process, on virtual time: they elect a leader, and follow its metadata log."""

from __future__ import annotations

import asyncio
import json

import pytest

from ottla.broker.controller.metadata_replay import MetadataLogError
from ottla.broker.node import Node
from ottla.core.metadata.context import Result
from ottla.core.metadata.image import CLIENT_METRICS, TOPIC
from ottla.core.metadata.snapshot import SnapshotId
from ottla.log.disk import read_all
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types import (
    AddRaftVoterRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    MetadataRequest,
    UpdateFeaturesRequest,
)
from ottla.wire.types.cluster_metadata import ConfigRecord, NoOpRecord
from tests.unit.broker.virtual_cluster import (
    APART,
    CLUSTER_ID,
    COMBINED,
    NODES,
    Cluster,
    cluster,
    config_of,
    until,
)
from tests.unit.broker.virtual_node import Client, create_topic, produce_to, run

HAND_OVER_MAX_S = 1


def test_three_nodes_elect_one_leader_and_know_each_other() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            assert len(it.leaders) == 1
            await asyncio.sleep(5)
            for node in it.nodes.values():
                assert {number: broker.fenced for number, broker in node.image.brokers.items()} == {
                    1: False,
                    2: False,
                    3: False,
                }

    run(scenario)


@pytest.mark.prompt
def test_a_start_does_not_wait_for_an_election_timeout() -> None:
    """The voters that are there first elect a leader; nobody waits for a silence that cannot end."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop):
            assert loop.time() < 0.5

    run(scenario)


@pytest.mark.prompt
def test_two_voters_that_see_each_other_do_not_wait_for_the_third() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, dict(COMBINED))
        first = loop.create_task(it.start(1))
        await asyncio.sleep(30)
        assert not first.done(), "one voter of three is no majority"
        began = loop.time()
        await it.start(3)
        await first
        assert loop.time() - began < 0.5
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)


@pytest.mark.prompt
@pytest.mark.parametrize("stop", ["kill", "stop"])
def test_nodes_that_start_again_do_not_wait_for_the_leader_of_their_last_life(stop: str) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.gather(*(getattr(it, stop)(number) for number in NODES))
            await asyncio.sleep(60)
            began = loop.time()
            await it.start(*NODES)
            assert loop.time() - began < 2

    run(scenario)


@pytest.mark.prompt
@pytest.mark.parametrize("of_leader", [True, False])
def test_a_killed_node_that_starts_again_at_once_does_not_wait_for_its_former_session(of_leader: bool) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.sleep(5)
            number = next(each for each in NODES if (each in it.leaders) is of_leader)
            await it.kill(number)
            began = loop.time()
            await it.start(number)
            assert loop.time() - began < 2
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert {each.broker_id for each in node.image.brokers.values() if not each.fenced} == set(NODES)

    run(scenario)


@pytest.mark.prompt
@pytest.mark.parametrize("of_leader", [True, False])
def test_a_killed_node_is_fenced_as_soon_as_nobody_listens_there(of_leader: bool) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.sleep(5)
            number = next(each for each in NODES if (each in it.leaders) is of_leader)
            await it.kill(number)
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert node.image.brokers[number].fenced

    run(scenario)


def test_a_node_that_is_only_cut_off_keeps_its_session() -> None:
    """Nobody refuses a connection, so silence counts as long as in Kafka."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.sleep(5)
            (leader,) = it.leaders
            number = next(each for each in NODES if each != leader)
            it.cut(number, *(each for each in NODES if each != number))
            await asyncio.sleep(6)
            assert not it.nodes[leader].image.brokers[number].fenced
            await asyncio.sleep(6)
            assert it.nodes[leader].image.brokers[number].fenced
            epoch = it.nodes[number].broker_lifecycle.broker_epoch
            it.heal()
            await asyncio.sleep(10)
            (leader,) = it.leaders
            broker = it.nodes[leader].image.brokers[number]
            assert (broker.fenced, broker.epoch) == (False, epoch), "it is the same process"

    run(scenario)


def test_a_node_that_stops_is_fenced_and_comes_back_as_one_that_stopped_in_order() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.sleep(3)
            (leader,) = it.leaders
            number = next(each for each in NODES if each != leader)
            epoch = it.nodes[number].broker_lifecycle.broker_epoch
            await it.stop(number)
            assert it.nodes[leader].image.brokers[number].fenced
            began = loop.time()
            await it.start(number)
            assert loop.time() - began < 6, "its former session is not waited for"
            assert it.nodes[number].storage.previous_broker_epoch == epoch
            assert not it.nodes[leader].image.brokers[number].fenced

    run(scenario)


def test_five_voters_bear_the_loss_of_two() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, dict.fromkeys((1, 2, 3, 4, 5), "broker,controller")) as it:
            await it.client(1).ask(create_topic("all"), 7)
            lost = [it.leaders[0], next(each for each in it.nodes if each not in it.leaders)]
            for number in lost:
                await it.kill(number)
            some = next(iter(it.nodes))
            (created,) = (await it.client(some).ask(create_topic("three"), 7)).topics
            assert created.error_code == 0
            third = next(each for each in it.nodes if each != some)
            await it.kill(third)
            await asyncio.sleep(10)
            assert it.leaders == []
            creating = loop.create_task(it.client(some).ask(create_topic("two"), 7))
            await asyncio.sleep(5)
            assert not creating.done(), "two of five commit nothing"
            topics = (await it.client(some).ask(MetadataRequest(None), 12)).topics
            assert {topic.name for topic in topics} == {"all", "three"}, "what is known is told all the same"
            await it.start(third)
            (created,) = (await creating).topics
            assert created.error_code == 0

    run(scenario)


def test_producer_ids_are_unique_whoever_leads() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            given: list[int] = []

            async def take(number: int, count: int) -> None:
                client = it.client(number)
                for _ in range(count):
                    answer = await client.ask(InitProducerIdRequest(None, 60_000), 5)
                    assert answer.error_code == 0
                    given.append(answer.producer_id)

            (first,) = it.leaders
            others = [each for each in NODES if each != first]
            await asyncio.gather(*(take(each, 600) for each in others))
            await it.kill(first)
            await asyncio.gather(*(take(each, 650) for each in others))
            assert len(set(given)) == len(given) == 2500
            assert it.leaders != [first]

    run(scenario)


def test_without_a_controller_producers_are_asked_to_try_again_for_an_id() -> None:
    """Older Java clients take what the controller's channel says for the end of their producer."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            it.cut(4, 1, 2, 3)

            async def ask(client: Client) -> int:
                return int((await client.ask(InitProducerIdRequest(None, 60_000), 5)).error_code)

            first, second = it.client(4), it.client(4)
            asking = loop.create_task(ask(first))
            await asyncio.sleep(20)
            assert await ask(second) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert await asking == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            it.heal()
            await asyncio.sleep(10)
            assert await ask(first) == 0

    run(scenario)


def test_a_second_process_with_the_id_of_a_broker_that_lives_is_refused() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            await asyncio.sleep(5)
            it.configs[7] = config_of(4, "broker", {"listeners": "PLAINTEXT://127.0.0.1:9792"})
            it.disks[7] = VirtualDisk()
            it.format(7)
            with pytest.raises(MetadataLogError, match="DUPLICATE_BROKER_REGISTRATION"):
                await it.start(7)
            for node in it.nodes.values():
                assert not node.image.brokers[4].fenced

    run(scenario)


def test_a_topic_that_any_node_creates_is_known_to_all() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            for number in NODES:
                (created,) = (await it.client(number).ask(create_topic(f"orders-{number}"), 7)).topics
                assert created.error_code == 0, created
                assert it.nodes[number].image.topic(f"orders-{number}") is not None
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert set(node.image.topics_by_name) == {"orders-1", "orders-2", "orders-3"}

    run(scenario)


def test_the_cluster_goes_on_when_its_leader_is_killed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (first,) = it.leaders
            await it.client(first).ask(create_topic("before"), 7)
            await it.kill(first)
            began = loop.time()
            other = next(iter(it.nodes))
            (created,) = (await it.client(other).ask(create_topic("after"), 7)).topics
            assert created.error_code == 0
            assert loop.time() - began < 5
            (second,) = it.leaders
            assert second != first
            await it.start(first)
            await asyncio.sleep(3)
            assert set(it.nodes[first].image.topics_by_name) == {"before", "after"}
            assert it.leaders == [second]

    run(scenario)


@pytest.mark.parametrize("seconds", [1, 2.5, 20])
def test_a_machine_that_stands_still_holds_no_election(seconds: float) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.sleep(3)
            (leader,) = it.leaders
            epoch = it.nodes[leader].raft.quorum.epoch
            for _ in range(5):
                loop.stand_still(seconds)
                await asyncio.sleep(0.3)
            await asyncio.sleep(5)
            assert it.leaders == [leader]
            assert it.nodes[leader].raft.quorum.epoch == epoch

    run(scenario)


def test_a_machine_that_stands_still_right_after_the_start_fences_nobody() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (leader,) = it.leaders
            publisher, events = it.nodes[leader].publisher, []
            publisher.when(
                lambda: any(broker.fenced for broker in publisher.image.brokers.values()),
                lambda: events.append("fenced"),
            )
            loop.stand_still(20)
            await asyncio.sleep(5)
            assert not events

    run(scenario)


@pytest.mark.prompt
def test_a_leader_that_stops_hands_over() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (first,) = it.leaders
            epoch = it.nodes[first].raft.quorum.epoch
            stopping = loop.create_task(it.stop(first))
            second = await next_leader(it, first)
            assert it.nodes[second].raft.quorum.epoch == epoch + 1
            await stopping

    run(scenario)


@pytest.mark.prompt
@pytest.mark.parametrize("place", [0, 1], ids=["first behind", "second behind"])
def test_a_leader_that_stops_hands_over_to_the_follower_that_has_most(place: int) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            await asyncio.sleep(3)
            (old,) = it.leaders
            epoch = it.nodes[old].raft.quorum.epoch
            followers = [each for each in NODES if each != old]
            behind = followers.pop(place)
            (advanced,) = followers
            it.cut(old, behind)
            (created,) = (await it.client(4).ask(create_topic("orders"), 7)).topics
            assert created.error_code == 0
            it.heal()  # what was sent meanwhile is lost, and is asked for again only after two seconds
            assert it.nodes[behind].raft.end_offset < it.nodes[advanced].raft.end_offset
            stopping = loop.create_task(it.stop(old))
            assert await next_leader(it, old) == advanced
            assert it.nodes[advanced].raft.quorum.epoch == epoch + 1
            await stopping
            await asyncio.sleep(5)
            assert it.nodes[behind].image.topic("orders") is not None

    run(scenario)


async def next_leader(it: Cluster, former: int) -> int:
    """The leader after one that stops. It must not take long."""
    await until(lambda: any(each != former for each in it.leaders), HAND_OVER_MAX_S)
    return next(each for each in it.leaders if each != former)


async def start_behind_a_snapshot(it: Cluster, away: int) -> tuple[Node, Node]:
    """Stop a follower and start it when the leader has only a snapshot of what it missed; both nodes, leader first."""
    await it.stop(away)
    (leader,) = it.leaders
    await it.client(leader).ask(create_topic("orders"), 7)
    node = it.nodes[leader]
    for _ in node.metadata_chores._write():
        pass
    newest = node.raft.snapshots.newest
    assert newest is not None
    node.raft.drop_below(newest.end_offset)
    await it.start(away)
    await asyncio.sleep(3)
    return node, it.nodes[away]


def test_a_leader_that_stops_leaves_the_cluster_before_it_hands_over() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (first,) = it.leaders
            epoch = it.nodes[first].raft.quorum.epoch
            await it.stop(first)
            fenced = [node for node in it.nodes.values() if node.image.brokers[first].fenced]
            assert fenced, "nobody can have been told in another epoch yet"
            assert fenced[0].image.last_epoch == epoch

    run(scenario)


def test_a_node_that_was_away_for_long_loads_a_snapshot() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            away = next(number for number in NODES if number not in it.leaders)
            leader, follower = await start_behind_a_snapshot(it, away)
            assert follower.image.topic("orders") is not None
            assert follower.raft.snapshots.newest == leader.raft.snapshots.newest
            assert follower.image == leader.image

    run(scenario)


def metadata_directory(number: int) -> str:
    return f"/data{number}/__cluster_metadata-0"


def write_file(disk: VirtualDisk, path: str, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.write([data], 0)
    file.sync()
    file.close()


def put_snapshot(it: Cluster, leader: Node, number: int, identity: SnapshotId) -> None:
    """Give a node the leader's snapshot, as far as a download comes before its log is touched."""
    data = read_all(it.disks[leader.node_id], f"{metadata_directory(leader.node_id)}/{identity.file_name}")
    write_file(it.disks[number], f"{metadata_directory(number)}/{identity.file_name}", data)


def test_half_a_snapshot_is_removed_at_the_next_start() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            away = next(number for number in NODES if number not in it.leaders)
            await it.kill(away)
            half = f"{metadata_directory(away)}/00000000000000009000-0000000009-download.checkpoint.part"
            write_file(it.disks[away], half, b"half of it")
            await it.start(away)
            assert not it.disks[away].exists(half)
            assert it.nodes[away].raft.snapshots.newest is None

    run(scenario)


def test_a_node_that_crashed_between_a_snapshot_and_its_log_starts_with_the_snapshot() -> None:
    """The snapshot was downloaded and has its name; the log still ends below it."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            away = next(number for number in NODES if number not in it.leaders)
            await it.kill(away)
            (leader,) = it.leaders
            await it.client(leader).ask(create_topic("orders"), 7)
            node = it.nodes[leader]
            for _ in node.metadata_chores._write():
                pass
            newest = node.raft.snapshots.newest
            assert newest is not None
            put_snapshot(it, node, away, newest)
            await it.start(away)
            follower = it.nodes[away]
            assert follower.raft.partition.log_start_offset == newest.end_offset
            assert follower.image.topic("orders") is not None
            await it.client(leader).ask(create_topic("later"), 7)
            await asyncio.sleep(1)
            assert follower.image == node.image

    run(scenario)


async def leader_cut_off_behind_a_snapshot(it: Cluster) -> tuple[int, Node, SnapshotId]:
    """Cut a leader off whose log goes on behind the next leader's snapshot, with records that are never committed; its
    number, the next leader, and the snapshot."""
    (old,) = it.leaders
    it.cut(old, *(number for number in NODES if number != old))
    setting = ConfigRecord(CLIENT_METRICS, "lost", "interval.ms", "1000")
    it.nodes[old].controller.append(Result((Versioned(setting, 0), *[Versioned(NoOpRecord(), 0)] * 100), None))
    await until(lambda: any(number != old for number in it.leaders))
    node = next(it.nodes[number] for number in it.leaders if number != old)
    await it.client(node.node_id).ask(create_topic("orders"), 7)
    for _ in node.metadata_chores._write():
        pass
    newest = node.raft.snapshots.newest
    assert newest is not None
    assert newest.end_offset < it.nodes[old].raft.end_offset
    return old, node, newest


def test_a_former_leader_that_loads_a_snapshot_forgets_what_was_never_committed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            old, leader, newest = await leader_cut_off_behind_a_snapshot(it)
            it.heal()
            follower = it.nodes[old]
            await until(lambda: follower.raft.snapshots.newest == newest)
            await it.client(leader.node_id).ask(create_topic("later"), 7)
            await asyncio.sleep(1)
            assert set(follower.image.topics_by_name) == {"orders", "later"}
            assert follower.image == leader.image

    run(scenario)


def test_a_node_that_crashed_before_a_snapshot_took_the_place_of_a_longer_log_starts_with_the_snapshot() -> None:
    """The snapshot has its name; the log goes on behind its end, with records that are not those of the leader."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            old, leader, newest = await leader_cut_off_behind_a_snapshot(it)
            await it.kill(old)
            put_snapshot(it, leader, old, newest)
            leader.controller.append(Result(tuple([Versioned(NoOpRecord(), 0)] * 200), None))
            it.heal()
            async with asyncio.timeout(30):
                await it.start(old)
            follower = it.nodes[old]
            assert follower.raft.partition.log_start_offset == newest.end_offset
            await it.client(leader.node_id).ask(create_topic("later"), 7)
            await asyncio.sleep(1)
            assert follower.image == leader.image

    run(scenario)


def test_a_node_that_crashed_before_a_snapshot_took_the_place_of_its_log_has_no_older_snapshots() -> None:
    """As a leader it goes by its oldest one: it would not notice whose log has parted from its own in between."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            away = next(number for number in NODES if number not in it.leaders)
            for _ in it.nodes[away].metadata_chores._write():
                pass
            await it.kill(away)
            (leader,) = (it.nodes[number] for number in it.leaders)
            await it.client(leader.node_id).ask(create_topic("orders"), 7)
            for _ in leader.metadata_chores._write():
                pass
            newest = leader.raft.snapshots.newest
            assert newest is not None
            put_snapshot(it, leader, away, newest)
            await it.start(away)
            assert it.nodes[away].raft.snapshots.ids == [newest]

    run(scenario)


def test_pieces_of_snapshots_and_of_the_log_are_as_large_as_the_settings_say() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            away = next(number for number in NODES if number not in it.leaders)
            sizes = {"controller.quorum.fetch.snapshot.max.bytes": "100", "controller.quorum.fetch.max.bytes": "90"}
            it.configs[away] = config_of(away, "broker,controller", sizes)
            leader, follower = await start_behind_a_snapshot(it, away)
            assert follower.image == leader.image
            settings = follower.raft.quorum.settings
            assert (settings.fetch_snapshot_max_bytes, settings.fetch_max_bytes) == (100, 90)

    run(scenario)


def test_all_nodes_start_again_with_what_they_had() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await it.client(1).ask(create_topic("orders"), 7)
            for number in NODES:
                await it.kill(number)
            await it.start(*NODES)
            await asyncio.sleep(1)
            assert len(it.leaders) == 1
            for node in it.nodes.values():
                assert node.image.topic("orders") is not None

    run(scenario)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_alike_by_every_node(version: int) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.sleep(3)
            kind = DescribeQuorumRequest
            request = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
            for number in NODES:
                answer = await it.client(number).ask(request, version)
                (partition,) = answer.topics[0].partitions
                assert [partition.leader_id] == it.leaders
                assert [voter.replica_id for voter in partition.current_voters] == [1, 2, 3]
                ends = [voter.log_end_offset for voter in partition.current_voters]
                assert max(ends) - min(ends) <= 1
                assert partition.high_watermark > 0

    run(scenario)


def test_controllers_and_brokers_may_be_apart() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            client = it.client(4)
            (created,) = (await client.ask(create_topic("orders"), 7)).topics
            assert created.error_code == 0
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert node.image.topic("orders") is not None
                assert set(node.image.brokers) == {4, 5}
                assert set(node.image.controllers) == {1, 2, 3}
            partition = it.nodes[1].image.partition("orders", 0)
            assert partition is not None
            produced = await it.client(partition.leader).ask(produce_to(created.topic_id), 13)
            assert produced.responses[0].partition_responses[0].error_code == 0
            other = 9 - partition.leader
            refused = await it.client(other).ask(produce_to(created.topic_id), 13)
            assert refused.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario)


def test_every_controller_names_the_active_one() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            for number in NODES:
                answer = await Client(loop, int(f"9{number}93")).ask(DescribeClusterRequest(endpoint_type=2), 1)
                assert [answer.controller_id] == it.leaders
                assert {each.broker_id for each in answer.brokers} == set(NODES)

    run(scenario)


def test_nodes_are_told_by_the_listener_that_is_asked() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, dict(COMBINED))
        for number in NODES:
            ports = (("PLAINTEXT", 92), ("CONTROLLER", 93), ("LAN", 94))
            settings = {
                "listeners": ",".join(f"{name}://127.0.0.1:9{number}{port}" for name, port in ports),
                "listener.security.protocol.map": "LAN:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
            it.configs[number] = config_of(number, COMBINED[number], settings)
        await it.start(*NODES)
        await asyncio.sleep(1)
        for port in (92, 94):
            client = Client(loop, int(f"92{port}"))
            described = await client.ask(DescribeClusterRequest(), 1)
            known = await client.ask(MetadataRequest(), 12)
            for nodes in (described.brokers, {each.node_id: each for each in known.brokers}.values()):
                assert sorted(each.port for each in nodes) == [int(f"9{number}{port}") for number in NODES]
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)


def test_what_a_leader_without_followers_has_decided_counts_for_nobody() -> None:
    """Its records are never committed; the next leader is asked again, and the client sees nothing of it."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (old,) = it.leaders
            others = [number for number in NODES if number != old]
            it.cut(old, *others)
            creating = loop.create_task(it.client(old).ask(create_topic("orders"), 7))
            await asyncio.sleep(1)
            fork = it.nodes[old].controller.image
            assert fork is not None
            assert fork.topic("orders") is not None
            assert it.nodes[old].image.topic("orders") is None, "no broker acts on what is not committed"
            await asyncio.sleep(9)
            (new,) = it.leaders
            assert new != old
            (created,) = (await it.client(new).ask(create_topic("payments"), 7)).topics
            assert created.error_code == 0
            assert not creating.done()
            it.heal()
            (created,) = (await creating).topics
            assert created.error_code == 0
            await asyncio.sleep(1)
            for node in it.nodes.values():
                assert set(node.image.topics_by_name) == {"orders", "payments"}
                topic = node.image.topic("orders")
                assert topic is not None
                assert topic.topic_id == created.topic_id, "that of the second attempt: the first was cut off"

    run(scenario)


def test_metadata_is_told_while_there_is_no_controller_to_create_what_is_missing() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await it.client(1).ask(create_topic("orders"), 7)
            await until(lambda: it.nodes[1].image.topic("orders") is not None)
            await asyncio.gather(it.kill(2), it.kill(3))
            await asyncio.sleep(10)
            began = loop.time()
            topics = tuple(map(MetadataRequest.MetadataRequestTopic, (bytes(16),) * 2, ("orders", "missing")))
            answer = await it.client(1).ask(MetadataRequest(topics), 12)
            assert loop.time() - began < 2
            codes = {each.name: each.error_code for each in answer.topics}
            assert codes == {"orders": 0, "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    run(scenario)


def test_who_looks_for_a_coordinator_is_told_while_there_is_no_controller_to_create_its_topic() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await asyncio.gather(it.kill(2), it.kill(3))
            await asyncio.sleep(10)
            began = loop.time()
            (found,) = (await it.client(1).ask(FindCoordinatorRequest("", 0, ("billing",)), 6)).coordinators
            assert loop.time() - began < 2
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario)


@pytest.mark.prompt
def test_an_error_that_quotes_a_long_name_comes_back_through_another_node() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            other = next(number for number in NODES if number not in it.leaders)
            kind = IncrementalAlterConfigsRequest
            nothing = kind.AlterableConfig("x" * 32_767, 0, None)
            began = loop.time()
            asked = it.client(other).ask(kind((kind.AlterConfigsResource(TOPIC, "orders", (nothing,)),)), 1)
            (answer,) = (await asyncio.wait_for(asked, 5)).responses
            assert answer.error_code == ErrorCode.INVALID_REQUEST
            assert loop.time() - began < 1

    run(scenario)


def test_brokers_whose_leader_falls_silent_stay_unfenced() -> None:
    """Their heartbeats are on the way to it, and must reach the next leader before their sessions end."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (first,) = it.leaders
            others = [number for number in NODES if number != first]
            await asyncio.sleep(3)
            it.cut(first, *others)
            for _ in range(200):
                await asyncio.sleep(0.1)
                for number in others:
                    brokers = it.nodes[number].image.brokers
                    assert not any(brokers[other].fenced for other in others)
            assert it.nodes[others[0]].image.brokers[first].fenced
            it.heal()
            await asyncio.sleep(5)
            assert not any(broker.fenced for node in it.nodes.values() for broker in node.image.brokers.values())

    run(scenario)


def upgrade(feature: str, level: int, *, validate_only: bool = False) -> UpdateFeaturesRequest:
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature, level, upgrade_type=1)
    return UpdateFeaturesRequest(5000, (update,), validate_only)


def test_static_voters_go_into_the_log_when_all_have_told_where_they_are() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, static_levels={}) as it:
            away = next(number for number in NODES if number not in it.leaders)
            await it.kill(away)
            await it.kill(it.leaders[0])  # the next leader has not heard of the one that is away
            (there,) = it.nodes
            (other,) = set(NODES) - {there, away}
            await it.start(other)
            refused = await it.client(there).ask(upgrade("kraft.version", 1), 2)
            assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
            assert f"Voters {away} have not announced" in refused.error_message
            await it.start(away)
            await asyncio.sleep(5)
            for is_test, level in ((True, 0), (False, 1)):
                answer = await it.client(there).ask(upgrade("kraft.version", 1, validate_only=is_test), 2)
                assert answer.error_code == 0, answer
                await asyncio.sleep(1)
                for number in NODES:
                    control = it.nodes[number].raft.quorum.control
                    assert control.kraft_version == level
                    known = control.voters.find(*it.nodes[number].raft.quorum.key)
                    assert known == it.nodes[number].raft.quorum.node or level == 0
            await it.kill(it.leaders[0])
            await asyncio.sleep(5)
            assert len(it.leaders) == 1
            for number in it.nodes:
                stored = json.loads(read_all(it.disks[number], f"{metadata_directory(number)}/quorum-state"))
                assert stored["data_version"] == 1

    run(scenario)


def test_controllers_register_when_the_metadata_version_allows_it() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, static_levels={"metadata.version": 14}) as it:
            assert not it.nodes[1].image.controllers
            assert (await it.client(1).ask(upgrade("metadata.version", 15), 2)).error_code == 0
            await asyncio.sleep(5)
            for node in it.nodes.values():
                assert set(node.image.controllers) == set(NODES)

    run(scenario)


def test_a_leader_that_was_alone_for_long_stays_leader_when_it_gets_a_second_voter() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, {1: "broker,controller", 2: "controller"}, voters=(1,))
        await it.start(1)
        await asyncio.sleep(60)
        await it.start(2)
        await asyncio.sleep(60)
        spare = it.nodes[2].raft.quorum.node
        kind = AddRaftVoterRequest
        listeners = tuple(kind.Listener(each.name, each.host, each.port) for each in spare.listeners)
        answer = await it.client(1).ask(kind(CLUSTER_ID, 5000, *spare.key, listeners), 1)
        assert answer.error_code == 0, answer
        assert it.nodes[1].raft.quorum.control.voters.ids == (1, 2)
        assert (it.leaders, it.nodes[1].raft.quorum.epoch) == ([1], 1)
        await asyncio.sleep(10)
        assert (it.leaders, it.nodes[1].raft.quorum.epoch) == ([1], 1)
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)


def test_a_request_that_a_former_controller_never_answers_goes_to_the_next_one() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (old,) = it.leaders
            others = [number for number in NODES if number != old]
            it.cut(old, *others)
            began = loop.time()
            (created,) = (await it.client(others[0]).ask(create_topic("orders"), 7)).topics
            assert created.error_code == 0
            assert loop.time() - began < 10
            it.heal()

    run(scenario)
