"""Writes that are acknowledged when their replicas have them: what is refused at once, and how they end."""

from __future__ import annotations

from typing import Final

from ottla.broker.replicas.replicas import Replica
from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode

__all__ = ["ALL", "check_isr", "write_result"]

ALL: Final = -1
"""`acks` of a write that all in-sync replicas must have."""


def check_isr(replica: Replica) -> None:
    """Reject a write with acks=all while fewer replicas are in sync than min.insync.replicas asks for."""
    leading = replica.leading
    if leading is not None and leading.is_under_min_isr(replica.min_insync_replicas):
        raise Reject(ErrorCode.NOT_ENOUGH_REPLICAS)


def write_result(replica: Replica, leader_epoch: int, end_offset: int, acks: int = ALL) -> ErrorCode | None:
    """How a write that was staged in `leader_epoch` has ended; None if that is not known yet.

    Raises LogError if it is lost with its disk.
    """
    if not replica.is_leader or replica.leader_epoch != leader_epoch:
        # It may be gone: what a later epoch has acknowledged says nothing of it.
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not replica.is_acknowledged(end_offset, acks):
        return None
    leading = replica.leading
    if acks == ALL and leading is not None and not leading.has_enough_replicas(replica.min_insync_replicas):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE
