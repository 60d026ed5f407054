"""`ottla groups delete` and `delete-offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Target, on_cluster, target_options
from ottla.cli.confirm import confirm, yes_option
from ottla.cli.failure import EXIT_IN_PART, EXIT_REFUSED, Failure, nearest
from ottla.cli.groups.find import check_inactive, chosen_partitions, has_members, kept_offsets, listed_group
from ottla.cli.refusal import one_line

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.errors import ResponseError
    from ottla.client.groups import ListedGroup


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@click.option("--if-exists", is_flag=True, help="Ignore groups that do not exist.")
@yes_option
@target_options
def delete(target: Target, names: tuple[str, ...], if_exists: bool, yes: bool) -> None:
    """Delete groups with their offsets. A group with members cannot be deleted."""
    confirm([f"would delete group {name} and its offsets" for name in dict.fromkeys(names)], yes)

    async def work(client: Client) -> dict[str, str]:
        from ottla.client.groups import try_delete

        outcomes = await try_delete(client, *dict.fromkeys(names))
        return {name: await _why(client, name, error) if error else "" for name, error in outcomes.items()}

    failures, done = [], 0
    for name, why in on_cluster(target, work).items():
        if not why:
            click.echo(f"{name} deleted")
            done += 1
        elif if_exists and why.startswith(_absent(name)):
            click.echo(f"{name} does not exist")
        else:
            failures.append(why)
    if failures:
        raise Failure("; ".join(failures), code=EXIT_IN_PART if done else EXIT_REFUSED)


def _absent(name: str) -> str:
    return f"group '{name}' does not exist"


async def _why(client: Client, name: str, error: ResponseError) -> str:
    """Why a group cannot be deleted, and what to do."""
    from ottla.client.groups import list_groups, view
    from ottla.wire.errors import ErrorCode

    if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
        advice = nearest(name, [each.group_id for each in await list_groups(client)])
        return f"{_absent(name)}; {advice}" if advice else _absent(name)
    if error.code == ErrorCode.NON_EMPTY_GROUP:
        return f"{has_members(await view(client, name))}, so it was not deleted; stop them first"
    return one_line(error)


@click.command("delete-offsets")
@click.argument("name", metavar="GROUP")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:P,...]",
    help="The partitions; repeatable.",
)
@yes_option
@target_options
def delete_offsets(target: Target, name: str, topics: tuple[str, ...], yes: bool) -> None:
    """Delete a group's committed offsets of some topics. No member may be subscribed to them.

    Share groups must have no members; their offsets are deleted by whole topics, and consumption of these starts over.
    """

    confirm([f"would delete the offsets of group {name} for {topic}" for topic in topics], yes)

    async def work(client: Client) -> dict[str, ResponseError | None]:
        group = await listed_group(client, name)
        if group.type == "share":
            return await _forget_topics(client, group, topics)
        return await _forget_partitions(client, group, topics)

    outcomes = on_cluster(target, work)
    for at, error in outcomes.items():
        if error is None:
            click.echo(f"{at} deleted")
    failures = [_why_kept(at, error) for at, error in outcomes.items() if error is not None]
    if failures:
        raise Failure("; ".join(failures), code=EXIT_IN_PART if len(failures) < len(outcomes) else EXIT_REFUSED)


async def _forget_partitions(
    client: Client, group: ListedGroup, topics: tuple[str, ...]
) -> dict[str, ResponseError | None]:
    from ottla.client.group_offsets import delete_offsets as delete_committed

    name = group.group_id
    kept = await kept_offsets(client, name, group.type)
    wanted = [at for at in await chosen_partitions(client, topics, kept) if at in kept]
    if not wanted:
        raise Failure(f"group '{name}' has no offsets of these topics", f"'ottla groups offsets {name}' shows all")
    return {str(at): error for at, error in sorted((await delete_committed(client, name, wanted)).items())}


async def _forget_topics(
    client: Client, group: ListedGroup, topics: tuple[str, ...]
) -> dict[str, ResponseError | None]:
    from ottla.client.share.offsets import delete_offsets as delete_starts

    of_partitions = next((text for text in topics if ":" in text), None)
    if of_partitions is not None:
        raise Failure(f"--topic {of_partitions} names partitions, but share groups delete the offsets of whole topics")
    await check_inactive(client, group, "offsets can be deleted only while it has none")
    return await delete_starts(client, group.group_id, dict.fromkeys(topics))


def _why_kept(at: str, error: ResponseError) -> str:
    from ottla.wire.errors import ErrorCode

    if error.code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        return f"{at} was not deleted: members of the group are subscribed to the topic"
    return one_line(error)
