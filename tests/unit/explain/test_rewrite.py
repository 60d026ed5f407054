"""Addresses of nodes are rewritten wherever they stand, and nothing else is."""

from typing import Any

import pytest

from ottla import wire
from ottla.explain.exchanges import Conversation, Message
from ottla.explain.rewrite import has_addresses, rewrite_frame, rewrite_response
from ottla.explain.stream import Frame
from ottla.wire import types
from ottla.wire.index import MESSAGES
from tests.unit.explain import packets as made
from tests.unit.wire import message_vectors as golden

WITH_ADDRESSES = {
    "ProduceResponse": 10,
    "FetchResponse": 16,
    "MetadataResponse": 0,
    "FindCoordinatorResponse": 0,
    "VoteResponse": 1,
    "BeginQuorumEpochResponse": 1,
    "EndQuorumEpochResponse": 1,
    "DescribeQuorumResponse": 2,
    "FetchSnapshotResponse": 1,
    "DescribeClusterResponse": 0,
    "ShareFetchResponse": 1,
    "ShareAcknowledgeResponse": 1,
    "UpdateRaftVoterResponse": 0,
}
"""Every response that says where nodes are, and since which version."""
CASES = [
    pytest.param(vector, id=f"{vector['name']} v{vector['version']} {vector['case']}")
    for name in WITH_ADDRESSES
    for vector in golden.vectors()[name]
    if vector["case"] in ("dense", "mixed") and vector["version"] >= WITH_ADDRESSES[name]
]


def moved(host: str, port: int, node_id: int) -> tuple[str, int]:
    return f"proxy-{node_id}", (port + 1) % 65_536


def addresses(value: Any, node_id: Any = None) -> list[tuple[str, int, Any]]:
    """Host, port and the nearest node id of everything in JSON that has a host and a port."""
    found = []
    if isinstance(value, list):
        return [address for item in value for address in addresses(item, node_id)]
    if isinstance(value, dict):
        node_id = next((value[key] for key in ("nodeId", "brokerId", "leaderId") if key in value), node_id)
        if "host" in value and "port" in value:
            found.append((value["host"], value["port"], node_id))
        for item in value.values():
            found += addresses(item, node_id)
    return found


def test_these_responses_and_no_others_say_where_nodes_are():
    found = {}
    for name in wire.names():
        versions = [version for version in wire.versions(name) if has_addresses(name, version)]
        if versions:
            found[name] = versions[0]
    assert found == WITH_ADDRESSES


@pytest.mark.parametrize("vector", CASES)
def test_every_address_is_mapped_and_nothing_else_changes(vector: dict[str, Any]):
    name, version = vector["name"], vector["version"]
    before = wire.decode(name, version, golden.raw(vector))
    after = rewrite_response(before, version, moved)
    told = addresses(wire.to_json(before, version))
    mapped = addresses(wire.to_json(after, version))
    assert mapped == [(*moved(host, port, node), node) if host else (host, port, node) for host, port, node in told]
    restored = {(*moved(host, port, node), node): (host, port) for host, port, node in told}
    back = rewrite_response(after, version, lambda host, port, node: restored[host, port, node])
    assert wire.encode(back, version) == golden.raw(vector)


@pytest.mark.parametrize("vector", [case for case in CASES if case.values[0]["case"] == "dense"])
def test_the_mapping_sees_every_address_in_dense_messages(vector: dict[str, Any]):
    message = wire.decode(vector["name"], vector["version"], golden.raw(vector))
    assert rewrite_response(message, vector["version"], moved) != message


def test_streams_endpoints_are_the_applications_and_stay():
    response = types.StreamsGroupHeartbeatResponse(
        partitions_by_user_endpoint=(
            types.StreamsGroupHeartbeatResponse.EndpointToPartitions(
                user_endpoint=types.StreamsGroupHeartbeatResponse.Endpoint("app", 8080)
            ),
        )
    )
    assert rewrite_response(response, 1, moved) is response


def test_a_coordinator_that_is_not_known_stays_unknown():
    response = types.FindCoordinatorResponse(
        coordinators=(types.FindCoordinatorResponse.Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15),)
    )
    assert rewrite_response(response, 4, moved) is response


def test_the_listeners_of_a_voter_are_mapped_by_its_id():
    response = types.DescribeQuorumResponse(
        nodes=(
            types.DescribeQuorumResponse.Node(
                node_id=7, listeners=(types.DescribeQuorumResponse.Listener("CONTROLLER", "c7", 9093),)
            ),
        )
    )
    after = rewrite_response(response, 2, moved)
    assert after.nodes[0].listeners[0] == types.DescribeQuorumResponse.Listener("CONTROLLER", "proxy-7", 9094)


def response_of(data: bytes) -> Message:
    conversation = Conversation()
    conversation.request(Frame(made.metadata_request(1)[4:], 0, 0))
    [exchange] = conversation.response(Frame(data[4:], len(data), 0))
    assert exchange.response is not None
    return exchange.response


def test_a_frame_is_written_with_its_new_size_and_its_own_header():
    data = made.metadata_response(1, "orders")
    tagged = data[4:8] + b"\x01\x05\x02hi" + data[9:]  # a tagged field in the header
    message = response_of(len(tagged).to_bytes(4, "big") + tagged)
    after = rewrite_frame(message, moved)
    assert after[4:13] == data[4:8] + b"\x01\x05\x02hi"
    assert int.from_bytes(after[:4], "big") == len(after) - 4
    assert b"proxy-0" in after
    assert b"broker-0.example" not in after


def test_a_frame_that_needs_no_change_comes_out_byte_for_byte():
    data = made.metadata_response(1, "orders")
    assert rewrite_frame(response_of(data), lambda host, port, node: (host, port)) == data


def test_a_frame_that_cannot_be_read_comes_out_byte_for_byte():
    data = made.metadata_response(1)[:-3]
    data = (len(data) - 4).to_bytes(4, "big") + data[4:]
    assert rewrite_frame(response_of(data), moved) == data


def test_only_responses_have_addresses():
    requests = [name for name, entry in MESSAGES.items() if entry.kind != "response"]
    assert not any(has_addresses(name, MESSAGES[name].high) for name in requests)
    assert not has_addresses("MetadataResponse", 99)
    assert not has_addresses("Nonsense", 0)
