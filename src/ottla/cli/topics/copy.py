"""`ottla topics copy`: copies records to another topic, on the same cluster or on another one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ottla.cli.cluster import (
    Column,
    Target,
    client_of,
    compression_option,
    json_option,
    numbers,
    on_cluster,
    print_json,
    print_table,
    target_of_profile,
    target_options,
)
from ottla.cli.failure import Failure
from ottla.cli.topics.find import found_topics, no_topic
from ottla.cli.topics.read import compiled_filter, first_offsets, record_options
from ottla.cli.verbosity import note
from ottla.health.phrases import number, plural, size

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.copy import Copied, Filter, Progress, TopicCopy
    from ottla.client.topics import TopicDescription

COLUMNS = (Column("PARTITION"), *numbers("FROM", "TO"))
SAY_EVERY_S = 5.0


class Wanted(NamedTuple):
    """What the user wants to be copied, and where to."""

    source: str
    target: str | None
    """None to send dead letters back to where they come from."""
    start: str | None
    partitions: tuple[int, ...]
    matches: Filter | None
    most: int | None
    follow: bool
    group: str | None
    exactly_once: bool
    redrive: bool
    by_key: bool
    create: bool
    compression: str


class Outcome(NamedTuple):
    starts: dict[TopicPartition, int]
    copied: Copied


@click.command()
@click.argument("source")
@click.argument("destination", required=False, metavar="[TARGET]")
@record_options
@click.option("--follow", "-f", is_flag=True, help="Keep copying new records; by default, stop at the end.")
@click.option("--group", metavar="GROUP", help="Save the progress as offsets of this group, and continue from them.")
@click.option(
    "--exactly-once",
    is_flag=True,
    help="Write records and progress in transactions, so that no record is copied twice.",
)
@click.option(
    "--redrive",
    is_flag=True,
    help="SOURCE is a dead-letter queue: copy the records behind its letters, by default to their own topics.",
)
@click.option("--by-key", is_flag=True, help="Choose partitions by key; by default, records keep their partition.")
@click.option("--create", is_flag=True, help="Create TARGET with the partitions and settings of SOURCE.")
@compression_option
@click.option("--to-bootstrap", metavar="HOST:PORT", help="A broker of the cluster of TARGET, if it is another one.")
@click.option(
    "--to-command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file for the cluster of TARGET.",
)
@click.option("--to-profile", metavar="NAME", help="The profile of the cluster of TARGET.")
@json_option
@target_options
def copy(
    target: Target,
    source: str,
    destination: str | None,
    start: str | None,
    most: int | None,
    partitions: tuple[int, ...],
    text: str | None,
    follow: bool,
    group: str | None,
    exactly_once: bool,
    redrive: bool,
    by_key: bool,
    create: bool,
    compression: str,
    to_bootstrap: str | None,
    to_command_config: Path | None,
    to_profile: str | None,
    as_json: bool,
) -> None:
    """Copy records from topic SOURCE to topic TARGET, up to the end or, with --follow, continuously.

    Keys, values, headers and timestamps stay the same. Records of open and aborted transactions are not copied. A copy
    with --group that was interrupted continues where it was when it is run again.
    """
    wanted = Wanted(
        source, destination, start, partitions, _matches(text), most, follow, group, exactly_once, redrive, by_key,
        create, compression,
    )  # fmt: skip
    other = _other_cluster(target, to_bootstrap, to_command_config, to_profile)
    _check(wanted, other)
    report = _Report(source)

    async def work(client: Client) -> Outcome:
        async with _connected(other, client) as destination_client:
            return await _copy(client, destination_client, wanted, report)

    _print(wanted, on_cluster(target, work), as_json)


def _matches(text: str | None) -> Filter | None:
    from ottla.client.record_text import filter_row

    compiled = compiled_filter(text)
    return None if compiled is None else lambda record: compiled(filter_row(record))


def _other_cluster(target: Target, bootstrap: str | None, config: Path | None, profile: str | None) -> Target | None:
    if bootstrap is not None and profile is not None:
        raise Failure("--to-bootstrap and --to-profile exclude each other")
    if profile is not None:
        return target_of_profile(profile, config, target.timeout_s)
    if bootstrap is not None:
        return Target(bootstrap, config, target.timeout_s)
    if config is not None:
        raise Failure("--to-command-config needs --to-bootstrap")
    return None


def _check(wanted: Wanted, other: Target | None) -> None:
    """Refuse what cannot be done, before anything is."""
    if wanted.target is None and not wanted.redrive:
        raise Failure("no TARGET given", "name the topic to copy to, or give --redrive for a dead-letter queue")
    if wanted.target is None and (wanted.create or other is not None):
        raise Failure("--redrive without TARGET writes to topics that exist on the same cluster", "name a TARGET")
    if wanted.target == wanted.source and other is None:
        raise Failure(f"topic '{wanted.source}' cannot be copied to itself", "name another TARGET")
    if wanted.exactly_once and wanted.group is None:
        raise Failure("--exactly-once needs a group for the progress", "give --group NAME")


@asynccontextmanager
async def _connected(other: Target | None, client: Client) -> AsyncIterator[Client]:
    if other is None:
        yield client
        return
    async with client_of(other) as connected:
        yield connected


# --- copying ----------------------------------------------------------------------------------------------------------


async def _copy(source: Client, target: Client, wanted: Wanted, report: _Report) -> Outcome:
    from ottla.client.copy import Copied

    (topic,) = await found_topics(source, [wanted.source])
    count = await _target_partitions(target, wanted, topic, source)
    progress = _progress(source, target, wanted, topic, count)
    copy, starts = await _prepared(source, target, wanted, topic, progress)
    copied = Copied(positions=starts)
    try:
        async for copied in copy.rounds():
            report.say(copied)
    except asyncio.CancelledError:  # an interrupt
        report.interrupted(copied, wanted)
        raise
    return Outcome(starts, copied)


async def _prepared(
    source: Client, target: Client, wanted: Wanted, topic: TopicDescription, progress: Progress | None
) -> tuple[TopicCopy, dict[TopicPartition, int]]:
    from ottla.client.copy import OriginalRecords, PlainWriter, SameRecords, TopicCopy, TransactionalWriter
    from ottla.client.offsets import LATEST, list_offsets

    writer: PlainWriter | TransactionalWriter
    if progress is not None and wanted.exactly_once:
        writer = TransactionalWriter(target, progress, compression=wanted.compression)
        await writer.fence()
    else:
        writer = PlainWriter(target, progress, compression=wanted.compression)
    starts = await first_offsets(source, topic, wanted.partitions, wanted.start or "beginning", needs_all=True)
    if progress is not None:
        saved = await progress.saved(list(starts))
        if saved and wanted.start is not None:
            raise Failure(
                f"group '{wanted.group}' has the progress of an earlier run, so --from has no effect",
                f"leave --from out, or delete the progress: ottla groups delete {wanted.group}",
            )
        starts |= saved
    ends = None
    if not wanted.follow:
        listed = await list_offsets(source, dict.fromkeys(starts, LATEST), isolation="read_committed")
        ends = {at: each.offset for at, each in listed.items()}
    records: OriginalRecords | SameRecords
    if wanted.redrive:
        records = OriginalRecords(source, wanted.target, by_key=wanted.by_key or wanted.target is not None)
    else:
        records = SameRecords(wanted.target or "", by_key=wanted.by_key)
    return TopicCopy(source, starts, ends, records, writer, matches=wanted.matches, most=wanted.most), starts


async def _target_partitions(target: Client, wanted: Wanted, topic: TopicDescription, source: Client) -> int:
    """The number of partitions of the target, which is created if that is wanted; 0 without one."""
    if wanted.target is None:
        return 0
    known = await target.all_topics()
    if wanted.target not in known and not wanted.create:
        absent = no_topic(wanted.target, known)
        raise Failure(absent.problem, "--create creates it", code=absent.code)
    if wanted.target not in known:
        await _create(target, wanted.target, topic, source)
        return len(topic.partitions)
    count = len(known[wanted.target].partitions)
    if count < len(topic.partitions) and not wanted.by_key and not wanted.redrive:
        raise Failure(
            f"topic '{topic.name}' has {plural(len(topic.partitions), 'partition')}, '{wanted.target}' has {count}",
            "--by-key lets the keys choose the partition",
        )
    return count


async def _create(target: Client, name: str, like: TopicDescription, source: Client) -> None:
    from ottla.client.configs import ConfigSource, Resource, ResourceType, describe
    from ottla.client.topics import CLUSTER_DEFAULT, NewTopic, create

    entries = await describe(source, Resource(ResourceType.TOPIC, like.name))
    own = {
        each.name: each.value
        for each in entries.values()
        if each.source is ConfigSource.TOPIC and each.value is not None
    }
    await create(target, NewTopic(name, len(like.partitions), CLUSTER_DEFAULT, own))


def _progress(source: Client, target: Client, wanted: Wanted, topic: TopicDescription, count: int) -> Progress | None:
    from ottla.client.copy import Progress

    if wanted.group is None:
        return None
    label = f"copy of {wanted.source} to {wanted.target or 'the topics of its letters'}"
    if not wanted.exactly_once or source.metadata.cluster_id == target.metadata.cluster_id:
        return Progress(source, wanted.group, source=label)
    if count < len(topic.partitions):
        raise Failure(
            f"--exactly-once between clusters needs {plural(len(topic.partitions), 'partition')} in "
            f"'{wanted.target}', which has {count}: they keep the progress",
            f"ottla topics grow {wanted.target} {len(topic.partitions)}",
        )
    return Progress(
        target, wanted.group, source=f"{label}, cluster {source.metadata.cluster_id}", saved_in=wanted.target
    )


# --- printing ---------------------------------------------------------------------------------------------------------


class _Report:
    """Prints the progress on standard error, once in a while."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._began = self._said = time.monotonic()

    def say(self, copied: Copied) -> None:
        now = time.monotonic()
        if now - self._said < SAY_EVERY_S:
            return
        self._said = now
        rate = number(round(copied.copied / (now - self._began)))
        note(f"ottla topics copy: {number(copied.copied)} records of {self._source}, {rate}/s")

    def interrupted(self, copied: Copied, wanted: Wanted) -> None:
        advice = "the progress was not saved (--group)" if wanted.group is None else "run it again to continue"
        note(f"ottla topics copy: interrupted after {plural(copied.copied, 'record')}; {advice}")


def _print(wanted: Wanted, outcome: Outcome, as_json: bool) -> None:
    copied = outcome.copied
    rows = [(at.partition, start, copied.positions[at]) for at, start in sorted(outcome.starts.items())]
    if as_json:
        names = ("partition", "start_offset", "end_offset")
        totals = {"copied": copied.copied, "skipped": copied.skipped, "size_bytes": copied.size_bytes}
        print_json({**totals, "rows": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    where = wanted.target or "the topics of its letters"
    skipped = f", {number(copied.skipped)} skipped" if copied.skipped else ""
    click.echo(
        f"{plural(copied.copied, 'record')} ({size(copied.size_bytes)}) copied from {wanted.source} to {where}{skipped}"
    )
    print_table(COLUMNS, rows)
