"""`ottla quorum features`: shows and upgrades the finalized features of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import (
    ClusterGroup,
    Column,
    Target,
    json_option,
    key_and_value,
    on_cluster,
    print_json,
    print_table,
    target_options,
)
from ottla.cli.confirm import confirm, dry_run_option, yes_option
from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.features import Feature

COLUMNS = (Column("FEATURE"), Column("LEVEL", is_number=True), Column("SUPPORTED"), Column("NOTE"))


@click.group(cls=ClusterGroup, invoke_without_command=True)
@json_option
@target_options
@click.pass_context
def features(context: click.Context, target: Target, as_json: bool) -> None:
    """Show the level of each feature, and the levels that all nodes support."""
    if context.invoked_subcommand is not None:
        return
    found = on_cluster(target, _find)
    if as_json:
        print_json({"rows": [each._asdict() for each in found]})
    else:
        print_table(COLUMNS, (_row(each) for each in found))


def _row(each: Feature) -> tuple[object, ...]:
    note = f"can be upgraded to {each.supported_high}" if each.can_rise else None
    return each.name, each.finalized, f"{each.supported_low}-{each.supported_high}", note


async def _find(client: Client) -> list[Feature]:
    from ottla.client.features import describe_features

    return await describe_features(client)


@features.command()
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL...")
@dry_run_option
@yes_option
@target_options
def upgrade(target: Target, levels: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Upgrade features, all of them or none. Most upgrades cannot be undone."""
    wanted = dict(_level(each) for each in levels)
    if not dry_run:
        confirm((f"would upgrade {name} to {level}" for name, level in wanted.items()), yes)

    async def work(client: Client) -> None:
        from ottla.client.features import update_features

        await update_features(client, wanted, validate_only=dry_run)

    on_cluster(target, work)
    for name, level in wanted.items():
        click.echo(f"{name} {'can be upgraded' if dry_run else 'is'} {'to' if dry_run else 'at'} {level}")


def _level(text: str) -> tuple[str, int]:
    name, level = key_and_value(text, "upgrade")
    if not (level.isascii() and level.isdigit()):
        raise Failure(
            f"the level {level!r} of {name} is not a number", "'ottla quorum features' shows supported levels"
        )
    return name, int(level)
