"""`ottla share reset`: let a share group without members start elsewhere."""

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
    """Let a share group start at other offsets. It must have no members.

    Everything from the new start on is delivered anew, whatever became of it before. Without --execute nothing is
    changed. An offset that is not in the log becomes the nearest one that is.
    """

    async def find(client: Client) -> ListedGroup:
        group = await existing_group(client, name, asked, "share")
        if group.type != "share":
            raise Failure(f"group '{name}' is a {group.type} group, not a share group", "see 'ottla groups reset'")
        return group

    perform(target, name, asked, as_json, find)
