from collections.abc import Callable

import pytest

from ottla.core.quorum.events import Start, StateStored, Synced
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.voter_changes import check_add, check_remove
from ottla.core.quorum.voters import ControlHistory, Listener, Voter, VoterSet, voters_record
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest
from ottla.wire.types.control_records import KRaftVersionRecord
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from simulation.quorum.virtual_log import VirtualLog

Ask = Callable[..., Reject]
CLUSTER = "b3R0bGEtaW50ZXJvcC0wMQ"
OWN, OTHER = bytes(range(1, 17)), bytes(range(16))
OWN_KEY = "ReplicaKey(id=1, directoryId=AQIDBAUGBwgJCgsMDQ4PEA)"
LISTENERS = (AddRaftVoterRequest.Listener("CONTROLLER", "127.0.0.1", 9094),)


def leading(kraft_version: int = 1) -> Quorum:
    voter = Voter(1, OWN, (Listener("CONTROLLER", "127.0.0.1", 9093),))
    control = ControlHistory(VoterSet((voter,)))
    control.replay(KRaftVersionRecord(k_raft_version=kraft_version), -1)
    if kraft_version:
        control.replay(voters_record(VoterSet((voter,))), -1)
    quorum = replica(voter, control)
    quorum.step(Start(), 0, 0)
    quorum.step(StateStored(), 0, 0)
    quorum.step(Synced(3), 0, 0)
    return quorum


def replica(voter: Voter, control: ControlHistory) -> Quorum:
    return Quorum(voter, control, VirtualLog(), stored=None, cluster_id=CLUSTER, random=lambda below: 0)


def adding(quorum: Quorum | None = None, **fields: object) -> Reject:
    asked = {"cluster_id": CLUSTER, "voter_id": 2, "voter_directory_id": OTHER, "listeners": LISTENERS} | fields
    with pytest.raises(Reject) as refused:
        check_add(quorum or leading(), AddRaftVoterRequest(**asked))  # type: ignore[arg-type]
    return refused.value


def removing(quorum: Quorum | None = None, **fields: object) -> Reject:
    asked = {"cluster_id": CLUSTER, "voter_id": 1, "voter_directory_id": OWN} | fields
    with pytest.raises(Reject) as refused:
        check_remove(quorum or leading(), RemoveRaftVoterRequest(**asked))  # type: ignore[arg-type]
    return refused.value


@pytest.mark.parametrize("ask", [adding, removing])
def test_another_cluster_is_not_ours(ask: Ask):
    refused = ask(cluster_id="wrong")
    assert refused.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert refused.message == f'The given id "wrong" doesn\'t match the cluster id "{CLUSTER}"'


@pytest.mark.parametrize("ask", [adding, removing])
@pytest.mark.parametrize("fields", [{"voter_id": -1}, {"voter_directory_id": bytes(16)}])
def test_a_voter_has_an_id_and_a_directory(ask: Ask, fields: dict[str, object]):
    refused = ask(**fields)
    assert (refused.code, refused.message) == (
        ErrorCode.INVALID_REQUEST,
        f"{'Add' if ask is adding else 'Remove'} voter request didn't include a valid voter",
    )


@pytest.mark.parametrize("ask", [adding, removing])
def test_only_a_leader_changes_voters(ask: Ask):
    voter = Voter(1, OWN)
    follower = replica(voter, ControlHistory(VoterSet((voter,))))
    assert ask(follower).code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("ask", [adding, removing])
def test_voters_of_the_configuration_stay(ask: Ask):
    assert ask(leading(kraft_version=0)).code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("name", ["X", ""])
def test_the_leader_must_be_told_where_to_reach_it(name: str):
    refused = adding(listeners=(AddRaftVoterRequest.Listener(name, "127.0.0.1", 1),))
    assert refused.code is ErrorCode.INVALID_REQUEST
    assert f"ListenerName({name})=127.0.0.1/<unresolved>:1" in str(refused.message)


@pytest.mark.parametrize("directory_id", [OWN, OTHER])
def test_an_id_votes_once(directory_id: bytes):
    refused = adding(voter_id=1, voter_directory_id=directory_id)
    assert refused.code is ErrorCode.DUPLICATE_VOTER
    assert str(refused.message).endswith(f"is already part of the set of voters [{OWN_KEY}].")


def test_nobody_has_caught_up_with_a_quorum_of_one():
    assert adding().code is ErrorCode.REQUEST_TIMED_OUT
    assert adding(cluster_id=None).code is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("fields", [{}, {"voter_id": 2}, {"voter_directory_id": OTHER}])
def test_neither_the_last_voter_nor_a_stranger_can_be_removed(fields: dict[str, object]):
    refused = removing(**fields)
    assert refused.code is ErrorCode.VOTER_NOT_FOUND
    assert str(refused.message).endswith(f"from the set of voters [{OWN_KEY}]")
