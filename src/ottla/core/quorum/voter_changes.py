"""AddRaftVoter and RemoveRaftVoter, as the leader of a quorum of one answers them.

A change is judged in this order: the cluster, the leader, the voter that is named, where it can be reached, whether the
quorum keeps its voters in the log (kraft.version 1), and whether the set of voters allows it. Nobody follows this
leader yet, so no node can have caught up, and none is ever added; the only voter cannot be removed.
"""

from __future__ import annotations

from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.voters import NO_DIRECTORY
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterRequestListener, AddRaftVoterResponse
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

__all__ = ["add_voter", "remove_voter"]


def add_voter(quorum: Quorum, request: AddRaftVoterRequest, cluster_id: str) -> AddRaftVoterResponse:
    """The answer to AddRaftVoter. Raises Reject where it is an error, which it is in the end."""
    _check_asked(quorum, request, cluster_id)
    _check_voter("Add", request)
    default = quorum.node.listeners[0].name if quorum.node.listeners else ""
    if default not in {each.name for each in request.listeners}:
        raise Reject(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint ({_shown_endpoints(request.listeners)}) "
            f"for the default listener ListenerName({default})",
        )
    _check_dynamic(quorum, "adding")
    asked = _key(request.voter_id, request.voter_directory_id)
    if request.voter_id in quorum.control.voters.ids:
        raise Reject(
            ErrorCode.DUPLICATE_VOTER,
            f"The voter id for {asked} is already part of the set of voters {_shown_voters(quorum)}.",
        )
    raise Reject(ErrorCode.REQUEST_TIMED_OUT, f"New voter {asked} is not ready to receive requests")


def remove_voter(quorum: Quorum, request: RemoveRaftVoterRequest, cluster_id: str) -> RemoveRaftVoterResponse:
    """The answer to RemoveRaftVoter. Raises Reject where it is an error, which it is in the end."""
    _check_asked(quorum, request, cluster_id)
    _check_voter("Remove", request)
    _check_dynamic(quorum, "removing")
    raise Reject(
        ErrorCode.VOTER_NOT_FOUND,
        f"Cannot remove voter {_key(request.voter_id, request.voter_directory_id)} "
        f"from the set of voters {_shown_voters(quorum)}",
    )


def _check_asked(quorum: Quorum, request: AddRaftVoterRequest | RemoveRaftVoterRequest, cluster_id: str) -> None:
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        raise Reject(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster_id}"',
        )
    if not quorum.is_leader:
        raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _check_voter(what: str, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> None:
    if request.voter_id < 0 or request.voter_directory_id == NO_DIRECTORY:
        raise Reject(ErrorCode.INVALID_REQUEST, f"{what} voter request didn't include a valid voter")


def _check_dynamic(quorum: Quorum, what: str) -> None:
    version = quorum.control.kraft_version
    if version < 1:
        raise Reject(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {what} voter because the kraft.version feature is {version}",
        )


# --- as Kafka shows them; its tools print these texts


def _key(voter_id: int, directory_id: bytes) -> str:
    return f"ReplicaKey(id={voter_id}, directoryId={uuid_text(directory_id)})"


def _shown_voters(quorum: Quorum) -> str:
    return f"[{', '.join(_key(each.voter_id, each.directory_id) for each in quorum.control.voters.voters)}]"


def _shown_endpoints(listeners: tuple[AddRaftVoterRequestListener, ...]) -> str:
    shown = (f"ListenerName({each.name})={each.host}/<unresolved>:{each.port}" for each in listeners)
    return f"Endpoints(endpoints={{{', '.join(shown)}}})"
