"""`ottla share describe`: the members of a share group, and the lag of its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import Column, Target, json_option, print_heading, print_table, target_options
from ottla.cli.groups.describe import compact, group_json
from ottla.cli.share.find import Found, share_groups
from ottla.cli.share.offsets import COLUMNS, standing_cells, standing_json
from ottla.cli.watch import Watch, find_and_show_each, watch_options

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.group_view import GroupView

MEMBER_COLUMNS = (
    Column("MEMBER"),
    Column("CLIENT"),
    Column("HOST"),
    Column("EPOCH", is_number=True),
    Column("PARTITIONS"),
)


@click.command()
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@json_option
@watch_options
@target_options
def describe(target: Target, names: tuple[str, ...], as_json: bool, watch: Watch) -> None:
    """Show share groups with their members and partitions; all of them if none is named.

    Members may share a partition: each of them gets different records.
    """

    async def find(client: Client) -> list[Found]:
        return await share_groups(client, names)

    find_and_show_each(target, watch, find, _json if as_json else None, _print)


def _print(found: Found) -> None:
    group = found.group
    facts = [
        group.state,
        f"coordinator {group.coordinator.node_id} ({group.coordinator.address})",
        f"assignor {group.assignor}",
        f"epoch {group.epoch}",
    ]
    if found.lag is not None:
        facts.append(f"{found.lag} records left")
    print_heading(group.group_id, facts)
    _print_members(group)
    if found.standings:
        print_table(COLUMNS, map(standing_cells, found.standings))


def _print_members(group: GroupView) -> None:
    if not group.members:
        click.echo("  no members")
        return
    rows = (
        (each.member_id, each.client_id, each.host.removeprefix("/"), each.epoch, compact(each.assignment))
        for each in group.members
    )
    print_table(MEMBER_COLUMNS, rows)


def _json(found: Found) -> dict[str, Any]:
    return group_json(found.group) | {
        "lag": found.lag,
        "partitions": [standing_json(each) for each in found.standings],
    }
