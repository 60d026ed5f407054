"""`ottla groups`: see and change groups of all four types, on any cluster.

`find` looks groups up and explains why one cannot be changed; each command has a module of its own.
"""

from __future__ import annotations

import click

from ottla.cli.cluster import ClusterGroup, help_alone
from ottla.cli.groups.delete import delete, delete_offsets
from ottla.cli.groups.describe import describe
from ottla.cli.groups.list import list_groups
from ottla.cli.groups.offsets import offsets
from ottla.cli.groups.reset import reset


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def groups(context: click.Context) -> None:
    """Manage the groups of any cluster: classic, consumer, share and streams groups."""
    help_alone(context)


for command in (list_groups, describe, offsets, reset, delete, delete_offsets):
    groups.add_command(command)
