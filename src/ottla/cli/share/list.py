"""`ottla share list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import Column, Target, json_option, print_table, target_options
from ottla.cli.share.find import Found, share_groups
from ottla.cli.watch import Watch, find_and_show, rows_of, watch_options

if TYPE_CHECKING:
    from ottla.client import Client

COLUMNS = (
    Column("GROUP"),
    Column("STATE"),
    Column("MEMBERS", is_number=True),
    Column("EPOCH", is_number=True),
    Column("PARTITIONS", is_number=True),
    Column("LAG", is_number=True),
    Column("COORDINATOR", is_number=True),
)


@click.command("list")
@json_option
@watch_options
@target_options
def list_groups(target: Target, as_json: bool, watch: Watch) -> None:
    """List the share groups, with members and lag."""

    async def find(client: Client) -> list[Found]:
        return await share_groups(client, ())

    def show(found: list[Found]) -> None:
        print_table(COLUMNS, map(_cells, found))

    find_and_show(target, watch, find, rows_of(_json) if as_json else None, show)


def _cells(found: Found) -> tuple[object, ...]:
    group = found.group
    node_id = group.coordinator.node_id
    return group.group_id, group.state, len(group.members), group.epoch, len(found.standings), found.lag, node_id


def _json(found: Found) -> dict[str, Any]:
    group = found.group
    return {
        "group_id": group.group_id,
        "state": group.state,
        "members": len(group.members),
        "epoch": group.epoch,
        "partitions": len(found.standings),
        "lag": found.lag,
        "coordinator": group.coordinator.node_id,
    }
