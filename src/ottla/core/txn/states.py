"""The states of a transactional id, and which may follow which.

==================  =============================================================  =====================================
state               what it means                                                  comes after
==================  =============================================================  =====================================
Empty               a producer has its id and has begun nothing                    Empty, CompleteCommit, CompleteAbort
Ongoing             partitions belong to an open transaction                       Ongoing, Empty, CompleteCommit,
                                                                                   CompleteAbort
PrepareCommit       decided: markers are on their way                              Ongoing
PrepareAbort        decided: markers are on their way                              Ongoing; with transaction version 2
                                                                                   also Empty, CompleteCommit,
                                                                                   CompleteAbort
CompleteCommit      all markers are written                                        PrepareCommit
CompleteAbort       all markers are written                                        PrepareAbort
Dead                the id is being forgotten; Kafka shows it, ottla forgets it    Empty, CompleteCommit, CompleteAbort
                    with one record
PrepareEpochFence   a newer producer, or a time-out, shuts out the present one;    Ongoing
                    never written, and in ottla never seen: the step to
                    PrepareAbort is taken in the same call
==================  =============================================================  =====================================
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["MAY_FOLLOW", "TransactionState"]


class TransactionState(Enum):
    """Value: the number in records. `shown`: the name in Describe- and ListTransactions."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    def __init__(self, number: int) -> None:
        self.shown = "".join(part.capitalize() for part in self.name.split("_"))
        self.is_prepare = number in (2, 3)
        self.is_complete = number in (4, 5)
        self.is_idle = number in (0, 4, 5)
        """Nothing is open and nothing on its way."""

    def __repr__(self) -> str:
        return self.shown

    @classmethod
    def of_name(cls, shown: str) -> TransactionState | None:
        return _BY_NAME.get(shown)


_BY_NAME: Final = {each.shown: each for each in TransactionState}

_IDLE: Final = frozenset(each for each in TransactionState if each.is_idle)

MAY_FOLLOW: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: _IDLE,
    TransactionState.ONGOING: _IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _IDLE | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _IDLE,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""State -> those that it may follow."""
