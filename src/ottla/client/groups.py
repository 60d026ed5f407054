"""Groups of all four kinds: which there are, and what the coordinator knows of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import ConfigurationError, ResponseError, check
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from ottla.wire.types.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
)
from ottla.wire.types.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.types.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeResponseDescribedGroup,
)
from ottla.wire.types.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseDescribedGroup,
)

__all__ = ["DescribedGroup", "ListedGroup", "describe", "list_groups"]

CLASSIC: Final = "classic"
_STATES_VERSION: Final = 4
_TYPES_VERSION: Final = 5

DescribedGroup = (
    DescribeGroupsResponseDescribedGroup
    | ConsumerGroupDescribeResponseDescribedGroup
    | ShareGroupDescribeResponseDescribedGroup
    | StreamsGroupDescribeResponseDescribedGroup
)
"""What the coordinator says of a group; which of these it is depends on the group's type."""
_Described = (
    DescribeGroupsResponse | ConsumerGroupDescribeResponse | ShareGroupDescribeResponse | StreamsGroupDescribeResponse
)

_DESCRIBE: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "classic": ("DescribeGroups", lambda group_id: DescribeGroupsRequest(groups=(group_id,))),
    "consumer": ("ConsumerGroupDescribe", lambda group_id: ConsumerGroupDescribeRequest(group_ids=(group_id,))),
    "share": ("ShareGroupDescribe", lambda group_id: ShareGroupDescribeRequest(group_ids=(group_id,))),
    "streams": ("StreamsGroupDescribe", lambda group_id: StreamsGroupDescribeRequest(group_ids=(group_id,))),
}


class ListedGroup(NamedTuple):
    group_id: str
    type: str
    """classic, consumer, share or streams."""
    state: str
    """"" where brokers do not say (before 2.6)."""
    protocol_type: str


async def list_groups(client: Client, *, types: Iterable[str] = (), states: Iterable[str] = ()) -> list[ListedGroup]:
    """All groups, or those of some types and states. Every coordinator lists its own, so all brokers are asked."""
    wanted_types = {name.lower() for name in types}
    wanted_states = {name.lower() for name in states}
    metadata = await client.refresh()
    nodes = sorted(metadata.brokers)
    lists = await asyncio.gather(*(_list_at(client, node_id, wanted_types, wanted_states) for node_id in nodes))
    return sorted(
        group
        for groups in lists
        for group in groups
        if (not wanted_types or group.type in wanted_types)
        and (not wanted_states or not group.state or group.state.lower() in wanted_states)
    )


async def _list_at(client: Client, node_id: int, types: set[str], states: set[str]) -> list[ListedGroup]:
    def build(version: int) -> ListGroupsRequest:
        return ListGroupsRequest(
            states_filter=tuple(sorted(states)) if version >= _STATES_VERSION else (),
            types_filter=tuple(sorted(types)) if version >= _TYPES_VERSION else (),
        )

    answer = await client.ask("ListGroups", build, broker=node_id)
    body = answer.of(ListGroupsResponse)
    check(answer.peer, "ListGroups", body.error_code)
    return [
        ListedGroup(each.group_id, each.group_type.lower() or CLASSIC, each.group_state, each.protocol_type)
        for each in body.groups
    ]


async def describe(client: Client, group_id: str, *, type: str | None = None) -> DescribedGroup:
    """What the coordinator knows of a group; without its type, the coordinator is asked for that first.

    ResponseError (GROUP_ID_NOT_FOUND) if there is no such group.
    """
    kind = await _type_of(client, group_id) if type is None else type.lower()
    if kind not in _DESCRIBE:
        raise ConfigurationError(f"groups of type {kind!r} cannot be described; there are {', '.join(_DESCRIBE)}")
    api, request = _DESCRIBE[kind]
    answer = await client.ask(api, always(request(group_id)), coordinator=("group", group_id))
    body = answer.body
    assert isinstance(body, _Described)
    group: DescribedGroup = body.groups[0]
    check(answer.peer, api, group.error_code, f"group {group_id}", group.error_message)
    return group


async def _type_of(client: Client, group_id: str) -> str:
    answer = await client.ask("ListGroups", always(ListGroupsRequest()), coordinator=("group", group_id))
    body = answer.of(ListGroupsResponse)
    check(answer.peer, "ListGroups", body.error_code)
    for each in body.groups:
        if each.group_id == group_id:
            return each.group_type.lower() or CLASSIC
    raise ResponseError(answer.peer, "ListGroups", ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")
