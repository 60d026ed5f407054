"""`ottla topics describe`: shows partitions, settings and groups of topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.cluster import Column, Target, json_option, numbers, print_heading, print_table, target_options
from ottla.cli.configs.show import entry_json, value_text
from ottla.cli.printable import printable
from ottla.cli.topics.find import Ends, ends_of, found_topics, has_leader, id_text, is_unhealthy
from ottla.cli.watch import Watch, find_and_show, rows_of, watch_options
from ottla.health.phrases import number, size

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.configs import ConfigEntry
    from ottla.client.readers import Reader
    from ottla.client.topics import PartitionDescription, TopicDescription

COLUMNS = (
    *numbers("PARTITION", "LEADER", "EPOCH"),
    Column("REPLICAS"),
    Column("ISR"),
    Column("ELR"),
    Column("OFFLINE"),
    *numbers("START", "END", "SIZE"),
)
READER_COLUMNS = (Column("READER"), Column("KIND"), *numbers("LAG"))


class Described(NamedTuple):
    """A topic and its details; `partitions` are those to show."""

    topic: TopicDescription
    partitions: list[PartitionDescription]
    settings: list[ConfigEntry]
    ends: Ends
    sizes: dict[TopicPartition, int]
    readers: list[Reader]

    def at(self, partition: int) -> TopicPartition:
        from ottla.client import TopicPartition

        return TopicPartition(self.topic.name, partition)

    @property
    def known_ends(self) -> dict[TopicPartition, int]:
        return {at: end for at, (_, end) in self.ends.items() if end is not None}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--unhealthy", is_flag=True, help="Only partitions that lack a leader or replicas.")
@json_option
@watch_options
@target_options
def describe(target: Target, names: tuple[str, ...], unhealthy: bool, as_json: bool, watch: Watch) -> None:
    """Show topics with their partitions, their own settings, and the groups that read them.

    Shows all topics if none is named.
    """

    async def find(client: Client) -> list[Described]:
        found = await _described(client, names)
        if not unhealthy:
            return found
        chosen = [each._replace(partitions=list(filter(is_unhealthy, each.partitions))) for each in found]
        return [each for each in chosen if each.partitions or names]

    find_and_show(target, watch, find, rows_of(_json) if as_json else None, _print_all)


async def _described(client: Client, names: Iterable[str]) -> list[Described]:
    from ottla.client import ClientError
    from ottla.client.readers import readers
    from ottla.client.sizes import leader_sizes

    topics = await found_topics(client, names)
    try:
        reading = await readers(client)
    except ClientError:
        reading = {}
    ends, sizes = await ends_of(client, topics), await leader_sizes(client, topics)
    settings = await _own_settings(client, [each.name for each in topics])
    return [
        Described(
            each,
            list(each.partitions),
            settings.get(each.name, []),
            {at: end for at, end in ends.items() if at.topic == each.name},
            sizes,
            reading.get(each.name, []),
        )
        for each in topics
    ]


async def _own_settings(client: Client, names: Iterable[str]) -> dict[str, list[ConfigEntry]]:
    """The own settings of each topic; none for a topic whose settings the client may not read."""
    from ottla.client import ResponseError
    from ottla.client.configs import ConfigSource, Resource, ResourceType, try_describe

    outcomes = await try_describe(client, *(Resource(ResourceType.TOPIC, name) for name in names), synonyms=True)
    return {
        resource.name: [
            entry
            for _, entry in sorted(({} if isinstance(outcome, ResponseError) else outcome).items())
            if entry.source is ConfigSource.TOPIC
        ]
        for resource, outcome in outcomes.items()
    }


# --- for people -------------------------------------------------------------------------------------------------------


def _print_all(found: list[Described]) -> None:
    for place, each in enumerate(found):
        if place:
            click.echo()
        _print(each)


def _print(described: Described) -> None:
    topic = described.topic
    facts = [f"id {id_text(topic)}" if id_text(topic) else "", "internal" if topic.is_internal else ""]
    print_heading(topic.name, facts)
    for entry in described.settings:
        click.echo(printable(f"  {entry.name}={value_text(entry)}"))
    print_table(COLUMNS, (_partition_row(described, each) for each in described.partitions))
    if described.readers:
        ends = described.known_ends
        print_table(READER_COLUMNS, ((each.group_id, each.kind, _lag(each, ends)) for each in described.readers))


def _lag(reader: Reader, ends: dict[TopicPartition, int]) -> str | None:
    lag = reader.lag(ends)
    return None if lag is None else number(lag)


def _partition_row(described: Described, each: PartitionDescription) -> tuple[object, ...]:
    at = described.at(each.partition)
    bytes_ = described.sizes.get(at)
    return (
        each.partition,
        each.leader if has_leader(each) else None,
        each.leader_epoch,
        each.replicas,
        each.isr,
        each.elr,
        each.offline_replicas,
        *described.ends.get(at, (None, None)),
        None if bytes_ is None else size(bytes_),
    )


# --- for programs -----------------------------------------------------------------------------------------------------


def _json(described: Described) -> dict[str, Any]:
    topic = described.topic
    ends = described.known_ends
    return {
        "name": topic.name,
        "id": id_text(topic),
        "internal": topic.is_internal,
        "partitions": [_partition_json(described, each) for each in described.partitions],
        "configs": [entry_json(entry) for entry in described.settings],
        "readers": [
            {"group_id": each.group_id, "kind": each.kind, "lag": each.lag(ends)} for each in described.readers
        ],
    }


def _partition_json(described: Described, each: PartitionDescription) -> dict[str, Any]:
    at = described.at(each.partition)
    start, end = described.ends.get(at, (None, None))
    return {
        "partition": each.partition,
        "leader": each.leader if has_leader(each) else None,
        "leader_epoch": each.leader_epoch,
        "replicas": list(each.replicas),
        "isr": list(each.isr),
        "elr": list(each.elr),
        "last_known_elr": list(each.last_known_elr),
        "offline": list(each.offline_replicas),
        "start_offset": start,
        "end_offset": end,
        "size_bytes": described.sizes.get(at),
    }
