"""Metrics of the quorum and of the controller, on three whole nodes."""

from __future__ import annotations

import asyncio

from ottla.broker.controller.raft_counts import Latency, RaftCounts
from ottla.broker.node import Node
from ottla.testing.virtual_loop import VirtualLoop
from tests.unit.broker.virtual_cluster import APART, COMBINED, NODES, Cluster, cluster, config_of
from tests.unit.broker.virtual_node import create_topic, run

RAFT = "kafka_server_raft_metrics"
CONTROLLER = "kafka_controller_kafkacontroller"


def samples(node: Node) -> dict[str, float]:
    lines = (line for line in node.metrics.page().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_leader_and_followers_say_what_they_are() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            await it.client(1).ask(create_topic("orders"), 7)
            await asyncio.sleep(3)
            (leader,) = it.leaders
            for number in NODES:
                seen = samples(it.nodes[number])
                state = "leader" if number == leader else "follower"
                assert seen[f'{RAFT}_current_state{{state="{state}"}}'] == 1
                assert (
                    seen[f"{RAFT}_current_leader"] == seen["kafka_server_metadataloader_currentcontrollerid"] == leader
                )
                assert seen[f"{RAFT}_current_epoch"] == it.nodes[number].raft.quorum.epoch
                assert seen[f"{RAFT}_number_of_voters"] == 3
                assert seen[f"{RAFT}_number_unknown_voter_connections"] == 0
                assert seen[f"{RAFT}_log_end_offset"] >= seen[f"{RAFT}_high_watermark"] > 0
                assert seen[f"{CONTROLLER}_activecontrollercount"] == (number == leader)
                assert seen[f"{CONTROLLER}_newactivecontrollerscount"] == 1
                assert seen[f"{CONTROLLER}_activebrokercount"] == 3
                assert seen[f"{CONTROLLER}_globaltopiccount"] == seen[f"{CONTROLLER}_globalpartitioncount"] == 1
                assert seen[f"{CONTROLLER}_lastcommittedrecordoffset"] == seen[f"{RAFT}_high_watermark"] - 1
                assert seen.get(f"{CONTROLLER}_lastappliedrecordlagms") == (0 if number == leader else None)
                assert (seen[f"{RAFT}_append_records_rate"] > 0) is (number == leader)
                assert (seen[f"{RAFT}_fetch_records_rate"] > 0) is (number != leader)
                assert (f"{RAFT}_commit_latency_avg" in seen) is (number == leader)
                assert (f"{RAFT}_number_of_observers" in seen) is (number == leader)

    run(scenario)


def test_the_lag_of_a_node_is_told_where_the_log_is_never_idle() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, dict(COMBINED))
        for number in NODES:
            it.configs[number] = config_of(number, COMBINED[number], {"metadata.max.idle.interval.ms": "500"})
        await it.start(*NODES)
        await asyncio.sleep(3)
        (leader,) = it.leaders
        number = next(each for each in NODES if each != leader)
        lag = "kafka_server_broker_metadata_metrics_last_applied_record_lag_ms"
        assert 0 <= samples(it.nodes[number])[lag] <= 1000
        it.cut(number, *(each for each in NODES if each != number))
        await asyncio.sleep(5)
        assert samples(it.nodes[number])[lag] > 4000
        it.heal()
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)


def test_a_dead_broker_and_a_new_controller_are_counted() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (first,) = it.leaders
            await it.kill(first)
            await asyncio.sleep(3)
            (second,) = it.leaders
            seen = samples(it.nodes[second])
            assert (seen[f"{CONTROLLER}_fencedbrokercount"], seen[f"{CONTROLLER}_activebrokercount"]) == (1, 2)
            assert seen[f"{CONTROLLER}_newactivecontrollerscount"] == 2
            assert seen[f"{RAFT}_election_latency_max"] < 2000

    run(scenario)


def test_each_role_has_its_own_metrics() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop, APART) as it:
            await asyncio.sleep(1)
            of_controller, of_broker = samples(it.nodes[1]), samples(it.nodes[4])
            assert f'{RAFT}_current_state{{state="observer"}}' in of_broker
            assert f"{CONTROLLER}_activebrokercount" not in of_broker
            assert "kafka_server_kafkaserver_brokerstate" not in of_controller
            assert of_broker["kafka_server_broker_metadata_metrics_last_applied_record_offset"] > 0
            (leader,) = it.leaders
            assert samples(it.nodes[leader])[f"{RAFT}_number_of_observers"] == 2

    run(scenario)


# --- counts -----------------------------------------------------------------------------------------------------------


def test_latencies_are_those_of_the_last_minute() -> None:
    latency = Latency()
    assert latency.average_and_max(0) is None
    latency.record(10, 0)
    latency.record(20, 1_000)
    assert latency.average_and_max(2_000) == (15, 20)
    latency.record(40, 31_000)
    assert latency.average_and_max(31_000) == (70 / 3, 40)
    assert latency.average_and_max(60_000) == (40, 40)
    assert latency.average_and_max(91_000) is None


def test_only_what_is_committed_counts_as_applied() -> None:
    counts = RaftCounts(0, 5)
    counts.append(3, 3, 100, 1_000, is_own=True)
    counts.append(4, 1, 200, 1_010, is_own=True)
    counts.committed(3, 1_007)
    assert (counts.committed_timestamp_ms, counts.commit_latency.average_and_max(1_007)) == (100, (7, 7))
    counts.truncated(3)
    counts.append(5, 2, 150, 1_020, is_own=False)
    counts.committed(5, 1_030)
    assert (counts.committed_timestamp_ms, counts.commit_latency.average_and_max(1_030)) == (150, (7, 7))


def test_an_election_lasts_until_a_leader_is_known() -> None:
    counts = RaftCounts(0, 0)
    counts.elected(50)
    assert counts.election_latency.average_and_max(50) is None, "this node did not stand"
    counts.standing(100)
    counts.standing(150)
    counts.elected(180)
    assert counts.election_latency.average_and_max(180) == (80, 80)
    assert counts.leaders == 2
