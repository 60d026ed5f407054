"""`ottla configs set` and `unset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Target, on_cluster, target_options
from ottla.cli.configs.get import bound_name, bounds_of, known
from ottla.cli.configs.subject import Subject, client_option, type_argument
from ottla.cli.confirm import dry_run_option
from ottla.cli.failure import Failure, nearest
from ottla.cli.verbosity import note

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.configs import Change, Resource

LISTENER_PREFIX = "listener.name."
"""A listener's own settings, which nobody can list."""


@click.command("set")
@type_argument
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@client_option
@dry_run_option
@target_options
def set_configs(
    target: Target, kind: str, name: str, settings: tuple[str, ...], client: str | None, dry_run: bool
) -> None:
    """Set settings, all of them or none. Others stay unchanged.

    KEY+=VALUE adds an entry to a list, and KEY-=VALUE removes one.
    """
    subject = Subject(kind, name, client)
    changes = [change_of(text) for text in settings]
    if subject.is_quota:
        _change_quotas(target, subject, {each.name: _quota(each) for each in changes}, dry_run=dry_run)
    else:
        _change(target, subject.resource, changes, dry_run=dry_run)
    _say(subject, changes, dry_run=dry_run)


@click.command()
@type_argument
@click.argument("name")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@client_option
@dry_run_option
@target_options
def unset(target: Target, kind: str, name: str, keys: tuple[str, ...], client: str | None, dry_run: bool) -> None:
    """Remove settings, so that broader settings or the defaults apply again."""
    from ottla.client.configs import Change, Operation

    subject = Subject(kind, name, client)
    changes = [Change(Operation.DELETE, key) for key in keys]
    if subject.is_quota:
        _change_quotas(target, subject, dict.fromkeys(keys), dry_run=dry_run)
    else:
        _change(target, subject.resource, changes, dry_run=dry_run)
    _say(subject, changes, dry_run=dry_run)


def change_of(text: str) -> Change:
    """KEY=VALUE, KEY+=VALUE or KEY-=VALUE; the value may be empty."""
    from ottla.client.configs import Change, Operation

    key, equals, value = text.partition("=")
    operation = {"+": Operation.APPEND, "-": Operation.SUBTRACT}.get(key[-1:], Operation.SET)
    key = key.rstrip("+-").strip()
    if not equals or not key:
        raise Failure(f"{text!r} is not KEY=VALUE", "for example retention.ms=60000")
    return Change(operation, key, value)


def _quota(change: Change) -> float:
    try:
        return float(change.value or "")
    except ValueError:
        raise Failure(f"{change.name} cannot be {change.value!r}: a quota is a number") from None


def _say(subject: Subject, changes: Sequence[Change], *, dry_run: bool) -> None:
    done = "could be changed" if dry_run else "changed"
    click.echo(f"{subject} {done}: {', '.join(change.name for change in changes)}")


def _change_quotas(target: Target, subject: Subject, changes: Mapping[str, float | None], *, dry_run: bool) -> None:
    entity = subject.entity

    async def work(client: Client) -> None:
        from ottla.client.quotas import alter_quotas

        await alter_quotas(client, entity, changes, validate_only=dry_run)

    on_cluster(target, work)


def _change(target: Target, resource: Resource, changes: Sequence[Change], *, dry_run: bool) -> None:
    names = [change.name for change in changes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Failure(f"{twice} is given twice", "give each setting once")

    async def work(client: Client) -> None:
        await change_settings(client, resource, changes, dry_run=dry_run)

    on_cluster(target, work)
    _note_unknown(resource, changes)


def _note_unknown(resource: Resource, changes: Sequence[Change]) -> None:
    """Brokers take any name, since plugins may have settings of their own; most unknown names are typing errors."""
    from ottla.client.configs import ResourceType
    from ottla.core.metadata.config_defs import broker_defs

    if resource.type is not ResourceType.BROKER:
        return
    for change in changes:
        if change.name not in broker_defs() and not change.name.startswith(LISTENER_PREFIX):
            advice = nearest(change.name, broker_defs())
            note(f"{change.name} is not a setting of Kafka's brokers" + (f"; {advice}" if advice else ""))


async def change_settings(
    client: Client, resource: Resource, changes: Sequence[Change], *, dry_run: bool = False
) -> None:
    """Change settings; explain why the broker refuses a name or a value."""
    from ottla.client import ResponseError
    from ottla.client.configs import alter
    from ottla.wire.errors import ErrorCode

    try:
        await alter(client, resource, changes, validate_only=dry_run)
    except ResponseError as error:
        if error.code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
            await _explain(client, resource, changes)
        raise


async def _explain(client: Client, resource: Resource, changes: Sequence[Change]) -> None:
    """Raise a Failure that says more than the broker does, if we know more."""
    from ottla.client.configs import ResourceType, describe

    entries = await describe(client, resource)
    if resource.type is not ResourceType.BROKER:
        for change in changes:
            known(entries, change.name, str(resource))
    bounds = await bounds_of(client, resource, [change.name for change in changes])
    for change in changes:
        low, high = bounds.get(change.name, (None, None))
        if change.value is None or not _is_outside(change.value, low, high):
            continue
        bound = bound_name("min" if _is_outside(change.value, low, None) else "max", change.name)
        raise Failure(
            f"{change.name}={change.value} is outside this broker's {low or ''}–{high or ''}", f"change {bound} first"
        )


def _is_outside(value: str, low: str | None, high: str | None) -> bool:
    try:
        number = int(value)
    except ValueError:
        return False
    return (low is not None and number < int(low)) or (high is not None and number > int(high))
