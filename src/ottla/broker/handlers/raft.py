"""APIs between the nodes of the quorum: Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot, UpdateRaftVoter.

================  ========  ============================================================================================
API               versions  what it does
================  ========  ============================================================================================
Vote              0 to 2    asks for a vote; from 2 on for a pre-vote, too
BeginQuorumEpoch  0, 1      a new leader makes itself known
EndQuorumEpoch    0, 1      a leader resigns, and says who should follow
FetchSnapshot     0, 1      part of a snapshot of the metadata log
UpdateRaftVoter   0         a voter tells the leader where it listens
================  ========  ============================================================================================

All are on controller listeners only, and need CLUSTER_ACTION. The answers are those of `ottla.core.quorum`. Fetch on a
controller listener reads the metadata log, and ends here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import DelayedResponse, Request
from ottla.wire.access import Operation
from ottla.wire.reject import Reject
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochResponse
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochResponse
from ottla.wire.types.fetch import FetchResponse
from ottla.wire.types.fetch_snapshot import FetchSnapshotResponse
from ottla.wire.types.update_raft_voter import UpdateRaftVoterResponse
from ottla.wire.types.vote import VoteResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import QuorumMember

__all__ = ["handle", "refuse"]

_RESPONSES: Final[dict[int, type]] = {
    1: FetchResponse,
    52: VoteResponse,
    53: BeginQuorumEpochResponse,
    54: EndQuorumEpochResponse,
    59: FetchSnapshotResponse,
    82: UpdateRaftVoterResponse,
}


def handle(node: QuorumMember, request: Request) -> DelayedResponse:
    check_cluster(node, request, Operation.CLUSTER_ACTION)
    later = DelayedResponse()

    def answered(response: Any) -> None:  # noqa: ANN401
        is_refused = isinstance(response, Reject)
        later.complete(refuse(request, response.code, response.message) if is_refused else response)

    node.raft.receive(request.body, request.version, request.connection.peer.listener, answered)
    return later


def refuse(request: Request, code: int, message: str | None) -> Any:  # noqa: ANN401
    return _RESPONSES[request.api_key](error_code=code)
