"""Requests that one node passes on to the controller of another, in envelopes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

import msgspec
import pytest

from ottla.broker.controller.forwarding import read_sender
from ottla.broker.network.request import Request
from ottla.broker.node import Node
from ottla.broker.peers.peer_connection import Address
from ottla.core.quorum.quorum import AppendFailed
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire import frames
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import encode_framed
from ottla.wire.types import (
    DefaultPrincipalData,
    DescribeQuorumRequest,
    EnvelopeRequest,
    EnvelopeResponse,
    ListGroupsRequest,
    MetadataRequest,
)
from tests.unit.broker.virtual_node import Client, create_topic, run, running

CONTROLLER = 9093
OTHER = {
    "node.id": "2",
    "listeners": "PLAINTEXT://127.0.0.1:9192,CONTROLLER://127.0.0.1:9193",
    "log.dirs": "/other",
}


def envelope(request: object = create_topic("orders"), version: int = 7) -> EnvelopeRequest:
    frame = frames.write_request(request, version, correlation_id=77, client_id="admin")
    principal = encode_framed(DefaultPrincipalData("User", "alice"), 0)
    return EnvelopeRequest(frame[frames.SIZE_BYTES :], principal, bytes([10, 0, 0, 9]))


# --- what a controller does with them ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "host"),
    [("10.0.0.9", "10.0.0.9"), ("::ffff:10.0.0.9", "10.0.0.9"), ("fd00::9", "fd00:0:0:0:0:0:0:9")],
)
def test_the_client_has_the_address_that_acls_name(address: str, host: str) -> None:
    sent = msgspec.structs.replace(envelope(), client_host_address=ip_address(address).packed)
    assert read_sender(sent).host == host


def test_the_client_is_the_one_that_the_envelope_names() -> None:
    asked: list[tuple[str, str, Operation]] = []

    def authorizer(request: Request, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        asked.append((request.principal, request.connection.peer.host, operation))
        return True

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), authorizer=authorizer) as node:
            answer: EnvelopeResponse = await Client(loop, CONTROLLER).ask(envelope(), 0)
            assert answer.error_code == ErrorCode.NONE
            assert answer.response_data is not None
            inner = frames.read_response(bytes(answer.response_data), 19, 7)
            assert inner.header.correlation_id == 77
            (created,) = inner.body.topics
            topic = node.image.topic("orders")
            assert topic is not None
            assert created.topic_id == topic.topic_id

    run(scenario)
    assert ("User:ANONYMOUS", "127.0.0.1", Operation.CLUSTER_ACTION) in asked
    assert ("User:alice", "10.0.0.9", Operation.CREATE) in asked


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (msgspec.structs.replace(envelope(), request_principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (msgspec.structs.replace(envelope(), request_principal=b"\0\1"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (msgspec.structs.replace(envelope(), client_host_address=b"\1\2\3"), ErrorCode.INVALID_REQUEST),
        (envelope(ListGroupsRequest(), 4), ErrorCode.INVALID_REQUEST),
        (msgspec.structs.replace(envelope(), request_data=b"\0\x13\0\x63" + bytes(20)), ErrorCode.UNSUPPORTED_VERSION),
        (msgspec.structs.replace(envelope(), request_data=b"\0\x13"), ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=["no principal", "principal", "address", "api", "version", "cut off"],
)
def test_a_bad_envelope_is_refused_as_a_whole(sent: EnvelopeRequest, code: ErrorCode) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()):
            answer: EnvelopeResponse = await Client(loop, CONTROLLER).ask(sent, 0)
            assert (answer.error_code, answer.response_data) == (code, None)

    run(scenario)


def test_only_brokers_may_forward() -> None:
    def authorizer(request: Request, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return operation != Operation.CLUSTER_ACTION

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk(), authorizer=authorizer):
            answer: EnvelopeResponse = await Client(loop, CONTROLLER).ask(envelope(), 0)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(scenario)


def test_a_controller_that_is_not_active_says_so() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()) as node:
            node.raft._step(AppendFailed())
            client = Client(loop, CONTROLLER)
            answer: EnvelopeResponse = await client.ask(envelope(), 0)
            assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)
            (refused,) = (await client.ask(create_topic("orders"), 7)).topics
            assert refused.error_code == ErrorCode.NOT_CONTROLLER

    run(scenario)


# --- a broker whose controller is on another node ---------------------------------------------------------------------


@asynccontextmanager
async def two_nodes(loop: VirtualLoop) -> AsyncIterator[tuple[Node, Node]]:
    """A node with the active controller, and a broker that sends its requests there."""
    async with running(loop, VirtualDisk()) as controller, running(loop, VirtualDisk(), settings=OTHER) as broker:
        own = broker.controller._core
        broker.controller._core = None
        broker.remote_controller._address = lambda: Address("127.0.0.1", CONTROLLER)
        yield controller, broker
        broker.controller._core = own
        broker.remote_controller._address = lambda: None


def follow(broker: Node, controller: Node, name: str) -> None:
    """Let the broker read of a topic what the controller's log has."""
    topic = controller.image.topic(name)
    assert topic is not None
    image = broker.image.fork()
    image.topics_by_name[name] = image.topics_by_id[topic.topic_id] = topic
    broker.image.become(image)
    broker.publisher._arrive(broker.image.last_offset + 1)


def test_a_topic_is_created_there_and_the_client_waits_until_this_node_knows_it() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop) as (controller, broker):
            creating = loop.create_task(Client(loop, 9192).ask(create_topic("orders"), 7))
            await asyncio.sleep(2)
            assert controller.image.topic("orders") is not None
            assert not creating.done()
            follow(broker, controller, "orders")
            (created,) = (await creating).topics
            assert created.error_code == ErrorCode.NONE

    run(scenario)


def test_a_topic_that_this_node_never_sees_keeps_the_client_no_longer_than_its_time() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop):
            began = loop.time()
            request = msgspec.structs.replace(create_topic("orders"), timeout_ms=5000)
            (created,) = (await Client(loop, 9192).ask(request, 7)).topics
            assert created.error_code == ErrorCode.NONE
            assert loop.time() - began == pytest.approx(5, abs=0.1)

    run(scenario)


@pytest.mark.prompt
def test_what_is_only_validated_is_not_waited_for() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop):
            began = loop.time()
            request = msgspec.structs.replace(create_topic("orders"), validate_only=True)
            await Client(loop, 9192).ask(request, 7)
            assert loop.time() - began < 1

    run(scenario)


def test_a_missing_topic_is_created_there() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop) as (controller, broker):
            kind = MetadataRequest
            asking = loop.create_task(Client(loop, 9192).ask(kind((kind.MetadataRequestTopic(name="orders"),)), 12))
            await asyncio.sleep(2)
            follow(broker, controller, "orders")
            (topic,) = (await asking).topics
            assert topic.name == "orders"
            assert len(topic.partitions) == 1

    run(scenario)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_by_its_leader(version: int) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop):
            kind = DescribeQuorumRequest
            request = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
            answer = await Client(loop, 9192).ask(request, version)
            assert [each.partitions[0].leader_id for each in answer.topics] == [1]
            ((row,),) = [each.partitions[0].current_voters for each in answer.topics]
            assert (row.last_fetch_timestamp > 0, row.last_caught_up_timestamp > 0) == (version >= 1, version >= 1)
            assert (row.replica_directory_id != bytes(16), len(answer.nodes)) == (version >= 2, int(version >= 2))

    run(scenario)


def test_a_request_waits_for_a_controller_that_cannot_be_reached() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop) as (_, broker):
            reachable = broker.remote_controller._address
            broker.remote_controller._address = lambda: Address("127.0.0.1", 1)
            request = msgspec.structs.replace(create_topic("orders"), validate_only=True)
            asking = loop.create_task(Client(loop, 9192).ask(request, 7))
            await asyncio.sleep(3)
            assert not asking.done()
            broker.remote_controller._address = reachable
            (created,) = (await asking).topics
            assert created.error_code == ErrorCode.NONE

    run(scenario)


def test_a_request_that_no_controller_answers_ends_with_its_time() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop) as (_, broker):
            broker.remote_controller._address = lambda: Address("127.0.0.1", 1)
            request = msgspec.structs.replace(create_topic("orders"), timeout_ms=5000)
            (refused,) = (await Client(loop, 9192).ask(request, 7)).topics
            assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT

    run(scenario)


def test_the_node_itself_asks_without_an_envelope() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with two_nodes(loop) as (controller, broker):
            asking = loop.create_task(broker.controller_channel.call(create_topic("__internal"), 7))
            await asyncio.sleep(2)
            follow(broker, controller, "__internal")
            assert [topic.error_code for topic in (await asking).topics] == [ErrorCode.NONE]
            seen = {name for name, _ in controller.metrics.requests}
            assert "CreateTopics" in seen
            assert "Envelope" not in seen

    run(scenario)
