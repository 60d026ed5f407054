"""Nodes that do not belong to a quorum: they are refused, or follow without a vote, and nothing is overwritten."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ottla.broker.controller.metadata_replay import MetadataLogError
from ottla.broker.node import StartError
from ottla.broker.replicas.formatter import format_directories
from ottla.core.quorum.voters import VoterSet
from ottla.log.disk import read_all
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.types import DescribeQuorumRequest, UpdateFeaturesRequest
from tests.unit.broker.virtual_cluster import CLUSTER_ID, NODES, Cluster, cluster, config_of
from tests.unit.broker.virtual_node import create_topic, run

OTHER_CLUSTER = "YW5vdGhlci1jbHVzdGVyMQ"
NEW = 7
UNSTABLE = {"unstable.feature.versions.enable": "true"}


def add(it: Cluster, roles: str, *, node_id: int = NEW, cluster_id: str = CLUSTER_ID) -> None:
    """A machine with an empty disk, formatted for nobody's quorum."""
    it.configs[node_id], it.disks[node_id] = config_of(node_id, roles), VirtualDisk()
    format_directories(it.disks[node_id], it.configs[node_id], 0, cluster_id=cluster_id, voters=VoterSet())


@pytest.mark.parametrize("roles", ["broker", "broker,controller"])
def test_a_node_of_another_cluster_is_refused_at_once(roles: str) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (leader,) = it.leaders
            epoch = it.nodes[leader].raft.quorum.epoch
            add(it, roles, cluster_id=OTHER_CLUSTER)
            meta = read_all(it.disks[NEW], f"/data{NEW}/meta.properties")
            began = loop.time()
            with pytest.raises(StartError, match=rf"this node belongs to cluster {OTHER_CLUSTER}.*127\.0\.0\.1:9193"):
                await it.start(NEW)
            assert loop.time() - began < 5
            assert read_all(it.disks[NEW], f"/data{NEW}/meta.properties") == meta
            await asyncio.sleep(5)
            assert it.leaders == [leader], "and nobody was disturbed"
            assert it.nodes[leader].raft.quorum.epoch == epoch
            assert set(it.nodes[leader].image.brokers) == set(NODES)

    run(scenario)


def test_a_stranger_among_its_peers_does_not_stop_a_node() -> None:
    """Node 3 belongs to another cluster; the other two have their majority without it."""

    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, dict.fromkeys(NODES, "broker,controller"))
        add(it, "broker,controller", node_id=3, cluster_id=OTHER_CLUSTER)
        started = await asyncio.gather(*(it.start(number) for number in NODES), return_exceptions=True)
        assert [type(each) for each in started] == [type(None), type(None), StartError]
        assert len(it.leaders) == 1
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)


def test_a_voter_with_an_empty_disk_follows_and_has_no_vote(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with cluster(loop) as it:
            (leader,) = it.leaders
            lost = next(each for each in NODES if each != leader)
            await it.client(leader).ask(create_topic("orders"), 7)
            await it.kill(lost)
            add(it, "broker,controller", node_id=lost)
            with caplog.at_level(logging.WARNING, "ottla.broker.controller.raft_log"):
                await it.start(lost)
            assert f"node {lost} is not a voter: the voter with this id has directory" in caplog.text
            assert it.nodes[lost].image.topic("orders") is not None
            kind = DescribeQuorumRequest
            request = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
            (seen,) = (await it.client(leader).ask(request, 2)).topics[0].partitions
            directories = {each.replica_id: each.replica_directory_id for each in seen.current_voters}
            assert directories[lost] == bytes([lost] * 16)
            assert [each.replica_id for each in seen.observers] == [lost]
            third = next(each for each in NODES if each not in (leader, lost))
            await it.kill(leader)
            await asyncio.sleep(30)
            assert it.leaders == [], "one voter of three is no majority, whatever the empty disk says"
            await it.start(leader)
            await asyncio.sleep(1)
            assert set(it.leaders) <= {leader, third}

    run(scenario)


def test_a_broker_that_does_not_know_a_feature_of_the_cluster_is_refused_by_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        it = Cluster(loop, dict.fromkeys(NODES, "broker,controller"))
        for number in NODES:
            it.configs[number] = config_of(number, "broker,controller", UNSTABLE)
        await it.start(*NODES)
        kind = UpdateFeaturesRequest
        raised = await it.client(1).ask(kind(feature_updates=(kind.FeatureUpdateKey("share.version", 2),)), 2)
        assert raised.error_code == 0, raised
        add(it, "broker")
        with pytest.raises(MetadataLogError, match=r"UNSUPPORTED_VERSION \(share.version is at level 2"):
            await it.start(NEW)
        assert NEW not in it.nodes[1].image.brokers
        reason = "UNSUPPORTED_VERSION: The cluster runs with share.version 2; the broker supports 0 to 1."
        assert f"broker {NEW} cannot register: {reason}" in caplog.text, "the response itself has no room for it"
        await asyncio.gather(*(node.stop() for node in it.nodes.values()))

    run(scenario)
