"""DescribeCluster with brokers that are fenced and with several controllers: the same on both brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.controller_registration import ControllerRegistrationRequest
from ottla.wire.types.describe_cluster import DescribeClusterRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.controller.twin import registration, uuid
from tests.interop.node.brokers import Node

BROKERS, CONTROLLERS = 1, 2
NEW, GONE, ELSEWHERE = 6, 7, 8
FAR = 1 << 40

Row = tuple[int, int, str | None, bool]


def nodes(reply: Any) -> list[Row]:
    return sorted((each.broker_id, each.port, each.rack, each.is_fenced) for each in reply.brokers)


def register(controller: RawClient, cluster_id: str) -> None:
    """A broker that was never unfenced, one that was fenced again, one without the listener; and a controller."""
    kind = BrokerRegistrationRequest
    for fields in (
        {"broker_id": NEW, "rack": "north"},
        {"broker_id": GONE},
        {"broker_id": ELSEWHERE, "listeners": (kind.Listener("OTHER", "127.0.0.1", 1),)},
    ):
        reply = controller.ask(registration(cluster_id=cluster_id, **fields), 4)
        assert reply.error_code == 0
        if fields["broker_id"] == GONE:
            for want_fence in (False, True):
                beaten = controller.ask(BrokerHeartbeatRequest(GONE, reply.broker_epoch, FAR, want_fence), 2)
                assert beaten.is_fenced is want_fence
    other = ControllerRegistrationRequest
    listeners = (other.Listener("CONTROLLER", "127.0.0.1", 7777, 0),)
    levels = (other.Feature("metadata.version", 7, 30), other.Feature("kraft.version", 0, 1))
    assert controller.ask(other(9, uuid(9), False, listeners, levels), 0).error_code == 0


def described(client: RawClient, version: int, endpoint_type: int, **fields: Any) -> Any:
    return client.ask(DescribeClusterRequest(endpoint_type=endpoint_type, **fields), version)


def await_nodes(client: RawClient, *broker_ids: int) -> None:
    """A broker of Apache Kafka sees what its controller has committed a moment later."""
    for _ in range(1_000):
        found = described(client, 2, BROKERS, include_fenced_brokers=True)
        if {each.broker_id for each in found.brokers} == set(broker_ids):
            return
    raise AssertionError(f"{found} is not {broker_ids}")


def test_fenced_brokers_and_controllers(boot: Callable[..., Node]):
    node = boot(broker_session_timeout_ms=60_000)
    client, controller = RawClient.at(node.bootstrap_servers), RawClient.at(node.controller_servers)
    register(controller, described(client, 0, BROKERS).cluster_id)
    await_nodes(client, 1, NEW, GONE)

    alive: list[Row] = [(1, int(node.bootstrap_servers.rpartition(":")[2]), None, False)]
    for version in (0, 1, 2):
        reply = described(client, version, BROKERS)
        assert (reply.error_code, nodes(reply), reply.controller_id) == (0, alive, 1)
        assert reply.cluster_authorized_operations == -(1 << 31)
        asked = described(client, version, BROKERS, include_cluster_authorized_operations=True)
        assert asked.cluster_authorized_operations == 0b1111110100000
    fenced: list[Row] = [(NEW, 9000 + NEW, "north", True), (GONE, 9000 + GONE, None, True)]
    assert nodes(described(client, 2, BROKERS, include_fenced_brokers=True)) == [*alive, *fenced]

    of_controllers: list[Row] = [
        (1, int(node.controller_servers.rpartition(":")[2]), None, False),
        (9, 7777, None, False),
    ]
    for version in (1, 2):
        reply = described(controller, version, CONTROLLERS)
        assert (reply.error_code, reply.controller_id, reply.endpoint_type) == (0, 1, CONTROLLERS)
        assert sorted(nodes(reply)) == sorted(of_controllers)
        for wrong, asked_of in ((CONTROLLERS, client), (BROKERS, controller)):
            reply = described(asked_of, version, wrong)
            assert ErrorCode(reply.error_code) is ErrorCode.MISMATCHED_ENDPOINT_TYPE
            assert reply.brokers == ()
        for asked_of in (client, controller):
            assert described(asked_of, version, 7).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    reply = described(controller, 2, CONTROLLERS, include_fenced_brokers=True)
    assert (reply.error_code, sorted(nodes(reply))) == (0, sorted(of_controllers))
    for each in (client, controller):
        each.close_all()
