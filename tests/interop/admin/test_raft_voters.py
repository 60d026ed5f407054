"""Add- and RemoveRaftVoter to the leader of a quorum of one, by raw requests and by tool: the same on both brokers.

Whether a node that is to be added can be reached shows in Apache Kafka's words only, by chance in two forms; the code
is the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ottla.wire import uuid_text
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest
from ottla.wire.types.describe_cluster import DescribeClusterRequest
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.apache import tool
from tests.interop.node.brokers import Node
from tests.interop.process import ProgramFailed

QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
OTHER = bytes(range(16))
LISTENER = AddRaftVoterRequest.Listener("CONTROLLER", "127.0.0.1", 1)


class Quorum(NamedTuple):
    cluster_id: str
    directory_id: bytes

    @property
    def shown(self) -> str:
        return f"[ReplicaKey(id=1, directoryId={uuid_text(self.directory_id)})]"


@pytest.fixture
def quorum(client: RawClient) -> Quorum:
    kind = DescribeQuorumRequest
    asked = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
    (voter,) = client.ask(asked, 2).topics[0].partitions[0].current_voters
    return Quorum(client.ask(DescribeClusterRequest(), 0).cluster_id, voter.replica_directory_id)


def add(
    client: RawClient, cluster_id: str | None, voter_id: int, directory_id: bytes, *listeners: Any
) -> tuple[int, Any]:
    reply = client.ask(AddRaftVoterRequest(cluster_id, 1_000, voter_id, directory_id, listeners), 1)
    return reply.error_code, reply.error_message


def remove(client: RawClient, cluster_id: str | None, voter_id: int, directory_id: bytes) -> tuple[int, Any]:
    reply = client.ask(RemoveRaftVoterRequest(cluster_id, voter_id, directory_id), 0)
    return reply.error_code, reply.error_message


def test_another_cluster(client: RawClient, quorum: Quorum):
    said = (104, f'The given id "wrong" doesn\'t match the cluster id "{quorum.cluster_id}"')
    assert add(client, "wrong", 2, OTHER, LISTENER) == said
    assert remove(client, "wrong", 1, quorum.directory_id) == said


def test_nobody_named(client: RawClient, quorum: Quorum):
    said = (42, "Add voter request didn't include a valid voter")
    assert add(client, quorum.cluster_id, -1, OTHER, LISTENER) == said
    assert add(client, quorum.cluster_id, 2, bytes(16), LISTENER) == said
    said = (42, "Remove voter request didn't include a valid voter")
    assert remove(client, quorum.cluster_id, -1, OTHER) == said
    assert remove(client, quorum.cluster_id, 1, bytes(16)) == said


def test_no_way_to_reach_it(client: RawClient, quorum: Quorum):
    words = "Add voter request didn't include the endpoint ({}) for the default listener ListenerName(CONTROLLER)"
    assert add(client, quorum.cluster_id, 2, OTHER) == (42, words.format("Endpoints(endpoints={})"))
    wrong = AddRaftVoterRequest.Listener("X", "127.0.0.1", 1)
    shown = "Endpoints(endpoints={ListenerName(X)=127.0.0.1/<unresolved>:1})"
    assert add(client, quorum.cluster_id, 2, OTHER, wrong) == (42, words.format(shown))


@pytest.mark.parametrize("is_same", [True, False])
def test_an_id_that_votes_already(client: RawClient, quorum: Quorum, is_same: bool):
    directory_id = quorum.directory_id if is_same else OTHER
    key = f"ReplicaKey(id=1, directoryId={uuid_text(directory_id)})"
    said = f"The voter id for {key} is already part of the set of voters {quorum.shown}."
    assert add(client, None, 1, directory_id, LISTENER) == (126, said)


def test_a_node_that_has_not_followed(client: RawClient, quorum: Quorum):
    assert add(client, quorum.cluster_id, 2, OTHER, LISTENER)[0] == 7


def test_neither_a_stranger_nor_the_last_voter_leaves(client: RawClient, quorum: Quorum):
    for voter_id, directory_id in ((1, OTHER), (2, OTHER), (1, quorum.directory_id)):
        key = f"ReplicaKey(id={voter_id}, directoryId={uuid_text(directory_id)})"
        said = f"Cannot remove voter {key} from the set of voters {quorum.shown}"
        assert remove(client, None, voter_id, directory_id) == (127, said)


def test_the_tool_cannot_remove_the_last_voter(broker: Node, quorum: Quorum):
    where = ("--bootstrap-server", broker.bootstrap_servers, "remove-controller", "--controller-id", "1")
    with pytest.raises(ProgramFailed) as failure:
        tool(QUORUM_TOOL, *where, "--controller-directory-id", uuid_text(quorum.directory_id))
    key = f"ReplicaKey(id=1, directoryId={uuid_text(quorum.directory_id)})"
    assert (
        "org.apache.kafka.common.errors.VoterNotFoundException: "
        f"Cannot remove voter {key} from the set of voters {quorum.shown}"
    ) in failure.value.output
