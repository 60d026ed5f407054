"""AddRaftVoter (80): a controller becomes a voter of the metadata quorum, if its leader allows it.

Versions 0 and 1; from 1 on the response need not wait for the commit. A node that has caught up as observer is asked
which levels of kraft.version it supports, before it becomes a voter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import DelayedResponse, Request
from ottla.wire.access import Operation
from ottla.wire.types.add_raft_voter import AddRaftVoterResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Quorum

API_KEY: Final = 80
VERSIONS: Final = (0, 1)


def handle(node: Quorum, request: Request) -> DelayedResponse:
    check_cluster(node, request, Operation.ALTER)
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=code, error_message=message)
