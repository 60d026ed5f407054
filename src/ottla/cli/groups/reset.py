"""`ottla groups reset`: sets the offsets of a group without members."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ottla.cli.cluster import (
    PARTITION_COLUMNS,
    Column,
    Target,
    json_option,
    numbers,
    on_cluster,
    print_json,
    print_table,
    target_options,
    with_options,
)
from ottla.cli.confirm import confirm, dry_run_option, yes_option
from ottla.cli.failure import EXIT_IN_PART, EXIT_REFUSED, Failure
from ottla.cli.groups.find import check_inactive, chosen_partitions, kept_offsets, listed_group
from ottla.cli.refusal import one_line
from ottla.cli.times import parse_time_ms, time_ago_ms
from ottla.cli.verbosity import note

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.group_offsets import Committed
    from ottla.client.groups import ListedGroup

T = TypeVar("T")
COLUMNS = (
    *PARTITION_COLUMNS,
    *numbers("COMMITTED", "NEW"),
    Column("NOTE"),
)
WAYS = {
    "to_earliest": "--to-earliest",
    "to_latest": "--to-latest",
    "to_current": "--to-current",
    "to_offset": "--to-offset",
    "shift_by": "--shift-by",
    "to_datetime": "--to-datetime",
    "by_duration": "--by-duration",
}


class ResetTarget(NamedTuple):
    """How the new offsets are found: one of WAYS, with its value if it needs one."""

    name: str
    value: int = 0
    """An offset, a distance, or milliseconds since 1970."""


class Change(NamedTuple):
    at: TopicPartition
    before: int | None
    after: int
    note: str = ""


class ResetRequest(NamedTuple):
    """The options of the user."""

    topics: tuple[str, ...]
    """Empty for all."""
    way: ResetTarget
    yes: bool
    dry_run: bool
    create: bool


def reset_options(command: Callable[..., T]) -> Callable[..., T]:
    """The options of commands that reset offsets; the command gets them as one `asked`."""

    @wraps(command)
    def gathered(
        *, topics: tuple[str, ...], all_topics: bool, yes: bool, dry_run: bool, create: bool, **others: object
    ) -> T:
        if yes and dry_run:
            raise Failure("--yes and --dry-run exclude each other")
        if bool(topics) == all_topics:
            raise Failure("no partitions selected", "give --topic or --all-topics")
        way = chosen_way({key: others.pop(key) for key in WAYS})
        return command(asked=ResetRequest(topics, way, yes, dry_run, create), **others)

    return with_options(gathered, *_OPTIONS)


_OPTIONS = (
    click.option("--topic", "topics", multiple=True, metavar="TOPIC[:P,...]", help="The partitions; repeatable."),
    click.option("--all-topics", is_flag=True, help="All partitions for which the group has an offset."),
    click.option("--to-earliest", is_flag=True, help="To the first record."),
    click.option("--to-latest", is_flag=True, help="To the end, after the last record."),
    click.option("--to-current", is_flag=True, help="To the committed offset; to the end if there is none."),
    click.option("--to-offset", type=click.IntRange(0), metavar="N", help="To this offset."),
    click.option("--shift-by", type=int, metavar="N", help="By N records forward, or back if N is negative."),
    click.option("--to-datetime", metavar="TIME", help="To the first record since 2026-11-15T07:00 (by default UTC)."),
    click.option("--by-duration", metavar="DURATION", help="To the first record of the last 90s, 2h, 1d12h, PT2H."),
    dry_run_option,
    yes_option,
    click.option("--create", is_flag=True, help="Create the group if it does not exist."),
)


@click.command()
@click.argument("name", metavar="GROUP")
@reset_options
@json_option
@target_options
def reset(target: Target, name: str, asked: ResetRequest, as_json: bool) -> None:
    """Reset a group's offsets. The group must have no members.

    An offset outside the log is replaced by the nearest one in it.
    """

    async def find(client: Client) -> ListedGroup:
        group = await existing_group(client, name, asked, "classic")
        if group.type == "streams":
            raise Failure(
                f"group '{name}' is a streams group, and its state belongs to its offsets",
                "reset the whole application",
            )
        return group

    perform(target, name, asked, as_json, find)


def perform(
    target: Target, name: str, asked: ResetRequest, as_json: bool, find: Callable[[Client], Awaitable[ListedGroup]]
) -> None:
    """Find the group, compute its new offsets, set them unless it is a dry run, and show them."""

    async def plan(client: Client) -> tuple[ListedGroup, list[Change]]:
        group = await find(client)
        await check_inactive(client, group, "offsets can be changed only while it has none")
        kept = await kept_offsets(client, name, group.type)
        return group, await _plan(client, await chosen_partitions(client, asked.topics, kept), kept, asked.way)

    group, changes = on_cluster(target, plan)
    if changes and not asked.dry_run:
        confirm([f"would set {each.at} from {_offset(each.before)} to {each.after}" for each in changes], asked.yes)
        on_cluster(target, lambda client: _execute(client, group, changes))
    _report(name, changes, not asked.dry_run, as_json)


def _offset(offset: int | None) -> str:
    return "no offset" if offset is None else str(offset)


async def existing_group(client: Client, name: str, asked: ResetRequest, kind: str) -> ListedGroup:
    """The group, or a new one of this type, if the user allows that."""
    from ottla.client.groups import ListedGroup

    try:
        return await listed_group(client, name, "--create creates it")
    except Failure:
        if not asked.create:
            raise
        return ListedGroup(name, kind, "Dead", "", -1)


def chosen_way(ways: Mapping[str, Any]) -> ResetTarget:
    """The way that the user gave; times become milliseconds."""
    given = [key for key in WAYS if ways.get(key) is not None and ways[key] is not False]  # 0 is an offset
    if len(given) != 1:
        problem = f"{WAYS[given[0]]} and {WAYS[given[1]]} exclude each other" if given else "no target offset given"
        raise Failure(problem, f"choose one of {', '.join(WAYS.values())}")
    (key,) = given
    if key == "to_datetime":
        return ResetTarget(key, parse_time_ms(ways[key]))
    if key == "by_duration":
        return ResetTarget(key, time_ago_ms(ways[key]))
    return ResetTarget(key, int(ways[key]))


async def _plan(
    client: Client, partitions: list[TopicPartition], kept: Mapping[TopicPartition, Committed], way: ResetTarget
) -> list[Change]:
    from ottla.client import EARLIEST, LATEST, list_offsets

    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    is_time = way.name in ("to_datetime", "by_duration")
    times = await list_offsets(client, dict.fromkeys(partitions, way.value)) if is_time else {}
    changes = []
    for at in partitions:
        before = kept[at].offset if at in kept else None
        start, end = starts[at].offset, ends[at].offset
        wanted, note = _wanted(way, at, before, start, end, times[at].offset if is_time else -1)
        inside = min(max(wanted, start), end)
        if inside != wanted:
            note = f"{wanted} is not in the log"
        changes.append(Change(at, before, inside, note))
    return changes


def _wanted(
    way: ResetTarget, at: TopicPartition, before: int | None, start: int, end: int, by_time: int
) -> tuple[int, str]:
    """The requested offset, inside or outside of the log, and a remark."""
    if way.name == "to_earliest":
        return start, ""
    if way.name == "to_latest":
        return end, ""
    if way.name == "to_offset":
        return way.value, ""
    if way.name == "shift_by":
        if before is None:
            raise Failure(f"{at} cannot be shifted: it has no committed offset", "choose another option for it")
        return before + way.value, ""
    if way.name == "to_current":
        return (end, "no committed offset") if before is None else (before, "")
    return (end, "no record since then") if by_time < 0 else (by_time, "")


async def _execute(client: Client, group: ListedGroup, changes: list[Change]) -> None:
    from ottla.client.group_offsets import alter_share, commit

    wanted = {each.at: each.after for each in changes}
    if not wanted:
        return
    outcomes = await (alter_share if group.type == "share" else commit)(client, group.group_id, wanted)
    failures = [error for error in outcomes.values() if error is not None]
    if failures:
        done = len(outcomes) - len(failures)
        code = EXIT_IN_PART if done else EXIT_REFUSED
        raise Failure("; ".join(map(_why, failures)), f"{done} of {len(outcomes)} partitions were changed", code=code)


def _why(error: Any) -> str:  # noqa: ANN401
    from ottla.wire.errors import ErrorCode

    if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.NON_EMPTY_GROUP):
        return f"{one_line(error)}: a member has joined in the meantime"
    return one_line(error)


def _report(name: str, changes: list[Change], execute: bool, as_json: bool) -> None:
    if as_json:
        shown = [
            {
                "topic": each.at.topic,
                "partition": each.at.partition,
                "committed_offset": each.before,
                "new_offset": each.after,
                "note": each.note,
            }
            for each in changes
        ]
        print_json({"group_id": name, "executed": execute, "rows": shown})
    elif changes:
        print_table(COLUMNS, ((*each.at, each.before, each.after, each.note or None) for each in changes))
    else:
        click.echo(f"group '{name}' has no offsets")
    if changes and not execute:
        note("dry run: nothing was changed")
