"""The states of a record in a share group, and the ways to acknowledge one.

=============  =============  ==========================================================================
from           to             by
=============  =============  ==========================================================================
AVAILABLE      ACQUIRED       a fetch; the delivery count grows by one
AVAILABLE      ARCHIVED       the record is gone from the log
ACQUIRED       AVAILABLE      release, end of the lock, end of the session
ACQUIRED       ARCHIVED       the same at the delivery limit or below the start; reject, gap; aborted data
ACQUIRED       ACKNOWLEDGED   accept
ACQUIRED       ARCHIVING      reject, and the delivery limit, in a group with a dead-letter queue (KIP-1191)
ARCHIVING      ARCHIVED       the record is in the dead-letter queue, or could not be put there
=============  =============  ==========================================================================

ACKNOWLEDGED and ARCHIVED are final. ACQUIRED is never written down: what a lost leader had handed out is handed out
again. ARCHIVING is written down, so that the next leader goes on with it; it holds up the start of the window.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final

from ottla.wire.acknowledge_type import AcknowledgeType

__all__ = ["TARGETS", "TERMINAL", "AcknowledgeType", "AcquireMode", "Cause", "RecordState"]


class RecordState(IntEnum):
    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


TERMINAL: Final = frozenset((RecordState.ACKNOWLEDGED, RecordState.ARCHIVED))


TARGETS: Final[dict[int, RecordState]] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""What becomes of an acquired record. A renewal changes no state."""


class Cause(Enum):
    """Why a record goes to a dead-letter queue; the text is for people."""

    REJECTED = "The record was rejected by a consumer."
    DELIVERY_LIMIT = "The record was delivered as often as the group allows."


class AcquireMode(IntEnum):
    """How strictly a fetch's limit on records is taken (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1
