"""`ottla topics list`: lists topics, one per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.cluster import Column, Target, json_option, print_table, target_options
from ottla.cli.topics.find import Ends, ends_of, found_topics, has_leader, id_text, is_under_replicated, is_unhealthy
from ottla.cli.watch import Watch, find_and_show, watch_options
from ottla.health.phrases import number, size

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.readers import Reader
    from ottla.client.topics import TopicDescription

COLUMNS = (
    Column("NAME"),
    Column("PARTITIONS", is_number=True),
    Column("COPIES", is_number=True),
    Column("RECORDS", is_number=True),
    Column("SIZE", is_number=True),
    Column("READERS"),
    Column("NOTE"),
)


class Listing(NamedTuple):
    """Topics with their details, which are missing if brokers do not give them."""

    topics: list[TopicDescription]
    ends: Ends
    sizes: dict[TopicPartition, int]
    readers: dict[str, list[Reader]]


@click.command("list")
@click.option("--unhealthy", is_flag=True, help="Only topics with partitions that lack a leader or replicas.")
@click.option("--internal", is_flag=True, help="Include internal topics.")
@click.option("--largest", is_flag=True, help="Sort by size on disk, the largest first.")
@json_option
@watch_options
@target_options
def list_topics(target: Target, unhealthy: bool, internal: bool, largest: bool, as_json: bool, watch: Watch) -> None:
    """List the topics, with their records, their size on disk and the groups that read them."""

    async def find(client: Client) -> Listing:
        found = [
            each
            for each in await found_topics(client, ())
            if (internal or not each.is_internal) and (not unhealthy or any(map(is_unhealthy, each.partitions)))
        ]
        listing = await _listing(client, found)
        if largest:
            listing.topics.sort(key=lambda each: -(_facts(listing, each)["size_bytes"] or 0))
        return listing

    def show(listing: Listing) -> None:
        print_table(COLUMNS, (_row(listing, each) for each in listing.topics))

    find_and_show(target, watch, find, _json if as_json else None, show)


async def _listing(client: Client, topics: list[TopicDescription]) -> Listing:
    from ottla.client import ClientError
    from ottla.client.readers import readers
    from ottla.client.sizes import leader_sizes

    try:
        reading = await readers(client)
    except ClientError:
        reading = {}
    return Listing(topics, await ends_of(client, topics), await leader_sizes(client, topics), reading)


def _facts(listing: Listing, topic: TopicDescription) -> dict[str, Any]:
    places = [at for at in listing.ends if at.topic == topic.name]
    ends = [listing.ends[at] for at in places]
    records = [end - start for start, end in ends if start is not None and end is not None]
    sizes = [listing.sizes[at] for at in places if at in listing.sizes]
    return {
        "name": topic.name,
        "id": id_text(topic),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "copies": topic.replication_factor,
        "offline": sum(not has_leader(each) for each in topic.partitions),
        "under_replicated": sum(is_under_replicated(each) for each in topic.partitions),
        "records": sum(records) if records else None,
        "size_bytes": sum(sizes) if sizes else None,
        "readers": [{"group_id": each.group_id, "kind": each.kind} for each in listing.readers.get(topic.name, ())],
    }


def _json(listing: Listing) -> dict[str, Any]:
    return {"rows": [_facts(listing, each) for each in listing.topics]}


def _row(listing: Listing, topic: TopicDescription) -> tuple[object, ...]:
    facts = _facts(listing, topic)
    notes = ["internal"] * topic.is_internal
    notes += [f"{facts[key]} {key.replace('_', '-')}" for key in ("offline", "under_replicated") if facts[key]]
    return (
        topic.name,
        facts["partitions"],
        facts["copies"],
        None if facts["records"] is None else number(facts["records"]),
        None if facts["size_bytes"] is None else size(facts["size_bytes"]),
        ", ".join(f"{each['group_id']} ({each['kind']})" for each in facts["readers"]),
        ", ".join(notes),
    )
