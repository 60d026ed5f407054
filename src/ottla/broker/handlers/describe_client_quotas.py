"""DescribeClientQuotas (48): the limits of users, client ids and addresses, from this node's view of the cluster.

Versions 0 and 1, which differ in form only. An invalid filter gets an error and null instead of entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.core.metadata.client_quotas import matching_quotas
from ottla.wire.access import Operation
from ottla.wire.types.describe_client_quotas import DescribeClientQuotasResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 48
VERSIONS: Final = (0, 1)


def handle(node: Cluster, request: Request) -> DescribeClientQuotasResponse:
    check_cluster(node, request, Operation.DESCRIBE_CONFIGS)
    found = matching_quotas(node.image, request.body)
    kind = DescribeClientQuotasResponse
    return kind(
        entries=tuple(
            kind.EntryData(
                tuple(kind.EntityData(*part) for part in entity),
                tuple(kind.ValueData(*limit) for limit in limits.items()),
            )
            for entity, limits in found
        )
    )


def refuse(request: Request, code: int, message: str | None) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
