"""Where commands begin to read a topic, and which records they want."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from ottla.cli.cluster import with_options
from ottla.cli.failure import EXIT_UNREACHABLE, Failure
from ottla.cli.topics.find import ends_of
from ottla.cli.verbosity import note
from ottla.health.phrases import join

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.filters import Filter
    from ottla.client.topics import TopicDescription

T = TypeVar("T")


def record_options(command: Callable[..., T]) -> Callable[..., T]:
    """The options that say which records of a topic a command reads."""
    return with_options(command, *_RECORD_OPTIONS)


_RECORD_OPTIONS = (
    click.option(
        "--from",
        "start",
        metavar="beginning|end|N|-N|TIME",
        help="Where to start: an offset, N records before the end, an ISO date, or how long ago (1h).",
    ),
    click.option("--max", "most", type=click.IntRange(1), help="Stop after this many records."),
    click.option(
        "--partition", "partitions", type=click.IntRange(0), multiple=True, help="Only this partition; repeatable."
    ),
    click.option("--filter", "text", metavar="EXPR", help="Only records that match, such as 'value.amount > 100'."),
)


def compiled_filter(text: str | None) -> Filter | None:
    """The filter of --filter."""
    if text is None:
        return None
    from ottla.client.filters import FilterError, compile_filter

    try:
        return compile_filter(text)
    except FilterError as error:
        raise Failure(f"--filter: {error}", "for example 'value.amount > 100 and key ~ \"^eu-\"'") from None


async def first_offsets(
    client: Client, topic: TopicDescription, partitions: tuple[int, ...], place: str, *, needs_all: bool
) -> dict[TopicPartition, int]:
    """Where to begin in each partition, or in the named ones. `place` is the value of --from.

    Partitions whose leaders do not answer are an error if all are needed; else they are told and left out.
    """
    from ottla.client import TopicPartition
    from ottla.client.start_offsets import StartOffsetError, start_offsets

    there = {each.partition for each in topic.partitions}
    absent = next((each for each in partitions if each not in there), None)
    if absent is not None:
        raise Failure(f"topic '{topic.name}' has no partition {absent}", f"it has {len(there)}, counted from 0")
    ends = await ends_of(client, [topic])
    wanted = [TopicPartition(topic.name, each) for each in sorted(set(partitions) or there)]
    spans = {}
    for at in wanted:
        start, end = ends.get(at, (None, None))
        if start is not None and end is not None:
            spans[at] = (start, end)
    if len(spans) < len(wanted):
        problem = f"{join(at for at in wanted if at not in spans)} cannot be read: no leader answers"
        if needs_all:
            raise Failure(problem, "--partition chooses others", code=EXIT_UNREACHABLE)
        note(f"ottla: {problem}")
    try:
        return await start_offsets(client, spans, place)
    except StartOffsetError as error:
        raise Failure(error.problem, error.advice) from None
