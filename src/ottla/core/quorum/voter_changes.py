"""AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter and the upgrade to kraft.version 1.

A change is judged in this order: the cluster, the leader, the voter that is named, where it can be reached, whether
another change is under way, whether a record of this epoch is committed, whether the quorum keeps its voters in the log
(kraft.version 1), whether the newest voters are committed, and whether the set of voters allows it. One voter changes
at a time, so that majorities before and after have a voter in common. The voters in the log count as soon as they are
appended; the answer leaves when they are committed.

A new voter must have caught up as an observer, and its node must say that it supports the quorum's kraft.version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.core.quorum.events import Destination, Received, UpgradeKRaftVersion
from ottla.core.quorum.stored import NOBODY
from ottla.core.quorum.voters import (
    KRAFT_VERSIONS,
    NO_DIRECTORY,
    Listener,
    ReplicaKey,
    Voter,
    VoterSet,
    voters_record,
)
from ottla.wire import uuid_text
from ottla.wire.batch import ControlRecordType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterRequestListener, AddRaftVoterResponse
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types.control_records import KRaftVersionRecord
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.types.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterRequestListener,
    UpdateRaftVoterResponse,
)

if TYPE_CHECKING:
    from ottla.core.quorum.quorum import Quorum
    from ottla.core.quorum.states import Follower, Leader

__all__ = [
    "VoterChange",
    "check_add",
    "check_remove",
    "poll_pending_change",
    "poll_voter_changes",
    "refuse_change",
    "take_add_voter",
    "take_api_versions",
    "take_remove_voter",
    "take_update_voter",
    "take_updated",
    "upgrade_kraft_version",
]

_FEATURE: Final = "kraft.version"
_DIRECTORIES_FROM: Final = 1


class VoterChange(msgspec.Struct):
    """A change under way. `reply_to` is None when it has been answered already."""

    reply_to: Received | UpgradeKRaftVersion | None
    until_ms: int
    voter: Voter | None = None
    """The voter that is to be added, until its node has said what it supports."""
    offset: int | None = None
    """Where the new voters lie in the log."""


# --- AddRaftVoter


def check_add(quorum: Quorum, request: AddRaftVoterRequest) -> Voter:
    """The voter to add. Raises Reject where it may not be added."""
    _check_asked(quorum, request)
    _check_voter("Add", request)
    _check_endpoint(quorum, "Add", request.listeners)
    _check_dynamic(quorum, "adding")
    asked = ReplicaKey(request.voter_id, request.voter_directory_id)
    if request.voter_id in quorum.control.voters.ids:
        raise Reject(
            ErrorCode.DUPLICATE_VOTER,
            f"The voter id for {_shown(asked)} is already part of the set of voters {_shown_voters(quorum)}.",
        )
    if not _has_caught_up(quorum, asked):
        raise _not_ready(asked)
    return Voter(*asked, _listeners(request.listeners))


def _not_ready(key: ReplicaKey) -> Reject:
    return Reject(ErrorCode.REQUEST_TIMED_OUT, f"New voter {_shown(key)} is not ready to receive requests")


def _has_caught_up(quorum: Quorum, key: ReplicaKey) -> bool:
    progress = dict(quorum.leading.progress.items()).get(key)
    if progress is None or progress.last_caught_up_ms < 0:
        return False
    return quorum.now_ms - progress.last_fetch_ms <= quorum.settings.voter_fetched_within_ms


def take_add_voter(quorum: Quorum, received: Received) -> None:
    voter = check_add(quorum, received.request)
    leading = quorum.leading
    leading.change = VoterChange(received, quorum.now_ms + quorum.settings.request_timeout_ms, voter)
    listener = _reached_at(quorum, voter.listeners)
    quorum.send(Destination(voter.voter_id, listener.host, listener.port), ApiVersionsRequest("ottla", "0"))


def take_api_versions(quorum: Quorum, to: Destination, response: ApiVersionsResponse | None) -> bool:
    """The new voter's node has answered, or not (None): then the change fails."""
    leader = quorum.leading_or_none
    change = leader.change if leader is not None else None
    if leader is None or change is None or change.voter is None or change.voter.voter_id != to.node_id:
        return True
    voter, asked = change.voter, change.reply_to
    assert isinstance(asked, Received)
    leader.change = None
    try:
        voter = msgspec.structs.replace(voter, kraft_versions=_supported(quorum, voter.key, response))
        check_add(quorum, asked.request)
    except Reject as reject:
        quorum.reply(asked, reject)
        return True
    is_quick = not asked.request.ack_when_committed
    _append_voters(quorum, quorum.control.voters.with_voter(voter), None if is_quick else asked)
    if is_quick:
        quorum.reply(asked, AddRaftVoterResponse(error_message=None))
    return True


def _supported(quorum: Quorum, key: ReplicaKey, response: ApiVersionsResponse | None) -> tuple[int, int]:
    level = quorum.control.kraft_version
    if response is None or response.error_code:
        raise _not_ready(key)
    for each in response.supported_features:
        if each.name == _FEATURE and each.min_version <= level <= each.max_version:
            return each.min_version, each.max_version
    raise Reject(ErrorCode.INVALID_REQUEST, f"The new voter does not support kraft.version {level}")


# --- RemoveRaftVoter


def check_remove(quorum: Quorum, request: RemoveRaftVoterRequest) -> ReplicaKey:
    """The voter to remove. Raises Reject where it may not be removed."""
    _check_asked(quorum, request)
    _check_voter("Remove", request)
    _check_dynamic(quorum, "removing")
    asked, voters = ReplicaKey(request.voter_id, request.voter_directory_id), quorum.control.voters
    if asked not in [voter.key for voter in voters.voters] or len(voters) == 1:
        raise Reject(
            ErrorCode.VOTER_NOT_FOUND,
            f"Cannot remove voter {_shown(asked)} from the set of voters {_shown_voters(quorum)}",
        )
    return asked


def take_remove_voter(quorum: Quorum, received: Received) -> None:
    key = check_remove(quorum, received.request)
    _append_voters(quorum, quorum.control.voters.without(key), received)


# --- UpdateRaftVoter


def take_update_voter(quorum: Quorum, received: Received) -> None:
    """A voter has moved. With kraft.version 0 that is only remembered, for the upgrade."""
    request: UpdateRaftVoterRequest = received.request
    try:
        voter = _check_update(quorum, request)
    except Reject as reject:
        quorum.reply(received, _updated(quorum, received, reject.code))
        return
    leader = quorum.leading
    if quorum.control.kraft_version < _DIRECTORIES_FROM:
        leader.announced[voter.voter_id] = voter
    elif quorum.control.voters.find(*voter.key) != voter:
        _append_voters(quorum, quorum.control.voters.with_voter(voter), None)
    quorum.voter_heard(leader, voter.key)
    quorum.reply(received, _updated(quorum, received, ErrorCode.NONE))


def _check_update(quorum: Quorum, request: UpdateRaftVoterRequest) -> Voter:
    if request.cluster_id is not None and request.cluster_id != quorum.cluster_id:
        raise Reject(ErrorCode.INCONSISTENT_CLUSTER_ID)
    error = quorum.check_leader(request.current_leader_epoch)
    if error is not ErrorCode.NONE:
        raise Reject(error)
    _check_voter("Update", request)
    _check_endpoint(quorum, "Update", request.listeners)
    control = quorum.control
    if control.kraft_version >= _DIRECTORIES_FROM:
        _check_committed(quorum)
    feature = request.k_raft_version_feature
    versions = (feature.min_supported_version, feature.max_supported_version)
    if control.voters.find(request.voter_id, request.voter_directory_id) is None:
        raise Reject(ErrorCode.VOTER_NOT_FOUND)
    if not versions[0] <= control.kraft_version <= versions[1]:
        raise Reject(ErrorCode.INVALID_REQUEST)
    return Voter(request.voter_id, request.voter_directory_id, _listeners(request.listeners), versions)


def _updated(quorum: Quorum, received: Received, error: ErrorCode) -> UpdateRaftVoterResponse:
    kind = UpdateRaftVoterResponse
    at = next((each for each in quorum.leader_listeners if each.name == received.listener), None)
    if quorum.leader_id == NOBODY or at is None:
        return kind(0, error, kind.CurrentLeader(quorum.leader_id, quorum.epoch))
    return kind(0, error, kind.CurrentLeader(quorum.leader_id, quorum.epoch, at.host, at.port))


# --- the upgrade


def upgrade_kraft_version(quorum: Quorum, event: UpgradeKRaftVersion) -> None:
    """Raises Reject where the level cannot be reached."""
    control, low, high = quorum.control, *KRAFT_VERSIONS
    leader = quorum.leading_or_none
    if leader is None:
        raise Reject(ErrorCode.NOT_CONTROLLER)
    if not low <= event.level <= high or event.level < control.kraft_version:
        raise Reject(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"kraft.version is {control.kraft_version} and cannot become {event.level}: it only rises, up to {high}",
        )
    if event.level == control.kraft_version:
        quorum.reply(event, None)
        return
    _check_committed(quorum)
    announced = {**leader.announced, quorum.node.voter_id: quorum.node}
    missing = [each for each in control.voters.ids if each not in announced]
    unable = [
        each for each in control.voters.ids if each in announced and announced[each].kraft_versions[1] < event.level
    ]
    if missing or unable:
        who = ", ".join(map(str, missing or unable))
        what = "have not announced their directories" if missing else f"do not support kraft.version {event.level}"
        raise Reject(ErrorCode.INVALID_UPDATE_VERSION, f"Voters {who} {what}")
    if event.validate_only:
        quorum.reply(event, None)
        return
    upgraded = VoterSet(tuple(announced[each] for each in control.voters.ids))
    for voter in upgraded.voters:
        leader.progress.rename(ReplicaKey(voter.voter_id, NO_DIRECTORY), voter.key)
    version = KRaftVersionRecord(k_raft_version=event.level)
    _append_voters(quorum, upgraded, event, (ControlRecordType.KRAFT_VERSION, version))


# --- the change under way


def _append_voters(
    quorum: Quorum,
    voters: VoterSet,
    reply_to: Received | UpgradeKRaftVersion | None,
    *before: tuple[ControlRecordType, object],
) -> None:
    end_offset = quorum.append_control([*before, (ControlRecordType.KRAFT_VOTERS, voters_record(voters))])
    leader, until_ms = quorum.leading, quorum.now_ms + quorum.settings.request_timeout_ms
    leader.change = VoterChange(reply_to, until_ms, offset=end_offset - 1)
    # Of the new voters none can have been heard in time: who was the only voter has not been waiting for any.
    leader.progress.majority_by_ms = quorum.now_ms + quorum.settings.check_quorum_ms


def poll_pending_change(quorum: Quorum, state: Leader) -> None:
    """Answer the one who waits when the voters are committed, or when it takes too long."""
    change = state.change
    if change is None:
        return
    if change.offset is not None and (state.high_watermark or 0) > change.offset:
        state.change = None
        if isinstance(change.reply_to, UpgradeKRaftVersion):
            quorum.reply(change.reply_to, None)
        elif change.reply_to is not None:
            is_add = isinstance(change.reply_to.request, AddRaftVoterRequest)
            kind = AddRaftVoterResponse if is_add else RemoveRaftVoterResponse
            quorum.reply(change.reply_to, kind(error_message=None))
    elif change.until_ms <= quorum.now_ms:
        refuse_change(quorum, state, ErrorCode.REQUEST_TIMED_OUT)
    else:
        quorum.wake_at(change.until_ms)


def refuse_change(quorum: Quorum, state: Leader, error: ErrorCode) -> None:
    change, state.change = state.change, None
    if change is not None and change.reply_to is not None:
        quorum.reply(change.reply_to, Reject(error))


# --- what followers send


def poll_voter_changes(quorum: Quorum, state: Follower, leader: Destination) -> None:
    """A voter tells its leader where it is; a node that may join by itself asks to become a voter."""
    if quorum.now_ms < state.update_at_ms:
        quorum.wake_at(state.update_at_ms)
        return
    request = _update_request(quorum, state) if quorum.is_voter else _join_request(quorum)
    if request is not None:
        state.update_at_ms = quorum.now_ms + quorum.settings.fetch_timeout_ms
        quorum.send(leader, request)


def _update_request(quorum: Quorum, state: Follower) -> UpdateRaftVoterRequest | None:
    node, control = quorum.node, quorum.control
    is_dynamic = control.kraft_version >= _DIRECTORIES_FROM
    if control.voters.find(*node.key) == node if is_dynamic else state.has_updated:
        return None
    kind = UpdateRaftVoterRequest
    return kind(
        quorum.cluster_id,
        state.epoch,
        *node.key,
        tuple(kind.Listener(each.name, each.host, each.port) for each in node.listeners),
        kind.KRaftVersionFeature(*node.kraft_versions),
    )


def _join_request(quorum: Quorum) -> AddRaftVoterRequest | RemoveRaftVoterRequest | None:
    node, settings, control = quorum.node, quorum.settings, quorum.control
    if not settings.auto_join or not settings.has_controller_role or control.kraft_version < _DIRECTORIES_FROM:
        return None
    former = control.voters.by_id(node.voter_id)
    if former is not None:
        return RemoveRaftVoterRequest(quorum.cluster_id, *former.key)
    listeners = tuple(AddRaftVoterRequest.Listener(each.name, each.host, each.port) for each in node.listeners)
    timeout_ms = settings.request_timeout_ms
    return AddRaftVoterRequest(quorum.cluster_id, timeout_ms, *node.key, listeners, ack_when_committed=False)


def take_updated(quorum: Quorum, state: Follower, request: Any, response: Any) -> bool:  # noqa: ANN401
    """Returns False after an error, so that the leader is left alone for a moment."""
    if isinstance(response, UpdateRaftVoterResponse):
        leader = response.current_leader
        if quorum.hear_of_answer(leader.leader_epoch, leader.leader_id, ()):
            return True
        if response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
            state.has_updated = state.has_updated or request.current_leader_epoch == state.epoch
            return True
    return not response.error_code


# --- checks


def _check_asked(quorum: Quorum, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> None:
    if request.cluster_id is not None and request.cluster_id != quorum.cluster_id:
        raise Reject(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{quorum.cluster_id}"',
        )
    error = quorum.check_leader(quorum.epoch)
    if error is not ErrorCode.NONE:
        raise Reject(error)


def _check_voter(what: str, request: AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest) -> None:
    if request.voter_id < 0 or request.voter_directory_id == NO_DIRECTORY:
        raise Reject(ErrorCode.INVALID_REQUEST, f"{what} voter request didn't include a valid voter")


def _check_endpoint(
    quorum: Quorum,
    what: str,
    listeners: tuple[AddRaftVoterRequestListener, ...] | tuple[UpdateRaftVoterRequestListener, ...],
) -> None:
    default = quorum.default_listener
    if default not in {each.name for each in listeners}:
        raise Reject(
            ErrorCode.INVALID_REQUEST,
            f"{what} voter request didn't include the endpoint ({_shown_endpoints(listeners)}) "
            f"for the default listener ListenerName({default})",
        )


def _check_dynamic(quorum: Quorum, what: str) -> None:
    version = quorum.control.kraft_version
    leader = quorum.leading
    if leader.change is not None or leader.high_watermark is None:
        raise Reject(ErrorCode.REQUEST_TIMED_OUT, "Another change of the voters is pending, or none can be made yet")
    if version < _DIRECTORIES_FROM:
        raise Reject(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {what} voter because the kraft.version feature is {version}",
        )
    _check_committed(quorum)


def _check_committed(quorum: Quorum) -> None:
    leader = quorum.leading
    high_watermark = leader.high_watermark
    if leader.change is not None or high_watermark is None or quorum.control.voters_offset >= high_watermark:
        raise Reject(ErrorCode.REQUEST_TIMED_OUT, "The newest voters are not committed yet")


def _listeners(
    listeners: tuple[AddRaftVoterRequestListener, ...] | tuple[UpdateRaftVoterRequestListener, ...],
) -> tuple[Listener, ...]:
    return tuple(Listener(each.name, each.host, each.port) for each in listeners)


def _reached_at(quorum: Quorum, listeners: tuple[Listener, ...]) -> Listener:
    return next(each for each in listeners if each.name == quorum.default_listener)


# --- as Kafka shows them; its tools print these texts


def _shown(key: ReplicaKey) -> str:
    return f"ReplicaKey(id={key.node_id}, directoryId={uuid_text(key.directory_id)})"


def _shown_voters(quorum: Quorum) -> str:
    return f"[{', '.join(_shown(each.key) for each in quorum.control.voters.voters)}]"


def _shown_endpoints(
    listeners: tuple[AddRaftVoterRequestListener, ...] | tuple[UpdateRaftVoterRequestListener, ...],
) -> str:
    shown = (f"ListenerName({each.name})={each.host}/<unresolved>:{each.port}" for each in listeners)
    return f"Endpoints(endpoints={{{', '.join(shown)}}})"
