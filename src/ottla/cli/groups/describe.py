"""`ottla groups describe`: the members of a group, their assignments, and who delays a rebalance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import Column, Target, json_option, print_heading, print_table, target_options
from ottla.cli.groups.find import viewed_groups
from ottla.cli.printable import printable
from ottla.cli.watch import Watch, find_and_show_each, watch_options

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.group_view import Blocker, GroupView, MemberView, Share

MEMBER_COLUMNS = (Column("MEMBER"), Column("INSTANCE"), Column("CLIENT"), Column("HOST"))
EPOCH_COLUMNS = (Column("EPOCH", is_number=True), Column("PROTOCOL"))
ASSIGNMENT_COLUMNS = (Column("COUNT", is_number=True), Column("ASSIGNMENT"))


@click.command()
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@json_option
@watch_options
@target_options
def describe(target: Target, names: tuple[str, ...], as_json: bool, watch: Watch) -> None:
    """Show groups with their members and assignments; all groups if none is named.

    For consumer and streams groups it also shows epochs, what each member has yet to be assigned and to revoke, and
    which members delay the rebalance.
    """

    async def find(client: Client) -> list[GroupView]:
        return await viewed_groups(client, names)

    find_and_show_each(target, watch, find, group_json if as_json else None, _print_group)


# --- for people -------------------------------------------------------------------------------------------------------


def _print_group(group: GroupView) -> None:
    from ottla.client.group_view import rebalance_blockers

    print_heading(group.group_id, _facts(group))
    for line in _blocker_lines(group, rebalance_blockers(group)):
        click.echo(f"  {printable(line)}")
    if group.members:
        has_epochs, has_targets = _extent(group)
        columns = MEMBER_COLUMNS + EPOCH_COLUMNS * has_epochs + ASSIGNMENT_COLUMNS
        columns += (Column("TO ASSIGN"), Column("TO REVOKE")) * has_targets
        print_table(columns, (_member_row(each, has_epochs, has_targets) for each in group.members))
    else:
        click.echo("  no members")


def _facts(group: GroupView) -> Iterator[str]:
    yield f"{group.type} group"
    yield group.state
    yield f"coordinator {group.coordinator.node_id} ({group.coordinator.address})"
    if group.type == "classic":
        yield f"protocol {group.protocol_type}" if group.protocol_type else "no protocol"
    yield f"assignor {group.assignor}" if group.assignor else ""
    if group.epoch is not None:
        yield f"epoch {group.epoch}"
        yield f"target of epoch {group.assignment_epoch}" if group.members else ""
    yield "" if group.topology_epoch is None else f"topology epoch {group.topology_epoch}"


def _blocker_lines(group: GroupView, found: Iterable[Blocker]) -> Iterator[str]:
    if group.members and (group.assignment_epoch or 0) < (group.epoch or 0):
        yield f"the target assignment for epoch {group.epoch} is not computed yet"
    for each in found:
        yield f"{each.member_id} delays the rebalance: it is at epoch {each.epoch} of {group.assignment_epoch}"
        if each.awaited:
            yield f"  {', '.join(each.waiting)} waiting for {compact(each.awaited)}"


def _extent(group: GroupView) -> tuple[bool, bool]:
    """Whether members have epochs, and whether some have not reached their target yet."""
    moving = any(each.target is not None and each.target != each.assignment for each in group.members)
    return group.epoch is not None, moving


def _member_row(member: MemberView, has_epochs: bool, has_targets: bool) -> tuple[object, ...]:
    row: tuple[object, ...] = (member.member_id, member.instance_id, member.client_id, member.host.removeprefix("/"))
    if has_epochs:
        row = (*row, member.epoch, "classic" if member.is_classic else None)
    if member.unread_bytes:
        row = (*row, None, f"{member.unread_bytes} bytes (not a consumer assignment)")
    else:
        row = (*row, len(member.assignment), compact(member.assignment))
    if has_targets:
        target = member.target or ()
        row = (*row, compact(s for s in target if s not in member.assignment))
        row = (*row, compact(s for s in member.assignment if s not in target))
    return row


def compact(shares: Iterable[Share]) -> str:
    """Partitions by topic, tasks by role: `orders:0-3,7 payments:1`, `0_1 0_2 0_3 (standby)`."""
    from ottla.client import TopicPartition

    topics: dict[str, list[int]] = {}
    words: list[str] = []
    for share in shares:
        if isinstance(share, TopicPartition):
            topics.setdefault(share.topic, []).append(share.partition)
        else:
            words.append(str(share))
    return " ".join([*words, *(f"{name}:{_ranges(indexes)}" for name, indexes in sorted(topics.items()))]) or "-"


def _ranges(indexes: list[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


# --- for programs -----------------------------------------------------------------------------------------------------


def group_json(group: GroupView) -> dict[str, Any]:
    from ottla.client.group_view import rebalance_blockers

    shown: dict[str, Any] = {
        "group_id": group.group_id,
        "type": group.type,
        "state": group.state,
        "coordinator": {"node_id": group.coordinator.node_id, "address": str(group.coordinator.address)},
        "protocol_type": group.protocol_type,
        "assignor": group.assignor or None,
        "members": [_member_json(each) for each in group.members],
    }
    if group.epoch is not None:
        shown |= {"group_epoch": group.epoch, "assignment_epoch": group.assignment_epoch}
        shown["held_up_by"] = [
            {
                "member_id": each.member_id,
                "member_epoch": each.epoch,
                "awaited": _shares_json(each.awaited),
                "waiting": list(each.waiting),
            }
            for each in rebalance_blockers(group)
        ]
    if group.topology_epoch is not None:
        shown["topology_epoch"] = group.topology_epoch
    return shown


def _member_json(member: MemberView) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "is_classic": member.is_classic,
        "subscription": list(member.subscription),
        "subscription_regex": member.subscription_regex,
        "assignment": None if member.unread_bytes else _shares_json(member.assignment),
        "target": None if member.target is None else _shares_json(member.target),
    }


def _shares_json(shares: Iterable[Share]) -> list[dict[str, Any]]:
    from ottla.client import TopicPartition

    return [
        {"topic": each.topic, "partition": each.partition}
        if isinstance(each, TopicPartition)
        else {"subtopology_id": each.subtopology_id, "partition": each.partition, "role": each.role}
        for each in shares
    ]
