"""What the three APIs of ACLs share while there is no authorizer. No handler."""

from __future__ import annotations

from typing import Final

from ottla.broker.network.request import Close, CloseCause

_UNKNOWN: Final = 0


def check_known(*codes: int) -> None:
    """Close for the number 0 in place of a resource type, pattern type, operation or permission, as Apache Kafka does.

    Other numbers that mean nothing are answered.
    """
    if _UNKNOWN in codes:
        reason = "the request has UNKNOWN where a resource, a pattern, an operation or a permission must be"
        raise Close(reason, CloseCause.MALFORMED_REQUEST)
