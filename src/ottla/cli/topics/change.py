"""`ottla topics create`, `delete`, `alter` and `grow`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Target, key_and_value, on_cluster, target_options
from ottla.cli.configs.change import change_of, change_settings
from ottla.cli.confirm import confirm, dry_run_option, yes_option
from ottla.cli.failure import EXIT_IN_PART, Failure
from ottla.cli.refusal import code_of, one_line
from ottla.cli.topics.find import Ends, ends_of, found_topics
from ottla.health.phrases import number, plural

if TYPE_CHECKING:
    from ottla.client import Client, ResponseError
    from ottla.client.topics import TopicDescription


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--partitions", type=click.IntRange(1), help="Number of partitions; by default the cluster's num.partitions."
)
@click.option(
    "--copies",
    "--replication-factor",
    "copies",
    type=click.IntRange(1, 32767),
    help="Number of replicas; by default the cluster's default.",
)
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topic; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Ignore topics that already exist.")
@dry_run_option
@target_options
def create(
    target: Target,
    names: tuple[str, ...],
    partitions: int | None,
    copies: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics."""
    from ottla.client.topics import CLUSTER_DEFAULT, NewTopic, try_create
    from ottla.wire.errors import ErrorCode

    settings = dict(key_and_value(each, "--config") for each in configs)
    wanted = [
        NewTopic(name, partitions or CLUSTER_DEFAULT, copies or CLUSTER_DEFAULT, settings)
        for name in dict.fromkeys(names)
    ]
    outcomes = on_cluster(target, lambda client: try_create(client, *wanted, validate_only=dry_run))
    fine = ErrorCode.TOPIC_ALREADY_EXISTS if if_not_exists else None
    _report(outcomes, "could be created" if dry_run else "created", fine, "already exists")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@yes_option
@target_options
def delete(target: Target, names: tuple[str, ...], if_exists: bool, yes: bool) -> None:
    """Delete topics with all their records."""
    from ottla.client.topics import try_delete
    from ottla.wire.errors import ErrorCode

    wanted = tuple(dict.fromkeys(names))
    losses = [] if yes else on_cluster(target, lambda client: _losses(client, wanted, if_exists=if_exists))
    if losses:
        confirm(losses, yes)
    outcomes = on_cluster(target, lambda client: try_delete(client, *wanted))
    fine = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if if_exists else None
    _report(outcomes, "deleted", fine, "does not exist")


async def _losses(client: Client, names: tuple[str, ...], *, if_exists: bool) -> list[str]:
    """What would be deleted with each topic."""
    known = await client.all_topics() if if_exists else names
    there = [name for name in names if name in known]
    found = await found_topics(client, there) if there else []  # without names it would be all topics
    ends = await ends_of(client, found)
    return [_loss(topic, ends) for topic in found]


def _loss(topic: TopicDescription, ends: Ends) -> str:
    spans = [ends.get(at, (None, None)) for at in ends if at.topic == topic.name]
    records = sum(end - start for start, end in spans if start is not None and end is not None)
    return f"would delete {topic.name}: {plural(len(topic.partitions), 'partition')}, {number(records)} records"


def _report(outcomes: Mapping[str, object], done: str, fine: int | None, why_fine: str) -> None:
    """One line for each topic; then, if some failed, one Failure that says why."""
    from ottla.client import ResponseError

    failures: list[ResponseError] = []
    for name, outcome in sorted(outcomes.items()):
        if not isinstance(outcome, ResponseError):
            click.echo(f"{name} {done}")
        elif outcome.code == fine:
            click.echo(f"{name} {why_fine}")
        else:
            failures.append(outcome)
    if failures:
        code = code_of(failures[0]) if len(failures) == len(outcomes) else EXIT_IN_PART
        raise Failure("; ".join(map(one_line, failures)), code=code)


@click.command()
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--unset", "unsets", multiple=True, metavar="KEY", help="Reset a setting to its default; repeatable.")
@dry_run_option
@target_options
def alter(target: Target, name: str, settings: tuple[str, ...], unsets: tuple[str, ...], dry_run: bool) -> None:
    """Change settings of a topic, all of them or none. Other settings stay unchanged.

    KEY+=VALUE adds an entry to a list, and KEY-=VALUE removes one.
    """
    from ottla.client.configs import Change, Operation, Resource, ResourceType

    changes = [*map(change_of, settings), *(Change(Operation.DELETE, key) for key in unsets)]
    if not changes:
        raise Failure("nothing to change", "give KEY=VALUE or --unset KEY")

    async def work(client: Client) -> None:
        await found_topics(client, [name])
        await change_settings(client, Resource(ResourceType.TOPIC, name), changes, dry_run=dry_run)

    on_cluster(target, work)
    done = "could be changed" if dry_run else "changed"
    click.echo(f"{name} {done}: {', '.join(change.name for change in changes)}")


@click.command()
@click.argument("name")
@click.argument("count", type=click.IntRange(1))
@dry_run_option
@target_options
def grow(target: Target, name: str, count: int, dry_run: bool) -> None:
    """Increase the partitions of a topic to COUNT. This cannot be undone, and keys move to other partitions."""
    from ottla.client.topics import add_partitions

    on_cluster(target, lambda client: add_partitions(client, name, count, validate_only=dry_run))
    click.echo(f"{name} {'could have' if dry_run else 'has'} {count} partitions")
