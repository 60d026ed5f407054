"""A cluster of real processes: killed, paused, cut off and started again."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla.testing
from ottla.client import Client, Producer, ProducerRecord
from ottla.client import topics as topic_calls
from ottla.client.blocking import BlockingClient
from ottla.client.errors import ClientError
from ottla.client.topics import NewTopic
from ottla.testing import Cluster, ClusterError, ClusterNode
from ottla.testing.clusters import inspection
from ottla.testing.clusters.layout import ClusterLayout
from ottla.testing.clusters.nodes import NodeState, wait_until
from ottla.wire.properties import read_properties

QUICK = {
    "broker_heartbeat_interval_ms": 300,
    "broker_session_timeout_ms": 3000,
    "controller_quorum_fetch_timeout_ms": 1500,
    "controller_quorum_election_timeout_ms": 1000,
}
"""A node that was killed may come back only when its session has ended."""

HAND_OVER_SECONDS = 20
"""It takes less than one, where a machine has nothing else to do."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with ottla.testing.cluster(**QUICK) as made:  # type: ignore[arg-type]
        yield made


@pytest.fixture
def three(shared: Cluster) -> Iterator[Cluster]:
    """Three nodes, whole before and after."""
    yield shared
    shared.heal()
    for node in shared:
        if node.state is NodeState.PAUSED:
            node.resume()
    shared.start()


def create(servers: str, *names: str) -> None:
    with BlockingClient(servers) as client:
        client.call(topic_calls.create, *map(NewTopic, names))


def topics(node: ClusterNode) -> set[str]:
    """The names that a node knows; it may take its time to answer."""
    for _ in range(10):
        if (seen := inspection.partitions(node.bootstrap_servers)) is not None:
            return {each.topic for each in seen}
    raise AssertionError(f"node {node.node_id} does not answer")


def test_what_was_created_survives_the_leader(three: Cluster):
    create(three.bootstrap_servers, "before")
    leader = three.quorum_leader()
    leader.kill()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", leader.layout.ports["CONTROLLER"]), 1)
    assert three.quorum_leader() is not leader
    create(three.bootstrap_servers, "after")
    leader.start()
    three.wait_in_sync()
    for node in three:
        assert topics(node) >= {"before", "after"}


def test_a_controller_that_leads_and_stops_hands_over():
    """Nobody waits for a time-out: that of the followers is longer than the whole test."""
    slow = {"controller_quorum_fetch_timeout_ms": 120_000, "controller_quorum_election_timeout_ms": 1000}
    with ottla.testing.cluster(1, controllers=3, **slow) as made:  # type: ignore[arg-type]
        create(made.bootstrap_servers, "before")
        before, old = made.quorum(), made.quorum_leader()
        old.begin_stop()
        others = [each for each in made if each.is_controller and each is not old]

        def is_led() -> bool:
            return any(inspection.quorum(each.controller_bootstrap, **made.controller_login) for each in others)

        wait_until(is_led, "nobody else leads", HAND_OVER_SECONDS)
        old.end_stop()
        assert made.quorum().leader_epoch == before.leader_epoch + 1
        create(made.bootstrap_servers, "after")
        assert topics(made[1]) == {"before", "after"}


def test_a_node_that_was_cut_off_follows_the_new_leader(three: Cluster):
    leader = three.quorum_leader()
    three.isolate(leader.node_id)
    others = [each for each in three if each is not leader]
    wait_until(lambda: three.quorum_leader() is not leader, "nobody else leads", 30)
    create(",".join(each.bootstrap_servers for each in others), "meanwhile")
    assert "meanwhile" not in topics(leader)
    three.heal()
    three.wait_in_sync()
    assert "meanwhile" in topics(leader)


def test_a_paused_node_is_missed_but_not_refused(three: Cluster):
    follower = next(each for each in three if each is not three.quorum_leader())
    follower.pause()
    assert follower.is_running
    with contextlib.closing(socket.create_connection(("127.0.0.1", follower.layout.ports["PLAINTEXT"]), 5)):
        assert inspection.quorum(follower.controller_bootstrap) is None
    with pytest.raises(ClusterError, match="is paused"):
        follower.stop()
    follower.resume()
    three.wait_in_sync()
    assert follower.state is NodeState.RUNNING


def test_topics_have_leaders(three: Cluster):
    create(three.bootstrap_servers, "led")
    leader = three.leader("led", 0)
    assert leader in list(three)
    with pytest.raises(ClusterError, match="unknown node 9; known: 1, 2, 3"):
        three[9].kill()


def test_it_is_the_same_after_a_restart(tmp_path: Path):
    with ottla.testing.cluster(1, controllers=1, data_dir=tmp_path, **QUICK) as made:  # type: ignore[arg-type]
        create(made.bootstrap_servers, "orders")
        where = made.bootstrap_servers, made.controller_bootstrap
        made.stop()
        assert [each.state for each in made] == [NodeState.STOPPED, NodeState.STOPPED]
    settings = read_properties((tmp_path / "node-2" / "server.properties").read_text())
    assert settings["process.roles"] == "controller"
    with ottla.testing.cluster(1, controllers=1, data_dir=tmp_path) as made:
        assert (made.bootstrap_servers, made.controller_bootstrap) == where
        assert topics(made[1]) == {"orders"}
    with pytest.raises(ClusterError, match="contains a cluster of 1 brokers and 1 controllers"):
        ottla.testing.cluster(3, data_dir=tmp_path).__enter__()


def test_a_node_that_cannot_start_says_why(tmp_path: Path):
    layout = ClusterLayout.make(tmp_path, 1)
    layout.let_go()
    (layout.nodes[0].data_dir / "meta.properties").write_text("version=9")
    with pytest.raises(ClusterError, match=r"(?s)node 1 has exited; the end of .*version '9' is not known"):
        ottla.testing.cluster(1, data_dir=tmp_path).__enter__()


def test_a_port_that_was_taken_meanwhile_is_named(tmp_path: Path):
    layout = ClusterLayout.make(tmp_path, 1)
    port = layout.nodes[0].ports["CONTROLLER"]
    with contextlib.closing(socket.socket()) as another, pytest.raises(OSError, match="Address already in use"):
        another.bind(("127.0.0.1", port))
    layout.let_go()
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(ClusterError, match=rf"port {port} of node 1 cannot be used: Address already in use"),
    ):
        ottla.testing.cluster(1, data_dir=tmp_path).__enter__()


def test_settings_that_each_node_has_its_own_of_are_refused():
    with pytest.raises(ClusterError, match=r"listeners cannot be set"):
        ottla.testing.cluster(listeners="PLAINTEXT://127.0.0.1:1").__enter__()


@pytest.mark.ottla(nodes=1, num_partitions=2)
def test_the_fixture_takes_settings(ottla_cluster: Cluster):
    create(ottla_cluster.bootstrap_servers, "orders")
    assert {each.partition for each in inspection.partitions(ottla_cluster[1].bootstrap_servers) or ()} == {0, 1}


def test_nodes_that_log_in_to_each_other_copy_records():
    with ottla.testing.cluster(2, security="sasl_ssl", min_insync_replicas=2) as made:

        async def produce(client: Client) -> None:
            await topic_calls.create(client, NewTopic("copied", partitions=2, replication_factor=2))
            await Producer(client).send_all(ProducerRecord("copied", b"x", partition=number) for number in (0, 1))

        with BlockingClient(made.bootstrap_servers) as client:
            client.call(produce)  # with acks=all: both have it
        internal = made[1].layout.address("INTERNAL")
        with pytest.raises(ClientError), BlockingClient(internal, default_api_timeout_ms=2_000) as stranger:
            stranger.call(topic_calls.create, NewTopic("refused"))
