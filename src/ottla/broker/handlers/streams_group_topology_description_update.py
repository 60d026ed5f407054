"""StreamsGroupTopologyDescriptionUpdate (93): a member pushes the description of its topology, and the broker's plugin
keeps it (KIP-1331).

Version 0. Only brokers with a plugin serve it; others answer UNSUPPORTED_VERSION. Every broker validates the request
before it looks up the coordinator. A group that does not exist gets GROUP_ID_NOT_FOUND, as with Apache Kafka, though
the schema mentions UNKNOWN_MEMBER_ID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.core.groups.streams.description_update import check_update
from ottla.wire.types.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 93
VERSIONS: Final = (0, 0)


def handle(node: Groups, request: Request) -> Answer:
    check_update(request.body, node.groups.world, node.authorizer_of(request))
    return node.groups.answer(request, request.body.group_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> StreamsGroupTopologyDescriptionUpdateResponse:
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=code, error_message=message)
