"""`ottla share inflight`: the offsets of a group that are acquired, available, or finished out of order."""

from __future__ import annotations

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
from ottla.cli.groups.find import topics_option
from ottla.cli.share.find import group_windows, share_group
from ottla.cli.watch import Watch, find_and_show, watch_options

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.group_view import MemberView
    from ottla.inflight.window import Range, Window

COLUMNS = (
    *PARTITION_COLUMNS,
    *numbers("FIRST", "LAST"),
    Column("STATE"),
    Column("DELIVERIES", is_number=True),
    Column("MEMBER"),
    Column("LOCK", is_number=True),
)
NOT_KNOWN = "?"


class Found(NamedTuple):
    group_id: str
    windows: list[Window]
    members: dict[str, MemberView]


@click.command()
@click.argument("name", metavar="GROUP")
@topics_option
@json_option
@watch_options
@target_options
def inflight(target: Target, name: str, topics: tuple[str, ...], as_json: bool, watch: Watch) -> None:
    """Show in-flight records of a share group by ranges: state, delivery count, owner and remaining lock time.

    An ottla broker with --inspect-port reports all of it. For other brokers, __share_group_state is read, which does
    not contain the owners of records, so available records may in fact be acquired. Unknown values are shown as '?'.
    """

    async def find(client: Client) -> Found:
        found = await share_group(client, name, topics)
        members = {each.member_id: each for each in found.group.members}
        return Found(name, await group_windows(client, found), members)

    find_and_show(target, watch, find, _json if as_json else None, _print)


def _print(found: Found) -> None:
    for window in found.windows:
        print_heading(str(window.at), [summary(window)])
    rows = [_cells(window, each, found.members) for window in found.windows for each in window.ranges]
    if rows:
        print_table(COLUMNS, rows)


def summary(window: Window) -> str:
    """One line about a window."""
    if window.start_offset is None:
        return "not started"
    places = f"start {window.start_offset}"
    if not window.is_live:
        return f"{places}, as stored in records"
    size = sum(each.size for each in window.ranges)
    return f"{places}, {size} of {window.locks_max} offsets in flight"


def _cells(window: Window, each: Range, members: dict[str, MemberView]) -> tuple[object, ...]:
    place = (*window.at, each.first_offset, each.last_offset)
    if window.is_live:
        lock = None if each.lock_ms is None else f"{each.lock_ms / 1000:.1f} s"
        return (*place, each.state, each.delivery_count, _owner(each, members), lock)
    is_open = each.state in ("AVAILABLE", "unknown")
    state = "AVAILABLE or ACQUIRED" if each.state == "AVAILABLE" else each.state
    count = NOT_KNOWN if each.delivery_count is None else each.delivery_count
    return (*place, state, count, *((NOT_KNOWN, NOT_KNOWN) if is_open else (None, None)))


def _owner(each: Range, members: dict[str, MemberView]) -> str | None:
    if not each.member_id:
        return None
    member = members.get(each.member_id)
    return f"{each.member_id} ({member.client_id})" if member is not None else f"{each.member_id} (left the group)"


def _json(found: Found) -> dict[str, Any]:
    return {"group_id": found.group_id, "rows": [window_json(each) for each in found.windows]}


def window_json(window: Window) -> dict[str, Any]:
    return {
        "topic": window.at.topic,
        "partition": window.at.partition,
        "source": "broker" if window.is_live else "records",
        "start_offset": window.start_offset,
        "max_record_locks": window.locks_max,
        "ranges": [
            {
                "first_offset": each.first_offset,
                "last_offset": each.last_offset,
                "state": each.state,
                "delivery_count": each.delivery_count,
                "member_id": each.member_id,
                "lock_timeout_ms": each.lock_ms,
            }
            for each in window.ranges
        ],
    }
