"""`ottla profile`: names for clusters, so that their addresses and logins need not be typed."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.cluster import ClusterGroup, Column, help_alone, json_option, print_json, print_table
from ottla.cli.failure import Failure
from ottla.cli.profiles import Profile, no_profile, profiles_file, read_profiles, write_profiles

COLUMNS = (Column("NAME"), Column("BOOTSTRAP"), Column("COMMAND CONFIG"))


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def profile(context: click.Context) -> None:
    """Name clusters, and choose one with --profile or the variable OTTLA_PROFILE."""
    help_alone(context)


@profile.command()
@click.argument("name")
@click.option(
    "--bootstrap",
    "--bootstrap-server",
    "bootstrap_server",
    required=True,
    metavar="HOST:PORT",
    help="A broker of the cluster; separate several with commas.",
)
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    help="Properties file of a Kafka client: security.protocol, sasl.*, ssl.* and so on.",
)
@click.option("--replace", is_flag=True, help="Replace a profile of the same name.")
def add(name: str, bootstrap_server: str, command_config: Path | None, replace: bool) -> None:
    """Add a profile."""
    profiles = read_profiles()
    if name in profiles and not replace:
        raise Failure(f"there is a profile '{name}' already", "--replace replaces it")
    write_profiles({**profiles, name: Profile(bootstrap_server, command_config)})
    click.echo(f"{name} added to {profiles_file()}")


@profile.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the profiles."""
    profiles = sorted(read_profiles().items())
    if not as_json:
        print_table(COLUMNS, [(name, *each) for name, each in profiles])
        return
    rows = [
        {
            "name": name,
            "bootstrap": each.bootstrap_server,
            "command_config": None if each.command_config is None else str(each.command_config),
        }
        for name, each in profiles
    ]
    print_json({"rows": rows})


@profile.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove a profile."""
    profiles = read_profiles()
    if name not in profiles:
        raise no_profile(name, profiles)
    del profiles[name]
    write_profiles(profiles)
    click.echo(f"{name} removed")
