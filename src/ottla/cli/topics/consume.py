"""`ottla topics consume`: reads records, optionally from a position and through a filter."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import click
import msgspec

from ottla.cli.cluster import Target, json_option, on_cluster, target_options
from ottla.cli.printable import printable
from ottla.cli.times import time_text
from ottla.cli.topics.find import found_topics
from ottla.cli.topics.read import compiled_filter, first_offsets, record_options
from ottla.client.record_text import FORMS, decoded, filter_row, record_row, typed
from ottla.health.phrases import number

if TYPE_CHECKING:
    from ottla.client import Client, ConsumerRecord, TopicPartition
    from ottla.client.offsets import Isolation

Starts = dict["TopicPartition", int]


@click.command()
@click.argument("name")
@record_options
@click.option(
    "--decode",
    "form",
    type=click.Choice(FORMS),
    default="auto",
    show_default=True,
    help="How to decode keys and values.",
)
@click.option("--values", "only_values", is_flag=True, help="Only the values, one per line.")
@click.option("--committed", is_flag=True, help="Skip records of open and aborted transactions.")
@click.option("--follow", "-f", is_flag=True, help="Keep reading new records; by default, stop at the end.")
@json_option
@target_options
def consume(
    target: Target,
    name: str,
    start: str | None,
    most: int | None,
    partitions: tuple[int, ...],
    text: str | None,
    form: str,
    only_values: bool,
    committed: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """Read the records of a topic up to its end or, with --follow, continuously.

    Starts at the first record, or with --follow at the end; --from changes that. Records of Kafka's
    internal topics are decoded.
    """
    matches = compiled_filter(text)
    place = start or ("end" if follow else "beginning")
    show = _printer(form, as_json=as_json, only_values=only_values)

    async def work(client: Client) -> None:
        (topic,) = await found_topics(client, [name])
        starts = await first_offsets(client, topic, partitions, place, needs_all=False)
        left = most
        async with aclosing(_records(client, starts, committed=committed, follow=follow)) as records:
            async for record in records:
                if matches is not None and not matches(filter_row(record)):
                    continue
                show(record)
                left = None if left is None else left - 1
                if left == 0:
                    return

    on_cluster(target, work)


async def _records(client: Client, starts: Starts, *, committed: bool, follow: bool) -> AsyncGenerator[ConsumerRecord]:
    from ottla.client import LATEST, Fetcher

    isolation: Isolation = "read_committed" if committed else "read_uncommitted"
    async with Fetcher(client, starts, isolation=isolation) as fetcher:
        async for record in fetcher.records(until=None if follow else LATEST):
            yield record


# --- printing ---------------------------------------------------------------------------------------------------------


def _printer(form: str, *, as_json: bool, only_values: bool) -> Callable[[ConsumerRecord], None]:
    def show(record: ConsumerRecord) -> None:
        if as_json:
            row = msgspec.to_builtins(record_row(record, form, form, form))
            click.echo(json.dumps({"partition": row.pop("p"), **row}, ensure_ascii=False))
        elif only_values:
            click.echo(decoded(record.value, form).text or "")
        else:
            click.echo(_line(record, form))

    return show


def _line(record: ConsumerRecord, form: str) -> str:
    """`2  4,133  2026-11-15 02:58:11.204  eu-7731  {"amount": 120.5}  trace-id=7f`."""
    when = "-" if record.timestamp_ms < 0 else time_text(record.timestamp_ms, "milliseconds")
    return "  ".join([str(record.partition), number(record.offset), when, *_content(record, form)])


def _content(record: ConsumerRecord, form: str) -> list[str]:
    try:
        opened = typed(record)
    except ValueError as error:
        return [_text(json.dumps({"error": str(error)}, ensure_ascii=False))]
    if opened is not None:
        return [_text(json.dumps(msgspec.to_builtins(opened), ensure_ascii=False))]
    texts = [_text(decoded(each, form).text) for each in (record.key, record.value)]
    return texts + [f"{_text(key)}={_text(decoded(value, form).text)}" for key, value in record.headers]


def _text(text: str | None) -> str:
    return "-" if text is None else printable(text)
