"""`ottla quorum`: shows and changes the controllers and the finalized features of a cluster."""

from __future__ import annotations

import click

from ottla.cli.cluster import ClusterGroup, help_alone
from ottla.cli.quorum.features import features
from ottla.cli.quorum.membership import add_voter, remove_voter
from ottla.cli.quorum.replicas import describe, status, voters


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def quorum(context: click.Context) -> None:
    """Describe and change the controller quorum of any cluster."""
    help_alone(context)


for command in (status, describe, voters, features, add_voter, remove_voter):
    quorum.add_command(command)
