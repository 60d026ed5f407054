"""Numbers in the messages of share groups that the schemas do not name."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["AcknowledgeType"]


class AcknowledgeType(IntEnum):
    """How a delivered record is acknowledged."""

    GAP = 0
    """There is no record at this offset; the consumer itself sends this."""
    ACCEPT = 1
    """It was processed."""
    RELEASE = 2
    """It is to be delivered again, to any member; at the delivery limit it is archived."""
    REJECT = 3
    """It cannot be processed."""
    RENEW = 4
    """It takes longer: the lock is renewed."""
