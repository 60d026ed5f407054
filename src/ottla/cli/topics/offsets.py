"""`ottla topics offsets` and `delete-records`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import PARTITION_COLUMNS, Target, json_option, numbers, on_cluster, print_table, target_options
from ottla.cli.confirm import confirm, yes_option
from ottla.cli.failure import Failure
from ottla.cli.times import parse_time_ms
from ottla.cli.topics.find import Ends, ends_of, found_topics
from ottla.cli.watch import Watch, find_and_show, watch_options
from ottla.health.phrases import number

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.offsets import ListedOffset

COLUMNS = (*PARTITION_COLUMNS, *numbers("START", "END", "RECORDS"))
END = "end"

Found = tuple[Ends, "dict[TopicPartition, ListedOffset]"]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--at", "at", metavar="TIME", help="Also show the first offset since this time: an ISO date or milliseconds."
)
@json_option
@watch_options
@target_options
def offsets(target: Target, names: tuple[str, ...], at: str | None, as_json: bool, watch: Watch) -> None:
    """Show the start and end offsets of topics."""
    at_ms = None if at is None else parse_time_ms(at)

    async def find(client: Client) -> Found:
        from ottla.client import list_offsets

        ends = await ends_of(client, await found_topics(client, names))
        return ends, {} if at_ms is None else await list_offsets(client, dict.fromkeys(ends, at_ms))

    def show(found: Found) -> None:
        ends, placed = found
        columns = COLUMNS if at is None else (*COLUMNS, *numbers("AT"))
        print_table(columns, (_row(place, *ends[place], placed, with_time=at is not None) for place in sorted(ends)))

    find_and_show(target, watch, find, _json if as_json else None, show)


def _row(
    at: TopicPartition,
    start: int | None,
    end: int | None,
    placed: dict[TopicPartition, ListedOffset],
    *,
    with_time: bool,
) -> tuple[object, ...]:
    records = None if start is None or end is None else number(end - start)
    row = (at.topic, at.partition, start, end, records)
    return (*row, placed[at].offset if placed[at].offset >= 0 else None) if with_time else row


def _json(found: Found) -> dict[str, Any]:
    ends, placed = found
    rows = []
    for at, (start, end) in sorted(ends.items()):
        shown: dict[str, Any] = {"topic": at.topic, "partition": at.partition, "start_offset": start, "end_offset": end}
        if at in placed:
            shown["at"] = placed[at].offset if placed[at].offset >= 0 else None
        rows.append(shown)
    return {"rows": rows}


@click.command("delete-records")
@click.argument("name")
@click.option("--before", required=True, metavar="OFFSET|end", help="Delete the records before this offset.")
@click.option(
    "--partition", "partitions", type=click.IntRange(0), multiple=True, help="Only this partition; repeatable."
)
@yes_option
@target_options
def delete_records(target: Target, name: str, before: str, partitions: tuple[int, ...], yes: bool) -> None:
    """Delete the oldest records of a topic permanently."""
    from ottla.client import delete_records as delete

    offset = _offset(before)
    ends = on_cluster(target, lambda client: _chosen(client, name, partitions))
    wanted = {at: end if offset is None else offset for at, (_, end) in ends.items() if end is not None}
    confirm([_plan(at, ends[at][0], wanted[at]) for at in sorted(wanted)], yes)
    done = on_cluster(target, lambda client: delete(client, wanted))
    for at, start in sorted(done.items()):
        click.echo(f"{at} starts at {number(start)}")


def _offset(text: str) -> int | None:
    if text == END:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise Failure(f"--before {text!r} is neither an offset nor '{END}'")
    return int(text)


async def _chosen(client: Client, name: str, partitions: tuple[int, ...]) -> Ends:
    (topic,) = await found_topics(client, [name])
    there = {each.partition for each in topic.partitions}
    absent = next((each for each in partitions if each not in there), None)
    if absent is not None:
        raise Failure(f"topic '{name}' has no partition {absent}", f"it has {len(there)}, counted from 0")
    ends = await ends_of(client, [topic])
    return {at: span for at, span in ends.items() if not partitions or at.partition in partitions}


def _plan(at: TopicPartition, start: int | None, before: int) -> str:
    gone = max(0, before - (start or 0))
    return f"would delete {number(gone)} records of {at}, before offset {number(before)}"
