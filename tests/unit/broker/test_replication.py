"""Partitions with several replicas, on whole nodes in one process, on virtual time."""

from __future__ import annotations

import asyncio
from itertools import permutations
from typing import Any

import pytest

from ottla.broker.replicas.partition_loader import PartitionLoader
from ottla.core.metadata.records import read_batch
from ottla.core.metadata.topic_image import RECOVERED, RECOVERING
from ottla.core.replication.replica_selection import RACK_AWARE
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    OffsetForLeaderEpochRequest,
    PartitionChangeRecord,
)
from tests.unit.broker.virtual_cluster import APART, NODES, Cluster, cluster, config_of, until
from tests.unit.broker.virtual_node import Client, produce_to, run
from tests.unit.log.logs import producer_batch

TOPIC = "orders"
TOPIC_CONFIG, BROKER_CONFIG = 2, 4
UNCHANGED = -1
THREE_BROKERS = {**dict.fromkeys(NODES, "controller"), **dict.fromkeys((4, 5, 6), "broker")}

SESSION_S, HEARTBEAT_S, CHECK_S = 9, 2, 1.125
"""How long a broker may be silent, how often it is heard of, and how often silence is looked for: Kafka's defaults."""


async def create(it: Cluster, node: int, *replicas: int, **configs: str) -> bytes:
    """Its records are of 1970, and stay."""
    kind = CreateTopicsRequest
    wanted = {"retention.ms": "-1"} | {name.replace("_", "."): value for name, value in configs.items()}
    settings = tuple(kind.CreatableTopicConfig(name, value) for name, value in wanted.items())
    topic = kind.CreatableTopic(TOPIC, -1, -1, (kind.CreatableReplicaAssignment(0, replicas),), settings)
    (created,) = (await it.client(node).ask(kind((topic,), 10_000), 7)).topics
    assert created.error_code == 0, created
    return bytes(created.topic_id)


async def produce(it: Cluster, node: int, topic_id: bytes, value: bytes) -> int:
    answer = await it.client(node).ask(produce_to(topic_id, value, timeout_ms=10_000), 13)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


async def delete_records(it: Cluster, node: int, offset: int) -> tuple[int, int]:
    """Error and low watermark."""
    kind = DeleteRecordsRequest
    wanted = kind.DeleteRecordsTopic(TOPIC, (kind.DeleteRecordsPartition(0, offset),))
    (topic,) = (await it.client(node).ask(kind((wanted,), 5_000), 2)).topics
    return topic.partitions[0].error_code, topic.partitions[0].low_watermark


async def delete(it: Cluster, node: int, topic_id: bytes) -> None:
    kind = DeleteTopicsRequest
    request = kind(topics=(kind.DeleteTopicState(None, topic_id),), timeout_ms=5_000)
    (deleted,) = (await it.client(node).ask(request, 6)).responses
    assert deleted.error_code == 0, deleted


def logs(it: Cluster) -> dict[int, bytes]:
    """The bytes of the partition on each node that runs."""
    return {number: it.partition_log(number, TOPIC) for number, node in it.nodes.items() if node.config.is_broker}


def partition(it: Cluster, node: int) -> Any:
    return it.nodes[node].image.topics_by_name[TOPIC].partitions[0]


def test_what_is_acknowledged_is_on_all_replicas() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it, 1, 1, 2, 3)
            for number in range(5):
                assert await produce(it, 1, topic_id, b"%d" % number) == 0
            found = logs(it)
            assert found[1] == found[2] == found[3]
            assert found[1].count(b"4") >= 1
            await asyncio.sleep(1)
            for number in NODES:
                replica = it.nodes[number].replicas.by_key[TOPIC, 0]
                assert (replica.log_end_offset, replica.high_watermark) == (5, 5), f"node {number}"

    run(scenario)


def test_with_fsync_what_is_acknowledged_is_synced_on_all_replicas() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings={"ottla.fsync": "true"}) as it:
            topic_id = await create(it, 1, 1, 2, 3)
            for number in range(3):
                assert await produce(it, 1, topic_id, b"value %d" % number) == 0
                for node in NODES:
                    content = it.disks[node].synced(f"/data{node}/{TOPIC}-0/00000000000000000000.log")
                    assert b"value %d" % number in (content or b""), f"node {node}"

    run(scenario)


def test_with_fsync_a_replica_that_was_killed_syncs_what_it_finds() -> None:
    """It tells its leader that it has all of it, which then counts as committed."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it, 1, 1, 2, 3)
            assert await produce(it, 1, topic_id, b"value") == 0
            await it.kill(3)
            assert b"value" not in (it.disks[3].synced(f"/data3/{TOPIC}-0/00000000000000000000.log") or b"")
            it.configs[3] = config_of(3, "broker,controller", {"ottla.fsync": "true"})
            await it.start(3)
            assert b"value" in (it.disks[3].synced(f"/data3/{TOPIC}-0/00000000000000000000.log") or b"")

    run(scenario)


def test_another_replica_leads_when_the_leader_is_killed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it, 1, 1, 2, 3)
            assert await produce(it, 1, topic_id, b"first") == 0
            await it.kill(1)
            await asyncio.sleep(15)
            leader = partition(it, 2).leader
            assert leader in (2, 3)
            assert set(partition(it, 2).isr) == {2, 3}
            assert await produce(it, leader, topic_id, b"second") == 0
            await it.start(1)
            await asyncio.sleep(5)
            assert set(partition(it, 2).isr) == {1, 2, 3}
            assert await produce(it, leader, topic_id, b"third") == 0
            found = logs(it)
            assert found[1] == found[2] == found[3]
            for value in (b"first", b"second", b"third"):
                assert value in found[1]

    run(scenario)


def test_a_leader_that_is_silent_for_longer_than_its_session_comes_back_as_the_same_process() -> None:
    """As one does that was stopped and goes on: nobody refuses a connection, and nothing arrives."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, THREE_BROKERS) as it:
            topic_id = await create(it, 4, 4, 5, 6, min_insync_replicas="2")
            assert await produce(it, 4, topic_id, b"before") == 0
            await asyncio.sleep(5)
            epoch = it.nodes[4].broker_lifecycle.broker_epoch
            brokers = it.nodes[1].image.brokers

            it.cut(4, 1, 2, 3, 5, 6)
            await asyncio.sleep(6)
            assert not brokers[4].fenced
            it.heal()
            await asyncio.sleep(HEARTBEAT_S + 5)
            assert (brokers[4].fenced, partition(it, 1).leader, set(partition(it, 1).isr)) == (False, 4, {4, 5, 6})

            it.cut(4, 1, 2, 3, 5, 6)
            silent_s = await until(lambda: brokers[4].fenced, SESSION_S + CHECK_S + 0.1)
            assert silent_s > SESSION_S - HEARTBEAT_S - 0.1
            await asyncio.sleep(0.1)
            leader = partition(it, 1).leader
            assert leader in (5, 6)
            assert set(partition(it, 1).isr) == {5, 6}
            assert await produce(it, leader, topic_id, b"meanwhile") == 0

            it.heal()
            await until(lambda: set(partition(it, 1).isr) == {4, 5, 6}, 20)
            assert (brokers[4].fenced, brokers[4].epoch) == (False, epoch)
            assert it.nodes[4].broker_lifecycle.broker_epoch == epoch
            assert await produce(it, leader, topic_id, b"afterwards") == 0
            found = logs(it)
            assert found[4] == found[5] == found[6]

    run(scenario)


@pytest.mark.prompt
def test_a_killed_leader_is_replaced_long_before_its_session_could_end() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, THREE_BROKERS) as it:
            topic_id = await create(it, 4, 4, 5, 6, min_insync_replicas="2")
            assert await produce(it, 4, topic_id, b"before") == 0
            await it.kill(4)
            await until(lambda: partition(it, 5).leader == 5, 1)
            assert await produce(it, 5, topic_id, b"after") == 0

    run(scenario)


def test_a_replica_that_starts_without_its_leader_knows_what_was_committed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            topic_id = await create(it, 4, 4, 5)
            for number in range(3):
                assert await produce(it, 4, topic_id, b"%d" % number) == 0
            await it.stop(4)
            it.cut(4, 5)
            await it.start(4)
            replica = it.nodes[4].replicas.by_key[TOPIC, 0]
            assert (replica.leader, replica.log_end_offset, replica.high_watermark) == (5, 3, 3)
            it.heal()

    run(scenario)


def test_what_an_isolated_leader_has_written_alone_is_cut_when_it_comes_back() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it, 1, 1, 2, 3)
            assert await produce(it, 1, topic_id, b"first") == 0
            it.cut(1, 2, 3)
            for _ in range(5):
                answer = await it.client(1).ask(produce_to(topic_id, b"alone", acks=1), 13)
                assert answer.responses[0].partition_responses[0].error_code == 0
            await asyncio.sleep(20)
            leader = partition(it, 2).leader
            assert leader in (2, 3)
            assert await produce(it, leader, topic_id, b"second") == 0
            ends = {each: it.nodes[each].replicas.by_key[TOPIC, 0].log_end_offset for each in (1, leader)}
            assert ends == {1: 6, leader: 2}, "what is to be cut is longer than the log that takes its place"
            it.heal()
            await asyncio.sleep(20)
            assert set(partition(it, 2).isr) == {1, 2, 3}
            found = logs(it)
            assert found[1] == found[2] == found[3]
            assert b"first" in found[1]
            assert b"second" in found[1]
            assert b"alone" not in found[1]

    run(scenario)


def test_too_few_replicas_take_no_writes_and_one_that_is_eligible_leads_on() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, THREE_BROKERS) as it:
            topic_id = await create(it, 4, 4, 5, 6, min_insync_replicas="2")
            assert await produce(it, 4, topic_id, b"with three") == 0
            await it.kill(6)
            await asyncio.sleep(15)
            assert await produce(it, 4, topic_id, b"with two") == 0
            await it.stop(5)
            await asyncio.sleep(5)
            assert await produce(it, 4, topic_id, b"alone") == ErrorCode.NOT_ENOUGH_REPLICAS
            assert (partition(it, 1).isr, partition(it, 1).elr) == ((4,), (5,))
            await it.kill(4)
            await asyncio.sleep(15)
            assert partition(it, 1).leader == -1
            await it.start(5)
            await asyncio.sleep(15)
            assert (partition(it, 1).leader, partition(it, 1).isr) == (5, (5,))
            await it.start(4, 6)
            await asyncio.sleep(20)
            assert set(partition(it, 1).isr) == {4, 5, 6}
            assert await produce(it, 5, topic_id, b"with all") == 0
            found = logs(it)
            assert found[4] == found[5] == found[6]
            for value in (b"with three", b"with two", b"with all"):
                assert value in found[5]
            assert b"alone" not in found[5]

    run(scenario)


@pytest.mark.parametrize("order", list(permutations((4, 5, 6))), ids=str)
def test_all_replicas_die_and_only_the_last_leader_may_lead_first(order: tuple[int, ...]) -> None:
    """It has every record. Whether 5 has, is not known before it says that it was not stopped in order, either."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, THREE_BROKERS) as it:
            topic_id = await create(it, 4, 4, 5, 6, min_insync_replicas="2")
            assert await produce(it, 4, topic_id, b"acknowledged") == 0
            for each in (6, 5, 4):
                await it.kill(each)
                await asyncio.sleep(15)
            assert partition(it, 1).leader == -1
            for each in order:
                assert partition(it, 1).leader == (4 if {4, 5} <= it.nodes.keys() else -1)
                await it.start(each)
                await asyncio.sleep(15)
            await asyncio.sleep(20)
            assert (partition(it, 1).leader, set(partition(it, 1).isr)) == (4, {4, 5, 6})
            assert partition(it, 1).leader_recovery_state == 0
            assert await produce(it, 4, topic_id, b"afterwards") == 0
            found = logs(it)
            assert found[4] == found[5] == found[6]
            assert b"acknowledged" in found[4]

    run(scenario)


def recovery_states(it: Cluster, topic_id: bytes) -> list[int]:
    """What the records say, one after the other, of whether the partition's leader has to recover."""
    raft = it.nodes[1].raft
    batches = [each for each in split_batches(raft.quorum.log.read(0, 1 << 24)) if isinstance(each, BatchView)]
    assert batches[-1].last_offset + 1 == raft.end_offset
    messages = [each.message for batch in batches if not batch.is_control for each in read_batch(batch)]
    changes = [each for each in messages if isinstance(each, PartitionChangeRecord) and each.topic_id == topic_id]
    return [each.leader_recovery_state for each in changes if each.leader_recovery_state != UNCHANGED]


@pytest.mark.parametrize("order", list(permutations((4, 5, 6))), ids=str)
def test_all_replicas_die_at_once_and_the_last_leader_recovers(order: tuple[int, ...]) -> None:
    """Only the last leader may lead without being eligible, and only when none that is eligible may still come."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, THREE_BROKERS) as it:
            topic_id = await create(it, 4, 4, 5, 6, min_insync_replicas="2")
            assert await produce(it, 4, topic_id, b"acknowledged") == 0
            await asyncio.gather(*(it.kill(each) for each in (4, 5, 6)))
            await until(lambda: partition(it, 1).leader == -1)
            assert partition(it, 1).isr == ()
            (last,) = partition(it, 1).last_known_elr
            missed = set(partition(it, 1).elr) | {last}
            assert recovery_states(it, topic_id) == []
            for each in order:
                await it.start(each)
                missed.discard(each)
                await asyncio.sleep(5)
                assert partition(it, 1).leader == (-1 if missed else last)
            await until(lambda: set(partition(it, 1).isr) == {4, 5, 6}, 60)
            assert recovery_states(it, topic_id) == [RECOVERING, RECOVERED]
            assert partition(it, 1).leader_recovery_state == RECOVERED
            assert (partition(it, 1).elr, partition(it, 1).last_known_elr) == ((), ())
            assert await produce(it, last, topic_id, b"afterwards") == 0
            found = logs(it)
            assert found[4] == found[5] == found[6]
            assert b"acknowledged" in found[4]

    run(scenario)


@pytest.mark.parametrize("order", list(permutations(NODES)), ids=str)
def test_a_whole_cluster_dies_at_once_and_starts_in_any_order(order: tuple[int, ...]) -> None:
    """No controller has seen anybody die: the first two that come back find all three in sync."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it, 1, 1, 2, 3, min_insync_replicas="2")
            assert await produce(it, 1, topic_id, b"acknowledged") == 0
            await asyncio.gather(*(it.kill(each) for each in NODES))
            starting = []
            for each in order:
                starting.append(loop.create_task(it.start(each)))
                await asyncio.sleep(15)
            await asyncio.gather(*starting)
            await until(lambda: set(partition(it, 1).isr) == set(NODES), 60)
            assert recovery_states(it, topic_id) == [RECOVERING, RECOVERED]
            assert (partition(it, 1).elr, partition(it, 1).last_known_elr) == ((), ())
            assert await produce(it, partition(it, 1).leader, topic_id, b"afterwards") == 0
            found = logs(it)
            assert found[1] == found[2] == found[3]
            assert b"acknowledged" in found[1]

    run(scenario)


def test_producers_hear_of_no_error_but_a_new_leader_while_a_broker_shuts_down() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, THREE_BROKERS) as it:
            topic_id = await create(it, 4, 4, 5, 6, min_insync_replicas="2")
            codes: list[int] = []

            async def produce_on() -> None:
                clients: dict[int, Client] = {}
                while True:
                    leader = partition(it, 1).leader
                    try:
                        client = clients.get(leader) or it.client(leader)
                        answer = await client.ask(produce_to(topic_id, b"record", timeout_ms=10_000), 13)
                        codes.append(answer.responses[0].partition_responses[0].error_code)
                        clients[leader] = client
                    except ConnectionError:  # it has closed its connections
                        clients.pop(leader, None)
                    await asyncio.sleep(0.02)

            producing = loop.create_task(produce_on())
            await asyncio.sleep(1)
            before = len(codes)
            await it.stop(4)
            await asyncio.sleep(1)
            assert len(codes) > before > 0
            await it.start(4)
            await asyncio.sleep(15)
            producing.cancel()
            assert set(codes) <= {0, ErrorCode.NOT_LEADER_OR_FOLLOWER}
            assert set(partition(it, 1).isr) == {4, 5, 6}
            assert it.nodes[5].replicas.by_key[TOPIC, 0].log_end_offset >= codes.count(0)

    run(scenario)


async def epoch_ends(it: Cluster, node: int, count: int) -> list[tuple[int, int, int]]:
    """Error, epoch and end offset that a node gives for each of the first epochs."""
    kind, client, found = OffsetForLeaderEpochRequest, it.client(node), []
    for epoch in range(count):
        asked = kind.OffsetForLeaderTopic(TOPIC, (kind.OffsetForLeaderPartition(0, -1, epoch),))
        (answer,) = (await client.ask(kind(-1, (asked,)), 4)).topics[0].partitions
        found.append((answer.error_code, answer.leader_epoch, answer.end_offset))
    return found


async def elect_another(it: Cluster) -> int:
    """Let the leader of the partition stop and start again; returns the leader of the next epoch."""
    old = partition(it, 1)
    await it.stop(old.leader)
    await it.start(old.leader)
    await until(lambda: set(partition(it, 1).isr) == {4, 5, 6}, 30)
    new = partition(it, 1)
    assert (new.leader_epoch, new.leader != old.leader) == (old.leader_epoch + 1, True)
    return int(new.leader)


def test_every_epoch_of_five_elections_ends_where_records_of_a_later_one_begin() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, THREE_BROKERS) as it:
            topic_id = await create(it, 4, 4, 5, 6, min_insync_replicas="2")
            for value in (b"first", b"second"):
                assert await produce(it, 4, topic_id, value) == 0
            for _ in range(5):
                leader = await elect_another(it)
            assert await epoch_ends(it, leader, 7) == [*[(0, 0, 2)] * 5, (0, 5, 2), (0, -1, -1)]
            assert await produce(it, leader, topic_id, b"third") == 0
            expected = [*[(0, 0, 2)] * 5, (0, 5, 3), (0, 6, 3)]
            assert await epoch_ends(it, leader, 6) == expected[:6]
            later = await elect_another(it)
            assert await epoch_ends(it, later, 7) == expected, "a former follower knows it as well"
            await asyncio.gather(*(it.kill(each) for each in (4, 5, 6)))
            await it.start(4, 5, 6)
            await until(lambda: set(partition(it, 1).isr) == {4, 5, 6}, 60)
            assert (await epoch_ends(it, partition(it, 1).leader, 6)) == expected[:6], "and after a restart"

    run(scenario)


async def move_to_directory(it: Cluster, node: int, path: str) -> None:
    kind = AlterReplicaLogDirsRequest
    wanted = kind.AlterReplicaLogDir(path, (kind.AlterReplicaLogDirTopic(TOPIC, (0,)),))
    (topic,) = (await it.client(node).ask(kind((wanted,)), 2)).results
    assert topic.partitions[0].error_code == 0, topic


def test_a_copy_in_another_log_directory_is_cut_with_its_log() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings={"log.dirs": "/one,/two"}) as it:
            topic_id = await create(it, 1, 1, 2, 3)
            assert await produce(it, 1, topic_id, b"first") == 0
            it.cut(1, 2, 3)
            answer = await it.client(1).ask(produce_to(topic_id, b"alone", acks=1), 13)
            assert answer.responses[0].partition_responses[0].error_code == 0
            replica = it.nodes[1].replicas.by_key[TOPIC, 0]
            (other,) = {"/one", "/two"} - {replica.directory.path}
            assigned = []
            it.nodes[1].broker_lifecycle.assign = lambda placed, done: assigned.append(done)  # type: ignore[method-assign]
            await move_to_directory(it, 1, other)
            await asyncio.sleep(20)
            assert len(assigned) == 1, "all is copied: what is about to be cut, too"
            assert await produce(it, partition(it, 2).leader, topic_id, b"later") == 0
            it.heal()
            await asyncio.sleep(40)
            assigned.pop()()
            await asyncio.sleep(1)
            assert replica.directory.path == other
            assert set(partition(it, 2).isr) == {1, 2, 3}
            found = logs(it)
            assert found[1] == found[2] == found[3]
            assert b"later" in found[1]

    run(scenario)


def hold_truncations(it: Cluster, node: int) -> list[Any]:
    """Let truncations of a node begin and not end; gives what is left to do for each."""
    held: list[Any] = []
    tasks = it.nodes[node].cooperative_tasks
    add = tasks.add

    def add_or_hold(name: str, work: Any, *, is_urgent: bool = False) -> None:
        if name.startswith("truncation"):
            held.append(work)
        else:
            add(name, work, is_urgent=is_urgent)

    tasks.add = add_or_hold  # type: ignore[method-assign]
    return held


async def cut_at_1001(it: Cluster) -> tuple[Any, list[Any]]:
    """The replica of node 4, with a thousand batches of a producer, whose truncation has begun."""
    topic_id = await create(it, 4, 4, 5)
    replica = it.nodes[4].replicas.by_key[TOPIC, 0]
    for number in range(1000):
        replica.stage(producer_batch(7, number))
    assert await produce(it, 4, topic_id, b"first") == 0
    it.cut(4, 1, 2, 3, 5)
    answer = await it.client(4).ask(produce_to(topic_id, b"alone", acks=1), 13)
    assert answer.responses[0].partition_responses[0].error_code == 0
    await asyncio.sleep(20)
    assert await produce(it, 5, topic_id, b"second") == 0
    held = hold_truncations(it, 4)
    it.heal()
    await asyncio.sleep(40)
    return replica, held


def test_a_log_is_cut_in_pieces_and_then_fetched_on() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            replica, (rest,) = await cut_at_1001(it)
            assert (replica.log_end_offset, replica.log.is_truncating) == (1001, True)
            assert replica.log.last_stable_offset == 0
            assert len(list(rest)) > 5
            await asyncio.sleep(5)
            assert (replica.log_end_offset, replica.log.is_truncating) == (1002, False)
            assert replica.log.last_stable_offset == 1002
            assert partition(it, 5).isr == (5, 4)
            found = logs(it)
            assert found[4] == found[5]

    run(scenario)


def test_a_replica_that_leads_has_ended_its_truncation() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART, settings={"unclean.leader.election.enable": "true"}) as it:
            replica, (rest,) = await cut_at_1001(it)
            assert replica.log.is_truncating
            await it.kill(5)
            await asyncio.sleep(15)
            assert (replica.leader, replica.log.is_truncating) == (4, False)
            assert replica.log.producers.entry(7).last_sequence == 999
            assert list(rest) == []

    run(scenario)


def test_a_replica_whose_log_begins_behind_the_end_of_its_new_leaders_begins_anew() -> None:
    """It has deleted records that the leader, which was not in sync, has never had."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART, settings={"unclean.leader.election.enable": "true"}) as it:
            topic_id = await create(it, 4, 4, 5)
            assert await produce(it, 4, topic_id, b"first") == 0
            await it.stop(5)
            for number in range(5):
                assert await produce(it, 4, topic_id, b"%d" % number) == 0
            assert await delete_records(it, 4, 4) == (0, 4)
            await it.stop(4)
            await it.start(5)
            await asyncio.sleep(15)
            assert partition(it, 1).leader == 5
            assert await produce(it, 5, topic_id, b"second") == 0
            await it.start(4)
            await asyncio.sleep(15)
            assert set(partition(it, 1).isr) == {4, 5}
            assert await produce(it, 5, topic_id, b"third") == 0
            found = logs(it)
            assert found[4] == found[5]
            replica = it.nodes[4].replicas.by_key[TOPIC, 0]
            assert (replica.log.log_start_offset, replica.log_end_offset) == (1, 3)

    run(scenario)


def load_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a node that starts take ten seconds before it loads what it has found."""
    load_all = PartitionLoader._load_all

    async def load_all_slowly(self: PartitionLoader, found: Any) -> None:
        await asyncio.sleep(10)
        await load_all(self, found)

    monkeypatch.setattr(PartitionLoader, "_load_all", load_all_slowly)


def test_a_topic_may_be_deleted_while_the_copies_of_a_move_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART, settings={"log.dirs": "/one,/two"}) as it:
            topic_id = await create(it, 4, 4, 5)
            assert await produce(it, 4, topic_id, b"first") == 0
            replica = it.nodes[5].replicas.by_key[TOPIC, 0]
            (other,) = {"/one", "/two"} - {replica.directory.path}
            it.nodes[5].broker_lifecycle.assign = lambda placed, done: None  # type: ignore[method-assign]
            await move_to_directory(it, 5, other)
            await asyncio.sleep(5)
            await it.stop(5)
            load_slowly(monkeypatch)
            starting = loop.create_task(it.start(5))
            await asyncio.sleep(15)
            assert not starting.done()
            await delete(it, 4, topic_id)
            await starting
            assert not it.nodes[5].log_dir_moves.by_key

    run(scenario)


@pytest.mark.parametrize("is_made_again_at_once", [True, False])
def test_a_topic_that_is_deleted_while_its_logs_are_loaded_leaves_nothing_to_the_next_of_its_name(
    is_made_again_at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            topic_id = await create(it, 4, 4, 5)
            assert await produce(it, 4, topic_id, b"old") == 0
            await it.stop(5)
            load_slowly(monkeypatch)
            starting = loop.create_task(it.start(5))
            await asyncio.sleep(5)
            assert not starting.done()
            await delete(it, 4, topic_id)
            if not is_made_again_at_once:
                await starting
                it.cut(4, 5)
            topic_id = await create(it, 4, 4, 5)
            for value in (b"new", b"newer"):
                answer = await it.client(4).ask(produce_to(topic_id, value, acks=1), 13)
                assert answer.responses[0].partition_responses[0].error_code == 0
            await starting
            it.heal()
            await asyncio.sleep(60)
            assert set(partition(it, 1).isr) == {4, 5}
            found = logs(it)
            assert found[4] == found[5]
            assert b"newer" in found[5]

    run(scenario)


def test_a_replica_that_was_away_fetches_what_is_left_of_the_log() -> None:
    """The leader has deleted what the follower would need next."""

    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it, 1, 1, 2)
            assert await produce(it, 1, topic_id, b"first") == 0
            await it.stop(2)
            for number in range(5):
                assert await produce(it, 1, topic_id, b"%d" % number) == 0
            assert await delete_records(it, 1, 4) == (0, 4)
            await it.start(2)
            await asyncio.sleep(5)
            replica = it.nodes[2].replicas.by_key[TOPIC, 0]
            assert (replica.log.log_start_offset, replica.log_end_offset) == (4, 6)
            assert set(partition(it, 1).isr) == {1, 2}

    run(scenario)


def test_a_replica_begins_with_the_batch_inside_of_which_the_log_starts() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            topic_id = await create(it, 4, 4, 5)
            await it.stop(5)
            it.nodes[4].replicas.by_key[TOPIC, 0].stage(producer_batch(7, 0, count=10))
            assert await produce(it, 4, topic_id, b"last") == 0
            assert await delete_records(it, 4, 5) == (0, 5)
            await it.start(5)
            await asyncio.sleep(5)
            log = it.nodes[5].replicas.by_key[TOPIC, 0].log
            assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (5, 11, 11)
            assert set(partition(it, 4).isr) == {4, 5}
            found = logs(it)
            assert found[4] == found[5]

    run(scenario)


def test_records_are_deleted_when_all_replicas_that_are_alive_have_deleted_them() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            topic_id = await create(it, 4, 4, 5)
            for number in range(5):
                assert await produce(it, 4, topic_id, b"%d" % number) == 0
            assert await delete_records(it, 4, 2) == (0, 2)
            for number in (4, 5):
                assert it.nodes[number].replicas.by_key[TOPIC, 0].log.log_start_offset == 2, f"node {number}"
            it.cut(4, 5)
            assert await delete_records(it, 4, 3) == (ErrorCode.REQUEST_TIMED_OUT, 2)
            it.heal()
            await asyncio.sleep(40)  # until the follower has given its fetch up and asked again
            assert await delete_records(it, 4, 3) == (0, 3)
            await it.kill(5)
            assert await delete_records(it, 4, 4) == (0, 4), "nobody waits for a broker that is fenced"

    run(scenario)


def fetch_from(topic_id: bytes, offset: int, rack: str = "", max_wait_ms: int = 1_000) -> FetchRequest:
    kind = FetchRequest
    wanted = kind.FetchPartition(0, -1, offset, partition_max_bytes=1 << 20)
    return kind(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_epoch=-1,
        rack_id=rack,
        topics=(kind.FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
    )


async def fetched(it: Cluster, node: int, request: FetchRequest, version: int = 17) -> Any:
    (topic,) = (await it.client(node).ask(request, version)).responses
    return topic.partitions[0]


def test_consumers_are_sent_to_a_replica_in_their_rack() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings={"replica.selector.class": RACK_AWARE}, racks={1: "a", 2: "b", 3: "b"}) as it:
            topic_id = await create(it, 1, 1, 2)
            assert await produce(it, 1, topic_id, b"first") == 0
            far = await fetched(it, 1, fetch_from(topic_id, 0, "b"))
            assert (far.error_code, far.preferred_read_replica, far.high_watermark, bytes(far.records)) == (
                0,
                2,
                -1,
                b"",
            )
            for rack in ("a", "c", ""):
                near = await fetched(it, 1, fetch_from(topic_id, 0, rack))
                assert near.preferred_read_replica == -1
                assert b"first" in bytes(near.records)
            followed = await fetched(it, 2, fetch_from(topic_id, 0, "b"))
            assert (followed.error_code, followed.preferred_read_replica, followed.high_watermark) == (0, -1, 1)
            assert b"first" in bytes(followed.records)

    run(scenario)


def test_consumers_are_not_sent_to_a_replica_that_is_not_in_sync() -> None:
    """If it falls behind for good, so would they."""

    async def scenario(loop: VirtualLoop) -> None:
        settings = {"replica.selector.class": RACK_AWARE, "replica.fetch.max.bytes": "2000"}
        async with cluster(loop, settings=settings, racks={1: "a", 2: "b", 3: "b"}) as it:
            topic_id = await create(it, 1, 1, 2)
            await set_config(it, 1, TOPIC_CONFIG, TOPIC, "follower.replication.throttled.replicas", "0:2")
            await set_config(it, 2, BROKER_CONFIG, "2", "follower.replication.throttled.rate", "1000")
            await it.stop(2)
            for _ in range(40):
                assert await produce(it, 1, topic_id, bytes(1000)) == 0
            await it.start(2)
            await asyncio.sleep(15)
            assert it.nodes[2].replicas.by_key[TOPIC, 0].log_end_offset >= 10
            assert partition(it, 1).isr == (1,)
            assert (await fetched(it, 1, fetch_from(topic_id, 0, "b"))).preferred_read_replica == -1
            await asyncio.sleep(60)
            assert set(partition(it, 1).isr) == {1, 2}
            assert (await fetched(it, 1, fetch_from(topic_id, 0, "b"))).preferred_read_replica == 2

    run(scenario)


def test_a_follower_that_is_read_from_soon_knows_what_is_committed() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, settings={"replica.selector.class": RACK_AWARE}, racks={1: "a", 2: "b", 3: "b"}) as it:
            topic_id = await create(it, 1, 1, 2)
            assert await produce(it, 1, topic_id, b"first") == 0
            reading = loop.create_task(fetched(it, 2, fetch_from(topic_id, 1, "b", 10_000)))
            await asyncio.sleep(1)
            assert not reading.done()
            began_s = loop.time()
            assert await produce(it, 1, topic_id, b"second") == 0
            assert b"second" in bytes((await reading).records)
            assert loop.time() - began_s < 0.1

    run(scenario)


def test_without_a_selector_consumers_may_read_from_followers_if_they_want() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            topic_id = await create(it, 1, 1, 2)
            assert await produce(it, 1, topic_id, b"first") == 0
            assert (await fetched(it, 1, fetch_from(topic_id, 0, "b"))).preferred_read_replica == -1
            await asyncio.sleep(1)
            followed = await fetched(it, 2, fetch_from(topic_id, 0))
            assert (followed.error_code, followed.high_watermark) == (0, 1)
            assert b"first" in bytes(followed.records)
            beyond = await fetched(it, 2, fetch_from(topic_id, 7))
            assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            elsewhere = await fetched(it, 3, fetch_from(topic_id, 0))
            assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario)


async def set_config(it: Cluster, node: int, kind: int, name: str, key: str, value: str) -> None:
    request = IncrementalAlterConfigsRequest
    change = request.AlterableConfig(key, 0, value)
    asked = request((request.AlterConfigsResource(kind, name, (change,)),), False)
    (done,) = (await it.client(node).ask(asked, 1)).responses
    assert done.error_code == 0, done


@pytest.mark.parametrize(("side", "node"), [("leader", 1), ("follower", 2)])
def test_a_replica_that_is_behind_is_held_back(side: str, node: int) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        settings = {"replica.fetch.max.bytes": "2000", "replica.fetch.response.max.bytes": "2000"}
        async with cluster(loop, settings=settings) as it:
            topic_id = await create(it, 1, 1, 2)
            await set_config(it, 1, TOPIC_CONFIG, TOPIC, f"{side}.replication.throttled.replicas", f"0:{node}")
            await set_config(it, node, BROKER_CONFIG, str(node), f"{side}.replication.throttled.rate", "1000")
            await it.stop(2)
            for _ in range(40):
                assert await produce(it, 1, topic_id, bytes(1000)) == 0
            await it.start(2)
            replica = it.nodes[2].replicas.by_key[TOPIC, 0]
            await asyncio.sleep(15)
            assert 10 <= replica.log_end_offset < 40, "a burst, and then a thousand bytes a second"
            assert partition(it, 1).isr == (1,)
            await asyncio.sleep(60)
            assert replica.log_end_offset == 40
            assert set(partition(it, 1).isr) == {1, 2}
            for number in range(30):
                assert await produce(it, 1, topic_id, bytes(1000)) == 0, f"record {number}: in sync it is not held back"

    run(scenario)
