"""Access control lists: who may do what, on any cluster with an authorizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.client import Client, always
from ottla.client.errors import check
from ottla.wire.access import Operation, PatternType, Permission, ResourceType
from ottla.wire.types.create_acls import CreateAclsRequest, CreateAclsResponse
from ottla.wire.types.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from ottla.wire.types.describe_acls import DescribeAclsRequest, DescribeAclsResponse

__all__ = [
    "Acl",
    "AclFilter",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "add",
    "describe",
    "full_principal",
    "remove",
]


class Acl(NamedTuple):
    """A rule: a principal may (or may not) do something to what a resource pattern stands for, from a host."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    @property
    def place(self) -> tuple[object, ...]:
        """Sorts rules by what they are about."""
        kind, name, pattern, principal, _, operation, permission = self
        return kind, name, pattern, permission, principal, operation


class AclFilter(NamedTuple):
    """Which rules are meant; None and ANY stand for all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY


def full_principal(text: str) -> str:
    """`ann` is short for `User:ann`."""
    return text if ":" in text else f"User:{text}"


async def describe(client: Client, wanted: AclFilter = AclFilter()) -> list[Acl]:  # noqa: B008  # a constant
    """The rules that fit a filter."""
    answer = await client.ask("DescribeAcls", always(DescribeAclsRequest(*wanted)))
    body = answer.of(DescribeAclsResponse)
    check(answer.peer, "DescribeAcls", body.error_code, message=body.error_message)
    return [
        _acl(each.resource_type, each.resource_name, each.pattern_type, acl.principal, acl.host, acl.operation,
             acl.permission_type)
        for each in body.resources
        for acl in each.acls
    ]  # fmt: skip


async def add(client: Client, acls: Iterable[Acl]) -> None:
    """Add rules; those that are there already stay."""
    added = list(acls)
    request = CreateAclsRequest(tuple(CreateAclsRequest.AclCreation(*each) for each in added))
    answer = await client.ask("CreateAcls", always(request), broker="controller")
    for acl, each in zip(added, answer.of(CreateAclsResponse).results, strict=True):
        check(answer.peer, "CreateAcls", each.error_code, acl.resource_name, each.error_message)


async def remove(client: Client, filters: Iterable[AclFilter]) -> list[Acl]:
    """Remove the rules that fit any of the filters; gives what was removed."""
    request = DeleteAclsRequest(tuple(DeleteAclsRequest.DeleteAclsFilter(*each) for each in filters))
    answer = await client.ask("DeleteAcls", always(request), broker="controller")
    found = []
    for each in answer.of(DeleteAclsResponse).filter_results:
        check(answer.peer, "DeleteAcls", each.error_code, message=each.error_message)
        for acl in each.matching_acls:
            check(answer.peer, "DeleteAcls", acl.error_code, acl.resource_name, acl.error_message)
            found.append(
                _acl(acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal, acl.host, acl.operation,
                     acl.permission_type)
            )  # fmt: skip
    return found


def _acl(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> Acl:
    return Acl(
        ResourceType(resource_type),
        name,
        PatternType(pattern_type),
        principal,
        host,
        Operation(operation),
        Permission(permission),
    )
