"""CreateAcls and DeleteAcls: access control lists in the metadata log; and what DescribeAcls finds there.

Each entry of a request is taken or refused on its own; what is taken is one batch. A rule that is there already is not
written again.

====================================================================  ===================
what is wrong with a new rule                                         error
====================================================================  ===================
a resource type, operation or permission that stands for any          INVALID_REQUEST
a pattern that is neither LITERAL nor PREFIXED                        INVALID_REQUEST
no name; a cluster with another name than kafka-cluster               INVALID_REQUEST
a principal without a type, or without a name                         INVALID_REQUEST
====================================================================  ===================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.core.access.acls import Acl, AclFilter
from ottla.core.metadata.checks import check_cluster_access, check_size
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.fault import Reject
from ottla.wire.access import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from ottla.wire.types.create_acls import CreateAclsRequest, CreateAclsRequestAclCreation, CreateAclsResponse
from ottla.wire.types.delete_acls import DeleteAclsRequest, DeleteAclsRequestDeleteAclsFilter, DeleteAclsResponse
from ottla.wire.types.describe_acls import DescribeAclsRequest, DescribeAclsResponse

__all__ = ["create_acls", "delete_acls", "described_acls", "refuse_create", "refuse_delete"]

_TYPES: Final = frozenset(ResourceType) - {ResourceType.ANY}
_OPERATIONS: Final = frozenset(Operation) - {Operation.ANY}
_PERMISSIONS: Final = frozenset(Permission) - {Permission.ANY}
_PATTERNS: Final = (PatternType.LITERAL, PatternType.PREFIXED)

_Result = CreateAclsResponse.AclCreationResult
_FilterResult = DeleteAclsResponse.DeleteAclsFilterResult
_Filter = DeleteAclsRequestDeleteAclsFilter | DescribeAclsRequest


# --- changing


def create_acls(state: ControllerState, request: CreateAclsRequest, context: Context) -> Result:
    check_cluster_access(context, Operation.ALTER)
    known, added = state.image.acl_rules, set[Acl]()
    records: list[Versioned] = []
    results = []
    for entry in request.creations:
        try:
            acl = _new_acl(entry)
        except Reject as reject:
            results.append(_Result(reject.code, reject.message))
            continue
        results.append(_Result(ErrorCode.NONE, None))
        if acl not in known and acl not in added:
            added.add(acl)
            records.append(Versioned(AccessControlEntryRecord(context.new_uuid(), *acl), 0))
    check_size(len(records))
    return Result(tuple(records), CreateAclsResponse(results=tuple(results)))


def _new_acl(entry: CreateAclsRequestAclCreation) -> Acl:
    """The rule that an entry asks for. Reject if there is none such."""
    codes = (
        (entry.resource_type, _TYPES, "resource type"),
        (entry.operation, _OPERATIONS, "operation"),
        (entry.permission_type, _PERMISSIONS, "permission"),
        (entry.resource_pattern_type, _PATTERNS, "pattern type"),
    )
    for code, known, name in codes:
        if code not in known:
            raise Reject(ErrorCode.INVALID_REQUEST, f"Invalid {name} {code}.")
    if not entry.resource_name:
        raise Reject(ErrorCode.INVALID_REQUEST, "The resource has no name.")
    if entry.resource_type == ResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise Reject(ErrorCode.INVALID_REQUEST, f"The only resource of type CLUSTER is {CLUSTER_NAME}.")
    kind, colon, name = entry.principal.partition(":")
    if not (kind and colon and name):
        raise Reject(ErrorCode.INVALID_REQUEST, f"The principal {entry.principal!r} is not written type:name.")
    return Acl.wanted(entry)


def delete_acls(state: ControllerState, request: DeleteAclsRequest, context: Context) -> Result:
    check_cluster_access(context, Operation.ALTER)
    gone: dict[bytes, None] = {}
    results = []
    for each in request.filters:
        wanted = _filter(each)
        found = {acl_id: acl for acl_id, acl in _all(state.image.acls.values()) if wanted.fits(acl)}
        gone |= dict.fromkeys(found)
        matching = tuple(DeleteAclsResponse.DeleteAclsMatchingAcl(0, None, *acl) for acl in found.values())
        results.append(_FilterResult(ErrorCode.NONE, None, matching))
    check_size(len(gone))
    records = tuple(Versioned(RemoveAccessControlEntryRecord(acl_id), 0) for acl_id in gone)
    return Result(records, DeleteAclsResponse(filter_results=tuple(results)))


def refuse_create(request: CreateAclsRequest, reject: Reject) -> CreateAclsResponse:
    return CreateAclsResponse(results=tuple(_Result(reject.code, reject.message) for _ in request.creations))


def refuse_delete(request: DeleteAclsRequest, reject: Reject) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=tuple(_FilterResult(reject.code, reject.message) for _ in request.filters))


# --- finding


def described_acls(acls: Iterable[AccessControlEntryRecord], request: DescribeAclsRequest) -> DescribeAclsResponse:
    """The rules that fit a filter, by resource pattern."""
    wanted = _filter(request)
    by_pattern: dict[tuple[int, str, int], list[Acl]] = {}
    for _, acl in _all(acls):
        if wanted.fits(acl):
            by_pattern.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(acl)
    kind = DescribeAclsResponse
    return kind(
        error_message=None,
        resources=tuple(
            kind.DescribeAclsResource(
                *pattern,
                tuple(
                    kind.AclDescription(each.principal, each.host, each.operation, each.permission) for each in found
                ),
            )
            for pattern, found in by_pattern.items()
        ),
    )


def _all(records: Iterable[AccessControlEntryRecord]) -> Iterable[tuple[bytes, Acl]]:
    return ((record.id, Acl.of(record)) for record in records)


def _filter(entry: _Filter) -> AclFilter:
    return AclFilter(
        entry.resource_type_filter,
        entry.resource_name_filter,
        entry.pattern_type_filter,
        entry.principal_filter,
        entry.host_filter,
        entry.operation,
        entry.permission_type,
    )
