"""AddRaftVoter (80): a controller becomes a voter of the metadata quorum, if its leader allows it.

Versions 0 and 1; from 1 on the answer need not wait for the commit. The node to be added is not called: nobody can
have followed a quorum of one, so the answer would be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.request import Request
from ottla.quorum.voter_changes import add_voter
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

API_KEY: Final = 80
VERSIONS: Final = (0, 1)


def handle(node: Node, request: Request) -> AddRaftVoterResponse:
    if not node.authorize(request, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        return refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    try:
        return add_voter(node.metadata.quorum, request.body, node.cluster_id)
    except Reject as reject:
        return refuse(request, reject.code, reject.message)


def refuse(request: Request, code: int, message: str | None) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=code, error_message=message)
