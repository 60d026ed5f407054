"""`ottla share reset`: sets the start offsets of a share group without members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Target, json_option, target_options
from ottla.cli.failure import Failure
from ottla.cli.groups.reset import ResetRequest, existing_group, perform, reset_options

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.groups import ListedGroup


@click.command()
@click.argument("name", metavar="GROUP")
@reset_options
@json_option
@target_options
def reset(target: Target, name: str, asked: ResetRequest, as_json: bool) -> None:
    """Reset the start offsets of a share group. The group must have no members.

    All records from the new start offset are delivered again, even completed ones. An offset outside the log is
    replaced by the nearest one in it.
    """

    async def find(client: Client) -> ListedGroup:
        group = await existing_group(client, name, asked, "share")
        if group.type != "share":
            raise Failure(f"group '{name}' is a {group.type} group, not a share group", "see 'ottla groups reset'")
        return group

    perform(target, name, asked, as_json, find)
