"""`ottla share offsets`: the start offsets and the lag of a share group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import (
    PARTITION_COLUMNS,
    Target,
    json_option,
    numbers,
    print_heading,
    print_table,
    target_options,
)
from ottla.cli.groups.find import topics_option
from ottla.cli.share.find import Found, Standing, share_group
from ottla.cli.watch import Watch, find_and_show, watch_options

if TYPE_CHECKING:
    from ottla.client import Client

COLUMNS = (
    *PARTITION_COLUMNS,
    *numbers("START", "END", "FINISHED", "LAG", "MEMBERS"),
)


@click.command()
@click.argument("name", metavar="GROUP")
@topics_option
@json_option
@watch_options
@target_options
def offsets(target: Target, name: str, topics: tuple[str, ...], as_json: bool, watch: Watch) -> None:
    """Show the start offsets and the lag of a share group.

    START is the first offset that may not be completed, as last written. FINISHED counts later offsets that are already
    accepted or archived, and LAG those that are not.
    """

    async def find(client: Client) -> Found:
        return await share_group(client, name, topics)

    find_and_show(target, watch, find, _json if as_json else None, _print)


def _print(found: Found) -> None:
    left = "" if found.lag is None else f"{found.lag} records left"
    print_heading(found.group.group_id, [found.group.state, left])
    if found.standings:
        print_table(COLUMNS, map(standing_cells, found.standings))
    else:
        click.echo("  no offsets")


def standing_cells(each: Standing) -> tuple[object, ...]:
    return (*each.at, each.start_offset, each.end_offset, each.finished, each.lag, len(each.members))


def _json(found: Found) -> dict[str, Any]:
    return {
        "group_id": found.group.group_id,
        "state": found.group.state,
        "lag": found.lag,
        "rows": [standing_json(each) for each in found.standings],
    }


def standing_json(each: Standing) -> dict[str, Any]:
    return {
        "topic": each.at.topic,
        "partition": each.at.partition,
        "start_offset": each.start_offset,
        "end_offset": each.end_offset,
        "finished": each.finished,
        "lag": each.lag,
        "leader_epoch": each.leader_epoch,
        "member_ids": [member.member_id for member in each.members],
    }
