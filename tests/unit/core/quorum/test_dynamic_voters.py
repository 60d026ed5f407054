"""Voters that come, go and move while the quorum works, and the upgrade to kraft.version 1."""

from typing import Any

import pytest

from ottla.core.quorum.events import Destination, NotAnswered, QuorumSettings, Stop, UpgradeKRaftVersion
from ottla.core.quorum.states import State
from ottla.core.quorum.voters import Listener, Voter
from ottla.wire.batch import read_control_batch, read_header
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.wire.types.vote import VoteRequest
from tests.unit.core.quorum.replica import (
    CLUSTER,
    EPOCH,
    Replica,
    directory,
    fetch,
    fetch_response,
    follower,
    leader,
    vote_response,
    voter,
)


def catch_up(replica: Replica, *ids: int) -> None:
    """Replicas fetch everything; what their majority has is committed."""
    for replica_id in ids:
        end, epoch = replica.log.end_offset, replica.log.last_epoch
        replica.ask(fetch(offset=end, last_epoch=epoch, replica_id=replica_id, max_wait_ms=0))


def leading(**options: Any) -> Replica:
    """A leader whose epoch is committed, and the observer 4, which has caught up."""
    replica = leader(**options)
    catch_up(replica, 2, 4)
    return replica


def add(node_id: int = 4, **fields: Any) -> AddRaftVoterRequest:
    kind = AddRaftVoterRequest
    listeners = (kind.Listener("CONTROLLER", f"host{node_id}", 9000 + node_id),)
    return kind(CLUSTER, 1_000, node_id, directory(node_id), listeners, **fields)


def remove(node_id: int, directory_id: bytes | None = None) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(CLUSTER, node_id, directory_id or directory(node_id))


def update(
    node_id: int = 2,
    *,
    epoch: int = EPOCH,
    port: int = 7777,
    versions: tuple[int, int] = (0, 1),
    directory_id: bytes | None = None,
    cluster_id: str = CLUSTER,
    listener: str = "CONTROLLER",
) -> UpdateRaftVoterRequest:
    kind = UpdateRaftVoterRequest
    return kind(
        cluster_id,
        epoch,
        node_id,
        directory(node_id) if directory_id is None else directory_id,
        (kind.Listener(listener, f"host{node_id}", port),),
        kind.KRaftVersionFeature(*versions),
    )


def supports(low: int, high: int) -> ApiVersionsResponse:
    kind = ApiVersionsResponse
    return kind(supported_features=(kind.SupportedFeatureKey("kraft.version", low, high),))


def code_of(answer: Any) -> ErrorCode:
    assert isinstance(answer, Reject)
    return answer.code


def begin_add(replica: Replica, request: AddRaftVoterRequest | None = None) -> Any:
    """The token of the answer, when the new voter's node has been asked and has answered."""
    before = set(replica.replies)
    assert replica.ask(request or add()) is None
    (sent,) = replica.take_sent(ApiVersionsRequest)
    assert (sent.to.node_id, sent.to.host, sent.to.port) == (4, "host4", 9004)
    replica.answer(sent, supports(0, 1))
    return set(replica.replies) - before


# --- AddRaftVoter


def test_a_caught_up_observer_becomes_a_voter():
    replica = leading()
    assert begin_add(replica) == set()
    assert replica.quorum.control.voters.ids == (1, 2, 3, 4), "the voters count as soon as they are appended"
    before = set(replica.replies)
    catch_up(replica, 2)
    assert set(replica.replies) - before, "the fetch is answered"
    assert not [each for each in replica.replies.values() if isinstance(each, AddRaftVoterResponse)], "2 of 4"
    catch_up(replica, 4)
    (answer,) = [each for each in replica.replies.values() if isinstance(each, AddRaftVoterResponse)]
    assert answer.error_code == 0


def test_a_voter_that_joins_by_itself_is_answered_after_the_append():
    replica = leading()
    (token,) = begin_add(replica, add(ack_when_committed=False))
    assert replica.replies[token].error_code == 0
    assert replica.quorum.leading.high_watermark < replica.log.end_offset


def test_an_observer_that_has_never_caught_up_cannot_join():
    replica = leader()
    catch_up(replica, 2)
    replica.ask(fetch(offset=10, replica_id=4))
    assert code_of(replica.ask(add())) is ErrorCode.REQUEST_TIMED_OUT
    assert replica.take_sent(ApiVersionsRequest) == []


def test_an_observer_that_has_not_fetched_for_an_hour_cannot_join():
    replica = leading()
    for _ in range(1_300):
        replica.advance(2_800)
        catch_up(replica, 2)
    assert code_of(replica.ask(add())) is ErrorCode.REQUEST_TIMED_OUT


def test_a_node_that_cannot_be_reached_does_not_join():
    replica = leading()
    before = set(replica.replies)
    replica.ask(add())
    (sent,) = replica.take_sent(ApiVersionsRequest)
    replica.step(NotAnswered(sent.request_id))
    (token,) = set(replica.replies) - before
    assert code_of(replica.replies[token]) is ErrorCode.REQUEST_TIMED_OUT
    assert replica.quorum.control.voters.ids == (1, 2, 3)
    assert begin_add(replica) == set(), "another change can begin"


@pytest.mark.parametrize("response", [supports(0, 0), ApiVersionsResponse()])
def test_a_node_without_dynamic_voters_does_not_join(response: ApiVersionsResponse):
    replica = leading()
    before = set(replica.replies)
    replica.ask(add())
    (sent,) = replica.take_sent(ApiVersionsRequest)
    replica.answer(sent, response)
    (token,) = set(replica.replies) - before
    assert code_of(replica.replies[token]) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("request_", [add(5), remove(3), update()])
def test_one_change_at_a_time(request_: Any):
    replica = leading()
    begin_add(replica)
    answer = replica.ask(request_)
    code = ErrorCode(answer.error_code) if isinstance(answer, UpdateRaftVoterResponse) else code_of(answer)
    assert code is ErrorCode.REQUEST_TIMED_OUT


def test_no_change_before_a_record_of_the_epoch_is_committed():
    assert code_of(leader().ask(remove(3))) is ErrorCode.REQUEST_TIMED_OUT


def test_a_change_that_takes_too_long_is_given_up_and_may_still_happen():
    replica = leading()
    begin_add(replica)
    before = set(replica.replies)
    replica.advance(2_000)
    (token,) = set(replica.replies) - before
    assert code_of(replica.replies[token]) is ErrorCode.REQUEST_TIMED_OUT
    assert code_of(replica.ask(remove(3))) is ErrorCode.REQUEST_TIMED_OUT, "the voters are not committed"
    catch_up(replica, 2, 3)
    assert replica.quorum.leading.high_watermark == replica.log.end_offset
    assert replica.quorum.control.voters.ids == (1, 2, 3, 4)


def test_a_leader_that_resigns_refuses_the_change():
    replica = leading()
    begin_add(replica)
    before = set(replica.replies)
    replica.step(Stop())
    codes = [code_of(replica.replies[each]) for each in set(replica.replies) - before]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


# --- RemoveRaftVoter


def test_a_voter_is_removed_when_the_others_have_it():
    replica = leading()
    assert replica.ask(remove(3)) is None
    assert replica.quorum.control.voters.ids == (1, 2)
    catch_up(replica, 2)
    (answer,) = [each for each in replica.replies.values() if isinstance(each, RemoveRaftVoterResponse)]
    assert answer.error_code == 0


@pytest.mark.parametrize(("node_id", "directory_id"), [(7, None), (3, directory(9))])
def test_strangers_cannot_be_removed(node_id: int, directory_id: bytes | None):
    assert code_of(leading().ask(remove(node_id, directory_id))) is ErrorCode.VOTER_NOT_FOUND


def test_a_leader_that_is_removed_does_not_count_itself_and_then_resigns():
    replica = leading()
    assert replica.ask(remove(1)) is None
    before = replica.quorum.high_watermark
    catch_up(replica, 2)
    assert (replica.quorum.state, replica.quorum.high_watermark) == (State.LEADER, before), "1 of 2"
    catch_up(replica, 3)
    assert replica.quorum.state is State.RESIGNED
    (answer,) = [each for each in replica.replies.values() if isinstance(each, RemoveRaftVoterResponse)]
    assert answer.error_code == 0
    replica.advance(60_000)
    assert replica.quorum.state is State.UNATTACHED, "it is an observer now"


def removed_itself() -> Replica:
    """It has appended voters without itself, which nobody else has, and has started again."""
    replica = leading()
    replica.ask(remove(1))
    again = Replica(replica.stored)
    again.log.append(replica.log.batches[2:])
    for batch in again.log.batches[2:]:
        for each in read_control_batch(read_header(batch.data)):
            again.quorum.control.replay(each.message, each.offset)
    again.quorum.synced_end_offset = again.log.end_offset
    return again.start()


def test_the_only_one_that_has_the_new_voters_stands_for_election_although_they_leave_it_out():
    replica = removed_itself()
    assert not replica.quorum.is_voter
    replica.advance(1_000)
    sent = replica.take_sent(VoteRequest)
    assert {each.to.node_id for each in sent} == {2, 3}
    replica.answer(sent[0], vote_response(granted=True, epoch=EPOCH + 1))
    assert replica.quorum.state is State.PROSPECTIVE, "1 of 2: it does not count itself"
    replica.answer(sent[1], vote_response(granted=True, epoch=EPOCH + 1))
    for each in replica.take_sent(VoteRequest):
        replica.answer(each, vote_response(granted=True, epoch=EPOCH + 2))
    assert replica.quorum.state is State.LEADER
    assert replica.quorum.control.voters.ids == (2, 3), "it does not put itself back"


def test_once_the_new_voters_are_committed_it_is_an_observer():
    replica = removed_itself()
    replica.quorum.high_watermark = replica.log.end_offset
    replica.advance(60_000)
    assert replica.take_sent(VoteRequest) == []


def test_voters_beside_the_bootstrap_servers_are_asked_too():
    """Those may have been removed long ago, and know no more than the node that asks."""
    replica = Replica(node=voter(9))
    replica.quorum.bootstrap = (Destination(-1, "host1", 9001), Destination(-1, "elsewhere", 1))
    assert [each.host for each in replica.quorum.servers] == ["host1", "elsewhere", "host2", "host3"]


def test_an_observer_without_bootstrap_servers_asks_the_voters():
    replica = Replica(node=Voter(9, directory(9), voter(9).listeners))
    replica.quorum.bootstrap = ()
    replica.start()
    (sent,) = replica.take_sent(FetchRequest)
    assert (sent.to.node_id, sent.to.host) == (-1, "host1")


# --- UpdateRaftVoter


def test_a_voter_that_has_moved_is_found():
    replica = leading()
    answer = replica.ask(update())
    assert (answer.error_code, answer.current_leader.leader_id) == (0, 1)
    moved = replica.quorum.control.voters.by_id(2)
    assert moved is not None
    assert moved.listeners == (Listener("CONTROLLER", "host2", 7777),)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"node_id": -1, "directory_id": directory(2)}, ErrorCode.INVALID_REQUEST),
        ({"directory_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"listener": "OTHER"}, ErrorCode.INVALID_REQUEST),
        ({"directory_id": directory(9)}, ErrorCode.VOTER_NOT_FOUND),
        ({"node_id": 7}, ErrorCode.VOTER_NOT_FOUND),
        ({"versions": (0, 0)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_updates_that_are_refused(fields: dict[str, Any], code: ErrorCode):
    answer = leading().ask(update(**fields))
    assert ErrorCode(answer.error_code) is code
    assert (answer.current_leader.leader_id, answer.current_leader.host) == (1, "host1")


def test_a_follower_refuses_an_update_and_names_the_leader():
    answer = follower().ask(update(3))
    assert ErrorCode(answer.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.host) == (2, "host2")


def test_an_update_shows_that_the_voter_is_alive():
    replica = leading()
    replica.advance(2_900)
    assert replica.ask(update()).error_code == 0
    replica.advance(2_900)
    assert replica.quorum.state is State.LEADER


# --- what a follower sends


def test_a_voter_that_has_moved_says_so_every_two_seconds():
    moved = Voter(1, directory(1), (Listener("CONTROLLER", "elsewhere", 1),))
    replica = follower(node=moved)
    (sent,) = replica.take_sent(UpdateRaftVoterRequest)
    assert sent.request.listeners[0].host == "elsewhere"
    replica.answer(sent, UpdateRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT))
    for pause_ms in (999, 999, 2):
        assert replica.take_sent(UpdateRaftVoterRequest) == []
        replica.advance(pause_ms)
        for fetching in replica.take_sent(FetchRequest):
            replica.answer(fetching, fetch_response())
    (sent,) = replica.take_sent(UpdateRaftVoterRequest)
    assert sent.request.listeners[0].host == "elsewhere"


def test_a_voter_that_is_where_it_was_says_nothing():
    assert follower().take_sent(UpdateRaftVoterRequest) == []


def test_with_kraft_version_0_each_leader_is_told_once():
    replica = follower(kraft_version=0)
    (sent,) = replica.take_sent(UpdateRaftVoterRequest)
    kind = UpdateRaftVoterResponse
    replica.answer(sent, kind(current_leader=kind.CurrentLeader(2, EPOCH)))
    replica.advance(1_999)
    assert replica.take_sent(UpdateRaftVoterRequest) == []


@pytest.mark.parametrize(("voters", "kind"), [((2, 3), AddRaftVoterRequest), ((1, 2, 3), RemoveRaftVoterRequest)])
def test_a_spare_that_may_join_by_itself_does(voters: tuple[int, ...], kind: type):
    """If a voter with its id has another directory, that one is removed first."""
    spare = Voter(1, directory(8), voter(1).listeners)
    replica = follower(node=spare, voters=voters, settings=QuorumSettings(auto_join=True))
    (sent,) = replica.take_sent(kind)
    assert sent.to.node_id == 2
    assert sent.request.voter_directory_id == (directory(8) if kind is AddRaftVoterRequest else directory(1))


@pytest.mark.parametrize(
    "settings", [QuorumSettings(), QuorumSettings(auto_join=True, has_controller_role=False)], ids=["off", "broker"]
)
def test_others_stay_observers(settings: QuorumSettings):
    replica = follower(voters=(2, 3), settings=settings)
    assert {type(each.request) for each in replica.sent} == {FetchRequest}


# --- the upgrade


def static() -> Replica:
    replica = leader(kraft_version=0)
    catch_up(replica, 2, 3)
    return replica


def upgrade(replica: Replica, level: int = 1, *, validate_only: bool = False) -> Any:
    token = object()
    replica.step(UpgradeKRaftVersion(level, token, validate_only))
    return replica.replies.get(token, "pending")


def test_the_upgrade_needs_to_know_every_voter():
    replica = static()
    replica.ask(update(2))
    refused = upgrade(replica)
    assert code_of(refused) is ErrorCode.INVALID_UPDATE_VERSION
    assert "Voters 3 have not announced" in str(refused)


def test_the_upgrade_needs_every_voter_to_support_it():
    replica = static()
    replica.ask(update(2))
    assert replica.ask(update(3, versions=(0, 0))).error_code == 0
    assert "Voters 3 do not support kraft.version 1" in str(upgrade(replica))


def test_the_upgrade_puts_the_voters_into_the_log():
    replica = static()
    for node_id in (2, 3):
        assert replica.ask(update(node_id)).error_code == 0
    assert upgrade(replica, validate_only=True) is None
    assert replica.quorum.control.kraft_version == 0
    assert upgrade(replica) == "pending"
    last = replica.log.batches[-1]
    names = [each.type.name for each in read_control_batch(read_header(last.data))]
    assert names == ["KRAFT_VERSION", "KRAFT_VOTERS"]
    assert replica.quorum.control.kraft_version == 1
    assert replica.quorum.control.voters.by_id(2) == Voter(2, directory(2), (Listener("CONTROLLER", "host2", 7777),))
    before = len(replica.replies)
    catch_up(replica, 2)
    assert None in replica.replies.values()
    assert len(replica.replies) == before + 2
    assert upgrade(replica) is None, "it is there already"


def test_a_trial_of_the_upgrade_says_whether_it_could_be_done():
    replica = static()
    assert code_of(upgrade(replica, validate_only=True)) is ErrorCode.INVALID_UPDATE_VERSION
    for node_id in (2, 3):
        replica.ask(update(node_id))
    batches = list(replica.log.batches)
    assert upgrade(replica, validate_only=True) is None
    assert replica.log.batches == batches
    assert replica.quorum.control.kraft_version == 0


@pytest.mark.parametrize(("kraft_version", "level"), [(1, 0), (1, 2), (0, 2), (0, -1)])
def test_levels_that_cannot_be_reached(kraft_version: int, level: int):
    replica = leader(kraft_version=kraft_version)
    catch_up(replica, 2)
    assert code_of(upgrade(replica, level)) is ErrorCode.INVALID_UPDATE_VERSION


def test_only_the_leader_upgrades():
    assert code_of(upgrade(follower())) is ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("request_", [add(), remove(3)])
def test_static_voters_cannot_be_changed(request_: Any):
    assert code_of(static().ask(request_)) is ErrorCode.UNSUPPORTED_VERSION
