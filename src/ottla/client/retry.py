"""Which error codes are worth another attempt, and what has to happen before it.

It depends on how the request found its broker. A request to a partition's leader is sent again after a look at who
leads; one to a group's coordinator after a look at who coordinates. A request that the caller addressed to one broker
is sent again only if waiting alone can help. Errors that speak of the caller's own state (fetch sessions, member
epochs) are the caller's to mend.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from ottla.wire.errors import ErrorCode

__all__ = ["RetryAction", "Routing", "codes_in", "cure_for_all", "retry_action"]


class Routing(Enum):
    """How the broker for a request is chosen."""

    ANY = auto()
    NODE = auto()
    CONTROLLER = auto()
    LEADER = auto()
    COORDINATOR = auto()


class RetryAction(Enum):
    """What has to happen before the next attempt, besides waiting."""

    WAIT = auto()
    ASK_METADATA = auto()
    FIND_COORDINATOR = auto()


WAITING: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
LEADERSHIP: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
COORDINATION: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
CONTROL: Final = frozenset({ErrorCode.NOT_CONTROLLER})
_CODE_FIELDS: Final = ("error_code", "partition_error_code")


def retry_action(code: int, way: Routing) -> RetryAction | None:
    """What to do about an error before trying again; None if trying again does not help."""
    if code in WAITING:
        return RetryAction.WAIT
    if way is Routing.LEADER and code in LEADERSHIP:
        return RetryAction.ASK_METADATA
    if way is Routing.COORDINATOR and code in COORDINATION:
        return RetryAction.FIND_COORDINATOR
    if way in (Routing.CONTROLLER, Routing.ANY) and code in CONTROL:
        return RetryAction.ASK_METADATA
    return None


def cure_for_all(answer: object, way: Routing) -> RetryAction | None:
    """The cure, if all that was asked for failed and all of it can be cured.

    An answer that went well in part is never asked for again as a whole.
    """
    cures = {retry_action(code, way) if code else None for code in codes_in(answer)}
    if not cures or None in cures:
        return None
    return next((cure for cure in cures if cure is not RetryAction.WAIT), RetryAction.WAIT)


def codes_in(answer: object) -> Iterator[int]:
    """The error codes in an answer that judge what was asked for, wherever they stand.

    A zero above other codes says only that the request as a whole was read, or that the field is not in this version.
    """
    if not isinstance(answer, Struct):
        return
    own = next((getattr(answer, name) for name in _CODE_FIELDS if hasattr(answer, name)), None)
    if own:
        yield own
        return
    inner = [code for field in answer.__struct_fields__ for code in _codes_in_field(getattr(answer, field))]
    if inner:
        yield from inner
    elif own is not None:
        yield own


def _codes_in_field(value: object) -> Iterator[int]:
    for each in value if isinstance(value, tuple) else (value,):
        yield from codes_in(each)
