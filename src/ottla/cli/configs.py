"""`ottla configs`: show and change the settings of topics, brokers and groups, on any cluster."""

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

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.configs import Change, ConfigEntry, Resource

TYPES = ("topic", "broker", "group", "client-metrics", "broker-logger")
COLUMNS = (Column("NAME"), Column("VALUE"), Column("SOURCE"), Column("TYPE"), Column("NOTE"))

type_argument = click.argument("kind", metavar="TYPE", type=click.Choice(TYPES))
name_argument = click.argument("name", required=False)


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def configs(context: click.Context) -> None:
    """Show and change settings on any cluster.

    TYPE is topic, broker, group, client-metrics or broker-logger. A broker's NAME is its node id; without a name,
    broker means the defaults that hold for all brokers.
    """
    help_alone(context)


@configs.command()
@type_argument
@name_argument
@click.option("--all", "show_all", is_flag=True, help="Also what has its default value.")
@click.option("--key", "keys", multiple=True, help="Only this setting, whatever its value; repeatable.")
@click.option("--synonyms", is_flag=True, help="Also the values that would hold if a stronger one were removed.")
@click.option("--doc", "documentation", is_flag=True, help="Also what the broker says about each setting.")
@json_option
@target_options
def describe(
    target: Target,
    kind: str,
    name: str | None,
    show_all: bool,
    keys: tuple[str, ...],
    synonyms: bool,
    documentation: bool,
    as_json: bool,
) -> None:
    """Show the settings of a topic, a broker or a group: those that differ from their defaults."""
    resource = _resource(kind, name)

    async def work(client: Client) -> dict[str, ConfigEntry]:
        from ottla.client.configs import describe as describe_configs

        return await describe_configs(client, resource, synonyms=synonyms, documentation=documentation)

    entries = on_cluster(target, work)
    chosen = _chosen(entries, keys, show_all)
    if as_json:
        print_json([_entry_json(entry, synonyms, documentation) for entry in chosen])
        return
    if not chosen:
        click.echo(f"{resource} has no setting that differs from its default; --all shows {len(entries)}")
        return
    print_table(COLUMNS, _rows(chosen, synonyms))
    for entry in chosen if documentation else ():
        click.echo(f"\n{entry.name}\n  {entry.documentation or 'the broker says nothing about it'}")


def _chosen(entries: Mapping[str, ConfigEntry], keys: Iterable[str], show_all: bool) -> list[ConfigEntry]:
    wanted = list(keys)
    for key in wanted:
        if key not in entries:
            raise Failure(f"there is no setting '{key}'", nearest(key, entries) or "--all shows what there is")
    if wanted:
        return [entries[key] for key in wanted]
    return [entry for _, entry in sorted(entries.items()) if show_all or not entry.is_default]


def _rows(entries: Iterable[ConfigEntry], synonyms: bool) -> Iterable[tuple[object, ...]]:
    for entry in entries:
        notes = ["read-only"] * entry.is_read_only + ["sensitive"] * entry.is_sensitive
        yield entry.name, _value(entry), _lower(entry.source.name), _lower(entry.type.name), ", ".join(notes)
        for synonym in entry.synonyms if synonyms else ():
            yield f"  {synonym.name}", synonym.value, _lower(synonym.source.name), "", ""


def _value(entry: ConfigEntry) -> str | None:
    return "(hidden)" if entry.is_sensitive else entry.value


def _lower(name: str) -> str:
    return name.lower().replace("_", " ")


def _entry_json(entry: ConfigEntry, synonyms: bool, documentation: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "type": entry.type.name,
        "isReadOnly": entry.is_read_only,
        "isSensitive": entry.is_sensitive,
    }
    if synonyms:
        shown["synonyms"] = [
            {"name": each.name, "value": each.value, "source": each.source.name} for each in entry.synonyms
        ]
    if documentation:
        shown["documentation"] = entry.documentation
    return shown


@configs.command()
@type_argument
@name_argument
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Give a setting a value; repeatable.")
@click.option("--delete", "deletes", multiple=True, metavar="KEY", help="Give a setting its default back; repeatable.")
@click.option("--append", "appends", multiple=True, metavar="KEY=VALUE", help="Add to a list; repeatable.")
@click.option("--subtract", "subtracts", multiple=True, metavar="KEY=VALUE", help="Take from a list; repeatable.")
@click.option("--validate-only", is_flag=True, help="Only see whether it would work.")
@target_options
def alter(
    target: Target,
    kind: str,
    name: str | None,
    sets: tuple[str, ...],
    deletes: tuple[str, ...],
    appends: tuple[str, ...],
    subtracts: tuple[str, ...],
    validate_only: bool,
) -> None:
    """Change settings of a topic, a broker or a group: all of the changes, or none. Other settings stay."""
    resource = _resource(kind, name)
    changes = _changes(sets, deletes, appends, subtracts)
    if not changes:
        raise Failure("there is nothing to change", "give --set, --delete, --append or --subtract")

    async def work(client: Client) -> None:
        from ottla.client.configs import alter as alter_configs

        await alter_configs(client, resource, changes, validate_only=validate_only)

    on_cluster(target, work)
    done = "could be changed" if validate_only else "changed"
    click.echo(f"{resource} {done}: {', '.join(change.name for change in changes)}")


def _changes(
    sets: Iterable[str], deletes: Iterable[str], appends: Iterable[str], subtracts: Iterable[str]
) -> list[Change]:
    from ottla.client.configs import Change, Operation

    changes = [Change(Operation.SET, *key_and_value(each, "--set")) for each in sets]
    changes += [Change(Operation.DELETE, each) for each in deletes]
    changes += [Change(Operation.APPEND, *key_and_value(each, "--append")) for each in appends]
    changes += [Change(Operation.SUBTRACT, *key_and_value(each, "--subtract")) for each in subtracts]
    names = [change.name for change in changes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Failure(f"{twice} is to be changed twice", "one change for each setting at a time")
    return changes


def _resource(kind: str, name: str | None) -> Resource:
    from ottla.client.configs import Resource, ResourceType

    resource_type = ResourceType[kind.upper().replace("-", "_")]
    if not name and resource_type is not ResourceType.BROKER:
        raise Failure(f"no {kind.replace('-', ' ')} is named", f"write its name after '{kind}'")
    return Resource(resource_type, name or "")
