"""`ottla topics`: the topics of any cluster and the records in them.

`find` looks topics up; each command, or pair of commands, has a module of its own. JSON output has the form of the
console's data: snake_case names, times in milliseconds since 1970.
"""

from __future__ import annotations

import click

from ottla.cli.cluster import ClusterGroup, help_alone
from ottla.cli.topics.change import alter, create, delete, grow
from ottla.cli.topics.consume import consume
from ottla.cli.topics.copy import copy
from ottla.cli.topics.describe import describe
from ottla.cli.topics.list import list_topics
from ottla.cli.topics.offsets import delete_records, offsets
from ottla.cli.topics.produce import produce
from ottla.cli.topics.reassign import reassign
from ottla.cli.topics.transactions import transactions


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def topics(context: click.Context) -> None:
    """Manage the topics of any cluster and their records."""
    help_alone(context)


for command in (
    list_topics,
    describe,
    create,
    delete,
    alter,
    grow,
    produce,
    consume,
    copy,
    offsets,
    delete_records,
    reassign,
    transactions,
):
    topics.add_command(command)
