"""Numbers in the messages of share groups that the schemas do not name."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["AcknowledgeType"]


class AcknowledgeType(IntEnum):
    """What is to become of a record that was delivered."""

    GAP = 0
    """There was no record; only the consumer itself says so."""
    ACCEPT = 1
    """It was processed."""
    RELEASE = 2
    """Somebody else, or the same member, is to get it again; at the delivery limit it is archived."""
    REJECT = 3
    """Nobody can process it."""
    RENEW = 4
    """It takes longer: the lock starts anew."""
