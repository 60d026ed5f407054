"""`ottla topics transactions`: shows open transactions, and aborts hanging ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import (
    PARTITION_COLUMNS,
    ClusterGroup,
    Column,
    Target,
    json_option,
    numbers,
    on_cluster,
    print_table,
    target_options,
)
from ottla.cli.confirm import confirm, yes_option
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.cli.times import time_text
from ottla.cli.topics.find import found_topics, has_leader
from ottla.cli.verbosity import note
from ottla.cli.watch import Watch, find_and_show, watch_options

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.open_transactions import OpenProducer

OPEN_COLUMNS = (
    *PARTITION_COLUMNS,
    *numbers("PRODUCER", "EPOCH", "FIRST OFFSET"),
    Column("LAST WRITTEN"),
    Column("TRANSACTION"),
)


@click.group(cls=ClusterGroup, invoke_without_command=False)
def transactions() -> None:
    """List open transactions of topics, and abort hanging ones."""


@transactions.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
@watch_options
@target_options
def list_open(target: Target, names: tuple[str, ...], as_json: bool, watch: Watch) -> None:
    """List the open transactions in these topics, or in all topics."""
    find_and_show(target, watch, lambda client: _open(client, names), _json if as_json else None, _print)


async def _open(client: Client, names: tuple[str, ...]) -> list[tuple[TopicPartition, OpenProducer, str | None]]:
    from ottla.client import ClientError, TopicPartition
    from ottla.client.open_transactions import open_producers

    topics = await found_topics(client, names)
    every = [(topic.name, each) for topic in topics for each in topic.partitions]
    led = [TopicPartition(name, each.partition) for name, each in every if has_leader(each)]
    outcomes = await open_producers(client, led)
    owners = await _owners(client)
    return [
        (at, producer, owners.get(producer.producer_id))
        for at, outcome in sorted(outcomes.items())
        for producer in (() if isinstance(outcome, ClientError) else outcome)
    ]


async def _owners(client: Client) -> dict[int, str]:
    """Producer id -> transactional id, from all coordinators that answer."""
    from ottla.client import ClientError
    from ottla.client.open_transactions import try_list

    outcomes = (await try_list(client)).values()
    return {
        each.producer_id: each.transactional_id
        for outcome in outcomes
        if not isinstance(outcome, ClientError)
        for each in outcome
    }


def _print(found: list[tuple[TopicPartition, OpenProducer, str | None]]) -> None:
    if not found:
        note("no open transactions")
        return
    print_table(OPEN_COLUMNS, (_row(*each) for each in found))


def _row(at: TopicPartition, producer: OpenProducer, owner: str | None) -> tuple[object, ...]:
    written = producer.last_written_ms
    when = None if written is None else time_text(written)
    return (
        at.topic,
        at.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.first_offset,
        when,
        owner or "none: it hangs",
    )


def _json(found: list[tuple[TopicPartition, OpenProducer, str | None]]) -> dict[str, Any]:
    return {
        "rows": [
            {
                "topic": at.topic,
                "partition": at.partition,
                "transactional_id": owner,
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "first_offset": producer.first_offset,
                "last_written_ms": producer.last_written_ms,
                "hanging": owner is None,
            }
            for at, producer, owner in found
        ]
    }


@transactions.command()
@click.argument("name")
@click.option("--partition", type=click.IntRange(0), required=True)
@click.option("--start-offset", type=click.IntRange(0), help="The first offset of the transaction.")
@click.option("--producer-id", type=click.IntRange(0), help="The producer of the transaction.")
@yes_option
@target_options
def abort(
    target: Target, name: str, partition: int, start_offset: int | None, producer_id: int | None, yes: bool
) -> None:
    """Abort a hanging transaction in a partition: its producer is gone, and no coordinator will end it.

    It blocks read_committed consumers. Never abort a transaction that is still active.
    """
    if (start_offset is None) is (producer_id is None):
        raise Failure("no transaction selected", "give --start-offset or --producer-id")
    from ottla.client import TopicPartition

    at = TopicPartition(name, partition)
    chosen = on_cluster(target, lambda client: _chosen(client, at, start_offset, producer_id))
    what = f"the transaction of producer {chosen.producer_id} at offset {chosen.first_offset} of {at}"
    confirm([f"would abort {what}"], yes)

    async def work(client: Client) -> None:
        from ottla.client.hanging_transactions import abort_transaction

        await abort_transaction(client, at, chosen)

    on_cluster(target, work)
    click.echo(f"aborted {what}")


async def _chosen(
    client: Client, at: TopicPartition, start_offset: int | None, producer_id: int | None
) -> OpenProducer:
    from ottla.client.leaders import raise_first
    from ottla.client.open_transactions import open_producers

    await found_topics(client, [at.topic])
    found = raise_first(await open_producers(client, [at]))[at]
    for each in found:
        if each.first_offset == start_offset or each.producer_id == producer_id:
            return each
    advice = f"'ottla topics transactions list {at.topic}' lists open transactions"
    raise Failure(f"{at} has no such open transaction", advice, code=EXIT_REFUSED)
