"""`ottla acls`: who may do what, on any cluster with an authorizer."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

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
from ottla.cli.failure import Failure
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType, label

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.client import Client
    from ottla.client.acls import Acl, AclFilter

COLUMNS = tuple(map(Column, ("PERMISSION", "PRINCIPAL", "HOST", "OPERATION", "RESOURCE", "PATTERN", "NAME")))
RESOURCES = {label(each): each for each in ResourceType if each is not ResourceType.ANY}
OPERATOR = (
    ("--cluster", ("describe", "describe-configs")),
    ("--topic '*'", ("describe", "describe-configs")),
    ("--topic __share_group_state", ("read",)),
    ("--group '*'", ("describe", "describe-configs")),
    ("--transactional-id '*'", ("describe",)),
)
"""The rights of somebody who looks after a cluster."""
OPERATIONS = {label(each): each for each in Operation if each is not Operation.ANY}


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name in reversed(RESOURCES):
        if name == "cluster":
            option = click.option("--cluster", is_flag=True, help="The cluster itself.")
        else:
            variable = name.replace("-", "_")
            option = click.option(
                f"--{name}", variable, metavar="NAME", help=f"A {name.replace('-', ' ')}, or * for all."
            )
        command = option(command)
    return click.option("--prefix", "is_prefix", is_flag=True, help="Match all names that begin with NAME.")(command)


principal_option = click.option("--principal", metavar="USER", help="The principal: ann, User:ann, or User:* for all.")
host_option = click.option("--host", metavar="ADDRESS", help="The client's address; by default all.")
operation_option = click.option(
    "--operation", "operations", multiple=True, type=click.Choice([*OPERATIONS]), help="The operation; repeatable."
)


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def acls(context: click.Context) -> None:
    """List and change ACLs, on any cluster with an authorizer.

    Deny takes precedence over allow. READ, WRITE, DELETE and ALTER imply DESCRIBE.
    """
    help_alone(context)


@acls.command("list")
@resource_options
@principal_option
@json_option
@target_options
def list_acls(target: Target, principal: str | None, as_json: bool, **chosen: str | bool | None) -> None:
    """List ACLs: all, those of a principal, or those of a resource."""
    from ottla.client.acls import AclFilter, PatternType, ResourceType, describe, full_principal

    resource = _resource(chosen)
    wanted = AclFilter(principal=None if principal is None else full_principal(principal))
    if resource is not None:
        pattern = PatternType.PREFIXED if chosen["is_prefix"] else PatternType.MATCH
        wanted = wanted._replace(
            resource_type=ResourceType(resource[0]), resource_name=resource[1], pattern_type=pattern
        )
    found = sorted(on_cluster(target, lambda client: describe(client, wanted)), key=lambda acl: acl.place)
    if as_json:
        print_json({"rows": [_json(each) for each in found]})
    else:
        print_table(COLUMNS, map(_row, found))


@acls.command("add")
@resource_options
@principal_option
@host_option
@operation_option
@click.option("--deny", is_flag=True, help="Deny instead of allow.")
@target_options
def add_acls(
    target: Target,
    principal: str | None,
    host: str | None,
    operations: tuple[str, ...],
    deny: bool,
    **chosen: str | bool | None,
) -> None:
    """Add an ACL: --topic orders --principal ann --operation read."""
    from ottla.client.acls import Acl, PatternType, Permission, ResourceType, add, full_principal

    resource = _resource(chosen)
    if resource is None or principal is None or not operations:
        raise Failure(
            "an ACL needs a resource, a principal and an operation",
            "ottla acls add --topic orders --principal ann --operation read",
        )
    pattern = PatternType.PREFIXED if chosen["is_prefix"] else PatternType.LITERAL
    permission = Permission.DENY if deny else Permission.ALLOW
    kind, name = resource
    rules = [
        Acl(ResourceType(kind), name, pattern, full_principal(principal), host or "*", OPERATIONS[each], permission)
        for each in operations
    ]
    on_cluster(target, lambda client: add(client, rules))
    print_table(COLUMNS, map(_row, rules))


@acls.command("remove")
@resource_options
@principal_option
@host_option
@operation_option
@yes_option
@target_options
def remove_acls(
    target: Target,
    principal: str | None,
    host: str | None,
    operations: tuple[str, ...],
    yes: bool,
    **chosen: str | bool | None,
) -> None:
    """Remove all ACLs that match the given resource, principal, host and operation."""
    from ottla.client.acls import AclFilter, PatternType, ResourceType, describe, full_principal, remove

    resource = _resource(chosen)
    if resource is None and principal is None:
        raise Failure("no ACLs selected", "name a resource, a --principal, or both")
    wanted = AclFilter(principal=None if principal is None else full_principal(principal), host=host)
    if resource is not None:
        pattern = PatternType.PREFIXED if chosen["is_prefix"] else PatternType.LITERAL
        wanted = wanted._replace(
            resource_type=ResourceType(resource[0]), resource_name=resource[1], pattern_type=pattern
        )
    filters: list[AclFilter] = [wanted._replace(operation=OPERATIONS[each]) for each in operations] or [wanted]

    async def work(client: Client) -> list[Acl]:
        found = [acl for each in filters for acl in await describe(client, each)]
        if not found:
            raise Failure("no ACL matches", "`ottla acls list` shows all of them")
        confirm(["these ACLs would be removed:", *("  " + " ".join(map(str, _row(each))) for each in found)], yes)
        return await remove(client, filters)

    print_table(COLUMNS, map(_row, on_cluster(target, work)))


@acls.command("console")
@click.option(
    "--principal", metavar="USER", default="operator", show_default=True, help="The principal to grant access to."
)
def console(principal: str) -> None:
    """Print the commands that grant read-only access for `ottla health`, `ottla observe` and the console.

    To read records of topics, also grant --operation read on them.
    """
    for resource, operations in OPERATOR:
        words = [f"--operation {each}" for each in operations]
        click.echo(f"ottla acls add {resource} --principal {shlex.quote(principal)} {' '.join(words)}")


def _resource(chosen: Mapping[str, str | bool | None]) -> tuple[ResourceType, str] | None:
    """The one resource that options name, if any."""
    named = [
        (kind, CLUSTER_NAME if name == "cluster" else str(chosen[name.replace("-", "_")]))
        for name, kind in RESOURCES.items()
        if chosen[name.replace("-", "_")]
    ]
    if len(named) > 1:
        raise Failure("an ACL has one resource", "give one of --topic, --group, --cluster and the others")
    return named[0] if named else None


def _row(acl: Acl) -> tuple[object, ...]:
    kind, pattern = label(acl.resource_type), label(acl.pattern_type)
    return label(acl.permission), acl.principal, acl.host, label(acl.operation), kind, pattern, acl.resource_name


def _json(acl: Acl) -> dict[str, object]:
    keys = ("permission", "principal", "host", "operation", "resource_type", "pattern_type", "resource_name")
    return dict(zip(keys, _row(acl), strict=True))
