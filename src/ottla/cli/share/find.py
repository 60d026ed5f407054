"""Finds share groups, and their offsets in each partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.failure import Failure
from ottla.cli.groups.find import chosen_partitions, expect_listed, listed_groups, views
from ottla.cli.verbosity import note

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.group_view import GroupView, MemberView
    from ottla.client.groups import ListedGroup
    from ottla.inflight.window import Window


class Standing(NamedTuple):
    """The offsets of a group in a partition."""

    at: TopicPartition
    topic_id: bytes
    start_offset: int | None
    """The first offset that may not be finished, as last written; None if the group has not started."""
    end_offset: int | None
    """The end offset of the partition."""
    lag: int | None
    """Records that are not finished yet."""
    leader_epoch: int
    members: tuple[MemberView, ...]

    @property
    def finished(self) -> int | None:
        """How many offsets after the start are finished already."""
        if self.start_offset is None or self.end_offset is None or self.lag is None:
            return None
        return max(0, self.end_offset - self.start_offset - self.lag)


class Found(NamedTuple):
    """A group at one time."""

    group: GroupView
    standings: list[Standing]

    @property
    def lag(self) -> int | None:
        known = [each.lag for each in self.standings if each.lag is not None]
        return sum(known) if known else None


async def share_groups(client: Client, names: Iterable[str]) -> list[Found]:
    """The share groups with these names, or all of them."""
    listed = await listed_groups(client)
    wanted = list(dict.fromkeys(names)) or sorted(name for name, each in listed.items() if each.type == "share")
    seen = await views(client, [_expect_share(name, listed) for name in wanted])
    return [Found(view, await _standings(client, view)) for view in seen]


def _expect_share(name: str, listed: Mapping[str, ListedGroup]) -> ListedGroup:
    group = expect_listed(name, listed, "'ottla share list' lists all share groups")
    if group.type != "share":
        advice = f"'ottla groups describe {name}' shows it"
        raise Failure(f"group '{name}' is a {group.type} group, not a share group", advice)
    return group


async def share_group(client: Client, name: str, topics: Iterable[str] = ()) -> Found:
    """One share group, with these partitions or with all."""
    (found,) = await share_groups(client, [name])
    there = {each.at: each for each in found.standings}
    chosen = await chosen_partitions(client, topics, there)
    return Found(found.group, [there[at] for at in chosen if at in there])


async def group_windows(client: Client, found: Found) -> list[Window]:
    """What a group has in flight in its partitions; sources that cannot be read are told on standard error."""
    from ottla.inflight.sources import windows

    topic_ids = {each.at: each.topic_id for each in found.standings}
    return await windows(client, found.group.group_id, topic_ids, lambda reason: note(f"ottla: {reason}"))


async def _standings(client: Client, group: GroupView) -> list[Standing]:
    from ottla.client.offsets import LATEST, try_list_offsets
    from ottla.client.share.offsets import describe_offsets

    offsets = await describe_offsets(client, group.group_id)
    ends = await try_list_offsets(client, dict.fromkeys(offsets, LATEST)) if offsets else {}
    standings = []
    for at, each in sorted(offsets.items()):
        end = ends.get(at)
        end_offset = None if end is None or isinstance(end, Exception) else end.offset
        members = tuple(member for member in group.members if at in member.assignment)
        standings.append(
            Standing(at, each.topic_id, each.start_offset, end_offset, each.lag, each.leader_epoch, members)
        )
    return standings
