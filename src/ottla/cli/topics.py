"""`ottla topics`: list, create, delete and describe topics, and give them more partitions, on any cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import (
    ClusterGroup,
    Column,
    Target,
    help_alone,
    json_option,
    key_and_value,
    on_cluster,
    print_json,
    print_table,
    target_options,
)
from ottla.cli.failure import Failure, nearest
from ottla.cli.refusal import one_line
from ottla.wire import uuid_text

if TYPE_CHECKING:
    from ottla.client import Client, ClientError, TopicPartition
    from ottla.client.configs import ConfigEntry
    from ottla.client.topics import PartitionDescription, TopicDescription

NO_ID = bytes(16)
LIST_COLUMNS = (
    Column("TOPIC"),
    Column("PARTITIONS", is_number=True),
    Column("REPLICAS", is_number=True),
    Column("ID"),
    Column("NOTE"),
)
PARTITION_COLUMNS = (
    Column("PARTITION", is_number=True),
    Column("LEADER", is_number=True),
    Column("EPOCH", is_number=True),
    Column("REPLICAS"),
    Column("ISR"),
    Column("ELR"),
    Column("OFFLINE"),
)
OFFSET_COLUMNS = (Column("START", is_number=True), Column("END", is_number=True))

Offsets = dict["TopicPartition", tuple[int | None, int | None]]


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def topics(context: click.Context) -> None:
    """Work with the topics of any cluster."""
    help_alone(context)


# --- list -------------------------------------------------------------------------------------------------------------


@topics.command("list")
@click.option("--exclude-internal", is_flag=True, help="Leave out the topics that Kafka keeps for itself.")
@json_option
@target_options
def list_topics(target: Target, exclude_internal: bool, as_json: bool) -> None:
    """List the topics."""

    async def work(client: Client) -> list[TopicDescription]:
        from ottla.client.topics import describe

        return await describe(client)

    found = [each for each in on_cluster(target, work) if not (exclude_internal and each.is_internal)]
    if as_json:
        print_json([_topic_json(each) for each in found])
    else:
        print_table(LIST_COLUMNS, map(_list_row, found))


def _list_row(topic: TopicDescription) -> tuple[object, ...]:
    trouble = sum(len(each.isr) < len(each.replicas) for each in topic.partitions)
    notes = ["internal"] * topic.is_internal + [f"{trouble} under-replicated"] * bool(trouble)
    return topic.name, len(topic.partitions), topic.replication_factor, _id_text(topic), ", ".join(notes)


# --- create and delete ------------------------------------------------------------------------------------------------


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--partitions", type=click.IntRange(1), help="How many; else the cluster's num.partitions.")
@click.option(
    "--replication-factor", type=click.IntRange(1, 32767), help="How many copies; else the cluster's default."
)
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topic; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is no error.")
@click.option("--validate-only", is_flag=True, help="Only see whether it would work.")
@target_options
def create(
    target: Target,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
) -> None:
    """Create topics."""
    from ottla.client.topics import CLUSTER_DEFAULT, NewTopic, try_create
    from ottla.wire.errors import ErrorCode

    settings = dict(key_and_value(each, "--config") for each in configs)
    wanted = [
        NewTopic(name, partitions or CLUSTER_DEFAULT, replication_factor or CLUSTER_DEFAULT, settings)
        for name in dict.fromkeys(names)
    ]
    outcomes = on_cluster(target, lambda client: try_create(client, *wanted, validate_only=validate_only))
    fine = ErrorCode.TOPIC_ALREADY_EXISTS if if_not_exists else None
    _report(outcomes, "could be created" if validate_only else "created", fine, "was there already")


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--if-exists", is_flag=True, help="A topic that is not there is no error.")
@target_options
def delete(target: Target, names: tuple[str, ...], if_exists: bool) -> None:
    """Delete topics with all their records."""
    from ottla.client.topics import try_delete
    from ottla.wire.errors import ErrorCode

    outcomes = on_cluster(target, lambda client: try_delete(client, *dict.fromkeys(names)))
    fine = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if if_exists else None
    _report(outcomes, "deleted", fine, "was not there")


def _report(outcomes: Mapping[str, object], done: str, fine: int | None, why_fine: str) -> None:
    """One line for each topic; then, if some failed, one Failure that says why."""
    from ottla.client import ResponseError

    failures: list[ClientError] = []
    for name, outcome in sorted(outcomes.items()):
        if not isinstance(outcome, ResponseError):
            click.echo(f"{name} {done}")
        elif outcome.code == fine:
            click.echo(f"{name} {why_fine}")
        else:
            failures.append(outcome)
    if failures:
        raise Failure("; ".join(map(one_line, failures)))


# --- describe ---------------------------------------------------------------------------------------------------------


@topics.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--offsets", "with_offsets", is_flag=True, help="Show where each partition begins and ends.")
@json_option
@target_options
def describe(target: Target, names: tuple[str, ...], with_offsets: bool, as_json: bool) -> None:
    """Show topics with their partitions and the settings that were made for them; all topics if none is named."""

    async def work(client: Client) -> tuple[list[TopicDescription], dict[str, dict[str, ConfigEntry]], Offsets | None]:
        found = await _found(client, names)
        settings = await _own_settings(client, [each.name for each in found])
        return found, settings, await _offsets(client, found) if with_offsets else None

    found, settings, offsets = on_cluster(target, work)
    if as_json:
        print_json([_described_json(each, settings.get(each.name, {}), offsets) for each in found])
        return
    for number, each in enumerate(found):
        if number:
            click.echo()
        _print_topic(each, settings.get(each.name, {}), offsets)


async def _found(client: Client, names: Iterable[str]) -> list[TopicDescription]:
    """The topics; a Failure with the nearest name for the first one that is not there."""
    from ottla.client.topics import is_unknown, try_describe

    found: list[TopicDescription] = []
    for name, outcome in (await try_describe(client, *names)).items():
        if isinstance(outcome, Exception):
            if not is_unknown(outcome):
                raise outcome
            advice = nearest(name, await client.all_topics()) or "'ottla topics list' lists them all"
            raise Failure(f"there is no topic '{name}'", advice)
        found.append(outcome)
    return found


async def _own_settings(client: Client, names: Iterable[str]) -> dict[str, dict[str, ConfigEntry]]:
    """The settings that were made for each topic itself; none for a topic that may be seen but not looked into."""
    from ottla.client import ResponseError
    from ottla.client.configs import ConfigSource, Resource, ResourceType, try_describe

    outcomes = await try_describe(client, *(Resource(ResourceType.TOPIC, name) for name in names))
    return {
        resource.name: {
            key: entry
            for key, entry in ({} if isinstance(outcome, ResponseError) else outcome).items()
            if entry.source is ConfigSource.TOPIC
        }
        for resource, outcome in outcomes.items()
    }


async def _offsets(client: Client, found: Iterable[TopicDescription]) -> Offsets:
    """Start and end of every partition that has a leader."""
    from ottla.client import EARLIEST, LATEST, TopicPartition, list_offsets

    every = [(topic.name, each) for topic in found for each in topic.partitions]
    led = [TopicPartition(name, each.partition) for name, each in every if each.leader >= 0]
    starts = await list_offsets(client, dict.fromkeys(led, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(led, LATEST))
    return {at: (starts[at].offset, ends[at].offset) for at in led}


def _print_topic(topic: TopicDescription, settings: Mapping[str, ConfigEntry], offsets: Offsets | None) -> None:
    facts = [f"id {_id_text(topic)}" if _id_text(topic) else "", "internal" if topic.is_internal else ""]
    click.echo("  ".join([click.style(topic.name, bold=True), *filter(None, facts)]))
    for name, entry in sorted(settings.items()):
        click.echo(f"  {name}={'(hidden)' if entry.is_sensitive else entry.value}")
    columns = PARTITION_COLUMNS if offsets is None else PARTITION_COLUMNS + OFFSET_COLUMNS
    print_table(columns, (_partition_row(topic.name, each, offsets) for each in topic.partitions))


def _partition_row(name: str, each: PartitionDescription, offsets: Offsets | None) -> tuple[object, ...]:
    leader = None if each.leader < 0 else each.leader
    row = (each.partition, leader, each.leader_epoch, each.replicas, each.isr, each.elr, each.offline_replicas)
    return row if offsets is None else (*row, *_offsets_of(name, each, offsets))


def _offsets_of(name: str, each: PartitionDescription, offsets: Offsets) -> tuple[int | None, int | None]:
    from ottla.client import TopicPartition

    return offsets.get(TopicPartition(name, each.partition), (None, None))


def _described_json(
    topic: TopicDescription, settings: Mapping[str, ConfigEntry], offsets: Offsets | None
) -> dict[str, Any]:
    partitions = [_partition_json(each) for each in topic.partitions]
    if offsets is not None:
        for shown, each in zip(partitions, topic.partitions, strict=True):
            shown["startOffset"], shown["endOffset"] = _offsets_of(topic.name, each, offsets)
    configs = {name: entry.value for name, entry in sorted(settings.items())}
    return {**_topic_json(topic), "configs": configs, "partitions": partitions}


def _topic_json(topic: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "topicId": _id_text(topic) or None,
        "isInternal": topic.is_internal,
        "partitionCount": len(topic.partitions),
        "replicationFactor": topic.replication_factor,
    }


def _partition_json(each: PartitionDescription) -> dict[str, Any]:
    return {
        "partition": each.partition,
        "leader": each.leader,
        "leaderEpoch": each.leader_epoch,
        "replicas": list(each.replicas),
        "isr": list(each.isr),
        "elr": list(each.elr),
        "lastKnownElr": list(each.last_known_elr),
        "offlineReplicas": list(each.offline_replicas),
    }


def _id_text(topic: TopicDescription) -> str:
    return "" if topic.topic_id == NO_ID else uuid_text(topic.topic_id)


# --- partitions -------------------------------------------------------------------------------------------------------


@topics.command()
@click.argument("name")
@click.argument("count", type=click.IntRange(1))
@click.option("--validate-only", is_flag=True, help="Only see whether it would work.")
@target_options
def partitions(target: Target, name: str, count: int, validate_only: bool) -> None:
    """Raise the number of a topic's partitions to COUNT. It cannot be lowered, and keys then go to other partitions."""
    from ottla.client.topics import add_partitions

    on_cluster(target, lambda client: add_partitions(client, name, count, validate_only=validate_only))
    click.echo(f"{name} {'could have' if validate_only else 'has'} {count} partitions")
