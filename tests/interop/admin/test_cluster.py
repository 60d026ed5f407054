"""Unregistering nodes by raw requests, and kafka-cluster: the same on both brokers."""

from __future__ import annotations

import pytest

from ottla.wire.types.describe_cluster import DescribeClusterRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from ottla.wire.types.unregister_controller import UnregisterControllerRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.apache import tool
from tests.interop.node.brokers import APACHE, Node
from tests.interop.process import ProgramFailed

TOOL = "org.apache.kafka.tools.ClusterTool"


@pytest.mark.parametrize("broker_id", [9, -1])
def test_a_broker_that_is_not_there_cannot_be_unregistered(client: RawClient, broker_id: int):
    reply = client.ask(UnregisterBrokerRequest(broker_id), 0)
    assert (reply.error_code, reply.error_message) == (102, f"Broker ID {broker_id} is not currently registered")


def test_controllers_cannot_be_unregistered_yet(client: RawClient, kind: str):
    if kind == APACHE:
        pytest.skip("4.3.1 does not have the API")
    assert client.ask(UnregisterControllerRequest(1), 0).error_code == 42  # itself, while it is active
    assert client.ask(UnregisterControllerRequest(9), 0).error_code == 35  # no record for it in this metadata.version


def test_the_tool_tells_the_cluster_and_its_nodes(broker: Node, client: RawClient):
    where = ("--bootstrap-server", broker.bootstrap_servers)
    cluster_id = client.ask(DescribeClusterRequest(), 0).cluster_id
    assert tool(TOOL, "cluster-id", *where) == f"Cluster ID: {cluster_id}\n"
    listed = tool(TOOL, "list-endpoints", *where).splitlines()
    assert listed[0].split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    port = broker.bootstrap_servers.rpartition(":")[2]
    assert listed[1].split() == ["1", "127.0.0.1", port, "null", "unfenced", "broker"]
    with pytest.raises(ProgramFailed) as failure:
        tool(TOOL, "unregister", *where, "--id", "9")
    assert "Broker ID 9 is not currently registered" in failure.value.output
