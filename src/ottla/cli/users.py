"""`ottla users`: who can log in with SCRAM, and with which password, on any cluster."""

from __future__ import annotations

import sys
from typing import TextIO

import click

from ottla.cli.cluster import (
    ClusterGroup,
    Column,
    Target,
    help_alone,
    json_option,
    on_cluster,
    print_json,
    print_table,
    target_options,
)
from ottla.cli.confirm import confirm, yes_option
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.wire.access import SCRAM_MECHANISMS

MECHANISMS = tuple(SCRAM_MECHANISMS)
COLUMNS = (Column("USER"), Column("MECHANISM"), Column("ITERATIONS", is_number=True))

mechanism_option = click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS, case_sensitive=False),
    help="The SCRAM mechanism; repeatable; by default both.",
)


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def users(context: click.Context) -> None:
    """Manage SCRAM users, on any cluster.

    Passwords never leave this machine: the cluster receives a salted hash.
    """
    help_alone(context)


@users.command("list")
@click.argument("names", nargs=-1, metavar="[USER]...")
@json_option
@target_options
def list_users(target: Target, names: tuple[str, ...], as_json: bool) -> None:
    """List users and their mechanisms; all users if none is named."""
    from ottla.client.users import describe_users

    found = on_cluster(target, lambda client: describe_users(client, names or None))
    missing = [name for name in names if name not in found]
    if missing:
        raise Failure(f"user {missing[0]} has no SCRAM credentials", "`ottla users list` shows all of them")
    rows = [(user, *each) for user in sorted(found) for each in sorted(found[user].items())]
    if as_json:
        keys = ("user", "mechanism", "iterations")
        print_json({"rows": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        print_table(COLUMNS, rows)


@users.command("set")
@click.argument("name", metavar="USER")
@mechanism_option
@click.option(
    "--password-file", type=click.File(encoding="utf-8"), help="Read the password from a file; - is standard input."
)
@click.option("--iterations", type=click.IntRange(4096, 16384), default=8192, show_default=True)
@target_options
def set_user(
    target: Target, name: str, mechanisms: tuple[str, ...], password_file: TextIO | None, iterations: int
) -> None:
    """Add a user, or change a user's password.

    The password is prompted for, or read from a file. It is not an option, which process lists would show.
    """
    from ottla.client import Client
    from ottla.client.users import ScramUser, set_users

    password = _password(name, password_file)

    async def work(client: Client) -> None:
        for mechanism in mechanisms or MECHANISMS:
            await set_users(client, [ScramUser(name, password, mechanism, iterations)])

    on_cluster(target, work)
    click.echo(f"{name} can log in with {' and '.join(mechanisms or MECHANISMS)}")


def _password(name: str, file: TextIO | None) -> str:
    if file is not None:
        try:
            password = file.read().rstrip("\r\n")
        except UnicodeDecodeError:
            raise Failure(f"the password in {file.name} is not text in UTF-8") from None
    elif sys.stdin.isatty():
        password = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True)
    else:
        raise Failure(
            "a terminal is needed to prompt for the password", "--password-file - reads it from standard input"
        )
    if not password:
        raise Failure("the password is empty")
    return password


@users.command("delete")
@click.argument("name", metavar="USER")
@mechanism_option
@yes_option
@target_options
def delete_user(target: Target, name: str, mechanisms: tuple[str, ...], yes: bool) -> None:
    """Delete a user's credentials. Open sessions continue until they end."""
    from ottla.client import Client
    from ottla.client.users import delete_users, describe_users

    async def work(client: Client) -> list[str]:
        has = (await describe_users(client, [name])).get(name, {})
        chosen = [each for each in mechanisms or MECHANISMS if each in has]
        if not chosen:
            raise Failure(f"{name} has no such credentials", "`ottla users list` shows all of them", code=EXIT_REFUSED)
        confirm([f"{name} can no longer log in with {' and '.join(chosen)}"], yes)
        for each in chosen:
            await delete_users(client, [(name, each)])
        return chosen

    click.echo(f"{name} can no longer log in with {' and '.join(on_cluster(target, work))}")
