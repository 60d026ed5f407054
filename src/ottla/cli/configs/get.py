"""`ottla configs list` and `get`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import Column, Target, json_option, print_table, target_options
from ottla.cli.configs.show import COLUMNS, Bounds, entry_json, line, row, synonym_rows
from ottla.cli.configs.subject import QUOTA_KINDS, Subject, client_option, type_argument
from ottla.cli.failure import EXIT_REFUSED, Failure, nearest
from ottla.cli.printable import printable
from ottla.cli.verbosity import note
from ottla.cli.watch import Watch, find_and_show, watch_options

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.configs import ConfigEntry, Resource
    from ottla.client.quotas import Quota

NAME_COLUMNS = (Column("NAME"), Column("SETTINGS"))
QUOTA_COLUMNS = (Column("WHO"), Column("NAME"), Column("VALUE", is_number=True))


@click.command("list")
@type_argument
@click.argument("name", required=False)
@client_option
@click.option("--all", "show_all", is_flag=True, help="Include settings with default values.")
@click.option("--synonyms", is_flag=True, help="Include the values that would apply if this one were removed.")
@click.option("--doc", is_flag=True, help="Include the broker's documentation of each setting.")
@json_option
@watch_options
@target_options
def list_configs(
    target: Target,
    kind: str,
    name: str | None,
    client: str | None,
    show_all: bool,
    synonyms: bool,
    doc: bool,
    as_json: bool,
    watch: Watch,
) -> None:
    """List the settings of TYPE NAME that differ from defaults; without NAME, those of all resources of that type."""
    subject = Subject(kind, name, client)
    if subject.is_quota:
        find_and_show(target, watch, lambda to: _quotas(to, subject), _quotas_json if as_json else None, _print_quotas)
    elif name is None:
        find_and_show(target, watch, lambda to: _owners(to, kind), _owners_json if as_json else None, _print_owners)
    else:
        resource = subject.resource

        async def find(to: Client) -> list[ConfigEntry]:
            from ottla.client.configs import describe

            entries = await describe(to, resource, synonyms=True, documentation=doc)
            return [entry for _, entry in sorted(entries.items()) if show_all or not entry.is_default]

        def show(entries: list[ConfigEntry]) -> None:
            _print_entries(resource, entries, synonyms=synonyms, doc=doc)

        find_and_show(target, watch, find, _entries_json if as_json else None, show)


def _print_entries(resource: Resource, entries: list[ConfigEntry], *, synonyms: bool, doc: bool) -> None:
    if not entries:
        note(f"{resource} has only default settings; --all shows them")
        return
    with_synonyms = ((entry, synonym_rows(entry) if synonyms else ()) for entry in entries)
    print_table(COLUMNS, (each for entry, weaker in with_synonyms for each in (row(entry), *weaker)))
    for entry in entries if doc else ():
        lines = (entry.documentation or "no documentation").splitlines()
        click.echo("\n".join(["", printable(entry.name), *(f"  {printable(each)}" for each in lines)]))


def _entries_json(entries: Iterable[ConfigEntry]) -> dict[str, Any]:
    return {"rows": [entry_json(entry) for entry in entries]}


# --- who has settings -------------------------------------------------------------------------------------------------


async def _owners(client: Client, kind: str) -> dict[str, list[str]]:
    """All resources of a type with the names of their own settings; topics and brokers also without settings."""
    from ottla.client.configs import Resource, ResourceType, list_resources, try_describe

    resource_type = ResourceType[kind.upper().replace("-", "_")]
    resources = await list_resources(client, resource_type)
    if resource_type is ResourceType.BROKER:
        resources.append(Resource(resource_type, ""))
    if resource_type is ResourceType.BROKER_LOGGER:
        return {each.name: [] for each in resources}
    outcomes = await try_describe(client, *resources) if resources else {}
    return {
        resource.name or "default": sorted(_own(outcome) if isinstance(outcome, dict) else ())
        for resource, outcome in sorted(outcomes.items())
    }


def _own(entries: Mapping[str, ConfigEntry]) -> list[str]:
    """The dynamic settings of this resource itself."""
    own = ("TOPIC", "DYNAMIC_BROKER", "GROUP", "CLIENT_METRICS")
    is_default_broker = all(entry.source.name == "DYNAMIC_DEFAULT_BROKER" for entry in entries.values())
    return [name for name, entry in entries.items() if is_default_broker or entry.source.name in own]


def _owners_json(owners: Mapping[str, list[str]]) -> dict[str, Any]:
    return {"rows": [{"name": name, "settings": settings} for name, settings in owners.items()]}


def _print_owners(owners: Mapping[str, list[str]]) -> None:
    print_table(NAME_COLUMNS, ((name, ", ".join(settings) or None) for name, settings in owners.items()))


# --- quotas -----------------------------------------------------------------------------------------------------------


async def _quotas(client: Client, subject: Subject) -> list[Quota]:
    from ottla.client.quotas import describe_quotas

    if subject.name is not None:
        return await describe_quotas(client, entity=subject.entity)
    kinds = [[QUOTA_KINDS[subject.kind]]] + ([["user", "client-id"]] if subject.kind == "user" else [])
    return [quota for each in kinds for quota in await describe_quotas(client, *each)]


def _quotas_json(quotas: Iterable[Quota]) -> dict[str, Any]:
    rows = [
        {"entity": quota.entity, "key": key, "value": value} for quota in quotas for key, value in quota.values.items()
    ]
    return {"rows": rows}


def _print_quotas(quotas: Iterable[Quota]) -> None:
    print_table(
        QUOTA_COLUMNS,
        ((quota.who, key, f"{value:,g}") for quota in quotas for key, value in sorted(quota.values.items())),
    )


# --- single settings --------------------------------------------------------------------------------------------------


@click.command()
@type_argument
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@client_option
@json_option
@watch_options
@target_options
def get(
    target: Target, kind: str, name: str, keys: tuple[str, ...], client: str | None, as_json: bool, watch: Watch
) -> None:
    """Show settings: the value, where it comes from, and which values are allowed."""
    subject = Subject(kind, name, client)
    if subject.is_quota:
        find_quotas = _quota_finder(subject, keys)
        find_and_show(target, watch, find_quotas, _quotas_json if as_json else None, _print_quotas)
        return
    resource = subject.resource

    async def find(to: Client) -> tuple[list[ConfigEntry], Bounds]:
        from ottla.client.configs import describe

        entries = await describe(to, resource, synonyms=True, documentation=True)
        return [known(entries, key, str(resource)) for key in keys], await bounds_of(to, resource, keys)

    def show(found: tuple[list[ConfigEntry], Bounds]) -> None:
        for entry in found[0]:
            click.echo(printable(line(resource.type, entry, found[1])))

    find_and_show(target, watch, find, (lambda found: _entries_json(found[0])) if as_json else None, show)


def _quota_finder(subject: Subject, keys: Iterable[str]) -> Any:  # noqa: ANN401
    async def find(to: Client) -> list[Quota]:
        found = await _quotas(to, subject)
        chosen = [quota._replace(values={k: v for k, v in quota.values.items() if k in keys}) for quota in found]
        if not any(quota.values for quota in chosen):
            raise Failure(f"{subject} has no quota {', '.join(keys)}", code=EXIT_REFUSED)
        return chosen

    return find


def known(entries: Mapping[str, ConfigEntry], key: str, owner: str) -> ConfigEntry:
    """The setting with a name; raises a Failure with the nearest name if there is none."""
    if key not in entries:
        advice = nearest(key, entries) or "'ottla explain config --list' lists all settings"
        raise Failure(f"{owner} has no setting '{key}'", advice)
    return entries[key]


async def bounds_of(client: Client, resource: Resource, keys: Iterable[str]) -> Bounds:
    """The bounds that brokers set for these settings of groups."""
    from ottla.client import ClientError
    from ottla.client.configs import Resource, ResourceType, describe

    if resource.type is not ResourceType.GROUP:
        return {}
    names = {key: tuple(bound_name(bound, key) for bound in ("min", "max")) for key in keys}
    try:
        node_id = min((await client.refresh()).brokers)
        broker = await describe(
            client, Resource(ResourceType.BROKER, str(node_id)), keys=[name for pair in names.values() for name in pair]
        )
    except ClientError:
        return {}
    values = {key: [broker[name].value if name in broker else None for name in pair] for key, pair in names.items()}
    return {key: (low, high) for key, (low, high) in values.items()}


def bound_name(bound: str, key: str) -> str:
    """The broker setting that bounds a group setting."""
    family, _, rest = key.partition(".")
    return f"group.{family}.{bound}.{rest.removeprefix('num.')}"
