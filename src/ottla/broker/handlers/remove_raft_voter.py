"""RemoveRaftVoter (81): a controller leaves the voters of the metadata quorum, if its leader allows it.

Version 0. A quorum of one keeps its only voter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.request import Request
from ottla.quorum.voter_changes import remove_voter
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

API_KEY: Final = 81
VERSIONS: Final = (0, 0)


def handle(node: Node, request: Request) -> RemoveRaftVoterResponse:
    if not node.authorize(request, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        return refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    try:
        return remove_voter(node.metadata.quorum, request.body, node.cluster_id)
    except Reject as reject:
        return refuse(request, reject.code, reject.message)


def refuse(request: Request, code: int, message: str | None) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=code, error_message=message)
