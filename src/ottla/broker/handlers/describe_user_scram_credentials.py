"""DescribeUserScramCredentials (50): the users with SCRAM credentials and their iterations; never the keys.

Version 0. An empty list means all users, as null does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.core.metadata.scram import described_users
from ottla.wire.access import Operation
from ottla.wire.types.describe_user_scram_credentials import DescribeUserScramCredentialsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 50
VERSIONS: Final = (0, 0)


def handle(node: Cluster, request: Request) -> DescribeUserScramCredentialsResponse:
    check_cluster(node, request, Operation.DESCRIBE)
    names = [user.name for user in request.body.users or ()]
    return DescribeUserScramCredentialsResponse(results=tuple(described_users(node.image, names or None)))


def refuse(request: Request, code: int, message: str | None) -> DescribeUserScramCredentialsResponse:
    kind = DescribeUserScramCredentialsResponse
    results = tuple(
        kind.DescribeUserScramCredentialsResult(user.name, code, message) for user in request.body.users or ()
    )
    return kind(error_code=code, error_message=message, results=results)
