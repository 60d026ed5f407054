"""`ottla quorum add-voter|remove-voter`: changes the voters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Target, on_cluster, target_options
from ottla.cli.confirm import confirm, yes_option
from ottla.cli.failure import Failure
from ottla.wire import uuid_bytes

if TYPE_CHECKING:
    from ottla.client import Client

PORT_MAX = 65_535
directory_option = click.option(
    "--directory-id",
    required=True,
    metavar="ID",
    help="Id of the node's metadata directory, from its meta.properties.",
)


@click.command("add-voter")
@click.argument("node_id", type=click.IntRange(0))
@click.option("--listener", "listeners", multiple=True, required=True, metavar="NAME://HOST:PORT",
              help="The address of the node's controller; repeatable.")  # fmt: skip
@directory_option
@target_options
def add_voter(target: Target, node_id: int, listeners: tuple[str, ...], directory_id: str) -> None:
    """Make a controller that is an observer a voter."""
    places = [_listener(each) for each in listeners]

    async def work(client: Client) -> None:
        from ottla.client.voters import add_raft_voter

        await add_raft_voter(client, node_id, _directory(directory_id), places)

    on_cluster(target, work)
    click.echo(f"node {node_id} is a voter")


@click.command("remove-voter")
@click.argument("node_id", type=click.IntRange(0))
@directory_option
@yes_option
@target_options
def remove_voter(target: Target, node_id: int, directory_id: str, yes: bool) -> None:
    """Remove a controller from the voters."""
    confirm([f"would remove voter {node_id}: the quorum would tolerate fewer failures"], yes)

    async def work(client: Client) -> None:
        from ottla.client.voters import remove_raft_voter

        await remove_raft_voter(client, node_id, _directory(directory_id))

    on_cluster(target, work)
    click.echo(f"node {node_id} is no longer a voter")


def _directory(text: str) -> bytes:
    try:
        return uuid_bytes(text)
    except ValueError:
        raise Failure(f"{text!r} is not a directory id", "it has 22 characters, as in meta.properties") from None


def _listener(text: str) -> tuple[str, str, int]:
    name, mark, place = text.partition("://")
    host, colon, port = place.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) <= PORT_MAX
    if not (name and mark and host and colon and is_port):
        raise Failure(f"--listener {text!r} is not NAME://HOST:PORT", "for example CONTROLLER://10.0.0.5:9093")
    return name, host, int(port)
