"""Groups of all four kinds: which there are, what their coordinators know of them, and deleting them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client.address import Peer
from ottla.client.client import Client, always
from ottla.client.each_broker import at_each_broker
from ottla.client.errors import ClientError, ConfigurationError, ResponseError, check
from ottla.client.group_view import DescribedGroup, GroupView, view_of
from ottla.wire.errors import ErrorCode
from ottla.wire.types.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ottla.wire.types.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.types.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.types.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.types.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

__all__ = [
    "DescribedGroup",
    "ListedGroup",
    "delete",
    "describe",
    "described_by",
    "list_groups",
    "try_delete",
    "try_describe",
    "try_list",
    "try_view",
    "view",
]

CLASSIC: Final = "classic"
_STATES_VERSION: Final = 4
_TYPES_VERSION: Final = 5
_DESCRIPTIONS_VERSION: Final = 1
_AT_A_TIME: Final = 100
"""How many groups one request describes."""

_Described = (
    DescribeGroupsResponse | ConsumerGroupDescribeResponse | ShareGroupDescribeResponse | StreamsGroupDescribeResponse
)

_Ids = tuple[str, ...]
_DESCRIBE: Final[Mapping[str, tuple[str, Callable[[_Ids], object]]]] = {
    "classic": ("DescribeGroups", lambda group_ids: DescribeGroupsRequest(groups=group_ids)),
    "consumer": ("ConsumerGroupDescribe", lambda group_ids: ConsumerGroupDescribeRequest(group_ids=group_ids)),
    "share": ("ShareGroupDescribe", lambda group_ids: ShareGroupDescribeRequest(group_ids=group_ids)),
    "streams": ("StreamsGroupDescribe", lambda group_ids: StreamsGroupDescribeRequest(group_ids=group_ids)),
}


class _Chunk(NamedTuple):
    """Groups that one request describes."""

    node_id: int
    kind: str
    group_ids: _Ids


class ListedGroup(NamedTuple):
    group_id: str
    type: str
    """classic, consumer, share or streams."""
    state: str
    """"" where brokers do not say (before 2.6)."""
    protocol_type: str
    coordinator: int
    """The node that listed it."""


async def list_groups(client: Client, *, types: Iterable[str] = (), states: Iterable[str] = ()) -> list[ListedGroup]:
    """All groups, or those of some types and states. Every coordinator lists its own, so all brokers are asked."""
    wanted_types = {name.lower() for name in types}
    wanted_states = {name.lower() for name in states}
    metadata = await client.refresh()
    nodes = sorted(metadata.brokers)
    lists = await client.together(_list_at(client, node_id, wanted_types, wanted_states) for node_id in nodes)
    return sorted(
        group
        for groups in lists
        for group in groups
        if (not wanted_types or group.type in wanted_types)
        and (not wanted_states or not group.state or group.state.lower() in wanted_states)
    )


async def try_list(client: Client) -> dict[int, list[ListedGroup] | ClientError]:
    """What each broker lists, or why it does not."""
    return await at_each_broker(client, lambda node_id: _list_at(client, node_id, set(), set()))


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
        ListedGroup(each.group_id, each.group_type.lower() or CLASSIC, each.group_state, each.protocol_type, node_id)
        for each in body.groups
    ]


# --- describe ---------------------------------------------------------------------------------------------------------


async def describe(client: Client, group_id: str, *, type: str | None = None) -> DescribedGroup:
    """What the coordinator knows of a group; without its type, the coordinator is asked for that first.

    ResponseError (GROUP_ID_NOT_FOUND) if there is no such group.
    """
    return (await described_by(client, group_id, type=type))[0]


async def view(client: Client, group_id: str, *, type: str | None = None) -> GroupView:
    """The same in one form for all kinds of groups, with the coordinator's address."""
    return view_of(*await described_by(client, group_id, type=type))


async def described_by(client: Client, group_id: str, *, type: str | None = None) -> tuple[DescribedGroup, Peer]:
    """The same as `describe`, and which broker says it."""
    kind = await _type_of(client, group_id) if type is None else type.lower()
    if kind not in _DESCRIBE:
        raise ConfigurationError(f"groups of type {kind!r} cannot be described; known types: {', '.join(_DESCRIBE)}")
    api, request = _DESCRIBE[kind]
    answer = await client.ask(api, always(request((group_id,))), coordinator=("group", group_id))
    group = _groups_in(answer.body)[0]
    check(answer.peer, api, group.error_code, f"group {group_id}", group.error_message)
    return group, answer.peer


async def try_view(client: Client, listed: Iterable[ListedGroup]) -> dict[str, GroupView | ResponseError]:
    """Views of many groups that were listed a moment ago, with few requests to each coordinator."""
    some = (_describe_at(client, *chunk) for chunk in _chunks(listed))
    return {
        name: outcome if isinstance(outcome, ResponseError) else view_of(*outcome)
        for outcomes in await client.together(some)
        for name, outcome in outcomes.items()
    }


async def try_describe(
    client: Client, listed: Iterable[ListedGroup], *, with_descriptions: bool = False
) -> dict[str, tuple[DescribedGroup, Peer] | ClientError]:
    """What the coordinators know of many groups, or why it cannot be had: of one group, or of all at a coordinator.

    `with_descriptions` asks for the descriptions of topologies, too, which a plugin of the broker has to look up.
    """

    async def at(chunk: _Chunk) -> Mapping[str, tuple[DescribedGroup, Peer] | ClientError]:
        try:
            return await _describe_at(client, *chunk, with_descriptions=with_descriptions)
        except ClientError as error:
            return dict.fromkeys(chunk.group_ids, error)

    rounds = await client.together(map(at, _chunks(listed)))
    return {name: outcome for outcomes in rounds for name, outcome in outcomes.items()}


def _chunks(listed: Iterable[ListedGroup]) -> list[_Chunk]:
    kinds: dict[tuple[int, str], list[str]] = {}
    for each in listed:
        kinds.setdefault((each.coordinator, each.type), []).append(each.group_id)
    return [
        _Chunk(node_id, kind, tuple(group_ids[at : at + _AT_A_TIME]))
        for (node_id, kind), group_ids in kinds.items()
        for at in range(0, len(group_ids), _AT_A_TIME)
    ]


async def _describe_at(
    client: Client, node_id: int, kind: str, group_ids: _Ids, *, with_descriptions: bool = False
) -> dict[str, tuple[DescribedGroup, Peer] | ResponseError]:
    api, request = _DESCRIBE[kind]

    def build(version: int) -> object:
        if kind == "streams" and with_descriptions and version >= _DESCRIPTIONS_VERSION:
            return StreamsGroupDescribeRequest(group_ids=group_ids, include_topology_description=True)
        return request(group_ids)

    answer = await client.ask(api, build, broker=node_id)
    outcomes: dict[str, tuple[DescribedGroup, Peer] | ResponseError] = {}
    for group in _groups_in(answer.body):
        name = group.group_id
        error = ResponseError(answer.peer, api, group.error_code, f"group {name}", group.error_message)
        outcomes[name] = error if group.error_code else (group, answer.peer)
    return outcomes


def _groups_in(body: object) -> tuple[DescribedGroup, ...]:
    assert isinstance(body, _Described)
    return body.groups


async def _type_of(client: Client, group_id: str) -> str:
    answer = await client.ask("ListGroups", always(ListGroupsRequest()), coordinator=("group", group_id))
    body = answer.of(ListGroupsResponse)
    check(answer.peer, "ListGroups", body.error_code)
    for each in body.groups:
        if each.group_id == group_id:
            return each.group_type.lower() or CLASSIC
    raise ResponseError(answer.peer, "ListGroups", ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")


# --- delete -----------------------------------------------------------------------------------------------------------


async def delete(client: Client, *group_ids: str) -> None:
    """Delete groups that have no members, with their offsets. ResponseError for the first that cannot be deleted."""
    for outcome in (await try_delete(client, *group_ids)).values():
        if outcome is not None:
            raise outcome


async def try_delete(client: Client, *group_ids: str) -> dict[str, ResponseError | None]:
    """Delete groups, each at its own coordinator; an error, or None, for each of them."""
    outcomes: dict[str, ResponseError | None] = {}
    for group_id in group_ids:
        request = DeleteGroupsRequest(groups_names=(group_id,))
        answer = await client.ask("DeleteGroups", always(request), coordinator=("group", group_id))
        (each,) = answer.of(DeleteGroupsResponse).results
        error = ResponseError(answer.peer, "DeleteGroups", each.error_code, f"group {group_id}", each.error_message)
        outcomes[group_id] = error if each.error_code else None
    return outcomes
