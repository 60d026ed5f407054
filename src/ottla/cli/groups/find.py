"""Finds groups by name, and the partitions that a user names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ottla.cli.failure import EXIT_REFUSED, Failure, nearest

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.group_offsets import Committed
    from ottla.client.group_view import GroupView
    from ottla.client.groups import ListedGroup

MEMBERS_NAMED_MAX = 5


async def listed_groups(client: Client) -> dict[str, ListedGroup]:
    """All groups by name, as their coordinators list them."""
    from ottla.client.groups import list_groups

    return {each.group_id: each for each in await list_groups(client)}


def expect_listed(group_id: str, listed: Mapping[str, ListedGroup], advice: str = "") -> ListedGroup:
    """The group with a name; raises a Failure with the nearest name if there is none."""
    if group_id not in listed:
        advice = nearest(group_id, listed) or advice or "'ottla groups list' lists all groups"
        raise Failure(f"group '{group_id}' does not exist", advice, code=EXIT_REFUSED)
    return listed[group_id]


async def listed_group(client: Client, group_id: str, advice: str = "") -> ListedGroup:
    return expect_listed(group_id, await listed_groups(client), advice)


async def viewed_groups(client: Client, names: Iterable[str]) -> list[GroupView]:
    """The groups with these names, or all groups."""
    listed = await listed_groups(client)
    wanted = list(dict.fromkeys(names)) or sorted(listed)
    return await views(client, [expect_listed(name, listed) for name in wanted])


async def views(client: Client, groups: Sequence[ListedGroup]) -> list[GroupView]:
    """The descriptions of these groups; raises the first error if one of them cannot be described."""
    from ottla.client.errors import ClientError
    from ottla.client.groups import try_view

    outcomes = await try_view(client, groups)
    found: list[GroupView] = []
    for group in groups:
        outcome = outcomes[group.group_id]
        if isinstance(outcome, ClientError):
            raise outcome
        found.append(outcome)
    return found


async def kept_offsets(client: Client, group_id: str, kind: str) -> dict[TopicPartition, Committed]:
    """The committed offsets of a group, or the start offsets of a share group."""
    from ottla.client.group_offsets import committed, share_starts

    return await (share_starts if kind == "share" else committed)(client, group_id)


async def check_inactive(client: Client, group: ListedGroup, what: str) -> None:
    """Raises a Failure with the members, if the group has some: offsets can be changed only without members."""
    from ottla.client.groups import view

    if group.state in ("Empty", "Dead"):
        return
    seen = await view(client, group.group_id, type=group.type)
    if seen.members:
        raise Failure(f"{has_members(seen)}; {what}", "stop them first; nothing was changed", code=EXIT_REFUSED)


def has_members(group: GroupView) -> str:
    """`group 'billing' is Stable and has 2 members (billing-1, billing-2)`."""
    names = [each.instance_id or each.client_id or each.member_id for each in group.members]
    more = ", ..." if len(names) > MEMBERS_NAMED_MAX else ""
    shown = ", ".join(sorted(names)[:MEMBERS_NAMED_MAX]) + more
    count = f"{len(names)} member{'s' * (len(names) != 1)}"
    return f"group '{group.group_id}' is {group.state} and has {count} ({shown})"


topics_option = click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC[:P,...]", help="Only these partitions; repeatable."
)


async def chosen_partitions(
    client: Client, topics: Iterable[str], kept: Mapping[TopicPartition, object]
) -> list[TopicPartition]:
    """The partitions of `--topic NAME` and `--topic NAME:0,2`; by default all for which the group has offsets."""
    from ottla.client import TopicPartition
    from ottla.client.topics import TopicDescription, try_describe

    wanted = [_topic_and_partitions(text) for text in topics]
    if not wanted:
        return sorted(kept)
    described = await try_describe(client, *dict(wanted))
    chosen: set[TopicPartition] = set()
    for name, indexes in wanted:
        topic = described[name]
        if not isinstance(topic, TopicDescription):
            raise topic
        there = [each.partition for each in topic.partitions]
        absent = next((index for index in indexes if index not in there), None)
        if absent is not None:
            raise Failure(f"topic '{name}' has no partition {absent}", f"it has {len(there)}, counted from 0")
        chosen.update(TopicPartition(name, index) for index in indexes or there)
    return sorted(chosen)


def _topic_and_partitions(text: str) -> tuple[str, list[int]]:
    name, colon, indexes = text.partition(":")
    words = [word.strip() for word in indexes.split(",")] if colon else []
    if not name or not all(word.isascii() and word.isdigit() for word in words):
        raise Failure(f"--topic {text!r} is neither NAME nor NAME:PARTITION,...", "for example --topic orders:0,2")
    return name, list(map(int, words))
