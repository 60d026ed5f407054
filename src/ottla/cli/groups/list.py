"""`ottla groups list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.cluster import Column, Target, json_option, print_table, target_options
from ottla.cli.groups.find import kept_offsets
from ottla.cli.watch import Watch, find_and_show, rows_of, watch_options

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.groups import ListedGroup

KINDS = ("classic", "consumer", "share", "streams")
COLUMNS = (
    Column("GROUP"),
    Column("TYPE"),
    Column("STATE"),
    Column("PROTOCOL"),
    Column("COORDINATOR", is_number=True),
)
LAG_COLUMNS = (
    Column("MEMBERS", is_number=True),
    Column("EPOCH", is_number=True),
    Column("PARTITIONS", is_number=True),
    Column("LAG", is_number=True),
)


class Row(NamedTuple):
    group: ListedGroup
    members: int | None = None
    epoch: int | None = None
    partitions: int | None = None
    lag: int | None = None


@click.command("list")
@click.option("--type", "types", multiple=True, type=click.Choice(KINDS), help="Only groups of this type; repeatable.")
@click.option("--state", "states", multiple=True, help="Only groups in this state, such as Empty; repeatable.")
@click.option("--lag", "with_lag", is_flag=True, help="Include members, epoch and lag of each group.")
@json_option
@watch_options
@target_options
def list_groups(
    target: Target, types: tuple[str, ...], states: tuple[str, ...], with_lag: bool, as_json: bool, watch: Watch
) -> None:
    """List the groups."""

    async def find(client: Client) -> list[Row]:
        from ottla.client.groups import list_groups as listed

        found = await listed(client, types=types, states=states)
        return await _with_lag(client, found) if with_lag else [Row(each) for each in found]

    def show(rows: list[Row]) -> None:
        columns = COLUMNS + LAG_COLUMNS if with_lag else COLUMNS
        print_table(columns, (_cells(row)[: len(columns)] for row in rows))

    find_and_show(target, watch, find, rows_of(lambda row: _json(row, with_lag)) if as_json else None, show)


async def _with_lag(client: Client, found: list[ListedGroup]) -> list[Row]:
    """Members and lag of each group. The end offsets of all partitions are requested together."""
    from ottla.client.errors import ClientError
    from ottla.client.groups import try_view
    from ottla.client.lag import lags

    views = await try_view(client, found)
    kept = {each.group_id: await kept_offsets(client, each.group_id, each.type) for each in found}
    ends = await lags(client, {at: 0 for offsets in kept.values() for at in offsets}, seconds=False)
    rows = []
    for each in found:
        view = views[each.group_id]
        offsets = kept[each.group_id]
        behind = [_behind(offsets[at].lag, offsets[at].offset, ends[at].end_offset) for at in offsets]
        lag = sum(filter(None, behind)) if any(value is not None for value in behind) else None
        members, epoch = (None, None) if isinstance(view, ClientError) else (len(view.members), view.epoch)
        rows.append(Row(each, members, epoch, len(offsets), lag))
    return rows


def _behind(said: int | None, offset: int, end: int | None) -> int | None:
    if said is not None:
        return said
    return None if end is None else max(0, end - offset)


def _cells(row: Row) -> tuple[object, ...]:
    group = row.group
    return (group.group_id, group.type, group.state or None, group.protocol_type or None, group.coordinator, *row[1:])


def _json(row: Row, with_lag: bool) -> dict[str, Any]:
    group = row.group
    shown: dict[str, Any] = {
        "group_id": group.group_id,
        "type": group.type,
        "state": group.state or None,
        "protocol_type": group.protocol_type,
        "coordinator": group.coordinator,
    }
    if with_lag:
        shown |= {"members": row.members, "epoch": row.epoch, "partitions": row.partitions, "lag": row.lag}
    return shown
