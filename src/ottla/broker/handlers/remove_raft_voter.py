"""RemoveRaftVoter (81): a controller leaves the voters of the metadata quorum, if its leader allows it.

Version 0. A quorum of one keeps its only voter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import DelayedResponse, Request
from ottla.wire.access import Operation
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Quorum

API_KEY: Final = 81
VERSIONS: Final = (0, 0)


def handle(node: Quorum, request: Request) -> DelayedResponse:
    check_cluster(node, request, Operation.ALTER)
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=code, error_message=message)
