"""Checks that several requests share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.core.metadata.context import Context
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.image import CLIENT_METRICS, GROUP, TOPIC
from ottla.core.metadata.records import BATCH_RECORDS_MAX
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode

_NAMED: Final = {TOPIC: "topic", GROUP: "group", CLIENT_METRICS: "subscription to client metrics"}


def check_single(count: int) -> None:
    """Reject an entry with INVALID_REQUEST that a request names more than once."""
    if count > 1:
        raise Reject(ErrorCode.INVALID_REQUEST, "The request names it more than once.")


def check_has_name(resource_type: int, resource_name: str) -> None:
    """Reject with INVALID_REQUEST a resource that needs a name to have settings, and has none."""
    if resource_type in _NAMED and not resource_name:
        raise Reject(ErrorCode.INVALID_REQUEST, f"A {_NAMED[resource_type]} without a name has no settings.")


def check_values(settings: Iterable[tuple[str, str | None]], code: ErrorCode) -> None:
    """Reject settings that have no value."""
    without_value = [name for name, value in settings if value is None]
    if without_value:
        raise Reject(code, f"Settings without a value: {', '.join(without_value)}.")


def check_size(record_count: int) -> None:
    """Reject with POLICY_VIOLATION what would not fit into one batch."""
    if record_count > BATCH_RECORDS_MAX:
        raise Reject(
            ErrorCode.POLICY_VIOLATION,
            f"More than {BATCH_RECORDS_MAX} records would be needed; spread the change over several requests.",
        )


def charge(context: Context, partition_count: int) -> None:
    """Take partitions from the quota of the one who asks, or reject with THROTTLING_QUOTA_EXCEEDED."""
    if not context.charge(partition_count):
        raise Reject(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


def check_cluster_access(context: Context, operation: Operation) -> None:
    """Reject with CLUSTER_AUTHORIZATION_FAILED who may not do this to the cluster."""
    if not context.authorize(operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise Reject(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
