"""`ottla share`: share groups, their offsets and what they have in flight, on any cluster.

`find` looks up groups and what they have in flight; each command has a module of its own.
"""

from __future__ import annotations

import click

from ottla.cli.cluster import ClusterGroup, help_alone
from ottla.cli.share.describe import describe
from ottla.cli.share.inflight import inflight
from ottla.cli.share.list import list_groups
from ottla.cli.share.offsets import offsets
from ottla.cli.share.reset import reset
from ottla.cli.share.watch import watch


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def share(context: click.Context) -> None:
    """Inspect and reset share groups, on any cluster."""
    help_alone(context)


for command in (list_groups, describe, inflight, offsets, reset, watch):
    share.add_command(command)
