"""`ottla groups offsets`: the committed offsets and the lag of a group."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.cluster import (
    PARTITION_COLUMNS,
    Column,
    Target,
    json_option,
    numbers,
    print_heading,
    print_table,
    target_options,
)
from ottla.cli.groups.find import chosen_partitions, kept_offsets, topics_option, viewed_groups
from ottla.cli.watch import Watch, find_and_show, watch_options

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.group_offsets import Committed
    from ottla.client.group_view import GroupView, MemberView
    from ottla.client.lag import Lag

COLUMNS = (
    *PARTITION_COLUMNS,
    *numbers("COMMITTED", "END", "LAG", "SECONDS"),
    Column("MEMBER"),
    Column("CLIENT"),
    Column("NOTE"),
)


class Row(NamedTuple):
    at: TopicPartition
    lag: Lag
    seconds: float | None
    member: MemberView | None
    kept: Committed | None


class Found(NamedTuple):
    group: GroupView
    rows: list[Row]


@click.command()
@click.argument("name", metavar="GROUP")
@topics_option
@click.option("--no-seconds", is_flag=True, help="Do not read records to find their age.")
@json_option
@watch_options
@target_options
def offsets(target: Target, name: str, topics: tuple[str, ...], no_seconds: bool, as_json: bool, watch: Watch) -> None:
    """Show the committed offsets of a group, and its lag in records and in seconds.

    LAG is the number of records from the committed offset to the end of the partition. SECONDS is the age of the first
    of them: now minus its timestamp. It is 0 for a partition that is read to the end.
    """

    async def find(client: Client) -> Found:
        return await _found(client, name, topics, seconds=not no_seconds)

    find_and_show(target, watch, find, _json if as_json else None, _print)


async def _found(client: Client, name: str, topics: Iterable[str], *, seconds: bool) -> Found:
    from ottla.client import TopicPartition
    from ottla.client.lag import lags

    (group,) = await viewed_groups(client, [name])
    kept = await kept_offsets(client, name, group.type)
    owners = {at: member for member in group.members for at in member.assignment if isinstance(at, TopicPartition)}
    wanted = await chosen_partitions(client, topics, dict.fromkeys((*kept, *owners)))
    committed = {at: kept[at].offset if at in kept else None for at in wanted}
    found = await lags(client, committed, seconds=seconds)
    now_ms = time.time_ns() // 1_000_000
    return Found(group, [_row(at, found[at], owners.get(at), kept.get(at), now_ms) for at in wanted])


def _row(at: TopicPartition, lag: Lag, member: MemberView | None, kept: Committed | None, now_ms: int) -> Row:
    if kept is not None and kept.lag is not None:
        lag = lag._replace(records=kept.lag)  # a share group may have acknowledged some after its start
    return Row(at, lag, lag.seconds(now_ms), member, kept)


def _print(found: Found) -> None:
    group = found.group
    known = [row.lag.records for row in found.rows if row.lag.records is not None]
    ages = [row.seconds for row in found.rows if row.seconds is not None]
    facts = [f"{group.type} group", group.state]
    if known:
        facts.append(f"{sum(known)} records behind")
    if ages:
        facts.append(f"{max(ages):.1f} seconds behind")
    print_heading(group.group_id, facts)
    if found.rows:
        print_table(COLUMNS, map(_cells, found.rows))
    else:
        click.echo("  no offsets")


def _cells(row: Row) -> tuple[object, ...]:
    seconds = None if row.seconds is None else f"{row.seconds:.1f}"
    member = (None, None) if row.member is None else (row.member.member_id, row.member.client_id)
    return (*row.at, row.lag.committed, row.lag.end_offset, row.lag.records, seconds, *member, row.lag.note or None)


def _json(found: Found) -> dict[str, Any]:
    return {
        "group_id": found.group.group_id,
        "type": found.group.type,
        "state": found.group.state,
        "rows": [_row_json(row) for row in found.rows],
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "topic": row.at.topic,
        "partition": row.at.partition,
        "committed_offset": row.lag.committed,
        "committed_leader_epoch": None if row.kept is None else row.kept.leader_epoch,
        "metadata": None if row.kept is None else row.kept.metadata,
        "start_offset": row.lag.start_offset,
        "end_offset": row.lag.end_offset,
        "lag": row.lag.records,
        "lag_seconds": row.seconds,
        "oldest_timestamp_ms": row.lag.oldest_at_ms,
        "member_id": None if row.member is None else row.member.member_id,
        "client_id": None if row.member is None else row.member.client_id,
        "note": row.lag.note,
    }
